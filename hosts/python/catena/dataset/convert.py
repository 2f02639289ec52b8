"""Converters, which make arrays on a device from lists of examples."""
import functools
from typing import Any

import numpy

from catena import _core
from catena.backend import get_device

__all__ = ["ConcatWithAsyncTransfer", "Converter", "concat_examples", "converter", "to_device"]


class Converter:
    """Converts a minibatch and sends it to a device. A subclass implements ``__call__()``."""

    def __call__(self, batch, device) -> Any:
        raise NotImplementedError("Concrete class must implement __call__.")


class _FunctionConverter(Converter):
    """A converter from a function, whose argument `device` becomes a Device or None."""

    def __init__(self, function) -> None:
        if not callable(function):
            raise TypeError(f"Can only wrap a callable. Actual: {type(function)}")
        self.base_callable = function
        functools.update_wrapper(self, function, updated=())

    def __reduce__(self):
        # A decorated function of a module is copied and pickled by its name, as functions are.
        from operator import attrgetter
        import sys
        try:
            if attrgetter(self.__qualname__)(sys.modules[self.__module__]) is self:
                return self.__qualname__
        except (AttributeError, KeyError):
            pass
        return _FunctionConverter, (self.base_callable,)

    def __call__(self, *args, **kwargs) -> Any:
        if len(args) > 1:
            args = (args[0], _device(args[1])) + args[2:]
        elif "device" in kwargs:
            kwargs["device"] = _device(kwargs["device"])
        return self.base_callable(*args, **kwargs)


def converter() -> type[_FunctionConverter]:
    """A decorator that makes a Converter from a function of a minibatch and a Device."""
    return _FunctionConverter


def _call_converter(converter, batch, device):
    """Other callables than converters get -1 for the host and the numbers of GPUs."""
    if isinstance(converter, Converter) or device is None:
        return converter(batch, device)
    if device.is_gpu:
        return converter(batch, device.id)
    return converter(batch, -1 if device == _core.Device(-1) else device)


def _device(device):
    return None if device is None else get_device(device)


def to_device(device, x) -> Any:
    """An array on a device: a numpy.ndarray on the host, else a catena.Array; x itself for None."""
    device = _device(device)
    if device is None:
        return x
    if device == _core.Device(-1) or not isinstance(device, _core.Device):  # of a class of the program
        return device.send(x)
    if isinstance(x, (list, tuple)):
        return type(x)(to_device(device, each) for each in x)
    return _core.as_array(x).to_device(device)


def _concat(arrays, padding):
    if not isinstance(arrays[0], (numpy.ndarray, _core.Array)):
        arrays = numpy.asarray(arrays)
    home = None
    if isinstance(arrays[0], _core.Array):
        home = arrays[0].device
        arrays = [to_device(-1, array) for array in arrays]
    if padding is None:
        made = numpy.concatenate([array[None] for array in arrays])
    else:
        shape = numpy.max([array.shape for array in arrays], axis=0).astype(int)
        made = numpy.full((len(arrays), *shape), padding, dtype=arrays[0].dtype)
        for i, array in enumerate(arrays):
            made[(i,) + tuple(slice(extent) for extent in array.shape)] = array
    return to_device(home, made)


@converter()
def concat_examples(batch, device=None, padding=None) -> Any:
    """Makes arrays from a list of examples, by adding a first axis.

    Examples that are tuples or dictionaries give a tuple or a dictionary of arrays.

    Args:
        batch: the examples: arrays, numbers, or tuples or dictionaries of them.
        device: the device of the result; None: that of the examples.
        padding: the value of the elements that smaller examples lack, one for all or a tuple or a
            dictionary of them; None: the shapes must be equal.
    """
    if not batch:
        raise ValueError("batch is empty")
    first = batch[0]

    def concat(key, padding):
        return to_device(device, _concat([example[key] for example in batch], padding))

    if isinstance(first, tuple):
        paddings = padding if isinstance(padding, tuple) else [padding] * len(first)
        return tuple(concat(i, paddings[i]) for i in range(len(first)))
    if isinstance(first, dict):
        paddings = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {key: concat(key, paddings[key]) for key in first}
    return to_device(device, _concat(batch, padding))


class ConcatWithAsyncTransfer:
    """A converter like concat_examples(), for the same device in all calls.

    Streams have no effect: kernels and copies run in one order on each device, also if the host is ahead.
    """

    def __init__(self, stream=None, compute_stream=None) -> None:
        self.compute_stream = compute_stream
        self._device = ()

    def __call__(self, batch, device=None, padding=None) -> Any:
        if not batch:
            raise ValueError("batch is empty")
        self._device = self._device or (_device(device),)
        if self._device != (_device(device),):
            raise ValueError("[ConcatWithAsyncTransfer] device: expected that of the first call, "
                             f"{self._device[0]}, got {device}")
        return concat_examples(batch, device, padding)
