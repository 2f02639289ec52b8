"""Devices and the modules that compute on their arrays, with the names of chainer.backend."""
from abc import ABCMeta
from typing import Any

import numpy

from catena import _core
from catena.configuration import using_device

__all__ = ["ChainerxDevice", "CpuDevice", "Device", "GpuDevice", "Intel64Device", "copyto",
           "from_chx", "get_array_module", "get_array_types", "get_cpu_array_types", "get_device",
           "get_device_from_array", "is_arrays_compatible", "to_chx", "using_device"]


class Device(metaclass=ABCMeta):  # noqa: B024
    """The base class of all devices. ``Device(name)`` makes a catena.Device, which is one.

    A subclass that a program defines can only be the destination of arrays, for converters: it
    implements ``send_array(array)``.
    """

    is_gpu = False
    send = _core.Device.send

    def __new__(cls, *args, **kwargs) -> Any:
        return _core.Device(*args, **kwargs) if cls is Device else super().__new__(cls)

    def send_array(self, array) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] send_array: expected a class that "
                                  "overrides it")


Device.register(_core.Device)


class _Kind(ABCMeta):
    """The class of the devices of one kind, for isinstance(). Calls make a Device."""

    def __instancecheck__(cls, device):
        return isinstance(device, _core.Device) and device.is_gpu == cls.is_gpu

    def __call__(cls, number=0) -> Any:
        if isinstance(number, _core.Device):
            return number
        return _core.gpu(number) if cls.is_gpu else _core.Device(-1)

    def from_device_id(cls, device_id) -> Any:
        """The device with this number."""
        return cls(device_id)

    def from_array(cls, array) -> Any:
        """The device of an array, or None if it is of another kind."""
        if not isinstance(array, (*get_cpu_array_types(), _core.Variable)):
            return None
        device = get_device_from_array(array)
        return device if isinstance(device, cls) else None


class CpuDevice(Device, metaclass=_Kind):
    """``CpuDevice()`` is the host."""

    is_gpu = False


class GpuDevice(Device, metaclass=_Kind):
    """``GpuDevice.from_device_id(0)`` is a GPU."""

    is_gpu = True


class _Unavailable(Device):
    """The class of devices of a library that catena does not use. There are none."""

    def __init__(self, *args) -> None:
        raise RuntimeError(f"[{type(self).__name__}] {self._library} is not available.")

    @staticmethod
    def from_array(array) -> Any:
        """None, because no array is on such a device."""
        return None


class ChainerxDevice(_Unavailable):
    """Devices of ChainerX, which is not available."""

    _library = "ChainerX"

    @classmethod
    def from_fallback_device(cls, device) -> Any:
        """Raises RuntimeError."""
        return cls()


class Intel64Device(_Unavailable):
    """The device of iDeep, which is not available."""

    _library = "iDeep"


def to_chx(array) -> None:
    """Raises RuntimeError, because ChainerX is not available."""
    ChainerxDevice()


def from_chx(array) -> Any:
    """The array, or a list or tuple of arrays, as it is: none is one of ChainerX."""
    for each in array if isinstance(array, (list, tuple)) else [array]:
        if each is not None and not isinstance(each, get_array_types()):
            raise TypeError(f"[from_chx] array: expected an array, got {type(each)}")
    return array


def get_cpu_array_types() -> tuple[type, ...]:
    """The classes of arrays on the host."""
    return _core.Device(-1).supported_array_types


def get_array_types() -> tuple[type, ...]:
    """The classes of arrays on all devices."""
    return get_cpu_array_types()


def is_arrays_compatible(arrays) -> bool:
    """Whether all arrays are on the host, or all on GPUs. None is with both."""
    kinds = {isinstance(array, _core.Array) and array.device.is_gpu if isinstance(
        array, get_array_types()) else None for array in arrays if array is not None}
    return len(kinds) < 2 and None not in kinds


def get_array_module(*args) -> Any:
    """numpy, or catena.cupy if an argument is on a GPU."""
    return get_device_from_array(*args).xp


def get_device(device_spec) -> _core.Device:
    """A device from its name ("cpu:0", "@numpy"), the number of a GPU, or a Device."""
    return device_spec if isinstance(device_spec, Device) else _core.Device(device_spec)


def get_device_from_array(*arrays) -> _core.Device:
    """The device of the first array that is on a GPU, else the host."""
    for array in arrays:
        if isinstance(array, (_core.Variable, _core.Array)) and array.device.is_gpu:
            return array.device
    return _core.Device(-1)


def copyto(dst, src) -> None:
    """Copies elements between arrays of any devices. They are broadcast and cast as in NumPy."""
    if isinstance(dst, numpy.ndarray):
        numpy.copyto(dst, _core.Device(-1).send(src))
    elif isinstance(dst, _core.Array):
        dst[...] = src
    else:
        raise TypeError(f"[copyto] dst: expected a numpy.ndarray or catena.Array, got {type(dst)}")
