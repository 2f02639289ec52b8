"""Elementwise functions and reductions at the ends of their domains, against NumPy with more bits.

The arguments are infinities, NaN, both zeros, the ends of each floating dtype, ties, and numbers
of all magnitudes. References are computed in long double.
"""
import math

import catena
import catena.functions as F
import numpy as np
import pytest
from differential import EPSILON, LARGEST, LEAST, random_of, special_values

DTYPES = ["float16", "bfloat16", "float32", "float64"]
pytestmark = pytest.mark.filterwarnings("ignore")
long = np.longdouble
erf = np.vectorize(lambda x: long(math.erf(x)), [long])
erfc = np.vectorize(lambda x: long(math.erfc(x)), [long])


def variable(numbers, dtype):
    """A variable and what it is computed from, whose gradient NumPy can show."""
    x = catena.Variable(np.asarray(numbers, "float32" if dtype == "bfloat16" else dtype))
    return x, F.cast(x, dtype)


def array(y):
    if isinstance(y, catena.Variable):
        y = F.cast(y, "float32") if str(y.dtype) == "bfloat16" else y
        y = y.array
    return np.asarray(y)


def arguments(dtype):
    """Numbers of the dtype, as float64."""
    random = random_of(dtype)
    ends = [1, 0.5, 1.5, 2, 2.5, 3, 6, 20, 89, 1000, 1 + EPSILON[dtype], 1 - EPSILON[dtype]]
    some = np.concatenate([
        special_values(dtype), ends, np.negative(ends),
        random.uniform(-10, 10, 60), random.uniform(-100, 100, 20),
        np.exp2(random.uniform(np.log2(LEAST[dtype]), 4, 60)) * random.choice([-1, 1], 60)])
    return array(variable(some, dtype)[1]).astype("float64")


def zero(x):
    return np.zeros_like(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def normal(x):
    return erfc(-x / np.sqrt(long(2))) / 2


SELU = long(1.0507009873554805), long(1.6732632423543772)
UNARY = {  # the value and the derivative
    "absolute": (np.abs, np.sign), "neg": (np.negative, lambda x: -np.ones_like(x)),
    "ceil": (np.ceil, zero), "floor": (np.floor, zero), "fix": (np.trunc, zero), "sign": (np.sign, zero),
    "square": (np.square, lambda x: 2 * x),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: -0.5 * (1 / np.sqrt(x))**3),
    "exp": (np.exp, np.exp), "expm1": (np.expm1, np.exp),
    "log": (np.log, lambda x: 1 / x),
    "log2": (np.log2, lambda x: 1 / (x * np.log(long(2)))),
    "log10": (np.log10, lambda x: 1 / (x * np.log(long(10)))),
    "log1p": (np.log1p, lambda x: 1 / (1 + x)),
    "sin": (np.sin, np.cos), "cos": (np.cos, lambda x: -np.sin(x)),
    "tan": (np.tan, lambda x: 1 / np.cos(x)**2),
    "sinh": (np.sinh, np.cosh), "cosh": (np.cosh, np.sinh),
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x)**2),
    "arctanh": (np.arctanh, lambda x: 1 / ((1 - x) * (1 + x))),
    "erf": (erf, lambda x: 2 / np.sqrt(long(np.pi)) * np.exp(-x * x)),
    "relu": (lambda x: np.maximum(x, 0), lambda x: x > 0),
    "leaky_relu": (lambda x: np.where(x > 0, x, long(0.2) * x), lambda x: np.where(x > 0, 1, long(0.2))),
    "clipped_relu": (lambda x: np.clip(x, 0, 20), lambda x: (x > 0) & (x < 20)),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda x: (x > 0) & (x < 6)),
    "hard_sigmoid": (lambda x: np.clip(long(0.2) * x + 0.5, 0, 1),
                     lambda x: np.where(abs(x) < 2.5, long(0.2), 0)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
    "celu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
    "selu": (lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(np.minimum(x, 0))),
             lambda x: SELU[0] * np.where(x > 0, 1, SELU[1] * np.exp(np.minimum(x, 0)))),
    "sigmoid": (sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "softplus": (softplus, sigmoid),
    "silu": (lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * sigmoid(-x))),
    "gelu": (lambda x: x * normal(x),
             lambda x: normal(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * long(np.pi))),
    "mish": (lambda x: x * np.tanh(softplus(x)),
             lambda x: np.tanh(softplus(x)) + x * sigmoid(x) / np.cosh(softplus(x))**2),
    "hard_swish": (lambda x: x * np.clip(x + 3, 0, 6) / 6,
                   lambda x: np.where(x <= -3, 0, np.where(x >= 3, 1, (2 * x + 3) / 6))),
}
SIGNED = {"absolute", "ceil", "floor", "fix", "sqrt", "sin", "tan", "sinh", "tanh", "arctanh",
          "expm1", "log1p", "erf"}  # functions that keep the sign of 0
FROM_RESULT = {"tanh", "sigmoid"}  # whose gradients, 1 - y^2 and y - y^2, have an absolute error
TAILS = {"sigmoid", "silu", "softplus", "mish", "gelu"}  # with an absolute error where e^x is tiny
# Functions that round inside: their error is that of an argument that was rounded.
COMPOSED = {"erf", "gelu", "hard_sigmoid", "hard_swish"}
BINARY = {
    "add": (np.add, lambda x, y: (1, 1)), "sub": (np.subtract, lambda x, y: (1, -1)),
    "mul": (np.multiply, lambda x, y: (y, x)), "div": (np.divide, lambda x, y: (1 / y, -x / y / y)),
    "fmod": (np.fmod, lambda x, y: (1, -np.trunc(x / y))),
    "pow": (np.power, lambda x, y: (y * np.power(x, y - 1), np.power(x, y) * np.log(x))),
    "maximum": (np.maximum, lambda x, y: (x >= y, x < y)),
    "minimum": (np.minimum, lambda x, y: (x <= y, x > y)),
    "squared_difference": (lambda x, y: (x - y)**2, lambda x, y: (2 * (x - y), 2 * (y - x))),
    "squared_error": (lambda x, y: (x - y)**2, lambda x, y: (2 * (x - y), 2 * (y - x))),
    "absolute_error": (lambda x, y: abs(x - y), lambda x, y: (np.sign(x - y), np.sign(y - x))),
    **{name: (getattr(np, name), None) for name in [
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]},
}


def differing(got, expected, dtype, ulps, error=0):
    """Where values differ by more than an error and units in the last place of the dtype."""
    got, expected = np.broadcast_arrays(got.astype(long), np.asarray(expected, long))
    size = np.where(np.isfinite(expected), abs(expected), 0)
    bound = ulps * EPSILON[dtype] * np.maximum(size, LEAST[dtype]) + error
    agree = (got == expected) | np.isnan(got) & np.isnan(expected) | (abs(got - expected) <= bound)
    overflow = np.isinf(got) & (np.sign(got) == np.sign(expected))
    return ~(agree | overflow & (abs(expected) > LARGEST[dtype] * (1 - ulps * EPSILON[dtype])))


def assert_near(what, got, expected, dtype, ulps, where, *inputs, error=0):
    wrong = differing(got, expected, dtype, ulps, error) & where
    columns = [np.broadcast_to(each, wrong.shape)[wrong].astype(float).tolist()
               for each in (*inputs, expected, got)]
    rows = list(zip(*columns))
    assert not rows, f"{what}: {len(rows)} (inputs, expected, got): {rows[:12]}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype):
    x = arguments(dtype)
    given, cast = variable(x, dtype)
    y = getattr(F, name)(cast)
    assert str(y.dtype) == dtype
    function, derivative = UNARY[name]
    exact = x.astype(long)
    tail = np.clip(exact, -10000, 10000)  # the limits are reached there
    if name in ("silu", "gelu", "mish", "hard_swish"):
        value = np.where(np.isinf(x), np.maximum(x, 0), function(exact))
        slope = derivative(tail)
    else:
        value, slope = function(exact), derivative(exact)
    tiny = 100 * LEAST[dtype] * (name in TAILS)
    errors = [tiny, tiny + 4 * EPSILON[dtype] * (name in FROM_RESULT)]
    if name in COMPOSED:
        errors = [tiny + 4 * abs(f(tail * (1 + long(EPSILON[dtype]))) - f(tail))
                  for f in (function, derivative)]
    got = array(y)
    assert_near("values", got, value, dtype, 4, True, x, error=errors[0])
    assert_near("signs of 0", np.signbit(got), np.signbit(x) & (name != "absolute"), dtype, 0,
                (x == 0) & (name in SIGNED), x)
    F.sum(y).backward()
    got = zero(x) if given.grad is None else given.grad
    assert_near("gradients", got, slope, dtype, 16, ~np.isnan(value), x, error=errors[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype):
    x = np.unique(arguments(dtype)[:50])  # the special ones and some others
    x, y = (each.ravel() for each in np.meshgrid(np.append(x, -0.0), np.append(x, [-0.0, np.nan])))
    (given_x, cast_x), (given_y, cast_y) = variable(x, dtype), variable(y, dtype)
    z = getattr(F, name)(cast_x, cast_y)
    function, derivative = BINARY[name]
    value = function(x.astype(long), y.astype(long))
    if value.dtype == bool:
        assert np.array_equal(array(z), value)
        return
    assert str(z.dtype) == dtype
    assert_near("values", array(z), value, dtype, 4, True, x, y)
    if derivative is not None:
        F.sum(z).backward()
        usual = [(x == 0) | np.isfinite(x) & (abs(x) >= LEAST[dtype]) for x in (x, y)]
        slopes = derivative(x.astype(long), y.astype(long))
        for what, given, slope in zip("xy", (given_x, given_y), slopes):
            # Powers that are too small for the dtype are multiplied by y.
            error = 100 * LEAST[dtype] * EPSILON[dtype] * (name == "pow")
            assert_near(f"gradients of {what}", given.grad, slope, dtype, 16 + 112 * (name == "pow"),
                        usual[0] & usual[1] & (abs(value) <= LARGEST[dtype]) & np.isfinite(slope), x, y,
                        error=error)


def logsumexp(x):
    top = x.max(-1, keepdims=True)
    rest = np.log(np.exp(x - np.where(np.isinf(top), 0, top)).sum(-1, keepdims=True))
    return np.where(np.isinf(top), top, top + rest)[..., 0]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - logsumexp(x)[..., None]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


REDUCTIONS = {
    "sum": lambda x: x.sum(-1), "prod": lambda x: x.prod(-1), "mean": lambda x: x.mean(-1),
    "max": lambda x: x.max(-1), "min": lambda x: x.min(-1),
    "argmax": lambda x: x.argmax(-1), "argmin": lambda x: x.argmin(-1),
    "var": lambda x: x.var(-1), "std": lambda x: x.std(-1), "logsumexp": logsumexp,
    "norm": lambda x: np.sqrt((x * x).sum(-1)), "cumsum": lambda x: x.cumsum(-1),
    "cumprod": lambda x: x.cumprod(-1), "softmax": softmax,
    "log_softmax": log_softmax,
    "sort": lambda x: np.sort(x, -1), "argsort": lambda x: np.argsort(x, -1, kind="stable"),
    "average": lambda x: x.mean(-1),
}
ROWS = [[1, 2, 3], [-3, 0.5, 2], [1, 1, 1], [0, -0.0, 0], [1, np.nan, 2], [np.nan, np.nan, np.nan],
        [np.inf, 1, 2], [-np.inf, 1, 2], [np.inf, -np.inf, 1], [-np.inf, -np.inf, -np.inf],
        [np.inf, np.inf, 1], [np.inf, np.nan, 1], [2, 3, 3], [-1, -1, 0], [100, -100, 0]]


def weights_of(x, reduced):
    """The gradient of the result: of each line of x, or of each element."""
    return np.resize(np.array([2, 0.5, 3, 1, 0.25], long), x[..., 0].shape if reduced else x.shape)


def shared(hit, g):
    """The gradient of ties is divided evenly; without a hit, beside NaN, it is NaN."""
    return g[..., None] * hit / hit.sum(-1, keepdims=True)


def products_of_others(x):
    return np.stack([np.delete(x, i, -1).prod(-1) for i in range(x.shape[-1])], -1)


def through_cumprod(x, g):
    slope, after = zero(x), zero(x[..., 0])
    for i in reversed(range(x.shape[-1])):
        slope[..., i] = x[..., :i].prod(-1) * (g[..., i] + after)
        after = x[..., i] * (g[..., i] + after)
    return slope


def through_sort(x, g):
    slope = zero(x)
    np.put_along_axis(slope, np.argsort(x, -1, kind="stable"), g, -1)
    return slope


def through_norm(x, g, n=1):
    """The gradient of the root of the mean of squares; that of 0 is 0."""
    size = np.sqrt((x * x).sum(-1) / n)
    return g[..., None] * np.where(size[..., None] == 0, 0, x / size[..., None] / n)


THROUGH_REDUCTIONS = {  # the gradient of x from that of the result
    "sum": lambda x, g: g[..., None] + zero(x),
    "mean": lambda x, g: g[..., None] / 3 + zero(x),
    "average": lambda x, g: g[..., None] / 3 + zero(x),
    "prod": lambda x, g: g[..., None] * products_of_others(x),
    "max": lambda x, g: shared(x == x.max(-1, keepdims=True), g),
    "min": lambda x, g: shared(x == x.min(-1, keepdims=True), g),
    "var": lambda x, g: (g[..., None] * 2 / 3 * (x - x.mean(-1, keepdims=True))
                         + 0 * x.var(-1, keepdims=True)),  # NaN where the variance is
    "std": lambda x, g: through_norm(x - x.mean(-1, keepdims=True), g, 3),
    "logsumexp": lambda x, g: g[..., None] * np.exp(np.where(
        np.isneginf(x), x, x - logsumexp(x)[..., None])),  # 0 if all are -inf
    "norm": through_norm,
    "cumsum": lambda x, g: g[..., ::-1].cumsum(-1)[..., ::-1],
    "cumprod": through_cumprod,
    "softmax": lambda x, g: softmax(x) * (g - (g * softmax(x)).sum(-1, keepdims=True)),
    "log_softmax": lambda x, g: g - softmax(x) * g.sum(-1, keepdims=True),
    "sort": through_sort,
}


def lines(name, dtype):
    ends = [[LARGEST[dtype], 0, -1], [LEAST[dtype], 0, LEAST[dtype]], [LARGEST[dtype], 2, 0.5]]
    return np.array(ROWS + ends * (name != "std"))  # the variance is beyond the dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    x = lines(name, dtype)
    y = getattr(F, name)(variable(x, dtype)[1], axis=-1)
    value = REDUCTIONS[name](x.astype(long))
    if value.dtype.kind == "i":
        assert array(y).tolist() == value.tolist()
    else:
        assert str(y.dtype) == dtype
        ys = array(y)
        assert ys.shape == value.shape
        wrong = differing(ys, value, dtype, 4)
        wrong = wrong.any(-1) if wrong.ndim > 1 else wrong
        assert not wrong.any(), list(zip(x[wrong].tolist(), value[wrong], ys[wrong]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", THROUGH_REDUCTIONS)
def test_gradients_of_reductions(name, dtype):
    x = lines(name, dtype)
    given, cast = variable(x, dtype)
    y = getattr(F, name)(cast, axis=-1)
    g = weights_of(x, y.ndim == 1)
    F.sum(y * F.cast(variable(g, dtype)[0], dtype)).backward()
    slope = THROUGH_REDUCTIONS[name](x.astype(long), g)
    wrong = differing(given.grad, slope, dtype, 16).any(-1)
    assert not wrong.any(), list(zip(x[wrong].tolist(), slope[wrong], given.grad[wrong]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_reductions(dtype):
    """Sums of many numbers keep bits that the dtype does not have."""
    x = np.full((300000,), 0.1)
    _, x = variable(x, dtype)
    exact = float(array(x)[0])
    for name, value in (
            ("mean", exact), ("average", exact), ("sum", 300000 * exact), ("max", exact), ("std", 0),
            ("logsumexp", exact + np.log(300000)), ("norm", exact * np.sqrt(300000))):
        value = value if value <= LARGEST[dtype] else np.inf
        assert_near(name, array(getattr(F, name)(x)), value, dtype, 32, True, error=EPSILON[dtype])
