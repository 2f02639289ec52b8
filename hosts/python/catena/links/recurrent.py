"""Links with states: LSTM, GRU and their relatives, for one step or for whole sequences."""
import math
from typing import Any

import numpy

from catena import functions as F
from catena import _core
from catena.initializers import _get_initializer
from catena.link import Chain, ChainList, Link
from catena.links.connection import Linear
from catena.variable import Parameter, Variable

__all__ = ["ChildSumTreeLSTM", "GRU", "LSTM", "NStepBiGRU", "NStepBiLSTM", "NStepBiRNNReLU",
           "NStepBiRNNTanh", "NStepGRU", "NStepLSTM", "NStepRNNReLU", "NStepRNNTanh",
           "NaryTreeLSTM", "StatefulGRU", "StatefulMGU", "StatefulPeepholeLSTM",
           "StatefulZoneoutLSTM", "StatelessGRU", "StatelessLSTM", "StatelessMGU"]


def _zeros(link, shape, dtype):
    """A state of zeros on the device of the link."""
    return Variable(_core.full(shape, 0, dtype, link.device))


class _Stateful(Chain):
    """A link that keeps the variable h between calls, which moves between devices with it."""

    h: Any
    _states: Any = ("h",)

    def reset_state(self) -> None:
        """Forgets the state. The next call begins a sequence. Constructors call it, as in Chainer."""
        for name in self._states:
            setattr(self, name, None)

    def set_state(self, *states) -> None:
        """Sets the variables of the state: c and h, or h alone."""
        if len(states) != len(self._states):
            raise TypeError(f"set_state() takes {', '.join(self._states)}, got {len(states)} "
                            "arguments")
        for name, state in zip(self._states, states):
            assert isinstance(state, Variable), f"{name}: expected a Variable, got {type(state)}"
            state.to_device(self.device)
            setattr(self, name, state)

    def device_resident_accept(self, visitor) -> None:
        super().device_resident_accept(visitor)
        for name in self._states:
            state = getattr(self, name)
            if state is not None:
                visitor.visit_variable(state)

    def _fill_state(self, n, dtype):
        for name in self._states:
            if getattr(self, name) is None:
                setattr(self, name, _zeros(self, (n, self.state_size), dtype))


class _WithCells(_Stateful):
    c: Any
    _states = ("c", "h")


class _LSTMWeights(Chain):
    """The weights of an LSTM layer: a, i, f and o of unit j are the outputs 4 j to 4 j + 3."""

    def __init__(self, in_size, out_size=None, lateral_init=None, upward_init=None, bias_init=None,
                 forget_bias_init=None) -> None:
        if out_size is None:
            in_size, out_size = None, in_size
        super().__init__()
        self.state_size = out_size
        self.lateral_init = lateral_init
        self.upward_init = upward_init
        self.bias_init = 0 if bias_init is None else bias_init
        self.forget_bias_init = 1 if forget_bias_init is None else forget_bias_init
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size, initialW=0)
            self.lateral = Linear(out_size, 4 * out_size, initialW=0, nobias=True)
        if in_size is not None:
            self._initialize_params()

    def _initialize_params(self):
        # Each quarter of the rows is drawn by itself, as in Chainer, though it is not one gate.
        n = self.state_size
        weights = [(link.W, numpy.empty(link.W.shape, _dtype(link.W)), _get_initializer(initial))
                   for link, initial in [(self.lateral, self.lateral_init),
                                         (self.upward, self.upward_init)]]
        for i in range(0, 4 * n, n):
            for _, array, initializer in weights:
                initializer(array[i:i + n])
        bias = numpy.empty((n, 4), _dtype(self.upward.b))
        for gate in (0, 1, 2, 3):
            _get_initializer(self.forget_bias_init if gate == 2 else self.bias_init)(
                bias[None, :, gate, None])
        for parameter, array in [each[:2] for each in weights] + [(self.upward.b, bias.ravel())]:
            parameter._array.copy_from(_core.as_array(array).astype(str(parameter.dtype)))

    def _fill_weights(self, x):
        if self.upward.W.array is None:
            self.upward._initialize_params(math.prod(x.shape[1:]))
            self._initialize_params()


def _dtype(parameter):
    """The dtype of values to draw for a parameter, which NumPy must know."""
    return "float32" if parameter.dtype == "bfloat16" else parameter.dtype


class StatelessLSTM(_LSTMWeights):
    """An LSTM layer whose state is an argument: c, h = link(c, h, x). None stands for zeros.

    Args:
        in_size: the number of inputs per sample. None, or leaving it out, takes it from the first
            call.
        out_size: the number of units.
        lateral_init, upward_init: initializers of the weights of h and x.
        bias_init, forget_bias_init: those of biases; by default 0, and 1 of the forget gate.
    """

    def forward(self, c, h, x) -> Any:
        self._fill_weights(x)
        gates = self.upward(x)
        if h is not None:
            gates = gates + self.lateral(h)
        if c is None:
            c = _zeros(self, (x.shape[0], self.state_size), x.dtype)
        return F.lstm(c, gates)


class LSTM(_LSTMWeights, _WithCells):
    """An LSTM layer that keeps its state: h = link(x). See StatelessLSTM for the arguments.

    Sequences of a batch may end, the last first: a batch can have fewer rows than the one before.
    """

    def __init__(self, in_size, out_size=None, lateral_init=None, upward_init=None, bias_init=None,
                 forget_bias_init=None) -> None:
        super().__init__(in_size, out_size, lateral_init, upward_init, bias_init, forget_bias_init)
        self.reset_state()

    def forward(self, x) -> Any:
        self._fill_weights(x)
        n = x.shape[0]
        gates = self.upward(x)
        rest = None
        if self.h is not None:
            kept = self.h.shape[0]
            if n == 0:
                rest = self.h
            elif kept < n:
                raise TypeError("The batch size of x must be equal to or less than the size of the "
                                f"previous state h, got {n} and {kept}.")
            elif kept > n:
                h, rest = F.split_axis(self.h, [n], axis=0)
                gates = gates + self.lateral(h)
            else:
                gates = gates + self.lateral(self.h)
        if self.c is None:
            self.c = _zeros(self, (n, self.state_size), x.dtype)
        self.c, y = F.lstm(self.c, gates)
        self.h = y if rest is None else rest if n == 0 else F.concat([y, rest], axis=0)
        return y


class _OtherLSTM(_WithCells):
    """Two fully connected layers for the gates, one of x and one of h."""

    def __init__(self, in_size, out_size) -> None:
        super().__init__()
        self.state_size = out_size
        self.reset_state()
        with self.init_scope():
            self.upward = Linear(in_size, 4 * out_size)
            self.lateral = Linear(out_size, 4 * out_size, nobias=True)

    def _gates(self, x):
        gates = self.upward(x)
        return gates if self.h is None else gates + self.lateral(self.h)


class StatefulPeepholeLSTM(_OtherLSTM):
    """An LSTM layer whose gates also see the cells: h = link(x)."""

    def __init__(self, in_size, out_size) -> None:
        super().__init__(in_size, out_size)
        with self.init_scope():
            for name in ["peep_i", "peep_f", "peep_o"]:
                setattr(self, name, Linear(out_size, out_size, nobias=True))

    def forward(self, x) -> Any:
        gates = self._gates(x)
        if self.c is None:
            self.c = _zeros(self, (x.shape[0], self.state_size), x.dtype)
        a, i, f, o = F.separate(F.reshape(gates, (x.shape[0], self.state_size, 4)), axis=2)
        i = F.sigmoid(i + self.peep_i(self.c))
        f = F.sigmoid(f + self.peep_f(self.c))
        self.c = F.tanh(a) * i + f * self.c
        self.h = F.sigmoid(o + self.peep_o(self.c)) * F.tanh(self.c)
        return self.h


class StatefulZoneoutLSTM(_OtherLSTM):
    """An LSTM layer of which random units keep their state in training: h = link(x).

    c_ratio and h_ratio are the probabilities that a unit keeps c and h.
    """

    def __init__(self, in_size, out_size, c_ratio=0.5, h_ratio=0.5) -> None:
        super().__init__(in_size, out_size)
        self.c_ratio = c_ratio
        self.h_ratio = h_ratio

    def forward(self, x) -> Any:
        gates = self._gates(x)
        self._fill_state(x.shape[0], x.dtype)
        c, h = F.lstm(self.c, gates)
        self.c = F.zoneout(self.c, c, self.c_ratio)
        self.h = F.zoneout(self.h, h, self.h_ratio)
        return self.h


class _GRUWeights(Chain):
    def __init__(self, in_size, out_size, init=None, inner_init=None, bias_init=None) -> None:
        super().__init__()
        with self.init_scope():
            for gate in ["_r", "_z", ""]:
                setattr(self, "W" + gate, Linear(in_size, out_size, initialW=init,
                                                 initial_bias=bias_init))
                setattr(self, "U" + gate, Linear(out_size, out_size, initialW=inner_init,
                                                 initial_bias=bias_init))


class StatelessGRU(_GRUWeights):
    """A GRU layer whose state is an argument: h = link(h, x).

    init and inner_init are initializers of the weights of x and h, bias_init is that of biases.
    """

    def forward(self, h, x) -> Any:
        r = F.sigmoid(self.W_r(x) + self.U_r(h))
        z = F.sigmoid(self.W_z(x) + self.U_z(h))
        new = F.tanh(self.W(x) + self.U(r * h))
        return z * new + (1 - z) * h


class StatefulGRU(_GRUWeights, _Stateful):
    """A GRU layer that keeps its state: h = link(x). See StatelessGRU for the arguments."""

    def __init__(self, in_size, out_size, init=None, inner_init=None, bias_init=0) -> None:
        super().__init__(in_size, out_size, init, inner_init, bias_init)
        self.state_size = out_size
        self.reset_state()

    def forward(self, x) -> Any:
        z, new = self.W_z(x), self.W(x)
        if self.h is None:
            self.h = F.sigmoid(z) * F.tanh(new)
            return self.h
        r = F.sigmoid(self.W_r(x) + self.U_r(self.h))
        z = F.sigmoid(z + self.U_z(self.h))
        new = F.tanh(new + self.U(r * self.h))
        self.h = z * new + (1 - z) * self.h
        return self.h


class GRU(StatefulGRU):
    """The same as StatefulGRU."""

    def forward(self, *args) -> Any:
        if len(args) != 1:
            raise ValueError("Invalid argument. The length of GRU.forward must be 1. But "
                             f"{len(args)} is given. StatelessGRU takes the state as an argument.")
        return super().forward(*args)


class _MGUWeights(Chain):
    def __init__(self, n_inputs, n_units) -> None:
        super().__init__()
        with self.init_scope():
            self.W_f = Linear(n_inputs + n_units, n_units)
            self.W_h = Linear(n_inputs + n_units, n_units)

    def _step(self, h, x):
        f = F.sigmoid(self.W_f(F.concat([h, x])))
        new = F.tanh(self.W_h(F.concat([f * h, x])))
        return f * new + (1 - f) * h


class StatelessMGU(_MGUWeights):
    """A GRU with one gate, whose state is an argument: h = link(h, x)."""

    def forward(self, h, x) -> Any:
        return self._step(h, x)


class StatefulMGU(_MGUWeights, _Stateful):
    """A GRU with one gate that keeps its state: h = link(x)."""

    def __init__(self, in_size, out_size) -> None:
        super().__init__(in_size, out_size)
        self.state_size = out_size
        self.reset_state()

    def forward(self, x) -> Any:
        self._fill_state(x.shape[0], x.dtype)
        self.h = self._step(self.h, x)
        return self.h


class _TreeLSTM(Chain):
    def forward(self, *cshsx) -> Any:
        """Computes (c, h) of a node from c of each child, then h of each child, then x of the node.

        None stands for zeros.
        """
        n = len(cshsx) // 2
        cs, hs, x = cshsx[:n], cshsx[n:-1], cshsx[-1]
        self._check(cs, hs)
        if x is None:
            known = [each for each in cshsx if each is not None]
            if not known:
                raise ValueError("All inputs (cs, hs, x) are None.")
            x = _zeros(self, (known[0].shape[0], self.in_size), known[0].dtype)
        zeros = _zeros(self, (x.shape[0], self.state_size), x.dtype)
        return self._step([zeros if c is None else c for c in cs],
                          [zeros if h is None else h for h in hs], x)


class ChildSumTreeLSTM(_TreeLSTM):
    """An LSTM unit of a tree whose nodes have any number of children, which it adds."""

    def __init__(self, in_size, out_size) -> None:
        super().__init__()
        self.in_size = in_size
        self.state_size = out_size
        with self.init_scope():
            self.W_x = Linear(in_size, 4 * out_size)
            self.W_h_aio = Linear(out_size, 3 * out_size, nobias=True)
            self.W_h_f = Linear(out_size, out_size, nobias=True)

    @staticmethod
    def _check(cs, hs):
        assert len(cs) == len(hs), f"expected as many c as h and one x, got {len(cs)} and {len(hs)}"

    def _step(self, cs, hs, x):
        aio, f = F.split_axis(self.W_x(x), [3 * self.state_size], axis=1)
        if not hs:
            a, i, o = F.split_axis(aio, 3, axis=1)
            c = F.sigmoid(i) * F.tanh(a)
            return c, F.sigmoid(o) * F.tanh(c)
        aio = self.W_h_aio(sum(hs[1:], hs[0])) + aio
        return F.tree_lstm(*cs, F.concat([aio, *[self.W_h_f(h) + f for h in hs]], axis=1))


class NaryTreeLSTM(_TreeLSTM):
    """An LSTM unit of a tree whose nodes have ``n_ary`` children, each with weights of its own."""

    def __init__(self, in_size, out_size, n_ary=2) -> None:
        assert n_ary >= 1, f"n_ary: expected at least 1, got {n_ary}"
        super().__init__()
        self.in_size = in_size
        self.state_size = out_size
        self.n_ary = n_ary
        with self.init_scope():
            self.W_x = Linear(in_size, (3 + n_ary) * out_size)
            for i in range(1, n_ary + 1):
                setattr(self, f"W_h{i}", Linear(out_size, (3 + n_ary) * out_size, nobias=True))

    def _check(self, cs, hs):
        assert len(cs) == len(hs) == self.n_ary, (
            f"expected {self.n_ary} c, {self.n_ary} h and one x, got {len(cs)} and {len(hs)}")

    def _step(self, cs, hs, x):
        gates = self.W_x(x)
        for i, h in enumerate(hs, start=1):
            gates = gates + self[f"W_h{i}"](h)
        return F.tree_lstm(*cs, gates)


def _longest_first(xs):
    """The numbers of sequences in the order of their lengths."""
    return numpy.argsort([-x.shape[0] for x in xs], kind="stable").astype("int32")


class _NStep(ChainList):
    """Layers over whole sequences of different lengths.

    Args:
        n_layers: the number of layers.
        in_size: the number of inputs per step.
        out_size: the number of units of each direction.
        dropout: the ratio of dropout between layers.
        initialW, initial_bias: initializers, arrays or numbers; by default LeCunNormal and 0.
    """

    n_weights = None  # of each layer and direction
    use_bi_direction = False
    n_cells = 1  # the number of states

    def __init__(self, n_layers, in_size, out_size, dropout, *, initialW=None, initial_bias=None) -> None:
        self.n_layers = n_layers
        self.dropout = dropout
        self.out_size = out_size
        self.direction = 2 if self.use_bi_direction else 1
        initialW = _get_initializer(initialW)
        initial_bias = _get_initializer(initial_bias, 0)
        layers = []
        for i in range(n_layers * self.direction):
            layer = Link()
            sizes = [in_size if i < self.direction else out_size * self.direction, out_size]
            with layer.init_scope():
                for j in range(self.n_weights):
                    n_in = sizes[j >= self.n_weights // 2]
                    setattr(layer, f"w{j}", Parameter(initialW, (out_size, n_in)))
                    setattr(layer, f"b{j}", Parameter(initial_bias, out_size))
            layers.append(layer)
        super().__init__(*layers)

    def _weights(self, letter):
        return [[getattr(layer, f"{letter}{j}") for j in range(self.n_weights)] for layer in self]

    @property
    def ws(self):
        """The weights of each layer and direction."""
        return self._weights("w")

    @property
    def bs(self):
        """The biases of each layer and direction."""
        return self._weights("b")

    def init_hx(self, xs) -> Any:
        """A state of zeros for the sequences."""
        return _zeros(self, (self.n_layers * self.direction, len(xs), self.out_size), xs[0].dtype)

    def rnn(self, *args) -> Any:
        """The function of all layers, on sorted sequences that are transposed."""
        raise NotImplementedError

    def forward(self, *states_and_xs) -> Any:
        """Runs all sequences. Returns the last states and the outputs (length, out_size * directions).

        The arguments are the states (n_layers * directions, len(xs), out_size), or None for zeros;
        then the list of sequences (length, in_size).
        """
        *states, xs = states_and_xs
        if len(states) != self.n_cells:
            raise TypeError(f"{type(self).__name__} takes {self.n_cells} states and the sequences, "
                            f"got {len(states_and_xs)} arguments")
        assert isinstance(xs, (list, tuple)), f"xs: expected a list, got {type(xs)}"
        order = _longest_first(xs)
        back = numpy.argsort(order)
        places = _core.Array(order, device=self.device)
        states = [self.init_hx(xs) if state is None else F.permutate(state, places, axis=1)
                  for state in states]
        *states, ys = self.rnn(self.n_layers, self.dropout, *states, self.ws, self.bs,
                               F.transpose_sequence([xs[i] for i in order]))
        ys = F.transpose_sequence(ys)
        states = [F.permutate(state, places, axis=1, inv=True) for state in states]
        return (*states, [ys[i] for i in back])


def _n_step(name, kind, n_weights, n_cells=1, **options):
    """The class of links for F.n_step_KIND or, with two directions, F.n_step_biKIND."""
    both = name.startswith("NStepBi")
    function = f"n_step_{'bi' if both else ''}{kind}"

    def rnn(self, *args):
        return getattr(F, function)(*args, **options)

    what = f"{kind.upper()} layers" + "".join(f" with {v}" for v in options.values())
    return type(name, (_NStep,), {
        "__doc__": _NStep.__doc__.replace("Layers", what + (" in both directions" if both else "")),
        "__module__": __name__, "n_weights": n_weights, "n_cells": n_cells, "rnn": rnn,
        "use_bi_direction": both})


NStepLSTM = _n_step("NStepLSTM", "lstm", 8, 2)
NStepBiLSTM = _n_step("NStepBiLSTM", "lstm", 8, 2)
NStepGRU = _n_step("NStepGRU", "gru", 6)
NStepBiGRU = _n_step("NStepBiGRU", "gru", 6)
NStepRNNTanh = _n_step("NStepRNNTanh", "rnn", 2, activation="tanh")
NStepBiRNNTanh = _n_step("NStepBiRNNTanh", "rnn", 2, activation="tanh")
NStepRNNReLU = _n_step("NStepRNNReLU", "rnn", 2, activation="relu")
NStepBiRNNReLU = _n_step("NStepBiRNNReLU", "rnn", 2, activation="relu")
