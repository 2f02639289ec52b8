"""Functions of plugins without Chainer's forms: ``plugins.relu`` is ``catena.relu``."""
from catena import _core


class _Plugins:
    def __getattr__(self, name):
        function = _core.plugin_function("catena." + name)
        setattr(self, name, function)
        return function


plugins = _Plugins()
