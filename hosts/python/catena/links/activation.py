"""Links that are activations with parameters."""
from typing import Any

import numpy

from catena import functions as F
from catena.initializers import Constant, Initializer
from catena.link import Chain, Link
from catena.links.connection import Linear
from catena.variable import Parameter

__all__ = ["Maxout", "PReLU", "Swish"]


class Maxout(Chain):
    """A fully connected layer, each of whose outputs is the largest of ``pool_size`` sums.

    initialW is an initializer, a number or an array (out_size, pool_size, in_size), and initial_bias the same
    with an array (out_size, pool_size), or None for no bias.
    """

    def __init__(self, in_size, out_size, pool_size, initialW=None, initial_bias=0) -> None:
        super().__init__()
        self.out_size = out_size
        self.pool_size = pool_size
        n = out_size * pool_size
        with self.init_scope():
            self.linear = Linear(
                in_size, n, nobias=initial_bias is None,
                initialW=_flat("initialW", initialW, (out_size, pool_size, in_size), (n, in_size)),
                initial_bias=_flat("initial_bias", initial_bias, (out_size, pool_size), (n,)))

    def forward(self, x) -> Any:
        return F.maxout(self.linear(x), self.pool_size)


def _flat(what, initial, shape, flat):
    """An initial value of one shape, for a parameter of another."""
    if initial is None or numpy.isscalar(initial) or isinstance(initial, Initializer):
        return initial
    if hasattr(initial, "reshape"):
        if initial.ndim != len(shape):
            raise ValueError(f"{what}.ndim should be {len(shape)}")
        return initial.reshape(flat)
    return lambda array: initial(array.reshape(shape))


class PReLU(Link):
    """x where x >= 0, else W x. W has the shape of x from axis 1 on, or a prefix of it."""

    def __init__(self, shape=(), init=0.25) -> None:
        super().__init__()
        with self.init_scope():
            self.W = Parameter(init, shape)

    def forward(self, x) -> Any:
        return F.prelu(x, self.W)


class Swish(Link):
    """x sigmoid(beta x). beta has the shape of x from axis 1 on, which is taken from the first call
    if ``beta_shape`` is None, or a prefix of it.
    """

    def __init__(self, beta_shape, beta_init=1.0) -> None:
        super().__init__()
        with self.init_scope():
            self.beta = Parameter(Constant(beta_init), beta_shape)

    def forward(self, x) -> Any:
        if self.beta.array is None:
            self.beta.initialize(x.shape[1:])
        return F.swish(x, self.beta)
