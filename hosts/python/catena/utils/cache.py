"""Properties that are computed once."""
import functools

from catena.configuration import config


class cached_property:
    """A decorator of methods: a read-only property that is computed once.

    Values that were computed with and without a graph, which ``config.enable_backprop`` decides,
    are kept apart.
    """

    def __init__(self, func) -> None:
        functools.update_wrapper(self, func)
        self.func = func

    def __get__(self, obj, cls):
        if obj is None:
            return self
        values = obj.__dict__.setdefault(self.__name__, {})
        key = config.enable_backprop
        if key not in values:
            values[key] = self.func(obj)
        return values[key]

    def __set__(self, obj, value):
        raise AttributeError(f"attribute '{self.__name__}' of {type(obj)} is readonly")
