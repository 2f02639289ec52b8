"""What the tests share that compare catena with other packages on random calls.

CATENA_TEST_SCALE multiplies the number of random calls, CATENA_TEST_SEED draws others.
"""
import os
import re
import zlib

import numpy as np

SCALE = float(os.environ.get("CATENA_TEST_SCALE", "1"))
SEED = int(os.environ.get("CATENA_TEST_SEED", "0"))
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38,
           "float32": float(np.finfo("f").max), "float64": float(np.finfo("d").max)}
# The least normal number. Below, the distance of numbers no longer shrinks.
LEAST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def random_of(name):
    """The random numbers of a test."""
    return np.random.RandomState(zlib.crc32(f"{name} {SEED}".encode()))


def times(number):
    return max(1, round(number * SCALE))


def special_values(dtype):
    """The ends of the dtype's numbers, both zeros, and what is no number."""
    return [np.inf, -np.inf, np.nan, 0.0, -0.0, LARGEST[dtype], -LARGEST[dtype], LEAST[dtype],
            -LEAST[dtype], LEAST[dtype] * EPSILON[dtype]]


def same(got, expected, bound):
    """Where two arrays of float64 or long double agree: both NaN, the same infinity, or near."""
    with np.errstate(all="ignore"):
        return (got == expected) | (np.isnan(got) & np.isnan(expected)) | (
            np.isfinite(got) & np.isfinite(expected) & (abs(got - expected) <= bound))


def assert_differences(found, known, name):
    """The differences (what, text) of a function are those that are known.

    known has (names, what, a pattern of the text, why). What is gone has to leave the table.
    """
    known = [row for row in known if name in row[0].split()]
    used = [[bool(what in row[1].split(" or ") and re.search(row[2], text)) for row in known]
            for what, text in found]
    new = [f"{what}: {text}" for row, (what, text) in zip(used, found) if not any(row)]
    assert not new, f"{name}: {len(new)} differences\n" + "\n".join(new[:5])
    if SEED == 0 and SCALE >= 1:
        gone = [row for i, row in enumerate(known) if not any(each[i] for each in used)]
        assert not gone, f"{name}: these differences are gone, delete them: {gone}"
