"""The package chainer.backends, where Chainer 7 has its module cuda."""
import sys

from catena import cuda

__all__ = ["cuda"]
__path__ = []  # it has no files

sys.modules["catena.backends.cuda"] = cuda
