"""Links with weights: fully connected layers, convolutions, embeddings and compositions of them."""
import math

from catena import functions as F
from catena.initializers import LeCunNormal, Normal, _get_initializer
from catena.link import Link
from catena.variable import Parameter as _Parameter
from catena.variable import as_array


class _Weighted(Link):
    """A link with a weight W, whose shape can depend on the first input, and a bias b or None."""

    def _add_weight(self, in_size, out_size, nobias, initialW, initial_bias):
        with self.init_scope():
            self.W = _Parameter(_get_initializer(initialW))
            if in_size is not None:
                self._initialize_params(in_size)
            self.b = None if nobias else _Parameter(
                _get_initializer(0 if initial_bias is None else initial_bias), out_size)


class Linear(_Weighted):
    """A fully connected layer: y = x W^T + b.

    Args:
        in_size: the number of inputs per sample. None, or leaving it out, takes it from the first call.
        out_size: the number of outputs.
        nobias: whether there is no b.
        initialW, initial_bias: initializers, arrays or numbers; by default LeCunNormal and 0.
    """

    def __init__(self, in_size, out_size=None, nobias=False, initialW=None, initial_bias=None):
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        self.in_size = in_size
        self.out_size = out_size
        self._add_weight(in_size, out_size, nobias, initialW, initial_bias)

    def _initialize_params(self, in_size):
        self.W.initialize((self.out_size, in_size))

    @classmethod
    def from_params(cls, W, b=None, nobias=False):
        out_size, in_size = W.shape
        if b is not None and out_size != b.size:
            raise ValueError("`out_size` does not match the size of `b`")
        return cls(in_size, out_size, nobias, initialW=as_array(W), initial_bias=as_array(b))

    @property
    def printable_specs(self):
        yield "in_size", self.in_size
        yield "out_size", self.out_size
        yield "nobias", self.b is None

    def forward(self, x, n_batch_axes=1):
        if self.W.array is None:
            self._initialize_params(math.prod(x.shape[n_batch_axes:]))
        return F.linear(x, self.W, self.b, n_batch_axes)
