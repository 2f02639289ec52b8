"""Kernels from formulas, compiled at run time for CPUs and GPUs, with CuPy's interface."""
import functools
import operator
from typing import Any

import numpy

from catena import _core

_memories = []


def memoize(for_each_device=False) -> Any:
    """A decorator of functions that make kernels: it keeps the results for all arguments."""
    def remember(function):
        _memories.append(functools.lru_cache(maxsize=None)(function))
        return _memories[-1]
    return remember


def clear_memo() -> None:
    """Forgets what memoize() remembers."""
    for memory in _memories:
        memory.cache_clear()


class _Kernel:
    """A compiled formula. ``name`` is its name in messages and profilers."""

    def __init__(self, core, name, in_params, out_params="", return_tuple=False) -> None:
        self._core = core
        self.name = name
        self.in_params = in_params
        self.out_params = out_params
        self._all_are_outputs = "*" in in_params  # pointers, through which the formula may write
        self._return_tuple = return_tuple

    nin = property(operator.attrgetter("_core.inputs"), doc="The number of inputs.")
    nout = property(operator.attrgetter("_core.outputs"), doc="The number of outputs.")
    nargs = property(lambda self: self.nin + self.nout)

    def _run(self, args, size, axis, keepdims):
        given = list(args)
        copies = []
        for i in range(0 if self._all_are_outputs else self.nin, len(given)):
            array = given[i]
            if not isinstance(array, numpy.ndarray):
                continue
            if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
                given[i] = numpy.ascontiguousarray(array, array.dtype.newbyteorder("="))
                copies.append((array, given[i]))
            if not array.flags.writeable and i >= self.nin:
                raise ValueError(f"[{self.name}] output {i - self.nin}: expected an array that can "
                                 "be written to, got a read-only one")
        outputs = self._core.call(given, size, axis, keepdims)
        for array, written in copies:
            if array.flags.writeable:
                array[...] = written
        outputs = tuple(args[self.nin:]) or outputs
        if len(outputs) == 1 and not self._return_tuple:
            return outputs[0]
        return outputs or None


class ElementwiseKernel(_Kernel):
    """A kernel that computes each element. Arrays are broadcast as in NumPy.

    ``ElementwiseKernel("T x, T y", "T z", "z = x * y + 1", "f")(x, y)`` returns a new array; an
    array that is passed for z is written to. A capital letter stands for the dtype of the arrays
    that are declared with it. ``raw T x`` is a whole array, which the formula indexes.

    Args:
        in_params, out_params: the types and names of the inputs, and of the outputs.
        operation: statements in C++. ``i`` is the index of the element, ``n`` their number.
        name: the name in messages.
        return_tuple: whether a single output is returned in a tuple.
        preamble, options: code before the kernel, and options for the compiler.
        loop_prep, after_loop: statements before and after the loop over a thread's elements.
        keep: whether to keep the source in the cache folder.
    """

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True,
                 preamble="", no_return=False, return_tuple=False, *, loop_prep="", after_loop="",
                 options=(), keep=False) -> None:
        core = _core.elementwise_kernel(in_params, out_params, operation, name, preamble, loop_prep,
                                        after_loop, options, keep)
        super().__init__(core, name, in_params, out_params, return_tuple)
        self.operation = operation
        self._no_return = no_return

    def __call__(self, *args, size=None, stream=None) -> Any:
        """Runs the kernel on arrays and numbers, followed by arrays for the outputs, if wanted.

        ``size`` is the number of elements, needed if all arrays are raw. ``stream`` is ignored.
        """
        if size is None and all(isinstance(arg, (int, float, numpy.generic)) for arg in args):
            size = ()
        outputs = self._run(args, size, None, False)
        return None if self._no_return else outputs


class ReductionKernel(_Kernel):
    """A kernel that reduces arrays, which are broadcast, along axes.

    ``ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")(x, axis=1)``

    Args:
        map_expr: an expression of the inputs.
        reduce_expr: an associative and commutative expression of ``a`` and ``b``.
        post_map_expr: statements that compute the outputs from ``a``.
        identity: the neutral value of ``reduce_expr``; None if there is none.
        reduce_type: the type of ``a`` and ``b``; by default that of the first output.
        in_params, out_params, name, preamble, options, keep: see ElementwiseKernel.
    """

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity,
                 name="reduce_kernel", reduce_type=None, reduce_dims=True, preamble="", options=(),
                 *, keep=False) -> None:
        core = _core.reduction_kernel(
            in_params, out_params, map_expr, reduce_expr, post_map_expr,
            "" if identity is None else str(identity), name, reduce_type or "", preamble, options,
            keep)
        super().__init__(core, name, in_params, out_params)

    def __call__(self, *args, out=None, axis=None, keepdims=False, stream=None) -> Any:
        """Reduces along the axes, by default all. ``stream`` is ignored."""
        if out is not None:
            args += (out,)
        if axis is None and keepdims:
            shapes = [numpy.shape(each) for each in args[:self.nin]]
            axis = tuple(range(len(numpy.broadcast_shapes(*shapes))))
        return self._run(args, None, axis, keepdims)


def elementwise(in_params, out_params, operation, name=None, *args, **kwargs) -> Any:
    """An ElementwiseKernel, as ``cuda.elementwise()`` in Chainer.

    Chainer 1's form without outputs is ``elementwise(arguments, operation, name, keep, options,
    preamble, loop_prep, after_loop)``, whose arguments are pointers: "float* y, const float* x".
    """
    if isinstance(name, str):
        return ElementwiseKernel(in_params, out_params, operation, name, *args, **kwargs)
    old = dict(zip(["keep", "options", "preamble", "loop_prep", "after_loop"],
                   (() if name is None else (name,)) + args), **kwargs)
    return ElementwiseKernel(
        in_params, "", out_params, operation, preamble=old.pop("preamble", ""),
        keep=bool(old.pop("keep", False)), options=old.pop("options", ()) or (), **old)


class _OldReduction(_Kernel):
    def __call__(self, *args) -> Any:
        return self._run(args, None, None, False)


def reduce(in_params, out_params, map_expr, reduce_expr, post_map_expr, identity=None, name=None,
           *args, **kwargs) -> Any:
    """A ReductionKernel, as ``cuda.reduce()`` in Chainer.

    Chainer 1's form is ``reduce(arguments, map_expr, reduce_expr, neutral, name, dtype_out, keep,
    options, preamble)``.
    """
    if isinstance(name, str):
        return ReductionKernel(in_params, out_params, map_expr, reduce_expr, post_map_expr,
                               identity, name, *args, **kwargs)
    names = ["dtype_out", "keep", "options", "preamble"]
    given = [each for each in (identity, name) if each is not None]
    old = {**dict(zip(names, [*given, *args])), **kwargs}
    core = _core.reduce_kernel(in_params, out_params, map_expr, str(reduce_expr), post_map_expr,
                               old.get("dtype_out", "float32"), old.get("preamble", ""),
                               old.get("options") or (), bool(old.get("keep", False)))
    return _OldReduction(core, post_map_expr, in_params)
