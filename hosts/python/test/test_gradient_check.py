"""Gradient checks: they find wrong gradients, kinks and wrong arguments."""
import numpy
import pytest

import catena
import catena.functions as F
from catena import gradient_check, testing
from catena.gradient_check import check_backward, check_double_backward, numerical_grad


def normal(*shape, dtype="float64", seed=0):
    return numpy.random.RandomState(seed).normal(size=shape).astype(dtype)


class Cube(catena.FunctionNode):
    """x^3, with factors that make its gradients wrong."""

    def __init__(self, first=3.0, second=6.0):
        self.factors = first, second

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 3).astype(inputs[0].dtype),

    def backward(self, indexes, grad_outputs):
        x, = self.get_retained_inputs()
        return CubeGrad(*self.factors).apply((x, grad_outputs[0]))


class CubeGrad(catena.FunctionNode):
    def __init__(self, first, second):
        self.factors = first, second

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        x, gy = inputs
        return (self.factors[0] * x ** 2 * gy).astype(x.dtype),

    def backward(self, indexes, grad_outputs):
        x, gy = self.get_retained_inputs()
        g, = grad_outputs
        return self.factors[1] * x * gy * g, self.factors[0] * x * x * g


def cube(**factors):
    return lambda x: Cube(**factors).apply((x,))[0]


@pytest.mark.parametrize("dtype, options", [
    ("float64", {}), ("float32", {"eps": 1e-2, "atol": 1e-2, "rtol": 1e-2}),
    ("float32", {"dtype": "float64", "rtol": 1e-3, "atol": 1e-3}),
    ("float16", {"dtype": numpy.float64, "rtol": 5e-2, "atol": 5e-2})])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_right_and_wrong_gradients(dtype, options, shape):
    numpy.random.seed(0)
    x, gy = normal(*shape, dtype=dtype) + numpy.array(2, dtype), normal(*shape, dtype=dtype, seed=1)
    gy += numpy.copysign(numpy.array(1, dtype), gy)
    check_backward(cube(), x, gy, **options)
    if x.size == 0:
        return
    with pytest.raises(AssertionError, match=r"check_backward failed \(eps(.|\n)*numeric"):
        check_backward(cube(first=2.0), x, gy, **options)


def test_second_derivatives():
    x, gy, ggx = normal(3), normal(3, seed=1), normal(3, seed=2)
    check_double_backward(cube(), x, gy, ggx)
    with pytest.raises(AssertionError, match="check_double_backward failed"):
        check_double_backward(cube(second=5.0), x, gy, ggx)


def test_several_inputs_and_outputs():
    def func(x, y):
        return x * y, F.sum(x), y * y

    xs = normal(2, 3), normal(2, 3, seed=1)
    gys = normal(2, 3, seed=2), None, normal(2, 3, seed=3)
    check_backward(func, xs, gys)
    check_backward(func, list(xs), list(gys[:1]) + [normal(), gys[2]])
    check_double_backward(lambda x, y: x * y, xs, gys[0], (normal(2, 3, seed=4), None))


def test_losses_and_integer_inputs():
    t = numpy.array([1, 0, 2])
    check_backward(F.softmax_cross_entropy, (normal(3, 4), t), None)
    with pytest.raises(ValueError, match="y_grad argument cannot be omitted"):
        check_backward(cube(), normal(3), None)


def test_parameters():
    link = catena.links.Linear(3, 2)
    for param in link.params():
        param.array = normal(*param.shape, seed=7)
    x, gy = normal(4, 3), normal(4, 2, seed=1)
    before = link.W.array.copy(), link.b.array
    check_backward(link, x, gy, tuple(link.params()))
    check_double_backward(lambda x: F.square(link(x)), x, gy, normal(4, 3, seed=3),
                          (link.W, link.b), (normal(2, 3, seed=4), normal(2, seed=5)))
    assert (link.W.array == before[0]).all() and link.b.array is before[1]
    wrong = catena.Parameter(normal(2))
    with pytest.raises(AssertionError):
        check_backward(lambda x: x * wrong.array + Cube(first=2.0).apply((wrong,))[0], normal(2),
                       normal(2, seed=1), wrong)
    lazy = catena.links.Linear(None, 2)
    check_backward(lazy, normal(4, 3, dtype="float32"), normal(4, 2, dtype="float32"),
                   (lazy.W, lazy.b), eps=1e-1, rtol=1e-2, atol=1e-2)


def test_inputs_without_gradients():
    def func(x, y):
        return x * y.array

    xs, gy = (normal(3), normal(3, seed=1)), normal(3, seed=2)
    check_backward(func, xs, gy, no_grads=[False, True])
    with pytest.raises(AssertionError):
        check_backward(func, xs, gy)
    with pytest.raises(RuntimeError, match="gradient of int variable must be None"):
        check_backward(func, xs, gy, no_grads=[True, True])
    with pytest.raises(ValueError, match="Length of no_grads"):
        check_backward(func, xs, gy, no_grads=[True])


def test_wrong_gradients_of_outputs():
    for gy, message in [((normal(3), normal(3)), "equally as many"), (normal(2), "do not match"),
                        (normal(3, dtype="float32"), "do not match")]:
        with pytest.raises(ValueError, match=message):
            check_backward(cube(), normal(3), gy)
    with pytest.raises(ValueError, match="only float type"):
        check_backward(cube(), normal(3), normal(3), dtype="int32")


def test_kinks():
    gy = numpy.ones(3)
    x = numpy.array([1.0, 0.0, -2.0])
    for func in [F.relu, lambda x: F.floor(x), lambda x: F.log(x + 1e-5)]:
        with pytest.raises(gradient_check.NondifferentiableError, match="differentiable"):
            check_backward(func, x, gy, detect_nondifferentiable=True)
    check_backward(F.relu, x + 0.5, gy, detect_nondifferentiable=True)
    x += 0.5
    with numpy.errstate(invalid="ignore"):  # it is as undefined as around it
        assert numpy.isnan(numerical_grad(lambda: (numpy.log(x),), (x,), (gy,), 1e-3, True)[0][2])


@pytest.mark.parametrize("detect, tolerance", [(False, 1e-5), (True, 1e-9)])
def test_numerical_grad(detect, tolerance):
    x, y = normal(2, 3) + 3, numpy.array(2.0)
    gys = normal(2, 3, seed=1), 0.5, None
    before = x.copy()
    gx, gy = numerical_grad(lambda: (x ** 3 * y, numpy.exp(x).sum(), x), (x, y), gys, 1e-3, detect)
    assert (x == before).all() and y == 2
    numpy.testing.assert_allclose(gx, 3 * x ** 2 * y * gys[0] + 0.5 * numpy.exp(x), rtol=tolerance)
    numpy.testing.assert_allclose(gy, (x ** 3 * gys[0]).sum(), rtol=tolerance)
    assert isinstance(gx, numpy.ndarray) and gx.dtype == numpy.float64 and gy.shape == ()
    with pytest.raises(RuntimeError, match="kind of float"):
        numerical_grad(lambda: (x,), (numpy.arange(2),), (gys[0],))


def test_numerical_grad_is_chainers():
    chainer = pytest.importorskip("chainer")
    import chainer.gradient_check
    x, gy = normal(2, 3, dtype="float32"), normal(2, 3, seed=1, dtype="float32")
    for detect in [False, True]:
        results = [module.gradient_check.numerical_grad(
            lambda: (numpy.tanh(x.astype(float)),), (x,), (gy,), 1e-2, detect)[0]
            for module in [catena, chainer]]
        assert results[0].dtype == results[1].dtype
        numpy.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-7)


def test_arrays_on_other_devices():
    catena.cuda.set_backend("cpu")
    try:
        if not catena.cuda.available:
            pytest.skip("one logical CPU device")
        x, gy, g = (catena.cuda.to_gpu(normal(3, seed=i)) for i in range(3))
        check_backward(F.tanh, x, gy)
        check_double_backward(F.tanh, x, gy, g)
        with pytest.raises(AssertionError):
            check_backward(lambda x: F.tanh(x) + x._array, x, gy)
    finally:
        catena.cuda.set_backend("")


# ---- catena.testing

def test_assert_allclose():
    testing.assert_allclose(catena.Variable(normal(3)), catena.Array(normal(3)))
    testing.assert_allclose(1.0, 1.00001)
    with pytest.raises(AssertionError, match=r"i: \(1,\)\n  x\[i\]: 2.0\n  y\[i\]: 3.0"):
        testing.assert_allclose(numpy.array([1.0, 2.0]), numpy.array([1.0, 3.0]))
    with pytest.raises(AssertionError, match=r"shape: \(2,\) \(3,\)"):
        testing.assert_allclose(numpy.zeros(2), numpy.zeros(3))
    testing.assert_allclose(numpy.zeros(2), numpy.ones(2), atol=1)


def test_products():
    found = [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
    assert testing.product({"a": [1, 2], "b": [3, 4]}) == found
    assert testing.product_dict([{"a": 1}, {"a": 2}], [{"b": 3}, {"b": 4}]) == found


seen = []


@testing.parameterize(*testing.product({"a": [1, 2], "f": [lambda x: x + 1]}))
@testing.fix_random()
class TestMade:
    def setup_method(self):
        self.ready = True

    def setUp(self):
        self.seed = testing.generate_seed()

    def tearDown(self):
        pass

    def test_attributes(self):
        self.setUp()
        assert self.f(self.a) == self.a + 1 and self.ready
        seen.append((self.a, self.seed, numpy.random.rand()))
        self.tearDown()


def test_parameterized_classes_ran():
    assert [a for a, *_ in seen] == [1, 2] and seen[0][1:] == seen[1][1:]
    assert [cls.__name__ for cls in TestMade.cases] == ["TestMade_param_0", "TestMade_param_1"]


def test_decorators():
    runs = []

    @testing.condition.retry(3)
    def rarely():
        runs.append(1)
        assert len(runs) == 3

    rarely()
    assert len(runs) == 3
    with pytest.raises(AssertionError):
        testing.condition.repeat(2)(rarely)()

    @testing.fix_random()
    def draw():
        return numpy.random.rand()

    assert draw() == draw() != numpy.random.rand()
    with testing.assert_warns(DeprecationWarning):
        catena.optimizers.SGD().use_cleargrads()
    with pytest.raises(AssertionError, match="not triggered"):
        with testing.assert_warns(UserWarning):
            pass

    @testing.attr.multi_gpu(10 ** 6)
    class Many:
        pass

    assert Many.__unittest_skip__


def test_save_and_load():
    links = [catena.links.Linear(3, 2) for _ in range(2)]
    testing.save_and_load_npz(*links)
    assert (links[0].W.array == links[1].W.array).all()
