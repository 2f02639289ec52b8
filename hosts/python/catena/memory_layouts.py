"""Names of the layouts of arrays, with the names of chainer.memory_layouts.

Arrays of catena have the layout of their shape, CUDNN_CHANNEL_FIRST_X and CUDNN_CHANNEL_FIRST_W,
which is None. There are no variables of the others.
"""
from typing import Any

__all__ = ["CUDNN_CHANNEL_FIRST_W", "CUDNN_CHANNEL_FIRST_X", "CUDNN_CHANNEL_LAST_W",
           "CUDNN_CHANNEL_LAST_X", "get_raw_shape", "get_semantic_shape"]

CUDNN_CHANNEL_FIRST_X = CUDNN_CHANNEL_FIRST_W = None
CUDNN_CHANNEL_LAST_X, CUDNN_CHANNEL_LAST_W = "CUDNN_CHANNEL_LAST_X", "CUDNN_CHANNEL_LAST_W"


def get_raw_shape(arr_or_var) -> Any:
    """The shape of an array or a variable."""
    return arr_or_var.shape


def get_semantic_shape(arr_or_var, *, assumed_layout=None) -> Any:
    """The shape of an array or a variable, in which the channels come first.

    Args:
        assumed_layout: the layout of an array.
    """
    shape = arr_or_var.shape
    if assumed_layout is None:
        return shape
    if assumed_layout not in (CUDNN_CHANNEL_LAST_X, CUDNN_CHANNEL_LAST_W):
        raise ValueError(f"[get_semantic_shape] assumed_layout: expected None, "
                         f"{CUDNN_CHANNEL_LAST_X!r} or {CUDNN_CHANNEL_LAST_W!r}, got "
                         f"{assumed_layout!r}")
    return shape[:1] + shape[-1:] + shape[1:-1]
