"""Serializers: what saves and loads the state of links, optimizers and trainers."""
import json
import warnings
from typing import Any


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


def serialize_or(default, serializer, key, value, warning=None) -> Any:
    """serializer(key, value), or the default, perhaps with a warning, if a snapshot lacks the key."""
    try:
        return serializer(key, value)
    except KeyError:
        if warning is not None:
            warnings.warn(warning)
        return default


def serialize_json(serializer, key, value, default=None, warning=None, to_json=None) -> Any:
    """Saves a value as a text of JSON and returns it, or loads it.

    If a snapshot lacks the key, the value is the default, an error without one.
    """
    text = json.dumps(value, default=to_json)
    text = serializer(key, text) if default is None else serialize_or(
        json.dumps(default), serializer, key, text, warning)
    return value if isinstance(serializer, Serializer) else json.loads(text)
