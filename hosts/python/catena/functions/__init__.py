"""All functions: those of plugins, found by name, and Chainer's forms of them.

``catena.functions.relu`` is the plugin function ``catena.relu``. Functions of other plugins have
full names: ``plugin_function("org.example.swish")``. Where Chainer's form says less, the arguments are
those in ``help(plugin_function("catena.crf1d"))``.
"""
import copyreg as _copyreg

from catena import _core
from catena._core import plugin_function, plugin_function_names

globals().update({name: value for name, value in vars(_core.forms).items()
                  if not name.startswith("_")})

from catena.functions._arrays import *
from catena.functions._layers import *
from catena.functions._losses import *
from catena.functions._math import *
from catena.functions._recurrent import *


def _reduce(function):
    """Pickles a function of a plugin by its full name, other built-in functions as usual."""
    name = _core._plugin_function_name(function)
    return function.__reduce__() if name is None else (plugin_function, (name,))


_copyreg.pickle(type(plugin_function), _reduce)


_modules_of_chainer = ("activation", "array", "connection", "evaluation", "loss", "math", "noise",
                       "normalization", "pooling", "rnn", "theano", "util")


def _hint(name):
    """Suggests a function for an unknown name."""
    if name in _modules_of_chainer:
        return f"the functions of Chainer's functions.{name} are in catena.functions"
    from catena.functions._plugins import suggestion
    names = [each for each in __dir__() if each[0].islower()]
    return suggestion(name, names) or "plugin_report() lists the plugins"


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(name)
    if name[0].isupper():  # in Chainer 1, functions with parameters are here
        from catena.links import chainer1
        if hasattr(chainer1, name):
            return getattr(chainer1, name)
    try:
        function = plugin_function("catena." + name)
    except _core.PluginError:
        raise AttributeError(f"no plugin has the function catena.{name}; {_hint(name)}") from None
    globals()[name] = function
    return function


def __dir__():
    found = {name[len("catena."):] for name in plugin_function_names()
             if name.startswith("catena.")}
    return sorted(name for name in found.union(globals()) if not name.startswith("_"))
