"""Functions that compute in float32 with float16 arrays."""
import functools

import numpy


def _cast(arrays, of, to):
    return tuple(x.astype(to) if x is not None and x.dtype == of else x for x in arrays)


def _fp16_mixed_precision_helper(forward):
    """A decorator of forward(self, inputs): float16 arrays are float32 in it."""
    @functools.wraps(forward)
    def wrapper(self, inputs):
        outputs = forward(self, _cast(inputs, numpy.float16, numpy.float32))
        # Results are float16 unless an input has a wider floating dtype.
        narrow = all(x.dtype.kind != "f" or x.dtype == numpy.float16 for x in inputs)
        return _cast(outputs, numpy.float32, numpy.float16) if narrow else outputs
    return wrapper
