"""Functions of plugins, and others on variables, as differentiable functions on PyTorch's tensors.

::

    swish = catena.torch.wrap("org.example.swish")
    y = swish(torch.randn(3, requires_grad=True), beta=2.0)
    y.sum().backward()
"""
import contextlib
import functools
from typing import Any

import torch
from torch.autograd import forward_ad

from catena import _core

__all__ = ["wrap"]

_nothing = contextlib.nullcontext()
_TRACERS = (torch._C._TorchDispatchModeKey.PROXY, torch._C._TorchDispatchModeKey.FAKE)


def wrap(function) -> Any:
    """Makes a function on tensors.

    Tensors among the arguments, also in lists and tuples, share their memory with catena's
    variables; those that are not contiguous are copied. The results share memory with new tensors.
    Gradients of first and second order work as for PyTorch's own functions, and of higher order if
    those of the function are composed. ``no_grad()``, ``inference_mode()``, ``retain_graph`` and
    ``create_graph`` have their effect, and a change in place of a tensor that the gradient needs is
    an error. ``torch.compile()`` ends its graph at the call. ``torch.func``, forward-mode derivatives,
    ``torch.jit.trace()``, ``torch.export`` and other tracers raise an error. Other variables that
    the function uses, such as a link's parameters, get no gradient.

    On a GPU, catena's stream waits for PyTorch's current stream before the call; the host waits for
    catena's results before they become tensors. This has not been run with PyTorch on a GPU.

    Args:
        function: the full name of a plugin's function, or a function that takes variables and
            returns a variable or several.
    """
    if isinstance(function, str):
        function = _core.plugin_function(function)
    elif not callable(function):
        raise TypeError("[catena.torch.wrap] function: expected a name or a callable object, got "
                        f"{type(function).__name__}")
    return _Wrapped(function)


class _Wrapped:
    def __init__(self, function) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function

    def __call__(self, *args, **kwargs) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(self._call)(*args, **kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args, **kwargs):
        return _apply(functools.partial(_core.record, self._function, args, kwargs, torch.Tensor),
                      _core.tensors_in(args, kwargs, torch.Tensor))

    def __repr__(self):
        return f"catena.torch.wrap({self._function!r})"

    def __reduce__(self):
        return wrap, (self._function,)


def _apply(record, tensors):
    """The results of record(tensors, whether they need a gradient)."""
    if torch.jit.is_tracing() or any(torch._C._get_dispatch_mode(mode) for mode in _TRACERS):
        raise RuntimeError("[catena.torch] expected a call outside of torch.jit.trace(), torch.export, "
                           "make_fx() and other tracers, which would record the result as a constant: "
                           "trace the parts before and after the call")
    if torch._C._are_functorch_transforms_active():
        raise RuntimeError("[catena.torch] expected a call outside of vmap(), grad() and the other "
                           "transforms of torch.func, which cannot look into a function of catena")
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors) or (
            forward_ad._current_level >= 0):
        return _Call.apply(record, *tensors)
    return _record(record, tensors, (False,) * len(tensors))[1]


def _record(record, tensors, needs):
    """Returns the record of the call, followed by its results()."""
    on_gpu = tensors and tensors[0].is_cuda
    with torch.cuda.device_of(tensors[0]) if on_gpu else _nothing:  # __dlpack__() needs the device
        recorded = record(tensors, needs)
        return recorded, *recorded.results(tensors, torch.Tensor, torch.from_dlpack, True in needs)


class _Call(torch.autograd.Function):
    """A call that catena's graph records. Its gradient is such a call too."""

    @staticmethod
    def forward(ctx, record, *tensors) -> Any:
        ctx.recorded, results, saved, constant = _record(record, tensors, ctx.needs_input_grad[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*constant)
        return results

    @staticmethod
    def backward(ctx, *grads) -> Any:
        saved = ctx.saved_tensors  # an error if one was changed, or the graph was freed
        recorded, needs = ctx.recorded, ctx.needs_input_grad
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            ctx.recorded = None
        given = tuple(i for i, grad in enumerate(grads) if grad is not None)
        if not given:
            return (None,) * len(needs)
        tensors = (*(grads[i] for i in given), *saved[:sum(needs)])
        found = iter(_apply(functools.partial(recorded.gradients, given), tensors))
        return tuple(next(found) if need else None for need in needs)
