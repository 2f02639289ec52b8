"""forget(): a call whose inner values are computed twice instead of kept."""
from typing import Any

from catena._core import Variable
from catena.configuration import config, force_backprop_mode, no_backprop_mode, using_config
from catena.function_node import FunctionNode
from catena.variable import backward

__all__ = ["forget"]


def forget(func, *xs) -> Any:
    """func(*xs), without keeping the values within: backward calls func again.

    Meanwhile ``config.in_recomputing`` is True, so that links do not update statistics twice.
    """
    node = _Forget(func)
    # As in Chainer, arrays become variables that require a gradient, so that backward reaches the
    # parameters of func. The node keeps them: a leaf that nobody has gets no gradient.
    node.made = {i: Variable(x) for i, x in enumerate(xs) if not isinstance(x, Variable)}
    outputs = node.apply([node.made.get(i, x) for i, x in enumerate(xs)])
    return outputs[0] if len(outputs) == 1 else outputs


class _Forget(FunctionNode):
    def __init__(self, func) -> None:
        if not callable(func):
            raise TypeError(f"[forget] func: expected a function, got {type(func).__name__}")
        self.func = func

    def _call(self, xs):
        outputs = self.func(*xs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for y in outputs:
            if not isinstance(y, Variable):
                raise RuntimeError("[forget] func: expected variables as results, got "
                                   f"{type(y).__name__}")
        return outputs

    def forward(self, inputs) -> Any:
        self.retain_inputs(range(len(inputs)))
        with no_backprop_mode():
            return tuple(y.array for y in self._call([Variable(x) for x in inputs]))

    def backward(self, indexes, grad_outputs) -> Any:
        if config.enable_backprop:
            raise RuntimeError("[forget] backward: it has no gradient of higher order")
        xs = [Variable(x.array) for x in self.get_retained_inputs()]
        with force_backprop_mode(), using_config("in_recomputing", True):
            outputs = self._call(xs)
        backward(outputs, grad_outputs)
        return tuple(x.grad_var for x in xs)
