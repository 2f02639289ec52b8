"""Recurrent layers with Chainer's arguments."""
from typing import Any

from catena import _core
from catena.functions._plugins import F, ends_of, plugins

__all__ = [
    "n_step_bigru", "n_step_bilstm", "n_step_birnn", "n_step_gru", "n_step_lstm", "n_step_rnn",
    "tree_lstm"]


def tree_lstm(*inputs) -> Any:
    """An LSTM unit of a tree: the cells of n children, then x (N, (3 + n) units, ...).

    x consists of a, i, o and then f for each child. Returns a tuple (c, h).
    """
    return plugins.tree_lstm(inputs)


def _n_step(name, n_layers, dropout_ratio, states, ws, bs, xs, **options):
    """The last states, and those of the last layer as a tuple with the rows of each step."""
    if not len(xs):
        raise _core.ShapeError(f"[{name}] xs: expected one step or more, got none")
    rows = [len(x) for x in xs]
    n = n_layers * (2 if "_bi" in name else 1)
    weights = [each for layer in zip(ws[:n], bs[:n]) for arrays in layer for each in arrays]
    states = [each if len(each) == n else each[:n] for each in states]
    ys, *last = getattr(plugins, name)(F.concat(xs, 0), *states, weights, rows, dropout_ratio,
                                       **options)
    return *last, F.split_axis(ys, ends_of(rows)[:-1], 0)


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
    return _n_step("n_step_lstm", n_layers, dropout_ratio, (hx, cx), ws, bs, xs)


def n_step_bilstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs) -> Any:
    """LSTM layers in both directions: ``n_step_lstm()`` with two entries for each layer."""
    return _n_step("n_step_bilstm", n_layers, dropout_ratio, (hx, cx), ws, bs, xs)


def n_step_gru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """GRU layers over sequences: as ``n_step_lstm()``, but ws and bs have r, z and h, and there are
    no cells. Returns a tuple (hy, ys)."""
    return _n_step("n_step_gru", n_layers, dropout_ratio, (hx,), ws, bs, xs)


def n_step_bigru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """GRU layers in both directions: ``n_step_gru()`` with two entries for each layer."""
    return _n_step("n_step_bigru", n_layers, dropout_ratio, (hx,), ws, bs, xs)


def n_step_rnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """Recurrent layers over sequences: h = activation(W x + b + V h + c).

    ws consists of [W, V], bs of [b, c] for each layer.

    The other arguments are those of ``n_step_lstm()``. Returns a tuple (hy, ys).
    """
    return _n_step("n_step_rnn", n_layers, dropout_ratio, (hx,), ws, bs, xs,
                   activation=activation)


def n_step_birnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """Recurrent layers in both directions: ``n_step_rnn()`` with two entries for each layer."""
    return _n_step("n_step_birnn", n_layers, dropout_ratio, (hx,), ws, bs, xs,
                   activation=activation)
