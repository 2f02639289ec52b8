"""forget(): a call whose inner values are computed twice instead of kept."""
from catena import functions as F
from catena._core import Variable
from catena.configuration import config, force_backprop_mode, no_backprop_mode
from catena.function_node import FunctionNode

__all__ = ["forget"]


def forget(func, *xs):
    """func(*xs), without keeping the values within: backward calls func again."""
    outputs = _Forget(func).apply(xs)
    return outputs[0] if len(outputs) == 1 else outputs


class _Forget(FunctionNode):
    def __init__(self, func):
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

    def forward(self, inputs):
        self.retain_inputs(range(len(inputs)))
        with no_backprop_mode():
            return tuple(y.array for y in self._call([Variable(x) for x in inputs]))

    def backward(self, indexes, grad_outputs):
        if config.enable_backprop:
            raise RuntimeError("[forget] backward: it has no gradient of higher order")
        xs = [Variable(x.array) for x in self.get_retained_inputs()]
        with force_backprop_mode():
            outputs = self._call(xs)
            sum(F.sum(y * g) for y, g in zip(outputs, grad_outputs) if g is not None).backward()
        return tuple(x.grad_var for x in xs)
