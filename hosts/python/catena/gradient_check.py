"""Checks gradients against finite differences in float64."""
import math
from typing import Any

import numpy

from catena import _core
from catena._members import _on_host
from catena.backend import copyto
from catena.testing import assert_allclose
from catena.variable import Variable

__all__ = ["NondifferentiableError", "assert_allclose", "check_backward", "check_double_backward",
           "numerical_grad"]


class NondifferentiableError(Exception):
    """A function has a kink or a jump near the inputs."""


def _host(array):
    return _on_host(array) if isinstance(array, _core.Array) else numpy.asarray(array)


def _wide(array):
    return array if array is None else _host(array).astype(numpy.float64)


def _like(values, array, dtype=None):
    """The values in the dtype and on the device of an array."""
    dtype = str(array.dtype) if dtype is None else numpy.dtype(dtype).name
    if isinstance(array, _core.Array):
        return _core.as_array(values).to_device(array.device).astype(dtype)
    return numpy.asarray(values, dtype)


def _is_floating(array):
    return "float" in str(array.dtype)


def _as_tuple(values):
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def numerical_grad(f, inputs, grad_outputs, eps=1e-3, detect_nondifferentiable=False, diff_atol=0,
                   diff_rtol=1e-2, center_outputs=None) -> Any:
    """The gradients of a function, by finite differences: a list with an array for each input.

    Args:
        f: a function without arguments that returns a tuple of arrays.
        inputs: the arrays that it reads. They are changed and restored.
        grad_outputs: the gradients of the outputs: arrays or numbers; None for zeros.
        eps: the size of the changes.
        detect_nondifferentiable: whether to raise NondifferentiableError where the outputs at five
            points around an input do not lie on a parabola. Also makes gradients more accurate.
        diff_atol, diff_rtol: how far from the parabola they may be, absolutely and as a part of the
            range of the outputs.
        center_outputs: ignored.
    """
    assert eps > 0
    inputs = tuple(inputs)
    for x in inputs:
        if not _is_floating(x):
            raise RuntimeError("The dtype of input arrays must be kind of float, "
                               f"got {x.dtype}")
    grad_outputs = [_wide(gy) for gy in grad_outputs]
    originals = [_host(x).copy() for x in inputs]
    moved = [_core.as_array(_wide(x)) for x in inputs]

    def outputs():
        for x, values in zip(inputs, moved):
            copyto(x, _like(_host(values), x))
        ys = [_wide(y) for y in f()]
        assert len(ys) == len(grad_outputs)
        for y, gy in zip(ys, grad_outputs):
            assert gy is None or y is not None and (gy.ndim == 0 or gy.shape == y.shape)
        return ys

    try:
        gradients = _core.numerical_grad(outputs, moved, grad_outputs, eps,
                                         detect_nondifferentiable, diff_atol, diff_rtol)
    finally:
        for x, original in zip(inputs, originals):
            copyto(x, _like(original, x))
    return [_like(_host(gradient), x) for gradient, x in zip(gradients, inputs)]


def _require_gradients(ys, gys):
    if len(ys) != len(gys):
        raise ValueError("Output gradients must contain equally as many elements as the number of "
                         f"output elements: {len(ys)}, got {len(gys)}")
    for i, (y, gy) in enumerate(zip(ys, gys)):
        if y is None or gy is None:
            continue
        if y.shape != gy.shape or str(y.dtype) != str(gy.dtype):
            raise ValueError("Shapes and/or dtypes of outputs and output gradients do not match: "
                             f"output {i} is {y.shape} {y.dtype}, got {gy.shape} {gy.dtype}")


def _backward(ys, gys, enable_double_backprop=False):
    """Computes the gradients of the leaves from those of several outputs."""
    from catena import functions
    terms = [functions.sum(functions.cast(y, "float64") * functions.cast(gy, "float64"))
             for y, gy in zip(ys, gys) if y is not None and gy is not None and y.requires_grad]
    if terms:
        sum(terms[1:], terms[0]).backward(enable_double_backprop=enable_double_backprop)


def _direction(shapes):
    """A random vector of length one in parts with these shapes; no element is nearly zero."""
    sizes = [math.prod(shape) for shape in shapes]
    size = sum(sizes)
    vector = numpy.random.normal(size=size)
    if size > 0:
        squares = vector * vector
        vector = numpy.copysign(numpy.sqrt(0.99 * squares / squares.sum() + 0.01 / size), vector)
    parts = numpy.split(vector, numpy.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes)]


def check_backward(func, x_data, y_grad, params=(), eps=1e-3, atol=1e-5, rtol=1e-4, no_grads=None,
                   dtype=None, detect_nondifferentiable=False) -> None:
    """Compares the gradients of a function with finite differences along a random direction.

    Args:
        func: a function or link that takes variables and returns one or several.
        x_data: its inputs, an array or a tuple of arrays.
        y_grad: the gradients of its outputs; None for a loss.
        params: variables that it also depends on, whose gradients are checked, too.
        eps: the length of the step.
        atol, rtol: the tolerances.
        no_grads: for each input, whether it has no gradient; by default those of integers.
        dtype: the dtype in which to compute the outputs for the differences, such as "float64".
        detect_nondifferentiable: see numerical_grad().
    """
    xs, params = _as_tuple(x_data), _as_tuple(params)
    if dtype is not None and numpy.dtype(dtype).kind != "f":
        raise ValueError(f"`dtype` is allowed only float type, got {dtype}")
    if no_grads is None:
        no_grads = [x is None or not _is_floating(x) for x in xs]
    elif len(no_grads) != len(xs):
        raise ValueError("Length of no_grads param and xs should be same: "
                         f"{len(xs)}, got {len(no_grads)}")

    variables = [x if x is None else Variable(x, requires_grad=_is_floating(x)) for x in xs]
    ys = _as_tuple(func(*variables))
    if y_grad is not None:
        gys = _as_tuple(y_grad)
        _require_gradients(ys, gys)
    elif len(ys) == 1 and ys[0].shape == ():
        gys = (_like(numpy.ones(()), ys[0].array),)
    else:
        raise ValueError("y_grad argument cannot be omitted if the target function is not a loss "
                         "function, which has a single output with shape (): got "
                         + ", ".join(str(y.shape) for y in ys))
    gys = tuple(None if y is None else gy for y, gy in zip(ys, gys))

    checked = [i for i, no_grad in enumerate(no_grads) if not no_grad and xs[i] is not None]
    directions = _direction([xs[i].shape for i in checked] + [param.shape for param in params])
    for each in [*variables, *params]:
        if each is not None:
            each.cleargrad()
    _backward(ys, gys)
    del ys
    for variable, no_grad in zip(variables, no_grads):
        if no_grad and variable is not None and variable.grad is not None:
            raise RuntimeError("gradient of int variable must be None")
    from_backward = sum(
        (_wide(each.grad) * direction).sum()
        for each, direction in zip([variables[i] for i in checked] + list(params), directions)
        if each.grad is not None)
    del variables

    arrays = [param.array for param in params]
    step = numpy.array(0.0)

    def moved():
        def at(array, direction):
            return _like(_wide(array) + step * direction, array, dtype)

        ys = None
        inputs = [x if x is None or dtype is None or not _is_floating(x) else _like(
            _wide(x), x, dtype) for x in xs]
        for i, direction in zip(checked, directions):
            inputs[i] = at(xs[i], direction)
        try:
            for param, array, direction in zip(params, arrays, directions[len(checked):]):
                param.cleargrad()
                param.array = at(array, direction)
            ys = _as_tuple(func(*[x if x is None else Variable(x, requires_grad=_is_floating(x))
                                  for x in inputs]))
            return tuple(None if y is None else y.array for y in ys)
        finally:
            del ys
            for param, array in zip(params, arrays):
                param.cleargrad()
                param.array = array

    numeric, = numerical_grad(moved, (step,), gys, eps, detect_nondifferentiable, 0, rtol)
    try:
        assert_allclose(numeric, from_backward, atol, rtol)
    except AssertionError as error:
        lines = [f"check_backward failed (eps={eps} atol={atol} rtol={rtol})"]
        for name, values in [("inputs", xs), ("grad_outputs", gys), ("directions", directions)]:
            lines += [f"{name}[{i}]:\n{value}" for i, value in enumerate(values)]
        lines += [f"gradients (numeric):  {numeric}", f"gradients (backward): {from_backward}"]
        raise AssertionError("\n".join(lines) + f"\n{error}") from None


def check_double_backward(func, x_data, y_grad, x_grad_grad, params=(), params_grad_grad=(),
                          eps=1e-3, atol=1e-4, rtol=1e-3, no_grads=None, dtype=None,
                          detect_nondifferentiable=False) -> None:
    """Compares gradients of gradients with finite differences of the gradients.

    x_grad_grad and params_grad_grad are the gradients of the gradients of the inputs and parameters. The
    other arguments are those of check_backward(); no_grads also has an entry for each array of y_grad.
    """
    from catena import functions
    xs, params = _as_tuple(x_data), _as_tuple(params)
    integer = [not _is_floating(x) for x in xs]

    def gradients(*inputs):
        variables, gys = inputs[:len(xs)], inputs[len(xs):]
        for each in [*variables, *params]:
            each.cleargrad()
        ys = _as_tuple(func(*variables))
        gys = [None if gy is None else functions.cast(gy, y.dtype) for y, gy in zip(ys, gys)]
        _require_gradients(ys, gys)
        _backward(ys, gys, enable_double_backprop=True)
        for i, (variable, is_integer) in enumerate(zip(variables, integer)):
            if is_integer and variable.grad is not None:
                raise RuntimeError(f"[check_double_backward] input {i}: expected no gradient of "
                                   f"{variable.dtype}, got one")
        found = [x.grad_var for x, is_integer in zip(variables, integer) if not is_integer]
        return tuple(found + [param.grad_var for param in params])

    try:
        check_backward(gradients, xs + _as_tuple(y_grad),
                       _as_tuple(x_grad_grad) + _as_tuple(params_grad_grad), params, eps, atol,
                       rtol, no_grads, dtype, detect_nondifferentiable)
    except AssertionError as error:
        raise AssertionError(f"check_double_backward failed (eps={eps} atol={atol} rtol={rtol})\n"
                             f"{error}") from None
