"""The base class of initializers, under the name chainer.initializer."""
from catena.initializers import Initializer, get_fans

__all__ = ["Initializer", "get_fans"]
