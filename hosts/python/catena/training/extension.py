"""Extension, the base of what a trainer calls after updates."""
from collections.abc import Callable
from typing import Any, TypeVar

from catena.utils import argument

__all__ = ["Extension", "PRIORITY_EDITOR", "PRIORITY_READER", "PRIORITY_WRITER", "make_extension"]

_removed = ("invoke_before_training has been removed since Chainer v2.0.0. Use initializer= or "
            "call_before_training= instead.")
_Function = TypeVar("_Function", bound=Callable[..., Any])
PRIORITY_WRITER = 300  # reports values
PRIORITY_EDITOR = 200  # changes reported values
PRIORITY_READER = 100  # only reads them


class Extension:
    """An object that a trainer calls when its trigger fires. A subclass implements ``__call__()``.

    Attributes:
        trigger: when it is called, unless ``Trainer.extend()`` says otherwise.
        priority: extensions of higher priority are called first.
        name: its name in the trainer; None: default_name.
    """

    trigger: Any = (1, "iteration")
    priority = PRIORITY_READER
    name: Any = None

    @property
    def default_name(self):
        return type(self).__name__

    def __call__(self, trainer) -> Any:
        raise NotImplementedError("Extension implementation must override __call__.")

    def initialize(self, trainer) -> Any:
        """Is called before the first update, also of a resumed training."""

    def finalize(self) -> Any:
        """Is called at the end of the training, also after an exception."""

    def on_error(self, trainer, exc, tb) -> Any:
        """Is called when the training ends with an exception."""

    def serialize(self, serializer) -> Any:
        """Saves or loads the state."""


def make_extension(trigger=None, default_name=None, priority=None, finalizer=None,
                   initializer=None, on_error=None, **kwargs) -> Callable[[_Function], _Function]:
    """A decorator that gives a function the attributes of an extension."""
    argument.parse_kwargs(kwargs, invoke_before_training=_removed)

    def decorate(function):
        function.trigger = Extension.trigger if trigger is None else trigger
        function.default_name = default_name or function.__name__
        function.priority = Extension.priority if priority is None else priority
        function.finalize = finalizer
        function.initialize = initializer
        function.on_error = on_error
        return function
    return decorate
