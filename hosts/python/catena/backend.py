"""Devices and the modules that compute on their arrays, with the names of chainer.backend."""
import copyreg

import numpy

from catena import _core
from catena._core import Device
from catena.configuration import using_device

__all__ = ["CpuDevice", "Device", "GpuDevice", "copyto", "get_array_module", "get_array_types",
           "get_cpu_array_types", "get_device", "get_device_from_array", "using_device"]

copyreg.pickle(Device, lambda device: (Device, (device.name,)))


def _send(device, arrays):
    """Arrays, also in lists and tuples, on the device. They are numpy.ndarrays on the host."""
    if isinstance(arrays, (list, tuple)):
        return type(arrays)(_send(device, each) for each in arrays)
    if arrays is None:
        return None
    if isinstance(arrays, numpy.ndarray) and not device.is_gpu:
        return arrays
    array = _core.as_array(numpy.asarray(arrays) if numpy.isscalar(arrays) else arrays)
    return _core.as_python(array.to_device(device))


def _supported_array_types(device):
    """The classes of arrays on the device."""
    return (_core.Array,) if device.is_gpu else (numpy.ndarray, _core.Array)


def _xp(device):
    """numpy, or catena.cupy for a GPU."""
    if not device.is_gpu:
        return numpy
    from catena import cupy
    return cupy


Device.send, Device.xp = _send, property(_xp)
Device.supported_array_types = property(_supported_array_types)


class _Kind(type):
    """The class of the devices of one kind, for isinstance(). Calls make a Device."""

    def __instancecheck__(cls, device):
        return isinstance(device, Device) and device.is_gpu == cls.is_gpu

    def __call__(cls, number=0):
        if isinstance(number, Device):
            return number
        return _core.gpu(number) if cls.is_gpu else Device(-1)

    def from_device_id(cls, device_id):
        """The device with this number."""
        return cls(device_id)

    def from_array(cls, array):
        """The device of an array, or None if it is of another kind."""
        if not isinstance(array, (*_supported_array_types(Device(-1)), _core.Variable)):
            return None
        device = get_device_from_array(array)
        return device if isinstance(device, cls) else None


class CpuDevice(metaclass=_Kind):
    """``CpuDevice()`` is the host."""

    is_gpu = False


class GpuDevice(metaclass=_Kind):
    """``GpuDevice.from_device_id(0)`` is a GPU."""

    is_gpu = True


def get_cpu_array_types():
    """The classes of arrays on the host."""
    return Device(-1).supported_array_types


def get_array_types():
    """The classes of arrays on all devices."""
    return get_cpu_array_types()


def get_array_module(*args):
    """numpy, or catena.cupy if an argument is on a GPU."""
    return _xp(get_device_from_array(*args))


def get_device(device_spec):
    """A device from its name ("cpu:0", "@numpy"), the number of a GPU, or a Device."""
    return device_spec if isinstance(device_spec, Device) else Device(device_spec)


def get_device_from_array(*arrays):
    """The device of the first array that is on a GPU, else the host."""
    for array in arrays:
        if isinstance(array, (_core.Variable, _core.Array)) and array.device.is_gpu:
            return array.device
    return Device(-1)


def copyto(dst, src):
    """Copies elements between arrays of any devices. They are broadcast and cast as in NumPy."""
    if isinstance(dst, numpy.ndarray):
        numpy.copyto(dst, Device(-1).send(src))
    elif isinstance(dst, _core.Array):
        dst[...] = src
    else:
        raise TypeError(f"[copyto] dst: expected a numpy.ndarray or catena.Array, got {type(dst)}")
