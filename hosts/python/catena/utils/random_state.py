"""The states of random number generators in snapshots."""
from typing import Any

from catena import _core
from catena.serializer import Serializer, serialize_json


def of_numpy(generator) -> Any:
    """Reads and sets the state of a numpy.random.RandomState, or of numpy.random."""
    return lambda: generator.get_state(legacy=False), generator.set_state


def of_python() -> Any:
    """Reads and sets the state of the module random."""
    import random
    return random.getstate, lambda s: random.setstate((s[0], tuple(s[1]), s[2]))


def of_device(device) -> Any:
    """Reads and sets the state of a device's random numbers."""
    return lambda: _core.random_state(device), lambda s: _core.set_random_state(device, *s)


def serialize(serializer, key, states) -> None:
    """Saves or loads states, each a pair of functions under a name, as one text.

    States that a snapshot lacks, such as one of Chainer, stay as they are.
    """
    found = serialize_json(serializer, key, {name: read() for name, (read, _) in states.items()}, {},
                           to_json=lambda array: array.tolist())
    for name, state in found.items():
        if name in states and not isinstance(serializer, Serializer):
            states[name][1](state)
