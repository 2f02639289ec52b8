"""The package chainer.backends, where Chainer 7 has its modules cuda and intel64."""
import sys
from types import ModuleType

from catena import cuda

__all__ = ["cuda", "intel64"]
__path__ = []  # it has no files

intel64 = ModuleType("catena.backends.intel64", "iDeep, which is not available.")
intel64.is_ideep_available = lambda: False
intel64.should_use_ideep = lambda level: False

sys.modules["catena.backends.cuda"] = cuda
sys.modules["catena.backends.intel64"] = intel64
