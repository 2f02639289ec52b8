"""Base classes of tests of functions and links."""
import unittest
from typing import Any

import numpy

import catena
from catena.testing.array import _as_noncontiguous_array, assert_allclose


class FunctionTestError(AssertionError):
    """A function does not compute what a test expects."""


class LinkTestError(AssertionError):
    """A link does not compute what a test expects."""


class InitializerArgument:
    """An argument of a link, such as None, and the initializer for which it stands."""

    def __init__(self, argument_value, expected_initializer) -> None:
        if expected_initializer is None:
            raise ValueError("[InitializerArgument] expected_initializer: expected an initializer, "
                             "got None")
        self.argument_value = argument_value
        self.expected_initializer = expected_initializer


def _require_arrays(arrays, method):
    if not isinstance(arrays, tuple) or not all(
            each is None or isinstance(each, numpy.ndarray) for each in arrays):
        raise TypeError(f"[{method}] expected a tuple of numpy.ndarrays, got {arrays!r}")
    return arrays


def _like(templates):
    """Random arrays with the shapes and dtypes of others."""
    return tuple(numpy.random.uniform(-1, 1, each.shape).astype(each.dtype) for each in templates)


class _TestBase:
    backend_config = None
    test_name = None
    contiguous = None  # or "C"; otherwise inputs are not contiguous
    dodge_nondifferentiable = False
    numerical_grad_dtype = numpy.float64
    check_forward_options = check_backward_options = check_double_backward_options = {}
    skip_forward_test = skip_backward_test = skip_double_backward_test = False
    _error = FunctionTestError

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        for name in ("forward", "backward", "double_backward"):  # tests add to these dicts
            setattr(self, f"check_{name}_options", dict(getattr(self, f"check_{name}_options")))

    def before_test(self, test_name) -> Any:
        """Called before each test. It can raise unittest.SkipTest."""

    def generate_inputs(self) -> Any:
        """The inputs, a tuple of numpy.ndarrays."""
        raise NotImplementedError("generate_inputs() is not implemented.")

    def generate_grad_outputs(self, outputs_template) -> Any:
        """The gradients of the results."""
        return _like(outputs_template)

    def check_forward_outputs(self, outputs, expected_outputs) -> None:
        """Raises an error unless two tuples of arrays are close."""
        self._require_equal(outputs, expected_outputs, self.check_forward_options)

    def _start(self, name, backend_config):
        skip = f"skip_{name[len('test_'):]}_test"
        if getattr(self, skip, False):
            raise unittest.SkipTest(f"{skip} is set")
        self.backend_config, self.test_name = backend_config, name
        self.before_test(name)

    def _inputs(self):
        return _require_arrays(self.generate_inputs(), "generate_inputs")

    def _send(self, arrays):
        made = self.backend_config.get_array(tuple(arrays))
        return made if self.contiguous == "C" else _as_noncontiguous_array(made)

    def _call(self, *arguments):
        """Calls forward() on the device."""
        with self.backend_config:
            outputs = self.forward(*arguments, self.backend_config.device)
        kinds = self.backend_config.device.supported_array_types
        if not (isinstance(outputs, tuple) and all(isinstance(y, catena.Variable) and isinstance(
                y.array, kinds) for y in outputs)):
            raise self._error("[forward] expected a tuple of variables with arrays on "
                              f"{self.backend_config.device}, got {outputs!r}")
        return outputs

    def _require_equal(self, actual, expected, options):
        def types(arrays):
            return [(tuple(each.shape), str(each.dtype)) for each in arrays]

        if types(actual) != types(expected):
            raise self._error(f"[{self.test_name}] expected shapes and dtypes {types(expected)}, "
                              f"got {types(actual)}")
        for i, (y, wanted) in enumerate(zip(actual, expected)):
            try:
                assert_allclose(y, wanted, **options)
            except AssertionError as error:
                raise self._error(f"[{self.test_name}] output {i}: expected close values, got "
                                  f"others\n{error}") from None

    def _check_gradients(self, what, make):
        """Runs the check of gradients whose function, arguments and options make() returns.

        Repeats it with others while the inputs are at a kink of the function.
        """
        from catena.gradient_check import NondifferentiableError
        while True:
            check, *arguments, options = make()
            try:
                check(*arguments, dtype=self.numerical_grad_dtype,
                      detect_nondifferentiable=self.dodge_nondifferentiable, **options)
                return
            except NondifferentiableError:
                if not self.dodge_nondifferentiable:
                    raise
            except AssertionError as error:
                raise self._error(f"{what} is not implemented correctly\n{error}") from error


class FunctionTestCase(_TestBase, unittest.TestCase):
    """Tests a function: its result, and its gradients of first and second order.

    A subclass implements ``generate_inputs()``, ``forward(inputs, device)``, which returns a tuple
    of variables, and ``forward_expected(inputs)``, which returns a tuple of numpy.ndarrays. It is
    decorated with ``inject_backend_tests()``. Its attributes are ``check_forward_options``,
    ``check_backward_options`` and ``check_double_backward_options``, with tolerances;
    ``skip_forward_test``, ``skip_backward_test`` and ``skip_double_backward_test``;
    ``dodge_nondifferentiable``, which draws other inputs at kinks; ``numerical_grad_dtype``; and
    ``contiguous``, None or "C".
    """

    def forward(self, inputs, device) -> Any:
        raise NotImplementedError("forward() is not implemented.")

    def forward_expected(self, inputs) -> Any:
        raise NotImplementedError("forward_expected() is not implemented.")

    def generate_grad_grad_inputs(self, inputs_template) -> Any:
        """The gradients of the gradients of the inputs."""
        return _like(inputs_template)

    def _expected(self, inputs):
        return _require_arrays(self.forward_expected(inputs), "forward_expected")

    def test_forward(self, backend_config) -> None:
        self.run_test_forward(backend_config)

    def test_backward(self, backend_config) -> None:
        self.run_test_backward(backend_config)

    def test_double_backward(self, backend_config) -> None:
        self.run_test_double_backward(backend_config)

    def run_test_forward(self, backend_config) -> None:
        """Compares the results with the expected ones, and whether the inputs stay the same."""
        self._start("test_forward", backend_config)
        given = self._inputs()
        before = [each.copy() for each in given]
        expected = self._expected(given)
        inputs = self._send(given)
        outputs = self._call(tuple(catena.Variable(x, requires_grad=x.dtype.kind == "f")
                                   for x in inputs))
        for i, (x, old) in enumerate(zip(inputs, before)):
            try:
                assert_allclose(x, old, atol=0, rtol=0)
            except AssertionError as error:
                raise FunctionTestError("Input arrays have been modified during forward: input "
                                        f"{i}\n{error}") from None
        self.check_forward_outputs(tuple(y.array for y in outputs), expected)

    def run_test_backward(self, backend_config) -> None:
        """Compares the gradients with finite differences."""
        self._start("test_backward", backend_config)
        self._check("backward", False)

    def run_test_double_backward(self, backend_config) -> None:
        """Compares the gradients of the gradients with finite differences."""
        self._start("test_double_backward", backend_config)
        self._check("double backward", True)

    def _check(self, what, double):
        from catena import gradient_check

        def make():
            inputs = self._inputs()
            gradients = [_require_arrays(
                self.generate_grad_outputs(self._expected(inputs)), "generate_grad_outputs")]
            function, options = gradient_check.check_backward, self.check_backward_options
            if double:
                found = _require_arrays(
                    self.generate_grad_grad_inputs(inputs), "generate_grad_grad_inputs")
                gradients.append([g for g in found if g is None or g.dtype.kind == "f"])
                function = gradient_check.check_double_backward
                options = self.check_double_backward_options
            return (function, lambda *xs: self._call(xs), self._send(inputs), *map(self._send, gradients),
                    options)

        self._check_gradients(what, make)


class _LinkTestBase(_TestBase):
    param_names = ()
    _error = LinkTestError

    def generate_params(self) -> Any:
        """The initializers, which are the arguments of create_link()."""
        raise NotImplementedError("generate_params is not implemented.")

    def create_link(self, initializers) -> Any:
        raise NotImplementedError("create_link is not implemented.")

    def forward(self, link, inputs, device) -> Any:
        """Calls the link."""
        outputs = link(*inputs)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def _params(self):
        found = self.generate_params()
        if not isinstance(found, (tuple, list)):
            raise TypeError(f"[generate_params] expected a tuple or a list, got {type(found)}")
        return list(found)

    def _link(self, initializers):
        link = self.create_link([
            each.argument_value if isinstance(each, InitializerArgument) else each
            for each in initializers])
        if not isinstance(link, catena.Link):
            raise TypeError(f"[create_link] expected a catena.Link, got {type(link)}")
        link.to_device(self.backend_config.device)
        return link

    def _called_link(self, initializers):
        """A link whose parameters are initialized, inputs, and the results as arrays."""
        link, inputs = self._link(initializers), self._send(self._inputs())
        outputs = self._call(link, tuple(map(catena.Variable, inputs)))
        link.cleargrads()
        return link, inputs, tuple(y.array for y in outputs)

    def _parameter(self, link, name):
        if not hasattr(link, name):
            raise self._error(f"Link does not have a parameter named '{name}'.")
        return getattr(link, name)


class LinkTestCase(_LinkTestBase, unittest.TestCase):
    """Tests a link: its result and the gradients of inputs and parameters.

    A subclass has ``param_names`` and implements ``generate_params()``,
    ``create_link(initializers)``, ``generate_inputs()`` and ``forward_expected(link, inputs)``, and
    perhaps ``forward(link, inputs, device)``. Otherwise it is like a FunctionTestCase.
    """

    def forward_expected(self, link, inputs) -> Any:
        raise NotImplementedError("forward_expected() is not implemented.")

    def test_forward(self, backend_config) -> None:
        """Compares the results with the expected ones, which are computed on the host."""
        self._start("test_forward", backend_config)
        link = self._link(self._params())
        inputs = self._inputs()
        outputs = self._call(link, tuple(map(catena.Variable, self._send(inputs))))
        outputs = tuple(y.array for y in outputs)
        link.to_device(-1)
        self.check_forward_outputs(
            outputs, _require_arrays(self.forward_expected(link, inputs), "forward_expected"))

    def test_backward(self, backend_config) -> None:
        """Compares the gradients with finite differences."""
        from catena import gradient_check
        self._start("test_backward", backend_config)

        def make():
            link, inputs, outputs = self._called_link(self._params())
            gradients = self.generate_grad_outputs(
                tuple(catena.cuda.to_cpu(y) for y in outputs))
            gradients = self._send(_require_arrays(gradients, "generate_grad_outputs"))
            return (gradient_check.check_backward, lambda *xs: self._call(link, xs), inputs, gradients,
                    tuple(self._parameter(link, name) for name in self.param_names),
                    self.check_backward_options)

        self._check_gradients("backward", make)


class LinkInitializersTestCase(_LinkTestBase, unittest.TestCase):
    """Tests how a link initializes its parameters.

    A subclass is like that of a LinkTestCase, but implements ``get_initializers()`` instead of
    ``forward_expected()``: a tuple that has, for each argument of ``create_link()``, a list of
    initializers without randomness.
    """

    check_initializers_options = {}

    def get_initializers(self) -> Any:
        raise NotImplementedError("get_initializers is not implemented.")

    def test_initializers(self, backend_config) -> None:
        """Compares each parameter with the array that its initializer fills."""
        from catena import initializers
        self._start("test_initializers", backend_config)
        for i, candidates in enumerate(self.get_initializers()):
            if not isinstance(candidates, (tuple, list)):
                raise TypeError("[get_initializers] expected a tuple or a list of tuples or lists, "
                                f"got {type(candidates)}")
            for candidate in candidates:
                arguments = self._params()
                arguments[i] = candidate
                link, _, _ = self._called_link(arguments)
                array = catena.cuda.to_cpu(self._parameter(link, self.param_names[i]).array)
                if isinstance(candidate, InitializerArgument):
                    candidate = candidate.expected_initializer
                expected = initializers.generate_array(
                    candidate if callable(candidate) else initializers.Constant(candidate),
                    array.shape, dtype=array.dtype)
                self._require_equal((array,), (expected,), self.check_initializers_options)
