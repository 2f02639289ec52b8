"""FunctionSet: the container of functions with parameters of Chainer 1."""
import copy
from typing import Any

from catena import _core
from catena.function import Function
from catena.link import Chain, Link
from catena.variable import Parameter


class _LinkOf(Link):
    """A link whose parameters share the memory of a Function's arrays."""

    def __init__(self, function) -> None:
        super().__init__()
        self._function = function
        self._share()

    def _share(self):
        function = self._function
        arrays = function.parameters
        names = function.parameter_names or tuple(map(str, range(len(arrays))))
        for name, array, gradient in zip(names, arrays, function.gradients, strict=True):
            self._params.add(name)
            parameter = self.__dict__.setdefault(name, Parameter(array, name=name))
            parameter.cleargrad()
            parameter.array = array
            parameter.grad = gradient
        _core.keep_gradients(list(self.params()))

    def device_resident_accept(self, visitor) -> None:
        visitor.visit_device_resident(self)
        if self.device.is_gpu:
            self._function.to_gpu(self.device.id)
        else:
            self._function.to_cpu()
        self._share()

    def __reduce_ex__(self, protocol):
        return type(self), (self._function,)


def _arrays(attribute, doc) -> Any:
    def get(functions):
        return tuple(getattr(parameter, attribute) for parameter in functions._sorted())

    def assign(functions, arrays):
        for parameter, array in zip(functions._sorted(), arrays, strict=True):
            setattr(parameter, attribute, array)
    return property(get, assign, doc=doc)


class FunctionSet(Chain):
    """Functions and links with names. Those that are assigned to attributes become children.

    Args:
        functions: names of children with the functions or links.
    """

    def __init__(self, **functions) -> None:
        super().__init__()
        self._links = {}  # those of Functions
        for name, function in functions.items():
            setattr(self, name, function)

    def __setattr__(self, name, value):
        if self._within_init_scope or not isinstance(value, (Link, Function)):
            super().__setattr__(name, value)
            return
        if name in self._children:
            delattr(self, name)
        if isinstance(value, Link):
            self.add_link(name, value)
        else:
            self._check_new(name, "function")
            self._links[name] = _LinkOf(value)
            self._children.add(name)
            super().__setattr__(name, value)

    def __delattr__(self, name):
        self._links.pop(name, None)
        super().__delattr__(name)

    def _named_children(self):
        return [(name, self._links.get(name, child)) for name, child in super()._named_children()]

    def _copy_children(self):
        self._links = {name: _LinkOf(copy.copy(self.__dict__[name])) for name in self._links}
        functions = {name: link._function for name, link in self._links.items()}
        self.__dict__.update(functions)
        self._children = self._children - functions.keys()
        super()._copy_children()
        self._children |= functions.keys()

    def _sorted(self):
        return [parameter for _, parameter in sorted(self.namedparams())]

    def __iter__(self) -> Any:
        """The parameters and the gradients, which are a pair in Chainer 1.0."""
        return iter((self.parameters, self.gradients))

    def collect_parameters(self) -> Any:
        """The set itself, which optimizers take. It can be unpacked into parameters and gradients."""
        return self

    parameters = _arrays(
        "array", "The arrays of all parameters, sorted by path. They can be assigned, without a copy.")
    gradients = _arrays("grad", "The gradients of all parameters, in the same order. They can be assigned.")

    def copy_parameters_from(self, params) -> None:
        """Copies the elements of arrays, in the order of ``parameters``, also between devices."""
        for parameter, source in zip(self._sorted(), params, strict=True):
            parameter._array.copy_from(_core.as_array(source))
