"""GPUs, with the names of chainer.cuda. Their arrays are catena.Arrays."""
import contextlib
import os
import warnings
from typing import Any

from catena import _core, cupy
from catena._core import Array as ndarray, Device
from catena.backend import CpuDevice as DummyDeviceType
from catena.backend import GpuDevice, get_array_module, get_device_from_array
from catena.kernels import (
    ElementwiseKernel, ReductionKernel, clear_memo, elementwise, memoize, reduce)

__all__ = ["Device", "DummyDeviceType", "ElementwiseKernel", "Event", "GPUArray", "GpuDevice",
           "ReductionKernel", "Stream", "available", "check_cuda_available", "clear_memo", "copy",
           "copy_async", "cudnn_enabled", "cupy", "elementwise", "empty", "empty_like", "full",
           "full_like", "fuse", "get_array_module", "get_device", "get_device_from_array",
           "get_device_from_id", "get_max_workspace_size", "init", "memoize", "ndarray", "ones",
           "ones_like", "reduce", "seed", "set_backend", "set_max_workspace_size",
           "should_use_cudnn", "should_use_cudnn_tensor_core", "shutdown", "to_cpu",
           "to_cpu_async", "to_gpu", "to_gpu_async", "use_device", "using_device", "zeros",
           "zeros_like"]

cudnn_enabled = False  # Python has no access to cuDNN; kernels of plugins may use it


def __getattr__(name):
    if name == "available":
        return _core.gpu_count() > 0
    if name == "DummyDevice":
        return globals().setdefault(name, _core.Device(-1))
    raise AttributeError(f"module 'catena.cuda' has no attribute {name!r}")


def set_backend(name) -> None:
    """Chooses the backend whose devices are the GPUs, by default "cuda".

    With "cpu", they are the logical CPU devices after the first, on which programs for GPUs can be
    tested. "" is what the environment variable CATENA_GPU says.
    """
    _core.set_gpu_backend(name)


def check_cuda_available() -> None:
    """Raises DeviceError unless there is a GPU."""
    if _core.gpu_count() == 0:
        raise _core.DeviceError("[cuda] expected a GPU, got none: " + _core.gpu_reason())


def init(device=None) -> None:
    """Opens a GPU, the default of the process. Optional: functions open what they need."""
    _core.init_gpu(device)


def shutdown() -> None:
    """Waits for all GPUs and releases their cached memory."""
    _core.shutdown_gpus()


# ---- devices

def get_device_from_id(device_id) -> Any:
    """The GPU with this number; the host, DummyDevice, for None."""
    return __getattr__("DummyDevice") if device_id is None else _core.gpu(device_id)


def _gpu_of(args):
    """The GPU that the first of the arguments names, or of the first array on a GPU; else None."""
    for arg in args:
        if isinstance(arg, _core.Device) or type(arg) is int:
            return arg if isinstance(arg, _core.Device) else _core.gpu(arg)
        device = get_device_from_array(arg)
        if device.is_gpu:
            return device
    return None


def get_device(*args) -> Any:
    """The GPU with a number, or the device of the first argument that is an array on a GPU.

    get_device_from_id() and get_device_from_array() do the same without a DeprecationWarning.
    """
    warnings.warn("get_device is deprecated. Please use get_device_from_id or "
                  "get_device_from_array instead.", DeprecationWarning, stacklevel=2)
    return _gpu_of(args) or _core.Device(-1)


def use_device(device) -> None:
    """Makes a GPU the current device of the thread: that with a number, or an array's."""
    (_gpu_of((device,)) or _core.Device(-1)).use()


def using_device(*args) -> Any:
    """The same in a ``with`` block. Arrays on the host change nothing."""
    return _gpu_of(args) or contextlib.nullcontext()


# ---- arrays

def to_gpu(array, device=None, stream=None) -> Any:
    """The array, or a list or tuple of arrays, on a GPU as catena.Arrays. ``stream`` is ignored."""
    if stream is not None:
        warnings.warn("The stream option is deprecated in cuda.to_gpu. Please remove it.",
                      DeprecationWarning, stacklevel=2)
    return _core.gpu(device).send(array)


def to_cpu(array, stream=None) -> Any:
    """The array, or a list or tuple of arrays, on the host as numpy.ndarrays."""
    return _core.Device(-1).send(array)


def copy(array, out=None, out_device=None, stream=None) -> Any:
    """A copy of an array on its device, or on the GPU ``out_device``; or into the array ``out``."""
    if out is not None:
        out[...] = array
        return out
    if out_device is None:
        return array.copy()
    moved = _core.as_array(array).to_device(_core.gpu(out_device))
    return moved.copy() if moved.device == get_device_from_array(array) else moved


def full(shape, fill_value, dtype="float32") -> Any:
    """A new array on the current GPU, filled with a number."""
    return cupy.full(shape, fill_value, dtype)


empty, zeros, ones = cupy.makers_of("float32")
empty_like, full_like = cupy.empty_like, cupy.full_like
ones_like, zeros_like = cupy.ones_like, cupy.zeros_like


# ---- streams

class Stream:
    """A stream of CuPy. It has no effect: catena has one order of the work on each device."""

    def __init__(self, null=False, non_blocking=False, ptds=False) -> None:
        pass

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception) -> None:
        pass

    def use(self) -> Any:
        return self

    def record(self, event=None) -> Any:
        """An event after the work so far."""
        return event or Event()

    def wait_event(self, event) -> Any:
        """Does nothing: the order of the work includes it."""

    def synchronize(self) -> None:
        """Waits for the work on the current device."""
        _core.current_device().synchronize()


Stream.null = Stream(null=True)


class Event:
    """An event of CuPy: a place in the work on a device. The arguments are ignored."""

    def __init__(self, block=False, disable_timing=False, interprocess=False) -> None:
        self._device = None

    def record(self, stream=None) -> None:
        """Puts the event after the work so far on the current device."""
        self._device = _core.current_device()

    def synchronize(self) -> None:
        """Waits for the work before the event, and perhaps for later work."""
        if self._device is not None:
            self._device.synchronize()


# ---- cuDNN, of which only the plugins for GPUs know

def should_use_cudnn(level, lowest_version=0) -> bool:
    """False: a program cannot call cuDNN itself. ``config.use_cudnn`` is for plugins."""
    if level not in ("==always", ">=auto"):
        raise ValueError("[should_use_cudnn] level: expected '==always' or '>=auto', got "
                         f"{level!r}")
    return False


def should_use_cudnn_tensor_core(dtype) -> bool:
    """Whether ``config.use_cudnn_tensor_core`` is "always"."""
    from catena.configuration import config
    if config.use_cudnn_tensor_core not in ("always", "auto", "never"):
        raise ValueError("[config] use_cudnn_tensor_core: expected 'always', 'auto' or 'never', "
                         f"got {config.use_cudnn_tensor_core!r}")
    return config.use_cudnn_tensor_core == "always"


def get_max_workspace_size() -> int:
    """0, because programs cannot call cuDNN."""
    return 0


def set_max_workspace_size(size) -> Any:
    """Has no effect, because programs cannot call cuDNN."""


def fuse(*args, **kwargs) -> Any:
    """A decorator that returns the function as it is. ElementwiseKernel makes one kernel."""
    return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else lambda f: f


# ---- Chainer 1

GPUArray = ndarray
copy_async, to_cpu_async = copy, to_cpu


def to_gpu_async(array, stream=None) -> Any:
    """The array on the current GPU. ``stream`` is ignored: all calls are asynchronous."""
    return to_gpu(array)


def seed(s=None, device=None) -> None:
    """Seeds the random numbers of a GPU, by default the current one. None is a random seed."""
    if s is None:
        s = int.from_bytes(os.urandom(8), "little")
    _core.set_random_state(_core.gpu(device), s, 0)
