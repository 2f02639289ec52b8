"""Recurrent layers with Chainer's arguments, and forget()."""
from typing import Any

from catena import _core
from catena.configuration import config, using_config
from catena.functions._plugins import F, plugins, split

__all__ = [
    "forget", "n_step_bigru", "n_step_bilstm", "n_step_birnn", "n_step_gru", "n_step_lstm",
    "n_step_rnn", "tree_lstm"]


def forget(func, *xs) -> Any:
    """func(*xs), without keeping the values within: backward calls func again.

    Both calls draw the same random numbers. In the second one ``config.in_recomputing`` is True, so
    that links do not update statistics twice.
    """
    if not callable(func):
        raise TypeError(f"[forget] func: expected a function, got {type(func).__name__}")
    kept = None  # the list of what links keep in the first call

    def call(*xs):
        nonlocal kept
        again = _core._in_recomputation()
        if kept is None:
            outer = config._kept_for_recomputing  # of a forget() whose function calls this one
            kept = next(outer) if again and outer is not None else []
            if outer is not None and not again:
                outer.append(kept)
        with using_config("_kept_for_recomputing", iter(kept) if again else kept), using_config(
                "in_recomputing", again):
            ys = func(*xs)
        for i, y in enumerate(ys if isinstance(ys, tuple) else (ys,), 1):
            if not isinstance(y, _core.Variable):
                ending = "th" if i in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
                raise RuntimeError(f"[forget] func: expected a variable as the {i}{ending} result, "
                                   f"got {type(y).__name__}")
        return ys

    outputs = _core._checkpoint(call, xs)
    return outputs[0] if len(outputs) == 1 else outputs


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
    return *last, split(ys, rows)


def n_step_lstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs) -> Any:
    """LSTM layers over sequences of different lengths.

    xs is a list with the inputs of each step: (sequences, size). The number of sequences must not increase;
    ``transpose_sequence()`` makes such a list from sequences. hx and cx are the first states and cells
    (n_layers, N, units), ws and bs have for each layer eight matrices and vectors: of x for the gates i, f, a
    and o, then of h. Returns a tuple (hy, cy, ys): the last states and cells, and the states of the last
    layer as a tuple with those of each step.
    """
    return _n_step("n_step_lstm", n_layers, dropout_ratio, (hx, cx), ws, bs, xs)


def n_step_bilstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs) -> Any:
    """LSTM layers in both directions: ``n_step_lstm()`` with two entries for each layer."""
    return _n_step("n_step_bilstm", n_layers, dropout_ratio, (hx, cx), ws, bs, xs)


def n_step_gru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """``n_step_lstm()`` with GRU layers: ws and bs have r, z and h. Returns a tuple (hy, ys)."""
    return _n_step("n_step_gru", n_layers, dropout_ratio, (hx,), ws, bs, xs)


def n_step_bigru(n_layers, dropout_ratio, hx, ws, bs, xs) -> Any:
    """GRU layers in both directions: ``n_step_gru()`` with two entries for each layer."""
    return _n_step("n_step_bigru", n_layers, dropout_ratio, (hx,), ws, bs, xs)


def n_step_rnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """``n_step_lstm()`` with layers h = activation(W x + b + V h + c). Returns a tuple (hy, ys).

    ws consists of [W, V], bs of [b, c] for each layer.
    """
    return _n_step("n_step_rnn", n_layers, dropout_ratio, (hx,), ws, bs, xs, activation=activation)


def n_step_birnn(n_layers, dropout_ratio, hx, ws, bs, xs, activation="tanh") -> Any:
    """Recurrent layers in both directions: ``n_step_rnn()`` with two entries for each layer."""
    return _n_step("n_step_birnn", n_layers, dropout_ratio, (hx,), ws, bs, xs, activation=activation)
