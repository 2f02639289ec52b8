"""The package chainer.backends, where Chainer 7 has its modules cuda and intel64."""
import sys
from types import ModuleType

from catena import backend, cuda

__all__ = ["cuda", "intel64"]
__path__ = []  # it has no files
_to_cpu = cuda.to_cpu  # of Chainer's module _cpu, for which compat.py looks here


class _Intel64(ModuleType):
    """The module of a Chainer without iDeep."""

    Intel64Device = backend.Intel64Device
    mdarray = type("mdarray", (), {"__module__": "catena.backends.intel64"})

    is_ideep_available = should_use_ideep = inputs_all_ready = staticmethod(lambda *args, **kwargs: False)
    check_ideep_available = staticmethod(backend.Intel64Device)


intel64 = _Intel64("catena.backends.intel64", "iDeep, which is not available.")
sys.modules["catena.backends.cuda"] = cuda
sys.modules["catena.backends.intel64"] = intel64


def __getattr__(name):  # the classes of devices, which this package had in some versions
    if name in ("ChainerxDevice", "CpuDevice", "GpuDevice", "Intel64Device"):
        return getattr(backend, name)
    raise AttributeError(f"module 'catena.backends' has no attribute {name!r}")
