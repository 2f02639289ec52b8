"""The configuration: ``config.train``, ``using_config("train", False)``, ``no_backprop_mode()``."""
import contextlib
import sys
import threading
import warnings
from typing import Any

import numpy

from catena import _core

# The fields of the core's Config.
_flags = frozenset(["train", "enable_backprop", "deterministic", "debug", "compositions"])
_core_names = {name: name for name in _flags} | {"cudnn_deterministic": "deterministic"}
_choices = {"products": {"float32": 0, "bfloat16": 16, "float16": 32},
            "use_cudnn": {"always": 1, "auto": 1, "never": 0}}


class _Mixed16:
    """``config.dtype = mixed16``: float16, with parameters of some links in float32."""

    dtype = numpy.dtype("float16")

    def __repr__(self):
        return "dtype('mixed16')"


mixed16 = _Mixed16()


def _value_in_core(name, value):
    """The integer that the core and its plugins read under the name, or None."""
    if name == "products" or name == "use_cudnn" and isinstance(value, str):
        choices = _choices[name]
        if value not in choices:
            raise ValueError(f"[config] {name}: expected one of {list(choices)}, got {value!r}")
        return choices[value]
    is_integer = isinstance(value, int) and -2 ** 63 <= value < 2 ** 63
    return int(value) if is_integer else None


def _tell_core(name, value, of_all_threads):
    if name in _core_names:
        _core.set_flag(_core_names[name], value, of_all_threads)
    else:
        _core.set_flag(name, _value_in_core(name, value), of_all_threads)


def _show(config, names, file):
    width = max(map(len, names))
    for name in sorted(names):
        print(f"{name:<{width}} {getattr(config, name)}", file=file or sys.stdout)


class GlobalConfig:
    """The configuration of threads that have no own value of an entry.

    Entries that catena does not know are the program's own. An integer or bool is also a named
    setting that plugins can read. A change reaches the thread that makes it and threads that start
    afterwards.
    """

    def __getattr__(self, name):
        if name in _core_names:
            return _core.get_flag(_core_names[name], True)
        raise AttributeError(f"the configuration has no entry {name!r}")

    def __setattr__(self, name, value):
        _tell_core(name, value, True)
        if name not in config._local.__dict__:
            _tell_core(name, value, False)
        if name not in _core_names:
            self.__dict__[name] = value

    def show(self, file=None) -> None:
        """Prints all entries."""
        _show(self, _flags | self.__dict__.keys(), file)


class LocalConfig:
    """The configuration of the thread. Entries that it lacks are those of ``global_config``."""

    def __init__(self, global_config) -> None:
        self.__dict__.update(_global=global_config, _local=threading.local())

    def __getattr__(self, name):
        if name in _core_names:
            return _core.get_flag(_core_names[name], False)
        own = self._local.__dict__
        return own[name] if name in own else getattr(self._global, name)

    def __setattr__(self, name, value):
        _tell_core(name, value, False)
        self._local.__dict__[name] = value

    def __delattr__(self, name):
        if name not in self._local.__dict__:
            raise AttributeError(f"the configuration of this thread has no entry {name!r}")
        del self._local.__dict__[name]
        _tell_core(name, getattr(self._global, name, None), False)

    def show(self, file=None) -> None:
        """Prints all entries."""
        _show(self, _flags | self._global.__dict__.keys() | self._local.__dict__.keys(), file)


global_config = GlobalConfig()
config = LocalConfig(global_config)
global_config.dtype = numpy.dtype("float32")
global_config.keep_graph_on_report = False
global_config.in_recomputing = False  # in the second call of a function of F.forget()
# Values that its first call keeps for the second one: a list, then an iterator over it.
global_config._kept_for_recomputing = None
# The core's own defaults, and an entry that only FunctionNode reads.
global_config.__dict__.update(use_cudnn="auto", products="float32", type_check=True)
# Programs for Chainer read and set these, which choose among implementations that catena lacks.
global_config.__dict__.update(
    autotune=False, compute_mode=None, cudnn_fast_batch_normalization=False, lazy_grad_sum=False,
    schedule_func=None, use_cudnn_tensor_core="auto", use_ideep="never", use_static_graph=True)
global_config.__dict__["warn_nondeterministic"] = False  # which utils.nondeterministic() reads


class using_config(contextlib.ContextDecorator):
    """Sets an entry of the thread's configuration in a ``with`` block or in calls of a function.

    Args:
        name: the name of the entry.
        value: its value in the block.
        config: the configuration to change.
    """

    def __init__(self, name, value, config=config) -> None:
        self._arguments = name, value, config

    def _recreate_cm(self):  # each call of a decorated function keeps its own previous value
        return using_config(*self._arguments)

    def __enter__(self) -> None:
        name, value, config = self._arguments
        own = config._local.__dict__
        self._before = (own[name],) if name in own else ()
        setattr(config, name, value)

    def __exit__(self, *exception) -> None:
        name, _, config = self._arguments
        if self._before:
            setattr(config, name, self._before[0])
        else:
            delattr(config, name)


def no_backprop_mode() -> using_config:
    """Calls in the ``with`` block, or in the decorated function, record no graph."""
    return using_config("enable_backprop", False)


def force_backprop_mode() -> using_config:
    """Calls in the block record the graph, also within ``no_backprop_mode()``."""
    return using_config("enable_backprop", True)


def is_debug() -> bool:
    """Whether the debug mode is on: results and gradients are searched for NaN."""
    return config.debug


def set_debug(debug) -> None:
    """Turns the debug mode of the thread on or off."""
    config.debug = debug


class DebugMode(using_config):
    """The old name of ``using_config("debug", debug)``."""

    def __init__(self, debug) -> None:
        warnings.warn("catena.DebugMode is deprecated. Use using_config('debug', ...) instead.",
                      DeprecationWarning, stacklevel=2)
        super().__init__("debug", debug)


def get_dtype(dtype=None, map_mixed16=None) -> Any:
    """A numpy.dtype, of ``config.dtype`` without an argument.

    ``map_mixed16`` is the dtype that stands for ``mixed16``. bfloat16 without the package ml_dtypes
    is the str "bfloat16".
    """
    if dtype is None:
        dtype = config.dtype
    if dtype is mixed16 and map_mixed16 is not None:
        dtype = map_mixed16
    return _core.dtype("bfloat16") if str(dtype) == "bfloat16" else numpy.dtype(dtype)


def get_compute_mode() -> Any:
    """config.compute_mode, an entry of Chainer that has no effect."""
    return config.compute_mode


def seed(value) -> None:
    """Restarts the random numbers of all devices, which functions such as dropout draw.

    Initializers, iterators and data sets draw from ``numpy.random``, as in Chainer.
    """
    _core.set_seed(value)


def using_device(device_spec) -> _core.Device:
    """Makes a device current in a ``with`` block: the thread makes new arrays there."""
    from catena.backend import get_device
    return get_device(device_spec)
