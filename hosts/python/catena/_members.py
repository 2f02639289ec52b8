"""The members of _core's types that need no speed: _core adds those of the class NAME to its type NAME.

The classes are no bases: objects with a base class of Python take part in garbage collection, so
that Array, Device and VariableNode would be slower. _core imports this module when it is initialized.
"""
import copyreg
import weakref
from types import ModuleType
from typing import Any

import numpy

import catena


def add_members(type):
    """Adds the members to a new type. Called by _core."""
    class Empty:
        pass
    for name, member in vars(globals().get(type.__name__, Empty)).items():
        if name not in vars(Empty):
            assert name not in vars(type), f"{type.__name__}.{name} is defined twice"
            setattr(type, name, member)


def _methods(module, *names):
    """Methods that call the functions of a module of catena with the object."""
    def method_of(name):
        def method(self, *args, **kwargs):
            return getattr(getattr(catena, module), name)(self, *args, **kwargs)
        method.__name__ = name
        method.__doc__ = f"The same as ``catena.{module}.{name}(self, ...)``."
        return method
    return {name: method_of(name) for name in names}


def _shape_or_axes(arguments):
    one = len(arguments) == 1 and (arguments[0] is None or isinstance(arguments[0], (tuple, list)))
    return arguments[0] if one else arguments


def _on_host(array):
    """The elements as a numpy.ndarray, those of bfloat16 as float32."""
    array = array.to_device(-1)
    return (array.astype("float32") if str(array.dtype) == "bfloat16" else array).__array__()


class Array:
    __array_priority__ = 100
    locals().update(_methods(
        "cupy", "all", "any", "argmax", "argmin", "clip", "dot", "flatten", "max", "mean", "min",
        "prod", "ravel", "repeat", "squeeze", "std", "sum", "swapaxes", "take", "var"))

    def transpose(self, *axes) -> Any:
        """An array with the axes in another order; reversed without arguments."""
        return catena.cupy.transpose(self, _shape_or_axes(axes) or None)

    @property
    def T(self) -> Any:
        """The array with reversed axes."""
        return self.transpose()

    def get(self) -> Any:
        """The array on the host, as a numpy.ndarray."""
        return catena.cupy.asnumpy(self)

    def __reduce__(self):
        return type(self), (_on_host(self), str(self.dtype), self.device.name)


class VariableNode:
    @property
    def label(self) -> str:
        """The shape and dtype, as in pictures of graphs."""
        shape = ", ".join(map(str, self.shape))
        return f"({shape}), {self.dtype}" if self.shape else str(self.dtype)

    @property
    def creator(self) -> Any:
        """The function that computed the variable, or None for a leaf.

        It is the object for a FunctionNode or Function of Python, else a description with ``label``.
        """
        node = self.creator_node
        return getattr(node, "function", node)

    def __call__(self) -> Any:
        """Itself: Chainer's outputs are weak references, which are called."""
        return self


class Variable:
    __array_priority__ = 200
    __array_ufunc__ = None
    locals().update(_methods(
        "functions", "sum", "max", "min", "prod", "argmax", "argmin", "squeeze", "flatten"))

    label = VariableNode.label

    @VariableNode.creator.setter
    def creator(self, creator) -> None:
        self.creator_node = getattr(creator, "node", creator)

    @property
    def xp(self) -> ModuleType:
        """The module with the functions on the variable's array: numpy, unless it is on a GPU."""
        return self.device.xp

    @property
    def T(self) -> "catena.Variable":
        """The variable with reversed axes."""
        return self.transpose()

    def reshape(self, *shape) -> "catena.Variable":
        """A variable with the same elements in another shape."""
        return catena.functions.reshape(self, _shape_or_axes(shape))

    def transpose(self, *axes) -> "catena.Variable":
        """A variable with the axes in another order; reversed without arguments."""
        return catena.functions.transpose(self, _shape_or_axes(axes) or None)

    def mean(self, axis=None, *, weights=None, keepdims=False) -> "catena.Variable":
        """The mean of the elements over an axis or over several."""
        return catena.functions.average(self, axis, weights, keepdims)

    def summary(self) -> str:
        """A short text with the name or address."""
        return f"<variable {self.name}>" if self.name else f"<variable at 0x{id(self):x}>"

    def debug_print(self) -> str:
        """A text with the statistics of data and gradient."""
        def statistics(array, of_zeros=None):
            if array is None:
                return None
            array = _on_host(catena._core.as_array(array)).astype("float64")
            if of_zeros and not array.any():
                return of_zeros
            return f"mean={array.mean():.8f}, std={array.std():.8f}" if array.size else "no elements"

        empty = self.array is None
        return "\n".join([
            self.summary(),
            f"- device: {None if empty else self.device if self.device.is_gpu else 'CPU'}",
            f"- backend: {None if empty else type(self.array)}",
            f"- shape: {None if empty else self.shape}",
            f"- dtype: {None if empty else self.dtype}",
            f"- statistics: {statistics(self.array)}",
            f"- grad: {None if empty else statistics(self.grad, '0')}"])

    def to_device(self, device) -> None:
        """Moves the variable, with its gradient, to a device."""
        device = device if isinstance(device, catena.Device) else catena.Device(device)
        if self.array is None:
            self._first_device = device
        elif device != self.device:
            # A graph may refer to the array on the old device: the variable gets a node of its own.
            gradient = self.grad_var
            catena.Variable.__init__(
                self, self._array.to_device(device), self.volatile, name=self.name,
                grad=None if gradient is None else gradient._array.to_device(device),
                requires_grad=self.requires_grad)
            self._restored(None)

    def to_cpu(self) -> None:
        """Moves the variable to the host."""
        self.to_device(-1)

    def to_gpu(self, device=None) -> None:
        """Moves the variable to a GPU: that with the number, or the current one."""
        self.to_device(catena._core.gpu(device))

    def copydata(self, var) -> None:
        """Copies the elements of a variable of any device. Initializes a variable without an array."""
        if not isinstance(var, catena.Variable):
            raise TypeError("[catena.Variable] copydata: expected a catena.Variable, "
                            f"got {type(var)}")
        if var.array is None and self.array is None:
            return
        if var.array is None:
            var.initialize(self.shape)
        elif self.array is None:
            self.initialize(var.shape)
        self._array.copy_from(var._array.astype(self.dtype))

    def __repr__(self) -> str:
        return self._text(", ")

    def __str__(self) -> str:
        return self._text(" ")

    def __format__(self, spec) -> str:
        """With a format, that of the only element: ``f"{loss:.3f}"``."""
        return format(self.item(), spec) if spec else str(self)

    def _text(self, separator):
        name = f"variable {self.name}" if self.name else "variable"
        if self.array is None:
            return f"{name}(None)"
        array = _on_host(self._array)
        if separator == ", " and array.size == 0 and array.shape != (0,):
            return f"{name}([], shape={array.shape})"
        return f"{name}({numpy.array2string(array, separator=separator, prefix=name + '(')})"

    def __reduce_ex__(self, protocol):
        return copyreg.__newobj__, (type(self),), self.__getstate__()

    def __getstate__(self):
        gradient = self.grad_var
        return {"name": self.name, "requires_grad": self.requires_grad, "device": self.device,
                "attributes": {k: v for k, v in self.__dict__.items() if k != "_together"},
                "array": None if self.array is None else self._array,
                "grad": None if gradient is None else gradient._array,
                "first_grad": self._first_grad}

    def __setstate__(self, state):
        device = state["device"] if state["device"].is_gpu else catena.Device(-1)
        array, gradient = (None if state[key] is None else state[key].to_device(device)
                           for key in ["array", "grad"])
        catena.Variable.__init__(self, array, name=state["name"], grad=gradient,
                                 requires_grad=state["requires_grad"])
        self.__dict__.update(state["attributes"])
        if array is None:
            self._first_device = device
        self._restored(state["first_grad"])

    def _restored(self, first_grad):
        """Called after the variable got the state of another one."""

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
        catena.Variable.__init__(made, self._array, name=self.name, requires_grad=self.requires_grad)
        made.array = self.array  # the same object of NumPy
        made.grad = self.grad
        made.loss_scale = self.loss_scale
        made.__dict__.update(self.__dict__)
        made._restored(None)
        return made


class Device:
    def send(self, arrays) -> Any:
        """An array, or a list or tuple of arrays, as send_array() returns them."""
        if isinstance(arrays, (list, tuple)):
            return type(arrays)(map(self.send, arrays))
        return None if arrays is None else self.send_array(arrays)

    def send_array(self, array) -> Any:
        """The array on the device: a numpy.ndarray on the host."""
        if isinstance(array, catena.Variable):
            raise TypeError("[send] array: expected an array, got a variable; use its to_device() or "
                            "its array")
        if numpy.isscalar(array):
            array = numpy.asarray(array)
        if array is None or isinstance(array, numpy.ndarray) and not self.is_gpu:
            return array
        return catena._core.as_python(catena._core.as_array(array).to_device(self))

    @property
    def xp(self) -> ModuleType:
        """numpy, or catena.cupy for a GPU."""
        return catena.cupy if self.is_gpu else numpy

    @property
    def supported_array_types(self) -> tuple[type, ...]:
        """The classes of arrays on the device."""
        return (catena.Array,) if self.is_gpu else (numpy.ndarray, catena.Array)

    def is_array_supported(self, array) -> bool:
        """Whether the object is an array on the device."""
        return isinstance(array, self.supported_array_types) and (
            catena._core.as_array(array).device == self)

    def __str__(self) -> str:
        """Chainer's name of the device: "@numpy" or "@cupy:0"; another one's ``name``."""
        if self.is_gpu:
            return f"@cupy:{self.id}"
        return "@numpy" if self == catena.Device(-1) else self.name

    def __int__(self) -> int:
        return self.id

    def __reduce__(self):
        return type(self), (self.name,)
