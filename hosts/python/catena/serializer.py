"""Serializers: what saves and loads the state of links, optimizers and trainers."""
from typing import Any

__all__ = ["AbstractSerializer", "Deserializer", "Serializer"]


class AbstractSerializer:
    """A tree of named values. ``serializer["l1"]`` is the part below a name."""

    def __getitem__(self, key) -> Any:
        raise NotImplementedError

    def __call__(self, key, value) -> Any:
        """Saves the value, or loads one. Returns what the object must keep.

        Args:
            key: the name.
            value: an array, a number, a str or None. A deserializer writes into an array.
        """
        raise NotImplementedError


class Serializer(AbstractSerializer):
    """Saves values."""

    def save(self, obj) -> None:
        """Calls ``obj.serialize(self)``."""
        obj.serialize(self)


class Deserializer(AbstractSerializer):
    """Loads values."""

    def load(self, obj) -> None:
        """Calls ``obj.serialize(self)``."""
        obj.serialize(self)
