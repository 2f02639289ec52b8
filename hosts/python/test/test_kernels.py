"""Kernels from formulas: CuPy's interface, Chainer's helpers, Chainer 1's pointers."""
import numpy
import pytest

import catena
from catena import cuda
from catena.kernels import ElementwiseKernel, ReductionKernel, elementwise, reduce

muladd = ElementwiseKernel("T x, T y, T z", "T w", "w = x * y + z", "muladd")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 1, 7)])
def test_elementwise(dtype, shape):
    x = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    y = numpy.array(3, dtype)
    w = muladd(x, y, 2)
    assert isinstance(w, numpy.ndarray) and w.dtype == dtype and w.shape == shape
    numpy.testing.assert_array_equal(w, x * y + numpy.array(2, dtype))


def test_broadcasting_and_numbers():
    x = numpy.arange(6, dtype="f").reshape(2, 3)
    row = numpy.ones(3, "f")
    for half in [0.5, numpy.float32(0.5), numpy.float64(0.5), numpy.array(0.5, "f")]:
        numpy.testing.assert_array_equal(muladd(x, row, half), x + 0.5)
    numpy.testing.assert_array_equal(muladd(x, x[:, :1], numpy.int64(1)), x * x[:, :1] + 1)
    numpy.testing.assert_array_equal(muladd(x, True, row), x + 1)
    assert muladd(1, 2, 3) == 5


def test_arrays_of_catena():
    x = catena.Array(numpy.arange(3, dtype="f"))
    numpy.testing.assert_array_equal(muladd(x, x, catena.Variable(numpy.ones(3, "f"))), [1, 2, 5])
    out = catena.Array(numpy.zeros(3, "f"))
    assert muladd(x, x, x, out) is out
    numpy.testing.assert_array_equal(numpy.asarray(out), [0, 2, 6])


def test_outputs_in_given_arrays():
    polar = ElementwiseKernel("T x, T y", "T r, T angle", "r = hypot(x, y); angle = atan2(y, x)",
                              "polar")
    assert (polar.nin, polar.nout, polar.nargs, polar.name) == (2, 2, 4, "polar")
    x, y = numpy.array([3.0, 1]), numpy.array([4.0, 0])
    r, angle = polar(x, y)
    numpy.testing.assert_allclose(r, [5, 1])
    numpy.testing.assert_allclose(angle, numpy.arctan2(y, x))
    out = numpy.zeros((2, 2)), numpy.zeros((2, 2, 2))
    given = out[0][:, 1], out[1][::-1, 0, 0]  # strided
    assert polar(x, y, *given) == given
    numpy.testing.assert_allclose(out[0], [[0, 5], [0, 1]])
    numpy.testing.assert_allclose(out[1][:, 0, 0], angle[::-1])
    numpy.testing.assert_allclose(polar(x, y, x, angle)[0], r)
    assert x is polar(x, y, x, angle)[0]
    r.flags.writeable = False
    with pytest.raises(ValueError, match=r"\[polar\] output 0: expected an array that can be"):
        polar(x, y, r, angle)


def test_raw_arguments_and_size():
    reverse = ElementwiseKernel("raw T x, int64 n", "T y", "y = x[n - 1 - i]", "reverse")
    numpy.testing.assert_array_equal(reverse(numpy.arange(4.0), 4, size=4), [3, 2, 1, 0])
    y = numpy.zeros(2)
    assert reverse(numpy.arange(4.0), 4, y) is y and y.tolist() == [3, 2]
    pick = ElementwiseKernel("raw T table, int64 id", "T y", "y = table[id]", "pick")
    numpy.testing.assert_array_equal(pick(numpy.arange(4.0), numpy.array([2, 0])), [2, 0])


def test_options():
    gelu = ElementwiseKernel("T x", "T y", "y = x * phi(x)", "gelu", preamble="CATENA_FN float "
                             "phi(float x) { return (1 + erf(x * 0.70710678f)) / 2; }")
    x = numpy.array([-1, 0, 1], "f")
    numpy.testing.assert_allclose(gelu(x), catena.functions.gelu(x).array, rtol=1e-5)
    kernel = ElementwiseKernel("T x", "T y", "y = x", "same", return_tuple=True)
    assert isinstance(kernel(x), tuple)
    kernel = ElementwiseKernel("T x", "T y", "y = x", "same", no_return=True)
    assert kernel(x) is None
    loop = elementwise("T x", "T y", "y = x * two", "loop", loop_prep="const T two = 2;")
    numpy.testing.assert_array_equal(loop(x), 2 * x)


def test_wrong_elementwise_kernels():
    with pytest.raises(catena.InvalidError, match="wrong"):
        ElementwiseKernel("T", "T y", "y = 1", "wrong")
    with pytest.raises(catena.InvalidError, match="broken"):
        ElementwiseKernel("T x", "T y", "y = no_such_name", "broken")(numpy.ones(2, "f"))
    with pytest.raises(catena.InvalidError, match="muladd"):
        muladd(1, 2)
    with pytest.raises(catena.ShapeError, match="muladd"):
        muladd(numpy.ones(2, "f"), numpy.ones(3, "f"), 1)
    with pytest.raises(catena.DtypeError, match="muladd"):
        muladd(numpy.ones(2, "f"), numpy.ones(2), 1)
    with pytest.raises(TypeError, match=r"\[muladd\] argument"):
        muladd("x", 2, 3)
    with pytest.raises(TypeError):
        catena._core.Kernel()


l2norm = ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions(axis, keepdims, dtype):
    x = numpy.random.RandomState(0).normal(size=(3, 4, 5)).astype(dtype)
    expected = numpy.sqrt((x * x).sum(axis=axis, keepdims=keepdims))
    got = l2norm(x, axis=axis, keepdims=keepdims)
    assert got.shape == expected.shape and got.dtype == dtype
    numpy.testing.assert_allclose(got, expected, rtol=1e-5)
    out = numpy.zeros(expected.shape, dtype)
    assert l2norm(x, out=out, axis=axis, keepdims=keepdims) is out
    numpy.testing.assert_allclose(out, expected, rtol=1e-5)
    assert l2norm(x, out, axis=axis, keepdims=keepdims) is out


def test_reductions_of_several_inputs_and_none():
    dot = ReductionKernel("T x, T y", "float64 z", "double(x) * y", "a + b", "z = a", "0", "dot")
    x = numpy.arange(6, dtype="f").reshape(2, 3)
    numpy.testing.assert_array_equal(dot(x, numpy.ones(3, "f"), axis=1), [3, 12])
    assert dot(x, 2.0) == 30 and dot(numpy.zeros((0, 3), "f"), 1.0) == 0
    largest = ReductionKernel("T x", "T y", "x", "max(a, b)", "", None, "largest")
    assert largest(x) == 5
    with pytest.raises(ValueError, match=r"\[largest\].*no identity"):
        largest(numpy.zeros(0, "f"))
    with pytest.raises(catena.InvalidError, match="axis"):
        l2norm(x, axis=2)
    index = ReductionKernel(
        "T x", "int64 y", "Best{x, i}",
        "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b", "y = a.index",
        "", "argmax", reduce_type="Best", preamble="struct Best { T value; int64 index; };")
    assert index(numpy.array([1, 5, 2, 5], "f")) == 1


def test_helpers_of_chainer():
    grad, param, h = numpy.full(3, 2, "f"), numpy.ones(3, "f"), numpy.zeros(3, "f")
    kernel = cuda.elementwise(
        "T grad, T lr, T eps", "T param, T h",
        """h += grad * grad;
           param -= lr * grad / (sqrt(h) + eps);""", "adagrad")
    kernel(grad, 0.5, 0.0, param, h)
    numpy.testing.assert_allclose(param, 0.5)
    numpy.testing.assert_allclose(h, 4)
    total = cuda.reduce("T y1, T y2, T eps", "T gx", "y1 - y2", "a + b", "gx = a / eps", "0",
                        "grad")
    gx = numpy.array(1.0)
    assert total(numpy.full(3, 5.0), numpy.ones(3), 2.0, gx) is gx and gx == 6


def test_kernels_of_chainer_1():
    x, y, z = (numpy.arange(4, dtype="f") + i for i in range(3))
    w = numpy.empty_like(x)
    assert elementwise("float* w, const float* x, const float* y, const float* z",
                       "w[i] = x[i] * y[i] + z[i]", "muladd")(w, x, y, z) is None
    numpy.testing.assert_array_equal(w, x * y + z)
    strided = numpy.zeros(8, "f")[::2]
    elementwise("float* w, const float* x", "w[i] = x[i] * two", "double", False, None, "",
                "const float two = 2;")(strided, x)
    numpy.testing.assert_array_equal(strided, 2 * x)
    dot = reduce("const float* x, const float* y", "x[i] * y[i]", "a+b", "0", "dot")
    assert dot(x, y) == (x * y).sum()
    wide = reduce("const float* x", "x[i]", "a+b", "0", "sum", "float64")
    assert wide(x).dtype == numpy.float64


def test_in_a_function_of_the_user():
    class MulAdd(catena.Function):
        def forward_cpu(self, inputs):
            return muladd(*inputs),

        def backward_cpu(self, inputs, grad_outputs):
            x, y, _ = inputs
            both = ElementwiseKernel("T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw",
                                     "muladd_bwd")
            return both(x, y, *grad_outputs) + grad_outputs

    data = [numpy.random.RandomState(i).normal(size=(2, 3)) for i in range(4)]
    catena.gradient_check.check_backward(MulAdd(), tuple(data[:3]), data[3])
