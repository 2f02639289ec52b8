"""Functions of plugins, and other functions on variables, as differentiable functions on PyTorch's tensors.

::

    swish = catena.torch.wrap("org.example.swish")
    y = swish(torch.randn(3, requires_grad=True), beta=2.0)
    y.sum().backward()
"""
import contextlib
import functools

import torch
from torch.autograd import forward_ad

from catena import _core
from catena.configuration import force_backprop_mode, no_backprop_mode

__all__ = ["wrap"]


def wrap(function):
    """Makes a function on tensors.

    Tensors among the arguments, also in lists and tuples, share their memory with catena's variables;
    those that are not contiguous are copied. The results share memory with new tensors. Gradients of
    first and second order work as for PyTorch's own functions, and of higher order if those of the
    function are composed. PyTorch's ``no_grad()``, ``inference_mode()``, ``retain_graph`` and
    ``create_graph`` have their effect, and a change in place of a tensor that the gradient needs is an
    error. ``torch.compile()`` ends its graph at the call. ``torch.func`` and forward-mode derivatives
    raise an error. Other variables that the function uses, such as a link's parameters, get no gradient.

    On a GPU, catena's stream waits for PyTorch's current stream before the call; the host waits for
    catena's results before they become tensors. This has not been run with PyTorch on a GPU.

    Args:
        function: the full name of a plugin's function, or a function that takes variables and returns
            a variable or several.
    """
    if isinstance(function, str):
        function = _core.plugin_function(function)

    def call(*args, **kwargs):
        if torch._C._are_functorch_transforms_active():
            raise RuntimeError(
                f"[{wrapped.__name__}] expected a call outside of torch.func, whose transforms, such "
                "as vmap() and grad(), cannot look into a function of catena")
        tensors = []
        _collect((args, *kwargs.values()), tensors)
        is_one = True

        def run(tensors, needs):
            nonlocal is_one
            variables = _core.variables_of_tensors(tensors, needs)
            found = iter(variables)
            results = function(*_replaced(args, found),
                               **{key: _replaced(value, found) for key, value in kwargs.items()})
            is_one = not isinstance(results, (list, tuple))
            return _core.Recorded(variables, results)

        results = _apply(run, tuple(tensors))
        return results[0] if is_one else tuple(results)

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        if torch.compiler.is_compiling():
            return torch.compiler.disable(call)(*args, **kwargs)
        return call(*args, **kwargs)

    return wrapped


def _collect(value, tensors):
    if isinstance(value, torch.Tensor):
        tensors.append(value.resolve_neg())
    elif isinstance(value, (list, tuple)):
        for each in value:
            _collect(each, tensors)


def _replaced(value, variables):
    """The value with the next variables in the place of its tensors."""
    if isinstance(value, torch.Tensor):
        return next(variables)
    if isinstance(value, (list, tuple)):
        return [_replaced(each, variables) for each in value]
    return value


def _apply(run, tensors):
    """The results of run(tensors, whether they need a gradient), which returns what was recorded."""
    needs = [tensor.requires_grad for tensor in tensors]
    if True in needs and torch.is_grad_enabled() or forward_ad._current_level >= 0:
        return _Call.apply(run, *tensors)
    results = _results(run, tensors, (False,) * len(tensors))[1]
    return [y.detach() if y is not None and y.requires_grad else y for y in results]


def _results(run, tensors, needs):
    """What was recorded, and its Recorded.results()."""
    on_gpu = tensors and tensors[0].is_cuda
    with torch.cuda.device_of(tensors[0]) if on_gpu else contextlib.nullcontext():
        with force_backprop_mode() if True in needs else no_backprop_mode():
            recorded = run(tensors, needs)
        return recorded, *recorded.results(tensors, torch.Tensor, torch.from_dlpack)


class _Call(torch.autograd.Function):
    """A call that catena's graph records. Its gradient is such a call too."""

    @staticmethod
    def forward(ctx, run, *tensors):
        needs = ctx.needs_input_grad[1:]
        ctx.recorded, results, saved, constant = _results(run, tensors, needs)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*constant)
        return tuple(results)

    @staticmethod
    def backward(ctx, *grads):
        saved = ctx.saved_tensors  # an error if one was changed, or the graph was freed
        recorded = ctx.recorded
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            ctx.recorded = None
        given = [i for i, grad in enumerate(grads) if grad is not None]
        needs = ctx.needs_input_grad
        if not given:
            return (None,) * len(needs)
        tensors = (*(grads[i] for i in given), *saved[:sum(needs)])
        found = iter(_apply(lambda *of: recorded.gradients(given, *of), tensors))
        return tuple(next(found) if need else None for need in needs)
