"""Helpers of tests that compare catena with other packages on random calls.

CATENA_TEST_SCALE multiplies the number of random calls, CATENA_TEST_SEED draws others.
"""
import os
import re
import warnings
import zlib

import numpy as np
from function_cases import Constant, Input

SCALE = float(os.environ.get("CATENA_TEST_SCALE", "1"))
SEED = int(os.environ.get("CATENA_TEST_SEED", "0"))
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38,
           "float32": float(np.finfo("f").max), "float64": float(np.finfo("d").max)}
# The least normal number. Below, the distance of numbers no longer shrinks.
LEAST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}
# Tolerances in units of the last place of the largest number of a call. What the other package
# loses, compared with its result in float64, is added twice.
FACTORS = {"values": 8, "gradients": 16, "second derivatives": 64}
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0]
SIZES = [0, 1, 1, 2, 3, 5, 7, 16, 33]
MOST = 3000  # elements of an input


def random_of(name):
    """The random numbers of a test."""
    return np.random.RandomState(zlib.crc32(f"{name} {SEED}".encode()))


def times(number):
    return max(1, round(number * SCALE))


def special_values(dtype):
    """The ends of the dtype's numbers, both zeros, and what is no number."""
    return [*SPECIAL, LARGEST[dtype], -LARGEST[dtype], LEAST[dtype], -LEAST[dtype],
            LEAST[dtype] * EPSILON[dtype]]


def mapped(value, change):
    """The argument with the results of a function for its inputs and arrays."""
    if isinstance(value, (Input, np.ndarray)):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(each, change) for each in value)
    return value


def flat(results):
    if isinstance(results, (list, tuple)):
        return [each for result in results for each in flat(result)]
    return [results]


def with_sizes(case, random):
    """The case with other numbers for some sizes of its inputs."""
    while case.sizes:
        sizes = [n if random.rand() < 0.4 else int(random.choice(SIZES)) for n in range(100)]
        largest = 0

        def resized(value):
            nonlocal largest
            shape = tuple(sizes[n] for n in value.shape)
            largest = max(largest, np.prod(shape))
            if isinstance(value, Input):
                return type(value)(shape, value.low, value.high)
            return value if largest > MOST or value.size == 0 else np.resize(value, shape)

        other = case.with_arguments(lambda value: mapped(value, resized))
        if largest <= MOST:
            return other
    return case


def numbers(value, dtype, kind, random):
    """The numbers of an input: as the case has them, equal ones, or with some special ones."""
    array = value.make("float32" if dtype == "bfloat16" else dtype, random)
    if dtype == "bfloat16":
        array = (array.view("uint32") & np.uint32(0xffff0000)).view("float32")
    if kind == "ties":
        array = np.round(array * 2) / 2
    elif kind == "special" and array.size:
        for _ in range(random.randint(3)):
            array.flat[random.randint(array.size)] = random.choice(SPECIAL)
    return array.astype("float64")


def compare(case, kind, dtype, random, theirs, ours, found):
    """Adds the differences of a call to those found. False if the other package refuses the call.

    theirs, ours: call(case, numbers of the inputs, dtype, whether second derivatives are needed)
    for values, gradients and second derivatives, as lists of arrays.
    """
    args = {}
    for value in (*case.args, *case.kwargs.values()):
        mapped(value, lambda x: isinstance(x, Input)
               and args.setdefault(x, numbers(x, dtype, kind, random)))
    double = case.double and dtype == "float64" and kind != "special"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            # A result with more bits is as valid, and shows how large its errors are.
            exact = theirs(case, args, "float64" if "float64" in case.dtypes else dtype, double)
        except Exception:
            return False
        try:
            expected = theirs(case, args, dtype, double)
        except Exception:  # it lacks the dtype
            expected = [[rounded(x, dtype) for x in xs] for xs in exact]
        try:
            got = ours(case, args, dtype, double)
        except Exception as error:
            found.append(("error", f"{case!r} {dtype}: {type(error).__name__}: {error}"))
            return True
    largest = max(abs(x[np.isfinite(x)]).max(initial=0)
                  for xs in [args.values(), *exact] for x in xs if x is not None)
    for (what, factor), ys, zs, es in zip(FACTORS.items(), got, expected, exact):
        text = None if len(ys) == len(zs) else f"expected {len(zs)} arrays, got {len(ys)}"
        for y, z, e in zip(ys, zs, es):
            text = text or different(y, z, e, dtype, factor * case.tolerance * largest,
                                     kind == "special" and what != "values")
        if text:
            if sum(x.size for x in args.values()) <= 12:
                text += "; inputs " + " ".join(str(x.tolist()) for x in args.values())
            found.append((f"{kind}: {what}", f"{case!r} {dtype}: {text}"))
    return True


def rounded(x, dtype):
    """Floats in the dtype, or in float32 for bfloat16, which NumPy lacks."""
    if x is None or x.dtype != "float64":
        return x
    return x.astype("float32" if dtype == "bfloat16" else dtype)


def different(got, theirs, exact, dtype, scale, lenient):
    """Returns the difference, or None. None as a gradient is the same as zeros.

    lenient: whether any number agrees with NaN.
    """
    if got is None or theirs is None:
        other = theirs if got is None else got
        return None if other is None or not other.any() else f"expected {theirs}, got {got}"
    if got.shape != theirs.shape or got.dtype != theirs.dtype:
        return f"expected {theirs.dtype}{theirs.shape}, got {got.dtype}{got.shape}"
    if got.dtype.kind != "f":
        return None if np.array_equal(got, theirs) else f"expected {theirs}, got {got}"
    if got.dtype != "float32" or dtype != "bfloat16":
        dtype = str(got.dtype)
    got, theirs, exact = (x.astype("float64") for x in (got, theirs, exact))
    with np.errstate(all="ignore"):
        overflow = abs(exact) > LARGEST[dtype] * (1 + EPSILON[dtype] / 4)
        exact = np.where(overflow, np.sign(exact) * np.inf, exact)
        both = np.isfinite(exact) & np.isfinite(theirs)
        bound = EPSILON[dtype] * scale + 2 * abs(theirs[both] - exact[both]).max(initial=0)
        agree = lenient & np.isnan(got + exact)
        for each in (exact, theirs):
            agree |= (got == each) | (np.isnan(got) & np.isnan(each)) | (abs(got - each) <= bound)
    if agree.all():
        return None
    return (f"expected {exact[~agree][:3]}, with its rounding {theirs[~agree][:3]}, "
            f"got {got[~agree][:3]} within {bound:.3g}")


def run(package, case, args, dtype, double):
    """The values, gradients and second derivatives of a function of catena or Chainer."""
    variables = []

    def variable(value):
        if not isinstance(value, Input):
            return value.copy()
        x = package.Variable(rounded(args[value], dtype))
        if dtype == "bfloat16":
            x = package.functions.cast(x, dtype)
        elif isinstance(value, Constant):
            return x.array
        if not isinstance(value, Constant):
            variables.append(x)
        return x

    def array(x):
        if str(getattr(x, "dtype", "")) == "bfloat16":
            x = package.functions.cast(x, "float32")
        return None if x is None else np.asarray(getattr(x, "array", x))

    given = [mapped(value, variable) for value in case.args]
    named = {key: mapped(value, variable) for key, value in case.kwargs.items()}
    for key in {"class_weight", "running_mean", "running_var"} & named.keys():
        named[key] = getattr(named[key], "array", named[key])
    result = getattr(package.functions, case.name)(*given, **named)
    firsts = seconds = [None] * len(variables)
    total, weights = weighted_sum(package, [
        y for y in flat(result) if isinstance(y, package.Variable) and "float" in str(y.dtype)])
    if variables and weights:
        firsts = package.grad([total], variables, enable_double_backprop=double)
        total, others = weighted_sum(package, [g for g in firsts if g is not None])
        if double and others:
            seconds = package.grad([total], variables + weights)
    return [[array(x) for x in flat(each)] for each in (result, firsts, seconds)]


def weighted_sum(package, ys):
    """A number to differentiate, and the variables that weigh its parts."""
    weights = [package.functions.cast(package.Variable(w), str(y.dtype))
               for y, w in zip(ys, weights_of([y.shape for y in ys]))]
    return sum(package.functions.sum(y * w) for y, w in zip(ys, weights)), weights


def weights_of(shapes):
    random = np.random.RandomState(len(shapes))
    return [np.asarray(np.round(random.uniform(8, 24, shape)) / 16, "float32") for shape in shapes]


class Differences:
    """Known differences: (names, patterns of what differs and of the text, why).

    A required one that occurs in no call of any of its names is an error; others occur with some
    seeds only.
    """

    def __init__(self, required, rare, names):
        self.required, self.rows, self.names = required, [*required, *rare], names
        self.tested, self.seen = set(), set()

    def check(self, name, found):
        """The differences (what, text) of a function are known ones."""
        self.tested.add(name)
        new = []
        for what, text in found:
            known = {row for row in self.rows if name in row[0].split()
                     and re.fullmatch(row[1], what) and re.search(row[2], text)}
            self.seen |= known
            if not known:
                new.append(f"{what}: {text}")
        assert not new, f"{name}: {len(new)} differences\n" + "\n".join(new[:5])

    def check_required(self):
        if SEED == 0 and SCALE >= 1 and self.tested == self.names:
            gone = set(self.required) - self.seen
            assert not gone, f"these differences are gone, delete them: {gone}"
