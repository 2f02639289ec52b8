"""Scores of predictions with Chainer's arguments."""
from typing import Any

from catena import _core
from catena.functions._plugins import F, plugins, variables

__all__ = ["accuracy"]


def accuracy(y, t, ignore_label=None) -> Any:
    """The fraction of the rows whose largest score is at their label.

    Args:
        y: scores (N, classes, ...).
        t: labels (N, ...).
        ignore_label: rows with this label do not count; None: all count.
    """
    y, t = variables("accuracy", y=y, t=t)
    if getattr(t.dtype, "kind", "f") == "f":
        raise _core.DtypeError(f"[accuracy] t: expected integers, got {t.dtype}")
    if y.ndim > t.ndim + 1 and y.size == y.shape[1] * t.size:
        y = y.reshape(y.shape[:2] + t.shape[1:])
    if ignore_label is not None:
        return plugins.accuracy(y, t, ignore_label)
    best = plugins.argmax(y, 1)  # plugins.accuracy refuses labels that are no classes
    if best.shape != t.shape:
        raise _core.ShapeError(f"[accuracy] t: expected the shape {best.shape}, got {t.shape}")
    return plugins.mean(plugins.cast(F.equal(best, t), y.dtype))
