"""catena.testing: base classes of tests, configurations, decorators."""
import unittest
from unittest import mock

import catena
import numpy as np
import pytest
from catena import testing
from catena.testing import attr, backend, condition

CPU = testing.BackendConfig({})


def run(case, *names):
    """Runs methods of a test class. Returns the numbers of tests, failures, errors and skips."""
    result = unittest.TestResult()
    for name in names or unittest.TestLoader().getTestCaseNames(case):
        case(name).run(result)
    return result.testsRun, len(result.failures), len(result.errors), len(result.skipped)


# ---- configurations

def test_backend_config():
    assert CPU.device == catena.get_device(-1) and CPU.xp is np
    x = np.ones(2)
    assert CPU.get_array(x) is x and CPU.get_array([x, None]) == [x, None]
    config = testing.BackendConfig({"use_cudnn": "always", "autotune": True})
    with config as entered:
        assert entered is config
        assert catena.config.use_cudnn == "always" and catena.config.autotune is True
        with config:
            assert catena.config.use_cudnn == "always"
        assert catena.config.use_cudnn == "always"
    assert catena.config.use_cudnn == "auto"
    assert "use_cuda=False" in repr(config)
    assert "use_chainerx_false__" in config.get_func_str()
    with pytest.raises(TypeError, match="params: expected a dict, got <class 'list'>"):
        testing.BackendConfig([])
    with pytest.raises(ValueError, match="got 'use_tpu'"):
        testing.BackendConfig({"use_tpu": True})
    with pytest.raises(catena.UnsupportedError, match="expected the host or a GPU"):
        testing.BackendConfig({"use_ideep": "always"}).device


def test_injected_tests():
    seen = []

    @backend.inject_backend_tests(None, [{}, {"use_chainerx": True, "chainerx_device": "native:0"},
                                         {"use_ideep": "always"}])
    @backend.inject_backend_tests(["test_a"], [{}, {"autotune": True}])
    class Case(unittest.TestCase):
        def test_a(self, inner, outer):
            seen.append((inner.autotune, outer.use_ideep))

        def test_b(self, only):
            seen.append(only.use_ideep)

    assert Case.test_a is None and Case.test_b is None
    assert run(Case) == (9, 0, 0, 6)
    assert sorted(seen, key=str) == [(False, "never"), (True, "never"), "never"]

    @backend.inject_backend_tests(["test_a"], [{}])
    class Some(unittest.TestCase):
        def test_a(self, config):
            pass

        def test_b(self):
            pass

    assert run(Some) == (2, 0, 0, 0)
    for names, params in ((("test_a",), []), (None, {}), (None, [1])):
        with pytest.raises(TypeError, match=r"\[inject_backend_tests\]"):
            backend.inject_backend_tests(names, params)


# Parameterized classes must be at the top level, because they are added to the module.

@testing.parameterize(*testing.product({"shape,axis": [((2, 3), 1), ((), None)],
                                        "dtype": ["float16", "float32", "float64"]}))
@testing.fix_random()
@testing.inject_backend_tests(None, [{}])
class TestSum(testing.FunctionTestCase):
    def setUp(self):
        if self.dtype == "float16":
            self.check_forward_options.update({"atol": 1e-2, "rtol": 1e-2})
            self.check_backward_options.update({"atol": 1e-2, "rtol": 1e-2})
            self.check_double_backward_options.update({"atol": 1e-2, "rtol": 1e-2})

    def generate_inputs(self):
        return np.random.uniform(-1, 1, self.shape).astype(self.dtype),

    def forward(self, inputs, device):
        return catena.functions.sum(inputs[0] ** 2, self.axis),

    def forward_expected(self, inputs):
        return np.asarray((inputs[0] ** 2).sum(self.axis), self.dtype),


@testing.fix_random()
@testing.inject_backend_tests(None, [{}, {"use_cuda": True}])
class TestReLU(testing.FunctionTestCase):
    dodge_nondifferentiable = True
    skip_double_backward_test = True
    draws = 0

    def generate_inputs(self):  # the first is a kink
        type(self).draws += 1
        return np.array([0, 1] if self.draws % 2 else [-1, 1], "float32"),

    def forward(self, inputs, device):
        return catena.functions.relu(inputs[0]),

    def forward_expected(self, inputs):
        return np.maximum(inputs[0], 0),


class LinearCase:
    param_names = ("W", "b")

    def generate_params(self):
        return np.random.uniform(-1, 1, (3, 2)).astype("float32"), np.ones(3, "float32")

    def create_link(self, initializers):
        W, b = initializers
        return catena.links.Linear(2, 3, initialW=W, initial_bias=b)

    def generate_inputs(self):
        return np.random.uniform(-1, 1, (4, 2)).astype("float32"),


@testing.fix_random()
@testing.inject_backend_tests(None, [{}, {"use_cuda": True}])
class TestLinear(LinearCase, testing.LinkTestCase):
    def forward_expected(self, link, inputs):
        return inputs[0] @ link.W.array.T + link.b.array,


@testing.inject_backend_tests(None, [{}])
class TestInitializers(LinearCase, testing.LinkInitializersTestCase):
    def get_initializers(self):
        return ([catena.initializers.Constant(1), 2, np.ones((3, 2), "float32")],
                [3, testing.InitializerArgument(None, 0)])


@testing.unary_math_function_unittest(catena.functions.exp)
class TestExp(unittest.TestCase):
    pass


def square(x):
    return x * x


@testing.unary_math_function_unittest(square, lambda x, dtype: (x * x).astype(dtype))
class TestSquare(unittest.TestCase):
    pass


# ---- what the base classes find

def function_case(**methods):
    base = {"generate_inputs": lambda self: (np.ones((2, 2), "float32"),),
            "forward": lambda self, inputs, device: (inputs[0] * 2,),
            "forward_expected": lambda self, inputs: (inputs[0] * 2,)}
    return type("Case", (testing.FunctionTestCase,), {**base, **methods})


class Wrong(catena.FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2,

    def backward(self, indexes, gys):
        return gys[0] * 3,


def add_in_place(self, inputs, device):
    inputs[0].array[...] += 1
    return inputs[0] * 2 - 2,


@pytest.mark.parametrize("methods, error, message", [
    ({"forward": lambda self, x, device: (x[0] * 3,)}, testing.FunctionTestError, "close values"),
    ({"forward": lambda self, x, device: (x[0][:1],)}, testing.FunctionTestError,
     "expected shapes and dtypes"),
    ({"forward": lambda self, x, device: x[0]}, testing.FunctionTestError,
     r"\[forward\] expected a tuple of variables"),
    ({"forward": add_in_place}, testing.FunctionTestError, "Input arrays have been modified"),
    ({"generate_inputs": lambda self: [1]}, TypeError, r"\[generate_inputs\] expected a tuple"),
    ({"forward_expected": lambda self, x: x[0]}, TypeError, r"\[forward_expected\] expected"),
])
def test_wrong_forward(methods, error, message):
    case = function_case(contiguous="C", **methods)("test_forward")
    with pytest.raises(error, match=message):
        case.run_test_forward(CPU)


def test_wrong_backward():
    case = function_case(forward=lambda self, x, device: Wrong().apply(x))("test_backward")
    case.run_test_forward(CPU)
    with pytest.raises(testing.FunctionTestError, match="backward is not implemented correctly"):
        case.run_test_backward(CPU)
    skipped = function_case(skip_backward_test=True)("test_backward")
    with pytest.raises(unittest.SkipTest, match="skip_backward_test is set"):
        skipped.run_test_backward(CPU)


def test_hooks_of_function_cases():
    seen = []
    case = function_case(before_test=lambda self, name: seen.append(name))("test_forward")
    case.test_forward(CPU)
    case.test_backward(CPU)
    case.test_double_backward(CPU)
    assert seen == ["test_forward", "test_backward", "test_double_backward"]
    assert case.test_name == "test_double_backward" and case.backend_config is CPU


def test_gradients_of_gradients_have_a_method_of_their_own():
    """Classes override generate_grad_outputs() for the outputs only, for example with None."""
    case = function_case(generate_grad_outputs=lambda self, outputs: tuple(
        np.ones((1,), y.dtype).repeat(y.size).reshape(y.shape) for y in outputs))("test_backward")
    x = np.zeros((2, 3), "float16")
    ggx, = case.generate_grad_grad_inputs((x,))
    assert ggx.shape == x.shape and ggx.dtype == x.dtype and len(np.unique(ggx)) > 1
    case.test_double_backward(CPU)


def test_wrong_links():
    class Case(LinearCase, testing.LinkTestCase):
        def forward_expected(self, link, inputs):
            return np.zeros((4, 3), "float32"),

    with pytest.raises(testing.LinkTestError, match="output 0: expected close values"):
        Case("test_forward").test_forward(CPU)
    Case.param_names = ("nothing",)
    with pytest.raises(testing.LinkTestError, match="does not have a parameter named 'nothing'"):
        Case("test_backward").test_backward(CPU)
    Case.create_link = lambda self, initializers: 1
    with pytest.raises(TypeError, match="expected a catena.Link, got <class 'int'>"):
        Case("test_forward").test_forward(CPU)

    class Initializers(LinearCase, testing.LinkInitializersTestCase):
        def get_initializers(self):
            return [testing.InitializerArgument(1, 2)], []

    with pytest.raises(testing.LinkTestError, match="test_initializers"):
        Initializers("test_initializers").test_initializers(CPU)
    with pytest.raises(ValueError, match="expected_initializer: expected an initializer, got None"):
        testing.InitializerArgument(1, None)


# ---- decorators

def test_retry():
    events = []

    class Case(unittest.TestCase):
        def setUp(self):
            events.append("setUp")

        def tearDown(self):
            events.append("tearDown")

        @condition.retry(3)
        def test_rarely(self):
            assert events.count("setUp") == 3

        @condition.retry(2)
        def test_never(self):
            raise KeyError("why")

        @condition.repeat(2)
        def test_skipped_by_pytest(self):
            pytest.skip("no")

        @condition.repeat(2)
        def test_skipped(self):
            raise unittest.SkipTest("no")

    assert run(Case, "test_rarely") == (1, 0, 0, 0)
    assert events == ["setUp"] * 2 + ["tearDown", "setUp"] + ["tearDown"] * 2
    assert run(Case, "test_never") == (1, 1, 0, 0)
    assert run(Case, "test_skipped") == run(Case, "test_skipped_by_pytest") == (1, 0, 0, 1)
    with pytest.raises(AssertionError, match="Fail: 2, Success: 0\n\nThe first error message:\n(.|\n)*why"):
        Case("test_never").test_never()


def test_requirements():
    @testing.with_requires("numpy>=1.20", "pytest")
    class Runs:
        pass

    @testing.with_requires("numpy>=1000")
    class Skipped:
        pass

    @testing.without_requires("a-package-that-does-not-exist")
    class AlsoRuns:
        pass

    assert Skipped.__unittest_skip__ and Skipped.__unittest_skip_why__ == "requires: numpy>=1000"
    assert not hasattr(Runs, "__unittest_skip__") and not hasattr(AlsoRuns, "__unittest_skip__")


@pytest.mark.filterwarnings("ignore:Unknown pytest.mark.slow")
def test_attributes():
    class Case(unittest.TestCase):
        @attr.chainerx
        def test_x(self):
            assert False

        @attr.ideep
        def test_i(self):
            assert False

        @attr.slow
        def test_s(self):
            pass

    assert run(Case) == (3, 0, 0, 2)
    assert Case.test_s.pytestmark[0].name == "slow"


def test_patch():
    with testing.patch("catena.functions.relu") as relu:
        assert (catena.functions.relu(np.array([-1, 1], "float32")).array == [0, 1]).all()
    assert relu.call_count == 1 and catena.functions.relu is not relu
    with testing.patch("catena.functions.relu", wraps=lambda x: 3):
        assert catena.functions.relu(1) == 3


def test_generate_matrix():
    matrices = testing.generate_matrix((2, 3, 4), "float64", singular_values=[3, 2, 1])
    np.testing.assert_allclose(np.linalg.svd(matrices, compute_uv=False), [[3, 2, 1]] * 2)
    assert testing.generate_matrix((2, 2), "complex64", singular_values=1).dtype == "complex64"
    assert testing.generate_matrix((0, 2), singular_values=1).shape == (0, 2)
    for shape, dtype, values, error in [((3,), "f", 1, ValueError), ((2, 2), "i", 1, TypeError),
                                        ((2, 2), "f", None, TypeError),
                                        ((2, 2), "f", [1j, 1], TypeError),
                                        ((2, 2), "f", [-1, 1], ValueError)]:
        with pytest.raises(error, match=r"\[generate_matrix\]"):
            testing.generate_matrix(shape, dtype, singular_values=values)


def test_mock_updater(tmp_path):
    trainer = testing.get_trainer_with_mock_updater((7, "iteration"), 3)
    trainer.out = str(tmp_path)
    seen = []
    trainer.extend(lambda trainer: seen.append(trainer.updater.iteration), trigger=(1, "epoch"))
    trainer.run()
    assert seen == [3, 6] and trainer.updater.update_core.call_count == 7
    assert trainer.updater.epoch_detail == 7 / 3 and isinstance(trainer.updater, mock.Mock)


@pytest.mark.parametrize("per_epoch", [0.5, 1.5])
def test_mock_updater_with_fractions_of_epochs(tmp_path, per_epoch):
    trainer = testing.get_trainer_with_mock_updater((4, "iteration"), per_epoch)
    trainer.out, seen = str(tmp_path), []
    trainer.extend(lambda trainer: seen.append(trainer.updater.is_new_epoch), name="see")
    trainer.run()
    assert seen == ([True] * 4 if per_epoch == 0.5 else [False, True, True, False])


@testing.parameterize({"a": 1}, {"a": 2})
class Parameterized(unittest.TestCase):
    def test_a(self):
        assert self.a in (1, 2)


def test_result_of_parameterize():
    """The name of the class is the made classes' list with attributes, as in Chainer."""
    Parameterized.note = "attributes can be set"
    assert [case.a for case in Parameterized.cases] == [1, 2]
    assert all(run(case) == (1, 0, 0, 0) for case in Parameterized.cases)


def test_products():
    assert testing.product({"a,b": [(1, 2), (3, 4)], "c": [5]}) == [
        {"a": 1, "b": 2, "c": 5}, {"a": 3, "b": 4, "c": 5}]
    assert testing.product([[{"a": 1}], [{"b": 2}, {"b": 3}]]) == [
        {"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert testing.from_pytest_parameterize("a", [1, 2]) == [{"a": 1}, {"a": 2}]
    for wrong in (3, [1], [[1]]):
        with pytest.raises(TypeError, match=r"\[product\] parameter"):
            testing.product(wrong)


def test_unary_functions_without_names():
    with pytest.raises(ValueError, match="NumPy has no 'relu', got None"):
        testing.unary_math_function_unittest(catena.functions.relu)
    with pytest.raises(ValueError, match="label_expected"):
        testing.unary_math_function_unittest(catena.functions.exp, label_expected="exp")
