"""Variable and Parameter: the parts that need no speed. The others are in the extension module."""
from catena import _core
from catena._core import Variable

__all__ = ["Parameter", "Variable", "as_array", "as_variable", "grad"]


def _method(function):
    """Adds a function to the class as a method."""
    setattr(Variable, function.__name__, function)
    return function


def _property(function):
    setattr(Variable, function.__name__, property(function))


def as_variable(obj):
    """The object, if it is a variable, else a variable of the array that requires no gradient."""
    return obj if isinstance(obj, Variable) else Variable(obj, requires_grad=False)


def as_array(obj):
    """The array of a variable, or the object itself."""
    return obj.array if isinstance(obj, Variable) else obj


def grad(outputs, inputs, grad_outputs=None, grad_inputs=None, set_grad=False, retain_grad=False,
         enable_double_backprop=False, loss_scale=None):
    """The gradients of outputs with respect to inputs, as a list; None where there is none."""
    outputs = [outputs] if isinstance(outputs, Variable) else list(outputs)
    inputs = [inputs] if isinstance(inputs, Variable) else list(inputs)
    if loss_scale is not None:
        import numpy
        given = grad_outputs or [None] * len(outputs)
        grad_outputs = [
            Variable(numpy.ones(y.shape, y.dtype)) * loss_scale if g is None else g * loss_scale
            for y, g in zip(outputs, given)]
    return list(_core.grad(outputs, inputs, grad_outputs, grad_inputs, bool(set_grad),
                           bool(retain_grad), bool(enable_double_backprop)))


def _is_one(args):
    return len(args) == 1 and (args[0] is None or not isinstance(args[0], int))


@_method
def reshape(self, *shape):
    """A variable with the same elements in another shape."""
    from catena import functions
    return functions.reshape(self, shape[0] if _is_one(shape) else shape)


@_method
def transpose(self, *axes):
    """A variable with the axes in another order; reversed without arguments."""
    from catena import functions
    return functions.transpose(self, (axes[0] if _is_one(axes) else axes) or None)


def _of_functions(name):
    def method(self, *args, **kwargs):
        from catena import functions
        return getattr(functions, name)(self, *args, **kwargs)
    method.__name__ = name
    method.__doc__ = f"The same as ``catena.functions.{name}(self, ...)``."
    _method(method)


for _name in ["sum", "mean", "max", "min", "prod", "argmax", "argmin", "squeeze", "flatten"]:
    _of_functions(_name)


@_property
def T(self):
    """The variable with reversed axes."""
    return self.transpose()


@_property
def node(self):
    """The variable itself, which identifies it in the graph."""
    return self


@_property
def label(self):
    """The shape and dtype, as in pictures of graphs."""
    if self.array is None:
        return ""
    shape = ", ".join(map(str, self.shape))
    return f"({shape}), {self.dtype}" if self.shape else str(self.dtype)


@_property
def xp(self):
    """The module with the functions on the variable's array: numpy, unless it is on a GPU."""
    from catena import backend
    return backend.get_array_module(self)


@_method
def summary(self):
    return f"<variable {self.name}>" if self.name else "<variable>"


@_method
def debug_print(self):
    """A text with the statistics of data and gradient."""
    import numpy
    lines = [self.summary(), f"- device: {self.device}", f"- shape: {self.shape}",
             f"- dtype: {self.dtype}"]
    for what, array in [("data", self.array), ("grad", self.grad)]:
        if array is None:
            lines.append(f"- {what}: None")
        else:
            array = numpy.asarray(array, dtype="float64")
            lines.append(f"- {what}: mean={array.mean():.8f}, std={array.std():.8f}")
    return "\n".join(lines)


@_method
def to_device(self, device):
    """Moves the variable, with its gradient, to a device."""
    device = device if isinstance(device, _core.Device) else _core.Device(device)
    if self.array is None or device == self.device:
        return
    gradient = self.grad_var
    self.array = self._array.to_device(device)
    if gradient is not None:
        self.grad = gradient._array.to_device(device)


@_method
def to_cpu(self):
    self.to_device(-1)


@_method
def to_gpu(self, device=None):
    self.to_device(_core.gpu(device))


@_method
def from_chx(self):
    """Does nothing: there is no ChainerX here."""


@_method
def set_creator(self, gen_func):
    raise NotImplementedError("the graph is recorded by FunctionNode.apply()")


def _text(self, convert):
    name = f" {self.name}" if self.name else ""
    if self.array is None:
        return f"variable{name}(None)"
    import numpy
    array = self._array
    if str(self.dtype) == "bfloat16":
        array = array.astype("float32")
    array = numpy.asarray(array)
    if convert is str:
        return f"variable{name}({array})"
    prefix = f"variable{name}("
    elements = numpy.array2string(array, separator=", ", prefix=prefix) if array.size else "[]"
    text = prefix + elements
    if self.dtype not in ("float64", "int64", "bool") or not array.size:
        text += f", dtype={self.dtype}"
    if array.size == 0 and array.shape != (0,):
        text += f", shape={array.shape}"
    if self.device.is_gpu:
        text += f", device='{self.device}'"
    return text + ")"


@_method
def __repr__(self):
    return _text(self, repr)


@_method
def __str__(self):
    return _text(self, str)


def _restore(cls, state):
    made = cls.__new__(cls)
    made.__setstate__(state)
    return made


@_method
def __getstate__(self):
    array = None if self.array is None else self._array.__array__(copy=True)
    gradient = None if self.grad is None else self.grad_var._array.__array__(copy=True)
    return {"array": array, "grad": gradient, "name": self.name,
            "requires_grad": self.requires_grad, "attributes": dict(self.__dict__)}


@_method
def __setstate__(self, state):
    Variable.__init__(self, state["array"], name=state["name"], grad=state["grad"],
                      requires_grad=state["requires_grad"])
    self.__dict__.update(state["attributes"])


@_method
def __reduce_ex__(self, protocol):
    return _restore, (type(self), self.__getstate__())


@_method
def __copy__(self):
    """A variable with the same array and gradient, but without the call that computed it."""
    made = type(self).__new__(type(self))
    if self.array is not None:
        Variable.__init__(made, self.array, name=self.name, grad=self.grad,
                          requires_grad=self.requires_grad)
    made.__dict__.update(self.__dict__)
    return made


@_method
def __deepcopy__(self, memo):
    import copy
    state = self.__getstate__()
    state["attributes"] = copy.deepcopy(state["attributes"], memo)
    made = memo[id(self)] = _restore(type(self), state)
    return made


class Parameter(Variable):
    """A variable that links learn. Without a shape it has no array until ``initialize()``.

    Args:
        initializer: an array, a number, an initializer, or None for NaN.
        shape: the shape of the array; None to set it later.
        name: the name.
        layout: must be None.
    """

    initializer = None
    update_rule = None
    loss_scale = None
    _waiting_name = None  # until there is an array
    _waiting_device = None
    _first_grad = "nan"  # the gradient that initialize() gives: "nan", "zero" or None

    def __init__(self, initializer=None, shape=None, name=None, *, layout=None):
        from catena import initializers
        if layout is not None:
            raise ValueError(f"[Parameter] layout: expected None, got {layout!r}")
        if initializer is None:
            initializer = initializers.NaN()
        elif isinstance(initializer, (int, float)):
            initializer = initializers.Constant(initializer)
        if shape is None and not callable(initializer):
            super().__init__(initializer, name=name)
            self._become_parameter()
            return
        super().__init__(None)
        self._waiting_name = name
        self.initializer = initializer if callable(initializer) else (
            initializers.Constant(initializer))
        if shape is not None:
            self.initialize(shape)

    @property
    def name(self):
        return self._waiting_name if self.array is None else Variable.name.__get__(self)

    @name.setter
    def name(self, name):
        if self.array is None:
            self._waiting_name = name
        else:
            Variable.name.__set__(self, name)

    @property
    def is_initialized(self):
        """Whether it has an array."""
        return self.array is not None

    @property
    def dtype(self):
        return (getattr(self.initializer, "dtype", None) if self.array is None
                else Variable.dtype.__get__(self))

    def initialize(self, shape):
        """Makes the array, with the initializer, on the parameter's device: at first, the host."""
        from catena import initializers
        name = self._waiting_name
        device = self._waiting_device if self.array is None else self.device
        self.array = initializers.generate_array(self.initializer, shape, device=device)
        self._become_parameter()
        if name is not None:
            self.name = name
        if self._first_grad == "nan":
            self.grad = initializers.generate_array(initializers.NaN(self.dtype), shape,
                                                    device=device)
        elif self._first_grad == "zero":
            self.zerograd()

    def __copy__(self):
        made = Variable.__copy__(self)
        if made.array is not None:
            made._become_parameter()
        return made

    @property
    def device(self):
        return (self._waiting_device or _core.Device(-1) if self.array is None
                else Variable.device.__get__(self))

    def to_device(self, device):
        if self.array is not None:
            super().to_device(device)
            return
        self._waiting_device = device if isinstance(device, _core.Device) else _core.Device(device)

    def cleargrad(self):
        super().cleargrad()
        if self.array is None:
            self._first_grad = None

    def zerograd(self):
        if self.array is None:
            self._first_grad = "zero"
        else:
            super().zerograd()

    def update(self):
        """Applies the update rule that an optimizer has set."""
        if self.update_rule is not None:
            self.update_rule.update(self)

    def copydata(self, var):
        if var.array is None:
            if self.array is not None:
                var.initialize(self.shape)
            return
        if self.array is None:
            self.array = var._array.copy()
            self._become_parameter()
        else:
            super().copydata(var)

    def addgrad(self, var):
        if var.array is None or var.grad is None:
            return
        if self.array is None:
            self.initialize(var.shape)
            self.cleargrad()
        super().addgrad(var)

    def __getstate__(self):
        if self.array is not None:
            return super().__getstate__()
        return {"array": None, "attributes": dict(self.__dict__)}

    def __setstate__(self, state):
        if state["array"] is None:
            self.__dict__.update(state["attributes"])
        else:
            super().__setstate__(state)
            self._become_parameter()
