"""The states of random number generators in snapshots."""
import json
from typing import Any

from catena import _core

__all__ = ["of_device", "of_numpy", "of_python", "serialize"]


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
    from catena.serializer import Serializer
    if isinstance(serializer, Serializer):
        found = {name: read() for name, (read, _) in states.items()}
        serializer(key, json.dumps(found, default=lambda array: array.tolist()))
        return
    try:
        found = json.loads(serializer(key, "{}"))
    except KeyError:
        return
    for name, state in found.items():
        if name in states:
            states[name][1](state)
