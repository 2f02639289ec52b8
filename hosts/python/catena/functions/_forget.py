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
        for i, y in enumerate(outputs, 1):
            if not isinstance(y, Variable):
                ending = "th" if i in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
                raise RuntimeError(f"[forget] func: expected a variable as the {i}{ending} result, "
                                   f"got {type(y).__name__}")
        return outputs

    def forward(self, inputs) -> Any:
        self.retain_inputs(range(len(inputs)))
        outer = config._kept_for_recomputing  # of a forget() whose function calls this one
        again = config.in_recomputing and outer is not None
        self.kept = next(outer) if again else []
        if outer is not None and not again:
            outer.append(self.kept)
        kept = iter(self.kept) if again else self.kept
        with no_backprop_mode(), using_config("_kept_for_recomputing", kept):
            return tuple(y.array for y in self._call([Variable(x) for x in inputs]))

    def backward(self, indexes, grad_outputs) -> Any:
        if config.enable_backprop:
            raise RuntimeError("[forget] backward: it has no gradient of higher order")
        xs = [Variable(x.array) for x in self.get_retained_inputs()]
        with force_backprop_mode(), using_config("in_recomputing", True), using_config(
                "_kept_for_recomputing", iter(self.kept)):
            outputs = self._call(xs)
        backward(outputs, grad_outputs)
        return tuple(x.grad_var for x in xs)
