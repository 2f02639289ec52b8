"""Parameter and functions of variables. Variable itself is in the extension module and _members."""
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy

from catena import _core
from catena._core import Variable, VariableNode
from catena.configuration import get_dtype

__all__ = ["Parameter", "Variable", "VariableNode", "as_array", "as_variable", "backward", "grad"]


def as_variable(obj) -> Variable:
    """The object, if it is a variable, else a variable of the array that requires no gradient."""
    return obj if isinstance(obj, Variable) else Variable(obj, requires_grad=False)


def as_array(obj) -> Any:
    """The array of a variable, or the object itself."""
    return obj.array if isinstance(obj, Variable) else obj


def grad(outputs: Sequence[Variable], inputs: Sequence[Variable],
         grad_outputs: Sequence[Variable | None] | None = None,
         grad_inputs: Sequence[Variable | None] | None = None, set_grad: bool = False,
         retain_grad: bool = False, enable_double_backprop: bool = False,
         loss_scale: float | None = None) -> list[Any]:
    """The gradients of outputs with respect to inputs, a list; None where no output depends on the input.

    Args:
        outputs: a list of variables, from which the gradients are computed.
        inputs: a list of variables.
        grad_outputs: the gradients of the outputs; None, also in the list, stands for ones.
        grad_inputs: a list of variables to which the results are added, or None.
        set_grad: whether to set each input's ``grad`` to its result.
        retain_grad: whether other variables keep their gradients.
        enable_double_backprop: whether the results can be differentiated.
        loss_scale: the number that stands for the gradients that are None.
    """
    _check_lists("grad", outputs=outputs, inputs=inputs, grad_outputs=grad_outputs,
                 grad_inputs=grad_inputs)
    if loss_scale is not None:
        grad_outputs = [
            Variable(numpy.full(y.shape, loss_scale, y.dtype), requires_grad=False)
            if g is None else g for y, g in zip(outputs, grad_outputs or [None] * len(outputs))]
    return list(_core.grad(outputs, inputs, grad_outputs, grad_inputs, bool(set_grad),
                           bool(retain_grad), bool(enable_double_backprop)))


def _check_lists(function, **lists):
    for name, value in lists.items():
        optional = name.startswith("grad_")
        if not isinstance(value, (list, tuple)) and not (optional and value is None):
            raise TypeError(f"[{function}] {name}: expected a list or tuple of variables"
                            f"{' or None' * optional}, got {type(value)}")
        of = lists[name.replace("grad_", "")]
        if value is not None and len(value) != len(of):
            raise ValueError(f"[{function}] {name}: expected {len(of)} or None, got {len(value)}")


def backward(outputs: Sequence[Variable], grad_outputs: Sequence[Variable | None] | None = None, *,
             enable_double_backprop: bool = False, **unsupported: NoReturn) -> None:
    """``Variable.backward()`` from several variables at once.

    Args:
        outputs: a list of variables.
        grad_outputs: their gradients; None in the list means that there is none. Without the list,
            the gradients are those that the outputs have, which are removed.
        enable_double_backprop: whether the gradients can be differentiated.
    """
    if unsupported:
        from catena.utils.argument import parse_kwargs
        parse_kwargs(unsupported,
                     loss_scale="[backward] loss_scale: catena.backward() does not support loss_scale "
                                "option; multiply grad_outputs by it",
                     retain_grad="[backward] retain_grad: catena.backward() does not support "
                                 "retain_grad option; use catena.grad(..., retain_grad=True)")
    _check_lists("backward", outputs=outputs, grad_outputs=grad_outputs)
    for i, y in enumerate(outputs):
        if not isinstance(y, Variable):
            raise TypeError(f"[backward] outputs[{i}]: expected a catena.Variable, got {type(y)}")
    if grad_outputs is None:
        grad_outputs = []
        for i, y in enumerate(outputs):
            if y.grad_var is None:
                warnings.warn(f"[backward] outputs[{i}].grad: expected a gradient, got None, so that "
                              "nothing is computed from it; loss.backward() starts with 1",
                              RuntimeWarning, stacklevel=2)
            grad_outputs.append(y.grad_var)
            y.grad_var = None
    _core.backward(outputs, grad_outputs, bool(enable_double_backprop))


class Parameter(Variable):
    """A variable that links learn. Without a shape it has no array until ``initialize()``.

    Args:
        initializer: an array, a number, an initializer, or None for NaN.
        layout: must be None.

    Attributes:
        initializer: fills the array.
        update_rule: the rule that an optimizer has set.
        loss_scale: the factor of the gradient, from ``backward(loss_scale=...)``, by which update
            rules divide it; None: 1.
    """

    initializer: Any = None
    update_rule: Any = None

    def __init__(self, initializer: Any = None, shape: int | Sequence[int] | None = None,
                 name: str | None = None, *, layout: None = None) -> None:
        from catena import initializers
        if layout is not None:
            raise ValueError(f"[catena.Parameter] layout: expected None, got {layout!r}")
        if initializer is None:
            initializer = initializers.NaN()
        elif numpy.isscalar(initializer):
            initializer = initializers.Constant(initializer)
        if shape is None and not callable(initializer):
            super().__init__(initializer, name=name)
            self._become_parameter()
            return
        super().__init__(name=name)
        self.initializer = initializer if callable(initializer) else (
            initializers.Constant(initializer))
        self._first_grad = "n"
        if shape is not None:
            self.initialize(shape)

    @property
    def is_initialized(self) -> bool:
        """Whether it has an array."""
        return self.array is not None

    @property
    def dtype(self) -> Any:
        """The dtype of the array, or that of the initializer."""
        if self.array is not None:
            return Variable.dtype.__get__(self)
        if not hasattr(self.initializer, "dtype"):
            raise RuntimeError("[catena.Parameter] dtype: expected an array or an initializer with "
                               "a dtype, got neither")
        return get_dtype(self.initializer.dtype)

    def initialize(self, shape: int | Sequence[int]) -> None:
        """Makes the array, with the initializer, on the parameter's device: at first, the host.

        The gradient is NaN, None after ``cleargrad()``, or zeros after ``zerograd()``.
        """
        from catena import initializers
        self._initialize(initializers.generate_array(self.initializer, shape))
        for each in self.__dict__.pop("_together", ()):
            other = each()
            if other is not None and other.array is None:
                other._initialize(self.array)

    def _initialize(self, array):
        first, device = self._first_grad, self.device
        self.array = array
        self.to_device(device)
        value = {"n": numpy.nan, "z": 0}.get(first)
        if value is not None:
            self.grad = _core.full(self.shape, value, self.dtype, device)

    def update(self) -> None:
        """Applies the update rule that an optimizer has set."""
        if self.update_rule is not None:
            self.update_rule.update(self)

    def addgrad(self, var: Variable) -> None:
        """Adds the gradient of another variable. Initializes a parameter without array."""
        if self.array is None and var.grad is not None:
            self.initialize(var.shape)
        super().addgrad(var)

    def _restored(self, first_grad):
        if self.array is None:
            self._first_grad = first_grad
        else:
            self._become_parameter()
