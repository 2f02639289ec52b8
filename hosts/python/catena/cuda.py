"""GPUs, with the names of chainer.cuda. GPU arrays are catena.Arrays; CuPy shares their memory by DLPack."""
from catena import _core
from catena.backend import get_array_module
from catena.configuration import using_device
from catena.kernels import ElementwiseKernel, ReductionKernel, clear_memo, elementwise, memoize, reduce

__all__ = ["ElementwiseKernel", "ReductionKernel", "available", "check_cuda_available", "clear_memo",
           "cupy", "elementwise", "get_array_module", "get_device", "get_device_from_id", "memoize",
           "reduce", "set_backend", "to_cpu", "to_gpu", "use_device", "using_device"]


class _Lazy:
    """The module cupy, imported when it is used."""

    def __getattr__(self, name):
        import importlib
        return getattr(importlib.import_module("cupy"), name)


cupy = _Lazy()


def __getattr__(name):
    if name == "available":
        return _core.gpu_count() > 0
    raise AttributeError(f"module 'catena.cuda' has no attribute {name!r}")


def set_backend(name):
    """Chooses the backend whose devices are the GPUs, by default "cuda".

    With "cpu", they are the logical CPU devices after the first, on which programs for GPUs can be
    tested. "" is what the environment variable CATENA_GPU says.
    """
    _core.set_gpu_backend(name)


def check_cuda_available():
    """Raises DeviceError unless there is a GPU."""
    if _core.gpu_count() == 0:
        raise _core.DeviceError("[cuda] expected a GPU, got none: " + _core.gpu_reason())


def get_device_from_id(device_id):
    """The GPU with this number; the host for a negative number."""
    return _core.gpu(device_id)


def get_device(*args):
    """The GPU with a number, or the device of the first argument that is an array on a GPU."""
    for arg in args:
        if isinstance(arg, int):
            return _core.gpu(arg)
        if isinstance(arg, (_core.Variable, _core.Array)) and arg.device.is_gpu:
            return arg.device
    return _core.Device(-1)


def use_device(device):
    """Makes a GPU the current device of the thread."""
    (device if isinstance(device, _core.Device) else _core.gpu(device)).use()


def to_gpu(array, device=None):
    """The array on a GPU, as a catena.Array."""
    return _core.as_array(array).to_device(_core.gpu(device))


def to_cpu(array):
    """The array on the host, as a numpy.ndarray."""
    return _core.as_python(_core.as_array(array).to_device(-1))
