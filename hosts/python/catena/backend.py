"""Devices and the modules that compute on their arrays, with the names of chainer.backend."""
import copyreg

from catena import _core
from catena._core import Device
from catena.configuration import using_device

__all__ = ["Device", "copyto", "get_array_module", "get_device", "get_device_from_array", "using_device"]

copyreg.pickle(Device, lambda device: (Device, (device.name,)))


def get_array_module(*args):
    """numpy, or cupy if an argument is on a GPU and CuPy is installed."""
    import numpy
    for each in args:
        if not isinstance(each, (_core.Variable, _core.Array)):
            continue
        if isinstance(each, _core.Variable) and each.array is None:
            continue
        if each.device.is_gpu:
            from catena import cuda
            return cuda.cupy
    return numpy


def get_device(device_spec):
    """A device from its name ("cpu:0", "@numpy"), the number of a GPU, or a Device."""
    return device_spec if isinstance(device_spec, Device) else Device(device_spec)


def get_device_from_array(*arrays):
    """The device of the first array that is not on the host, else the host."""
    for array in arrays:
        if isinstance(array, (_core.Variable, _core.Array)) and not array.device.host_accessible:
            return array.device
    return Device(-1)


def copyto(dst, src):
    """Copies elements between arrays of any devices."""
    _core.as_array(dst).copy_from(_core.as_array(src))
