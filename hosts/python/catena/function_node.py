"""FunctionNode: a differentiable function that Python defines."""
from typing import Any

from catena import _core
from catena.configuration import config
from catena.variable import grad

__all__ = ["FunctionNode", "grad"]


def on_gpu(arrays) -> bool:
    """Whether one of the arrays is on a GPU."""
    return any(isinstance(x, _core.Array) and x.device.is_gpu for x in arrays)


class FunctionNode(_core.FunctionNodeBase):
    """One call of a function. A subclass implements ``forward()`` on arrays and ``backward()``.

    ``forward(inputs)`` takes a tuple of arrays and returns one array or a tuple. By default it
    calls ``forward_cpu()``, or ``forward_gpu()`` if an input is on a GPU. On the host, arrays are
    numpy.ndarrays that share the memory of the variables; elsewhere they are catena.Arrays.
    ``retain_inputs()`` and ``retain_outputs()`` keep arrays for ``backward()``.

    ``backward(target_input_indexes, grad_outputs)`` returns the gradient of each input, or of each
    target, as variables; None means none. If it consists of differentiable functions, it can be
    differentiated again.

    An object can be applied once: ``y, = MyFunction().apply((x,))``.
    """

    @property
    def label(self):
        """The name in messages and pictures of graphs."""
        return type(self).__name__

    def check_type_forward(self, in_types) -> Any:
        """Can raise InvalidType, with ``type_check.expect()``. Called before ``forward()``."""

    _type_checker = property(lambda self: self)

    def _checked_forward(self, inputs):
        checker = self._type_checker
        method = getattr(checker.check_type_forward, "__func__", None)
        if method is not FunctionNode.check_type_forward and config.type_check:
            from catena.utils import type_check
            type_check.check(checker, inputs)
        return self.forward(inputs)

    def forward(self, inputs) -> Any:
        return self.forward_gpu(inputs) if on_gpu(inputs) else self.forward_cpu(inputs)

    def forward_cpu(self, inputs) -> Any:
        self._not_overridden("forward_cpu")

    def forward_gpu(self, inputs) -> Any:
        self._not_overridden("forward_gpu")

    def _not_overridden(self, method):
        raise _core.UnsupportedError(f"[{self.label}] {method}: expected a class that overrides forward() "
                                     f"or {method}(), got one that overrides neither")

    def backward(self, target_input_indexes, grad_outputs) -> Any:
        none = (None,) * len(target_input_indexes)
        if type(self).backward_accumulate is FunctionNode.backward_accumulate:
            return none
        return self.backward_accumulate(target_input_indexes, grad_outputs, none)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> Any:
        """Like ``backward()``, but adds existing gradients. It can be overridden instead."""
        found = self.backward(target_input_indexes, grad_outputs)
        found = found if isinstance(found, (list, tuple)) else (found,)
        if len(found) == len(self.inputs):
            found = tuple(found[i] for i in target_input_indexes)
        return tuple(old if new is None else new if old is None else new + old
                     for new, old in zip(found, grad_inputs))

    def retain_outputs(self, indexes) -> None:
        """Keeps the data of outputs for ``backward()``."""
        self._output_indexes = tuple(indexes)
        super().retain_outputs(self._output_indexes)

    @property
    def output_data(self):
        """The arrays of the outputs; None for those that ``retain_outputs()`` did not keep."""
        kept = {i: None if y is None else y.array for i, y in zip(
            self._output_indexes, self.get_retained_outputs())}
        return tuple(kept.get(i) for i in range(len(self.outputs)))
