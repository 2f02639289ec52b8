"""Random matrices."""
from typing import Any

import numpy
from numpy import broadcast_to as _broadcast_to


def generate_matrix(shape, dtype=float, *, singular_values=None) -> Any:
    """A random matrix, or several, with given singular values.

    Args:
        shape: the shape; the last two axes are those of a matrix.
        dtype: a floating-point or complex dtype.
        singular_values: numbers that can be broadcast to those of all matrices.
    """
    dtype = numpy.dtype(dtype)
    if len(shape) < 2:
        raise ValueError(f"[generate_matrix] shape: expected two axes or more, got {shape}")
    if dtype.kind not in "fc":
        raise TypeError(f"[generate_matrix] dtype: expected a floating-point one, got {dtype}")
    if singular_values is None:
        raise TypeError("[generate_matrix] singular_values: expected an array, got None")
    values = numpy.asarray(singular_values)
    if not numpy.isrealobj(values):
        raise TypeError("[generate_matrix] singular_values: expected real numbers, got "
                        f"{values.dtype}")
    if (values < 0).any():
        raise ValueError("[generate_matrix] singular_values: expected none below 0, got "
                         f"{values.min()}")
    values = _broadcast_to(values, (*shape[:-2], min(shape[-2:])))
    random = numpy.random.randn(*shape)
    if dtype.kind == "c":
        random = random + 1j * numpy.random.randn(*shape)
    left, _, right = numpy.linalg.svd(random, full_matrices=False)
    return (left * values[..., None, :] @ right).astype(dtype)
