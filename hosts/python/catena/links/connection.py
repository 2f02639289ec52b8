"""Links with weights: fully connected layers, embeddings and others but convolutions."""
import math
from typing import Any

from catena import functions as F
from catena.initializers import HeNormal, Normal, _get_initializer
from catena.link import Chain, Link
from catena.variable import Parameter as _Parameter
from catena.variable import as_array

__all__ = ["Bias", "Bilinear", "EmbedID", "Highway", "Linear", "Parameter", "Scale",
           "SimplifiedDropconnect"]


class Weighted(Link):
    """A link with a weight W, whose shape can depend on the first input, and a bias b or None."""

    def _add_weight(self, in_size, out_size, nobias, initialW, initial_bias):
        with self.init_scope():
            self.W = _Parameter(_get_initializer(initialW))
            if in_size is not None:
                self._initialize_params(in_size)
            self.b = None if nobias else _Parameter(_get_initializer(initial_bias, 0), out_size)


class Linear(Weighted):
    """A fully connected layer: y = x W^T + b.

    Args:
        in_size: the number of inputs per sample. None, or leaving it out, takes it from the first
            call.
        out_size: the number of outputs.
        nobias: whether there is no b.
        initialW, initial_bias: initializers, arrays or numbers; by default LeCunNormal and 0.
    """

    def __init__(self, in_size, out_size=None, nobias=False, initialW=None, initial_bias=None) -> None:
        super().__init__()
        if out_size is None:
            in_size, out_size = None, in_size
        self.in_size = in_size
        self.out_size = out_size
        self._add_weight(in_size, out_size, nobias, initialW, initial_bias)

    def _initialize_params(self, in_size):
        self.W.initialize((self.out_size, in_size))

    @classmethod
    def from_params(cls, W, b=None, nobias=False) -> Any:
        out_size, in_size = W.shape
        if b is not None and out_size != b.size:
            raise ValueError("`out_size` does not match the size of `b`")
        return cls(in_size, out_size, nobias, initialW=as_array(W), initial_bias=as_array(b))

    @property
    def printable_specs(self):
        yield "in_size", self.in_size
        yield "out_size", self.out_size
        yield "nobias", self.b is None

    def forward(self, x, n_batch_axes=1) -> Any:
        if self.W.array is None:
            self._initialize_params(math.prod(x.shape[n_batch_axes:]))
        return F.linear(x, self.W, self.b, n_batch_axes)


class SimplifiedDropconnect(Linear):
    """A fully connected layer, of whose weights random ones are 0 in training.

    The arguments are those of Linear, and ``ratio``, the probability of a weight to be 0.
    """

    def __init__(self, in_size, out_size, ratio=0.5, nobias=False, initialW=None,
                 initial_bias=None) -> None:
        super().__init__(in_size, out_size, nobias, _get_initializer(initialW, HeNormal(1 / 2 ** 0.5)),
                         initial_bias)
        self.ratio = ratio

    def forward(self, x, train=True, mask=None, use_batchwise_mask=True) -> Any:
        if self.W.array is None:
            self._initialize_params(math.prod(x.shape[1:]))
        if mask is not None and "mask" not in self.__dict__:
            self.add_persistent("mask", mask)
        return F.simplified_dropconnect(x, self.W, self.b, self.ratio, train, mask,
                                        use_batchwise_mask)


class EmbedID(Link):
    """An embedding: y = the rows of W (in_size, out_size) for the ids x.

    initialW is an initializer or an array, by default Normal(1). The row of the id ignore_label is 0.
    """

    ignore_label: Any = None

    def __init__(self, in_size, out_size, initialW=None, ignore_label=None) -> None:
        super().__init__()
        self.ignore_label = ignore_label
        with self.init_scope():
            self.W = _Parameter(Normal(1.0) if initialW is None else initialW, (in_size, out_size))

    @classmethod
    def from_params(cls, W, ignore_label=None) -> Any:
        in_size, out_size = W.shape
        return cls(in_size, out_size, initialW=as_array(W), ignore_label=ignore_label)

    def forward(self, x) -> Any:
        return F.embed_id(x, self.W, self.ignore_label)


class Bias(Link):
    """Adds b, of the shape of x from ``axis`` on, or of the first of these axes.

    Without the shape of b, it is an argument of calls.
    """

    def __init__(self, axis=1, shape=None) -> None:
        super().__init__()
        if shape is not None:
            with self.init_scope():
                self.b = _Parameter(0, shape)
        self.axis = axis

    def forward(self, *xs) -> Any:
        x, b = (*xs, self.b) if hasattr(self, "b") else xs
        return F.bias(x, b, self.axis)


class Scale(Chain):
    """Multiplies by W, which has the shapes that b of Bias can have.

    Without W_shape, W is an argument of calls. With bias_term, there is a bias of the shape bias_shape,
    by default that of W.
    """

    def __init__(self, axis=1, W_shape=None, bias_term=False, bias_shape=None) -> None:
        super().__init__()
        self.axis = axis
        with self.init_scope():
            if W_shape is not None:
                self.W = _Parameter(1, W_shape)
                bias_shape = W_shape
            if bias_term:
                if bias_shape is None:
                    raise ValueError("bias_shape should be given if W is not learnt parameter and "
                                     "bias_term is True.")
                self.bias = Bias(axis, bias_shape)

    def forward(self, *xs) -> Any:
        x, W = (*xs, self.W) if hasattr(self, "W") else xs
        y = F.scale(x, W, self.axis)
        return self.bias(y) if hasattr(self, "bias") else y


class Bilinear(Link):
    """y_k = sum of e1_i e2_j W_ijk, plus e1 V1 + e2 V2 + b unless ``nobias``.

    left_size, right_size and out_size are the sizes of e1, e2 and y. initialW is an initializer, an array
    or a number, by default LeCunNormal, and initial_bias None or a tuple of three for V1, V2 and b.
    """

    def __init__(self, left_size, right_size, out_size, nobias=False, initialW=None,
                 initial_bias=None) -> None:
        super().__init__()
        self.in_sizes = (left_size, right_size)
        self.nobias = nobias
        if initial_bias is None:
            initial_bias = (None, None, 0)
        elif not isinstance(initial_bias, tuple):
            raise ValueError("initial_bias must be tuple or None")
        with self.init_scope():
            self.W = self._parameter(initialW, (left_size, right_size, out_size))
            if not nobias:
                self.V1 = self._parameter(initial_bias[0], (left_size, out_size))
                self.V2 = self._parameter(initial_bias[1], (right_size, out_size))
                self.b = self._parameter(initial_bias[2], (out_size,))

    @staticmethod
    def _parameter(initial, shape):
        assert getattr(initial, "shape", shape) == shape, f"expected {shape}, got {initial.shape}"
        return _Parameter(_get_initializer(initial), shape)

    def forward(self, e1, e2) -> Any:
        if self.nobias:
            return F.bilinear(e1, e2, self.W)
        return F.bilinear(e1, e2, self.W, self.V1, self.V2, self.b)


class Parameter(Link):
    """A link that is one array, W. Calls return it."""

    def __init__(self, array) -> None:
        super().__init__()
        with self.init_scope():
            self.W = _Parameter(array)
        self._device = self.W.device

    def forward(self) -> Any:
        return F.identity(self.W)


class Highway(Chain):
    """activate(plain(x)) g + x (1 - g), with the gate g = sigmoid(transform(x)).

    The function activate is F.relu by default. init_Wh and init_bh are the initializers of plain,
    init_Wt and init_bt those of transform.
    """

    def __init__(self, in_out_size, nobias=False, activate=None, init_Wh=None, init_Wt=None,
                 init_bh=None, init_bt=-1) -> None:
        super().__init__()
        self.activate = F.relu if activate is None else activate
        with self.init_scope():
            self.plain = Linear(in_out_size, in_out_size, nobias, init_Wh, init_bh)
            self.transform = Linear(in_out_size, in_out_size, nobias, init_Wt, init_bt)

    def forward(self, x) -> Any:
        gate = F.sigmoid(self.transform(x))
        return self.activate(self.plain(x)) * gate + x * (1 - gate)
