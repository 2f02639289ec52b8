"""Function: a differentiable function whose gradient is computed on arrays, as in Chainer 1."""
import copy

from catena import _core
from catena._core import UnsupportedError
from catena.configuration import force_backprop_mode, no_backprop_mode
from catena.function_node import FunctionNode

__all__ = ["Function", "FunctionAdapter", "force_backprop_mode", "no_backprop_mode"]


class FunctionAdapter(FunctionNode):
    """The call of a Function in the graph."""

    def __init__(self, function):
        self._function = function

    @property
    def function(self):
        """The Function that is called."""
        return self._function

    @property
    def label(self):
        return self._function.label

    def forward(self, inputs):
        function = self._function
        function._retained_outputs = None
        outputs = function.forward(inputs)
        kept = function.__dict__.pop("_input_indexes", None)
        self.retain_inputs(range(len(inputs)) if kept is None else kept)
        self._kept = tuple(range(len(inputs))) if kept is None else tuple(kept)
        kept_outputs = function.__dict__.pop("_output_indexes", None)
        if kept_outputs is not None:
            self.retain_outputs(kept_outputs)
            self._kept_outputs = tuple(kept_outputs)
        return outputs

    def backward(self, target_input_indexes, grad_outputs):
        inputs = [None] * len(self.inputs)
        kept = self.get_retained_inputs()
        for i, x in zip(self._kept, kept):
            inputs[i] = None if x is None else x.array
        seen = [x for x in kept if x is not None] + [g for g in grad_outputs if g is not None]
        function = self._function
        if hasattr(self, "_kept_outputs"):
            function.output_data = tuple(y.array for y in self.get_retained_outputs())
        gradients = function.backward(
            tuple(inputs), tuple(None if g is None else g.array for g in grad_outputs))
        if gradients is None:
            gradients = (None,) * len(inputs)
        elif not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        if len(gradients) != len(inputs):
            raise ValueError(f"[{self.label}] backward: expected {len(inputs)} gradients, "
                             f"got {len(gradients)}")
        found = [(i, gradients[i]) for i in target_input_indexes if gradients[i] is not None]
        if not found:
            return (None,) * len(inputs)
        variables = _FirstOrder(self.label, tuple(g for _, g in found)).apply(seen)
        result = [None] * len(inputs)
        for (i, _), variable in zip(found, variables):
            result[i] = variable
        return tuple(result)


class _FirstOrder(FunctionNode):
    """Gradients that were computed on arrays. They have no gradients themselves."""

    def __init__(self, label, gradients):
        self._label = label
        self._gradients = gradients

    @property
    def label(self):
        return self._label

    def forward(self, inputs):
        gradients, self._gradients = self._gradients, None
        return gradients

    def backward(self, target_input_indexes, grad_outputs):
        raise _core.NotDifferentiableError(
            f"[{self._label}] backward: it has no gradient of higher order: a Function computes its "
            "gradient on arrays; derive from FunctionNode")


class Function:
    """A function with a gradient on arrays. A subclass implements ``forward()`` and ``backward()``.

    ``forward(inputs)`` takes a tuple of arrays and returns one array or a tuple; by default it calls
    ``forward_cpu()`` or ``forward_gpu()``. ``backward(inputs, grad_outputs)`` returns the gradients
    of all inputs; by default it calls ``backward_cpu()`` or ``backward_gpu()``. All inputs are kept
    for it unless ``forward()`` calls ``retain_inputs()``.
    """

    _node = None

    def __call__(self, *inputs):
        """Applies the function. Returns a variable, or a tuple of them."""
        function = copy.copy(self)
        function._node = node = FunctionAdapter(function)
        outputs = node.apply(inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @property
    def node(self):
        """The call in the graph."""
        return self._node

    @property
    def inputs(self):
        return self._node.inputs

    @property
    def outputs(self):
        return self._node.outputs

    @property
    def rank(self):
        return self._node.rank

    @property
    def label(self):
        return type(self).__name__

    def _on_gpu(self, arrays):
        return any(isinstance(x, _core.Array) and x.device.is_gpu for x in arrays)

    def forward(self, inputs):
        return self.forward_gpu(inputs) if self._on_gpu(inputs) else self.forward_cpu(inputs)

    def forward_cpu(self, inputs):
        raise UnsupportedError(f"[{self.label}] forward_cpu: expected a class that overrides it")

    def forward_gpu(self, inputs):
        raise UnsupportedError(f"[{self.label}] forward_gpu: expected a class that overrides it")

    def backward(self, inputs, grad_outputs):
        if self._on_gpu(tuple(inputs) + tuple(grad_outputs)):
            return self.backward_gpu(inputs, grad_outputs)
        return self.backward_cpu(inputs, grad_outputs)

    def backward_cpu(self, inputs, grad_outputs):
        return (None,) * len(inputs)

    def backward_gpu(self, inputs, grad_outputs):
        return (None,) * len(inputs)

    def retain_inputs(self, indexes):
        """In ``forward()``: keeps only these inputs for ``backward()``; others are None."""
        self._input_indexes = tuple(indexes)

    def retain_outputs(self, indexes, retain_after_backward=False):
        """In ``forward()``: keeps outputs for ``backward()``, which finds them in ``output_data``."""
        self._output_indexes = tuple(indexes)

    def unchain(self):
        self._node.unchain()
