"""Methods that classes may not override."""
import warnings
from typing import Any

__all__ = ["enable_final", "final"]


def final(*args, action=TypeError) -> Any:
    """A decorator of a method that classes with a base of enable_final() should not override.

    ``action`` is the class of the exception that is raised then, or of the warning that is given.
    """
    def decorate(method):
        method._catena_override_action = action
        return method
    return decorate(*args) if args else decorate


class _EnableFinal(type):
    def __new__(cls, name, bases, members, **kwargs):
        for member in members:
            for base in bases:
                action = getattr(getattr(base, member, None), "_catena_override_action", None)
                if action is None:
                    continue
                if issubclass(action, Warning):
                    warnings.warn(f"Overriding method {member!r}.", action, stacklevel=2)
                else:
                    raise action(f"method {member!r} is final.")
        return super().__new__(cls, name, bases, members, **kwargs)


def enable_final(base=(), meta_base=()) -> Any:
    """A class, derived from others and with other metaclasses, whose subclasses can have final() methods."""
    base = base if isinstance(base, (list, tuple)) else (base,)
    meta_base = meta_base if isinstance(meta_base, (list, tuple)) else (meta_base,)
    metaclass = type("_EnableFinal", (_EnableFinal, *meta_base), {})
    return metaclass("FinalBase", tuple(base), {})
