"""Variable and Parameter: the parts that need no speed. The others are in the extension module."""
import copyreg
import warnings
import weakref

import numpy

import catena  # catena.functions imports this module
from catena import _core
from catena._core import Variable, VariableNode
from catena.configuration import get_dtype

__all__ = ["Parameter", "Variable", "VariableNode", "as_array", "as_variable", "backward",
           "grad"]


def as_variable(obj):
    """The object, if it is a variable, else a variable of the array that requires no gradient."""
    return obj if isinstance(obj, Variable) else Variable(obj, requires_grad=False)


def as_array(obj):
    """The array of a variable, or the object itself."""
    return obj.array if isinstance(obj, Variable) else obj


def grad(outputs, inputs, grad_outputs=None, grad_inputs=None, set_grad=False, retain_grad=False,
         enable_double_backprop=False, loss_scale=None):
    """The gradients of outputs with respect to inputs.

    Args:
        outputs: a list of variables, from which the gradients are computed.
        inputs: a list of variables.
        grad_outputs: the gradients of the outputs; None, also in the list, stands for ones.
        grad_inputs: a list of variables to which the results are added, or None.
        set_grad: whether to set each input's ``grad`` to its result.
        retain_grad: whether other variables keep their gradients.
        enable_double_backprop: whether the results can be differentiated.
        loss_scale: the number that stands for the gradients that are None.

    Returns:
        A list of variables; None where no output depends on the input.
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


def backward(outputs, grad_outputs=None, *, enable_double_backprop=False, **unsupported):
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


def _method(function, owner=Variable):
    """Adds a function to the class as a method."""
    setattr(owner, function.__name__, function)
    return function


def _property(function):
    setattr(Variable, function.__name__, property(function))


def _shape_or_axes(arguments):
    one = len(arguments) == 1 and (arguments[0] is None or isinstance(arguments[0], (tuple, list)))
    return arguments[0] if one else arguments


@_method
def reshape(self, *shape):
    """A variable with the same elements in another shape."""
    return catena.functions.reshape(self, _shape_or_axes(shape))


@_method
def transpose(self, *axes):
    """A variable with the axes in another order; reversed without arguments."""
    return catena.functions.transpose(self, _shape_or_axes(axes) or None)


@_method
def mean(self, axis=None, *, weights=None, keepdims=False):
    """The mean of the elements over an axis or over several."""
    return catena.functions.average(self, axis, weights, keepdims)


def _of_functions(name):
    def method(self, *args, **kwargs):
        return getattr(catena.functions, name)(self, *args, **kwargs)
    method.__name__ = name
    method.__doc__ = f"The same as ``catena.functions.{name}(self, ...)``."
    _method(method)


for _name in ["sum", "max", "min", "prod", "argmax", "argmin", "squeeze", "flatten"]:
    _of_functions(_name)


@_property
def T(self):
    """The variable with reversed axes."""
    return self.transpose()


def _label(self):
    """The shape and dtype, as in pictures of graphs."""
    shape = ", ".join(map(str, self.shape))
    return f"({shape}), {self.dtype}" if self.shape else str(self.dtype)


def _creator(self):
    """The function that computed the variable, or None for a leaf.

    It is the object for a FunctionNode or Function of Python, else a description with ``label``.
    """
    node = self.creator_node
    return getattr(node, "function", node)


def _unchain_if_none(self, creator):
    self.creator_node = getattr(creator, "node", creator)


Variable.label = VariableNode.label = property(_label)
Variable.creator = property(_creator, _unchain_if_none)
VariableNode.creator = property(_creator)
Variable._loss_scale = Variable.loss_scale  # Chainer's name
VariableNode.__call__ = lambda self: self  # Chainer's outputs are weak references, which are called


@_property
def xp(self):
    """The module with the functions on the variable's array: numpy, unless it is on a GPU."""
    from catena import backend
    return backend.get_array_module(self)


@_method
def summary(self):
    """A short text with the name or address."""
    return f"<variable {self.name}>" if self.name else f"<variable at 0x{id(self):x}>"


def _statistics(array, of_zeros=None):
    if array is None:
        return None
    array = _core.as_array(array).to_device(-1).astype("float64").__array__()
    if of_zeros and not array.any():
        return of_zeros
    return f"mean={array.mean():.8f}, std={array.std():.8f}" if array.size else "no elements"


@_method
def debug_print(self):
    """A text with the statistics of data and gradient."""
    empty = self.array is None
    return "\n".join([
        self.summary(),
        f"- device: {None if empty else self.device if self.device.is_gpu else 'CPU'}",
        f"- backend: {None if empty else type(self.array)}",
        f"- shape: {None if empty else self.shape}", f"- dtype: {None if empty else self.dtype}",
        f"- statistics: {_statistics(self.array)}",
        f"- grad: {None if empty else _statistics(self.grad, '0')}"])


@_method
def to_device(self, device):
    """Moves the variable, with its gradient, to a device."""
    device = device if isinstance(device, _core.Device) else _core.Device(device)
    if self.array is None:
        self._first_device = device
    elif device != self.device:
        # A graph may refer to the array on the old device: the variable gets a node of its own.
        gradient = self.grad_var
        Variable.__init__(
            self, self._array.to_device(device), self.volatile, name=self.name,
            grad=None if gradient is None else gradient._array.to_device(device),
            requires_grad=self.requires_grad)
        self._restored(None)


@_method
def to_cpu(self):
    """Moves the variable to the host."""
    self.to_device(-1)


@_method
def to_gpu(self, device=None):
    """Moves the variable to a GPU: that with the number, or the current one."""
    self.to_device(_core.gpu(device))


@_method
def copydata(self, var):
    """Copies the elements of a variable of any device. Initializes a variable without an array."""
    if not isinstance(var, Variable):
        raise TypeError(f"[catena.Variable] copydata: expected a catena.Variable, got {type(var)}")
    if var.array is None and self.array is None:
        return
    if var.array is None:
        var.initialize(self.shape)
    elif self.array is None:
        self.initialize(var.shape)
    self._array.copy_from(var._array.astype(self.dtype))


@_method
def __repr__(self):
    return _text(self, ", ")


@_method
def __str__(self):
    return _text(self, " ")


@_method
def __format__(self, spec):
    """With a format, that of the only element: ``f"{loss:.3f}"``."""
    return format(self.item(), spec) if spec else str(self)


def _text(self, separator):
    name = f"variable {self.name}" if self.name else "variable"
    if self.array is None:
        return f"{name}(None)"
    array = self._array.to_device(-1)
    array = (array.astype("float32") if str(array.dtype) == "bfloat16" else array).__array__()
    if separator == ", " and array.size == 0 and array.shape != (0,):
        return f"{name}([], shape={array.shape})"
    return f"{name}({numpy.array2string(array, separator=separator, prefix=name + '(')})"


def _on_host(array):
    """A copy on the host that can be pickled, also of bfloat16."""
    array = array.astype("float32") if str(array.dtype) == "bfloat16" else array
    return array.__array__(copy=True)


def _from_host(array, dtype, device):
    return _core.as_array(array).astype(dtype).to_device(device)


copyreg.pickle(_core.Array, lambda array: (
    _from_host, (_on_host(array), str(array.dtype), array.device.name)))


@_method
def __getstate__(self):
    state = {"name": self.name, "requires_grad": self.requires_grad, "device": self.device.name,
             "attributes": {k: v for k, v in self.__dict__.items() if k != "_together"}}
    if self.array is None:
        return {**state, "first_grad": self._first_grad}
    gradient = self.grad_var
    return {**state, "dtype": str(self.dtype), "array": _on_host(self._array),
            "grad": None if gradient is None else _on_host(gradient._array)}


@_method
def __setstate__(self, state):
    device = _core.Device(state["device"])
    device = device if device.is_gpu else _core.Device(-1)
    array, gradient = (
        None if state.get(key) is None else _from_host(state[key], state["dtype"], device)
        for key in ["array", "grad"])
    Variable.__init__(self, array, name=state["name"], grad=gradient,
                      requires_grad=state["requires_grad"])
    self.__dict__.update(state["attributes"])
    if array is None:
        self._first_device = device
    self._restored(state.get("first_grad"))


@_method
def _restored(self, first_grad):
    """Called after the variable got the state of another one."""


@_method
def __reduce_ex__(self, protocol):
    return copyreg.__newobj__, (type(self),), self.__getstate__()


@_method
def __copy__(self):
    """A variable with the same array and gradient, but without the call that computed it."""
    made = type(self).__new__(type(self))
    if self.array is None:
        made.__setstate__(self.__getstate__())
        # The one that is initialized first gives all copies its array.
        together = self.__dict__.setdefault("_together", [weakref.ref(self)])
        together.append(weakref.ref(made))
        made._together = together
        return made
    Variable.__init__(made, self._array, name=self.name, requires_grad=self.requires_grad)
    made.array = self.array  # the same object of NumPy
    made.grad = self.grad
    made.loss_scale = self.loss_scale
    made.__dict__.update(self.__dict__)
    made._restored(None)
    return made


class Parameter(Variable):
    """A variable that links learn. Without a shape it has no array until ``initialize()``.

    Args:
        initializer: an array, a number, an initializer, or None for NaN.
        shape: the shape of the array; None to set it later.
        name: the name.
        layout: must be None.

    Attributes:
        initializer: fills the array.
        update_rule: the rule that an optimizer has set.
        loss_scale: the factor of the gradient, from ``backward(loss_scale=...)``, by which update
            rules divide it; None: 1.
    """

    initializer = None
    update_rule = None

    def __init__(self, initializer=None, shape=None, name=None, *, layout=None):
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
    def is_initialized(self):
        """Whether it has an array."""
        return self.array is not None

    @property
    def dtype(self):
        """The dtype of the array, or that of the initializer."""
        if self.array is not None:
            return Variable.dtype.__get__(self)
        if not hasattr(self.initializer, "dtype"):
            raise RuntimeError("[catena.Parameter] dtype: expected an array or an initializer with "
                               "a dtype, got neither")
        return get_dtype(self.initializer.dtype)

    def initialize(self, shape):
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
        from catena import initializers
        first, device = self._first_grad, self.device
        self.array = array
        self.to_device(device)
        if first == "n":
            nan = initializers.generate_array(initializers.NaN(self.dtype), self.shape)
            self.grad = _core.as_array(nan).to_device(device)
        if first == "z":
            zeros = self._array.copy()
            zeros.fill(0)
            self.grad = _core.as_python(zeros)

    def update(self):
        """Applies the update rule that an optimizer has set."""
        if self.update_rule is not None:
            self.update_rule.update(self)

    def addgrad(self, var):
        """Adds the gradient of another variable. Initializes a parameter without array."""
        if self.array is None and var.grad is not None:
            self.initialize(var.shape)
        super().addgrad(var)

    def _restored(self, first_grad):
        if self.array is None:
            self._first_grad = first_grad
        else:
            self._become_parameter()
