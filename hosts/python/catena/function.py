"""Function: a differentiable function whose gradient is computed on arrays, as in Chainer 1."""
import copy
import weakref
from typing import Any

from catena import _core
from catena.configuration import config, force_backprop_mode, no_backprop_mode
from catena.function_node import FunctionNode, on_gpu

__all__ = ["Function", "FunctionAdapter", "force_backprop_mode", "no_backprop_mode"]


class FunctionAdapter(FunctionNode):
    """The call of a Function in the graph."""

    _output_indexes = ()
    _type_checker = property(lambda self: self.function)

    def __init__(self, function) -> None:
        self.function = function

    label = property(lambda self: self.function.label)

    def forward(self, inputs) -> Any:
        self.retain_inputs(range(len(inputs)))
        return self.function.forward(inputs)

    def retain_inputs(self, indexes) -> None:
        self._input_indexes = tuple(indexes)
        super().retain_inputs(self._input_indexes)

    def backward(self, target_input_indexes, grad_outputs) -> Any:
        inputs = [None] * len(self.inputs)
        kept = self.get_retained_inputs()
        for i, x in zip(self._input_indexes, kept):
            inputs[i] = None if x is None else x.array
        gradients = self.function.backward(
            tuple(inputs), tuple(None if g is None else g.array for g in grad_outputs))
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,) if gradients is not None else (None,) * len(inputs)
        if len(gradients) != len(inputs):
            raise ValueError(f"[{self.label}] backward: expected {len(inputs)} gradients, "
                             f"got {len(gradients)}")
        found = [i for i in target_input_indexes if gradients[i] is not None]
        if not config.enable_backprop or not found:
            return tuple(gradients)
        seen = [x for x in (*kept, *grad_outputs) if x is not None]
        variables = _FirstOrder(self.label, tuple(gradients[i] for i in found)).apply(seen)
        result = dict(zip(found, variables))
        return tuple(result.get(i) for i in range(len(inputs)))


class _FirstOrder(FunctionNode):
    """Gradients that were computed on arrays. They have no gradients themselves."""

    label = None

    def __init__(self, label, gradients) -> None:
        self.label = label
        self._gradients = gradients

    def forward(self, inputs) -> Any:
        gradients, self._gradients = self._gradients, None
        return gradients

    def backward(self, target_input_indexes, grad_outputs) -> Any:
        raise _core.NotDifferentiableError(
            f"[{self.label}] backward: it has no gradient of higher order: a Function computes its "
            "gradient on arrays; derive from FunctionNode")


class Arrays:
    """The arrays whose names are in another attribute, unless an object has its own attribute."""

    def __init__(self, names) -> None:
        self._names = names

    def __get__(self, function, owner=None):
        if function is None:
            return self
        arrays = (getattr(function, name) for name in getattr(function, self._names))
        return tuple(array for array in arrays if array is not None)


class Function:
    """A function with a gradient on arrays. A subclass implements ``forward()`` and ``backward()``.

    ``forward(inputs)`` takes a tuple of arrays and returns one array or a tuple; by default it
    calls ``forward_cpu()`` or ``forward_gpu()``. ``backward(inputs, grad_outputs)`` returns the
    gradients of all inputs; by default it calls ``backward_cpu()`` or ``backward_gpu()``. All
    inputs are kept for it unless ``forward()`` calls ``retain_inputs()``.

    An object can be called several times. Its attributes are those of the last call; for earlier
    calls, whose graph is still used, copies keep the attributes that they had.

    As in Chainer 1, a function can have arrays that are learned: ``parameter_names`` and
    ``gradient_names`` are the names of attributes, and ``backward()`` adds to the gradients. Such a
    function can be part of a FunctionSet.
    """

    _node = None
    parameter_names = ()
    gradient_names = ()
    parameters = Arrays("parameter_names")
    gradients = Arrays("gradient_names")
    check_type_forward = FunctionNode.check_type_forward

    def __call__(self, *inputs) -> Any:
        """Applies the function. Returns a variable, or a tuple of them."""
        earlier = self._node and self._node()
        if earlier is not None:
            earlier.function = copy.copy(self)
            earlier.function._node = self._node
        node = FunctionAdapter(self)
        self._node = weakref.ref(node)
        outputs = node.apply(inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def __getstate__(self):  # copies are not the function of the call
        return {key: value for key, value in self.__dict__.items() if key != "_node"}

    @property
    def node(self):
        """The last call in the graph, or None if it is gone."""
        return self._node and self._node()

    inputs = property(lambda self: self.node and self.node.inputs)
    outputs = property(lambda self: self.node and self.node.outputs)
    output_data = property(lambda self: self.node.output_data, doc=FunctionNode.output_data.__doc__)
    rank = property(lambda self: self.node.rank)
    label = property(lambda self: type(self).__name__)
    forward = FunctionNode.forward

    def forward_cpu(self, inputs) -> Any:
        raise _core.UnsupportedError(f"[{self.label}] forward_cpu: expected a class that overrides it")

    def forward_gpu(self, inputs) -> Any:
        raise _core.UnsupportedError(f"[{self.label}] forward_gpu: expected a class that overrides it")

    def backward(self, inputs, grad_outputs) -> Any:
        if on_gpu((*inputs, *grad_outputs)):
            return self.backward_gpu(inputs, grad_outputs)
        return self.backward_cpu(inputs, grad_outputs)

    def backward_cpu(self, inputs, grad_outputs) -> Any:
        return (None,) * len(inputs)

    backward_gpu = backward_cpu

    def retain_inputs(self, indexes) -> None:
        """In ``forward()``: keeps only these inputs for ``backward()``; others are None."""
        self.node.retain_inputs(indexes)

    def retain_outputs(self, indexes, retain_after_backward=False) -> None:
        """In ``forward()``: keeps outputs for ``backward()``, as ``output_data``."""
        self.node.retain_outputs(indexes)

    def unchain(self) -> None:
        """Removes the call from the graph."""
        self.node.unchain()

    def to_cpu(self) -> Any:
        """Moves all attributes that are arrays to the host. Returns the function."""
        return self._move(_core.Device(-1))

    def to_gpu(self, device=None) -> Any:
        """Moves all attributes that are arrays to a GPU, by default the current one."""
        return self._move(_core.gpu(device))

    def _move(self, device):
        import numpy
        for name, value in self.__dict__.items():
            if isinstance(value, (numpy.ndarray, _core.Array)):
                self.__dict__[name] = device.send(value)
        return self
