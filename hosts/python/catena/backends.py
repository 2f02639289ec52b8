"""The name chainer.backends, where Chainer 7 has its module cuda."""
import sys

from catena import cuda

__all__ = ["cuda"]

sys.modules["catena.backends.cuda"] = cuda  # for "import catena.backends.cuda"
