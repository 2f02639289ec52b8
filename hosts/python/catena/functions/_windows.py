"""Pooling with Chainer's arguments: None and other results."""
from typing import Any

from catena import _core
from catena.functions._plugins import check_choice, plugins

__all__ = ["average_pooling_1d", "average_pooling_3d", "average_pooling_nd", "max_pooling_1d",
           "max_pooling_2d", "max_pooling_3d", "max_pooling_nd"]


def _max_pooling(name):
    def pooling(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False) -> Any:
        """The largest element of each window.

        Args:
            x: (N, C, ...).
            ksize, stride, pad: numbers, or one for each axis. The stride is ksize by default.
            cover_all: whether to use windows that extend beyond the padded image.
            return_indices: whether to return the places of the maxima in their windows, too: an
                array. Only for images (N, C, H, W).
        """
        if not return_indices:
            return getattr(plugins, name)(x, ksize, stride, pad, cover_all)
        y, indices = _core._all_outputs("catena.max_pooling_2d")(x, ksize, stride, pad, cover_all)
        return y, plugins.cast(indices, "int64").array
    pooling.__name__ = pooling.__qualname__ = name
    return pooling


def _average_pooling(name):
    def pooling(x, ksize, stride=None, pad=0, pad_value=0) -> Any:
        """The mean of each window.

        Args:
            x: (N, C, ...).
            ksize, stride, pad: numbers, or one for each axis. The stride is ksize by default.
            pad_value: 0, or None to leave the padding out of the means.
        """
        check_choice(name, "pad_value", pad_value, (0, None))
        return getattr(plugins, name)(x, ksize, stride, pad, pad_value is not None)
    pooling.__name__ = pooling.__qualname__ = name
    return pooling


max_pooling_1d = _max_pooling("max_pooling_1d")
max_pooling_2d = _max_pooling("max_pooling_2d")
max_pooling_3d = _max_pooling("max_pooling_3d")
max_pooling_nd = _max_pooling("max_pooling_nd")
average_pooling_1d = _average_pooling("average_pooling_1d")
average_pooling_3d = _average_pooling("average_pooling_3d")
average_pooling_nd = _average_pooling("average_pooling_nd")
