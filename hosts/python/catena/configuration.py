"""The configuration of threads, as in Chainer: ``config.train``, ``using_config("train", False)``."""
import contextlib
import threading

from catena import _core

_in_core = frozenset(["train", "enable_backprop", "deterministic", "debug"])
_names = {"cudnn_deterministic": "deterministic"}
_products = {"float32": 0, "bfloat16": 16, "float16": 32}


class GlobalConfig:
    """The configuration that new threads start with. Other entries than catena's own are the user's."""

    _of_all_threads = True

    def __init__(self):
        object.__setattr__(self, "_values", {"dtype": "float32"})

    def __getattr__(self, name):
        core = _names.get(name, name)
        if core in _in_core:
            return _core.get_flag(core, self._of_all_threads)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the configuration has no entry {name!r}") from None

    def __setattr__(self, name, value):
        core = _names.get(name, name)
        if core in _in_core:
            _core.set_flag(core, value, self._of_all_threads)
            return
        if isinstance(value, (bool, int)):
            _core.set_flag(core, int(value), self._of_all_threads)  # plugins read it by name
        self._values[name] = value

    def __delattr__(self, name):
        if name in _in_core or name not in self._values:
            raise AttributeError(f"the configuration has no entry {name!r} of this thread")
        del self._values[name]
        _core.set_flag(_names.get(name, name), None, self._of_all_threads)

    def _entries(self):
        return {**{name: getattr(self, name) for name in sorted(_in_core)}, **self._values}

    def __contains__(self, name):
        return name in self._entries()

    def show(self, file=None):
        """Prints all entries."""
        for name, value in sorted(self._entries().items()):
            print(f"{name:<20} {value}", file=file)


class LocalConfig(GlobalConfig):
    """The configuration of the current thread. Entries that it lacks are those of all threads."""

    _of_all_threads = False

    def __init__(self, everywhere):
        object.__setattr__(self, "_everywhere", everywhere)
        object.__setattr__(self, "_local", threading.local())

    @property
    def _values(self):
        return self._local.__dict__

    def __getattr__(self, name):
        if _names.get(name, name) not in _in_core and name not in self._values:
            return getattr(self._everywhere, name)
        return super().__getattr__(name)

    def _entries(self):
        return {**self._everywhere._entries(), **super()._entries()}


global_config = GlobalConfig()
config = LocalConfig(global_config)


@contextlib.contextmanager
def using_config(name, value, config=config):
    """Sets an entry of the configuration in the scope."""
    before = getattr(config, name, None)
    had = name in config._values or name in _in_core or _names.get(name, name) in _in_core
    setattr(config, name, value)
    try:
        yield
    finally:
        if had:
            setattr(config, name, before)
        else:
            delattr(config, name)


class _BackpropMode:
    """Also a decorator of functions."""

    _value = False

    def __enter__(self):
        self._before = _core.get_flag("enable_backprop", False)
        _core.set_flag("enable_backprop", self._value, False)

    def __exit__(self, *exception):
        _core.set_flag("enable_backprop", self._before, False)


class no_backprop_mode(_BackpropMode):
    """Calls in the scope record no graph."""


class force_backprop_mode(_BackpropMode):
    """Calls in the scope record the graph, also within no_backprop_mode()."""

    _value = True


@contextlib.contextmanager
def using_device(device):
    """Makes a device the current one of the thread, on which new arrays are made."""
    before = _core.current_device()
    (device if isinstance(device, _core.Device) else _core.Device(device)).use()
    try:
        yield
    finally:
        before.use()
