"""Recurrent layers with Chainer's arguments."""
from typing import Any

from catena import _core
from catena import functions as F
from catena.functions._plugins import check_choice, ends_of, indices, plugins
from catena.variable import as_variable

__all__ = [
    "n_step_bigru", "n_step_bilstm", "n_step_birnn", "n_step_gru", "n_step_lstm", "n_step_rnn",
    "slstm", "tree_lstm"]


def slstm(c_prev1, c_prev2, x1, x2) -> Any:
    """An LSTM unit with two inputs: the sums of two inputs' cells, and of their output gates.

    Args:
        c_prev1, c_prev2: cells (N, units, ...).
        x1, x2: inputs (N, 4 units, ...) with a, i, f and o of each unit, as for ``lstm()``.

    Returns a tuple (c, h).
    """
    c, o = 0, 0
    for c_prev, x in ((c_prev1, x1), (c_prev2, x2)):
        gates = F.reshape(x, (len(x), x.shape[1] // 4, 4) + x.shape[2:])
        a, i, f, own = F.separate(gates, 2)
        c = c + F.tanh(a) * F.sigmoid(i) + F.sigmoid(f) * c_prev
        o = o + own
    return c, F.sigmoid(o) * F.tanh(c)


def tree_lstm(*inputs) -> Any:
    """An LSTM unit of a tree: the cells of n children, then x (N, (3 + n) units, ...).

    x consists of a, i, o and then f for each child. Returns a tuple (c, h).
    """
    *cells, x = inputs
    a, i, o, *forget = F.split_axis(x, 3 + len(cells), 1)
    c = F.tanh(a) * F.sigmoid(i)
    for f, cell in zip(forget, cells):
        c = c + F.sigmoid(f) * cell
    return c, F.sigmoid(o) * F.tanh(c)


class _Packed:
    """The inputs of all steps as one array: the rows of step 0, then those of step 1, and so on."""

    def __init__(self, xs) -> None:
        self.rows = rows = [len(x) for x in xs]
        if not rows or rows != sorted(rows, reverse=True) or not rows[-1]:
            raise _core.ShapeError("[n_step] xs: expected steps of at least one sequence, whose "
                                   f"number does not increase, got {rows}")
        self.x = F.concat(xs, 0)
        starts = [0] + ends_of(rows)
        lengths = [sum(n > i for n in rows) for i in range(rows[0])]
        self._places = [[starts[t] + i for t in range(n)] for i, n in enumerate(lengths)]

    def _taken(self, x, numbers):
        return F.take(x, indices(numbers, x.device), 0)

    def reversed(self, x) -> Any:
        """The rows with each sequence in the reverse order."""
        order = [0] * len(x)
        for places in self._places:
            for place, mirrored in zip(places, places[::-1]):
                order[place] = mirrored
        return self._taken(x, order)

    def last(self, x) -> Any:
        """The last row of each sequence."""
        return self._taken(x, [places[-1] for places in self._places])

    def unpacked(self, x) -> Any:
        """The rows of each step as a tuple."""
        return F.split_axis(x, ends_of(self.rows)[:-1], 0)


def _n_step(cell, n_layers, dropout_ratio, hx, cx, ws, bs, xs, both):
    """Runs layers over sequences. cell(packed, x, h, c, w, b) returns h and c of all steps."""
    if xs[0].shape[1] != ws[0][0].shape[1]:
        raise ValueError(f"[n_step] xs: expected {ws[0][0].shape[1]} elements at each step, as the "
                         f"weights, got {xs[0].shape[1]}")
    packed = _Packed(xs)
    for name, state in (("hx", hx), ("cx", cx)):
        if state is not None and len(state[0]) != packed.rows[0]:
            raise _core.ShapeError(f"[n_step] {name}: expected the states of {packed.rows[0]} "
                                   f"sequences, got the shape {state.shape}")
    x, hs, cs = packed.x, [], []
    directions = 2 if both else 1
    for layer in range(n_layers):
        if layer > 0:
            x = F.dropout(x, dropout_ratio)
        outputs = []
        for direction in range(directions):
            i = directions * layer + direction
            start = packed.reversed(x) if direction else x
            h, c = cell(packed, start, hx[i], None if cx is None else cx[i], ws[i], bs[i])
            hs.append(packed.last(h))
            cs.append(None if c is None else packed.last(c))
            outputs.append(packed.reversed(h) if direction else h)
        x = F.concat(outputs, 1) if both else outputs[0]
    return F.stack(hs), None if cx is None else F.stack(cs), packed.unpacked(x)


def _lstm(packed, x, h, c, w, b):
    # Chainer has the order i, f, a, o; lstm_sequence() has the channels a, i, f, o of each unit
    def interleaved(parts):
        whole = F.stack([parts[k] for k in (2, 0, 1, 3)], 1)
        return whole.reshape((-1,) + whole.shape[2:])
    x = F.linear(x, interleaved(w[:4]), interleaved(b[:4]) + interleaved(b[4:]))
    return plugins.lstm_sequence(x, interleaved(w[4:]), h, c, packed.rows)


def _steps(packed, x, h, step):
    """Calls h = step(x, h) for the rows of each step."""
    results = []
    for rows in packed.unpacked(x):
        h = step(rows, h[:len(rows)])
        results.append(h)
    return F.concat(results, 0)


def _gru(packed, x, h, c, w, b):
    x = F.linear(x, F.concat(w[:3], 0), F.concat(b[:3], 0))
    W, bias = F.concat(w[3:], 0), F.concat(b[3:], 0)

    def step(x, h):
        xr, xz, xh = F.split_axis(x, 3, 1)
        hr, hz, hh = F.split_axis(F.linear(h, W, bias), 3, 1)
        z = F.sigmoid(xz + hz)
        return (1 - z) * F.tanh(xh + F.sigmoid(xr + hr) * hh) + z * h
    return _steps(packed, x, h, step), None


def _rnn(activation):
    check_choice("n_step_rnn", "activation", activation, ("tanh", "relu"))
    function = F.tanh if activation == "tanh" else F.relu

    def cell(packed, x, h, c, w, b):
        x = F.linear(x, w[0], as_variable(b[0]) + b[1])
        return _steps(packed, x, h, lambda x, h: function(x + F.linear(h, w[1]))), None
    return cell


def n_step_lstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs) -> Any:
    """LSTM layers over sequences of different lengths.

    Args:
        n_layers: the number of layers.
        dropout_ratio: that of dropout between layers.
        hx, cx: the first states and cells (n_layers, N, units).
        ws: for each layer eight matrices: of x for the gates i, f, a and o, then of h.
        bs: for each layer eight vectors, in the same order.
        xs: a list with the inputs of each step: (sequences, size). The number of sequences must not
            increase; ``transpose_sequence()`` makes such a list from sequences.

    Returns a tuple (hy, cy, ys): the last states and cells, and the states of the last layer as a
    tuple with those of each step.
    """
    return _n_step(_lstm, n_layers, dropout_ratio, hx, cx, ws, bs, xs, False)


def n_step_bilstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs) -> Any:
    """LSTM layers in both directions: ``n_step_lstm()`` with two entries for each layer."""
    return _n_step(_lstm, n_layers, dropout_ratio, hx, cx, ws, bs, xs, True)


def n_step_gru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """GRU layers over sequences: as ``n_step_lstm()``, but ws and bs have r, z and h, and there are
    no cells. Returns a tuple (hy, ys)."""
    return _n_step(_gru, n_layers, dropout_ratio, hx, None, ws, bs, xs, False)[0::2]


def n_step_bigru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """GRU layers in both directions: ``n_step_gru()`` with two entries for each layer."""
    return _n_step(_gru, n_layers, dropout_ratio, hx, None, ws, bs, xs, True)[0::2]


def n_step_rnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """Recurrent layers over sequences: h = activation(W x + b + V h + c).

    ws consists of [W, V], bs of [b, c] for each layer.

    The other arguments are those of ``n_step_lstm()``. Returns a tuple (hy, ys).
    """
    return _n_step(_rnn(activation), n_layers, dropout_ratio, hx, None, ws, bs, xs, False)[0::2]


def n_step_birnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """Recurrent layers in both directions: ``n_step_rnn()`` with two entries for each layer."""
    return _n_step(_rnn(activation), n_layers, dropout_ratio, hx, None, ws, bs, xs, True)[0::2]
