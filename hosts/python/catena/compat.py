"""The name chainer for this package, for programs that import it by that name."""
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

__all__ = ["install_as_chainer"]


class _Finder:
    """Finds ``chainer.X`` as the module ``catena.X``: the same object, not a second copy."""

    def find_spec(self, name, path=None, target=None):
        if name != "chainer" and not name.startswith("chainer."):
            return None
        ours = "catena" + name[len("chainer"):]
        if ours not in sys.modules and importlib.util.find_spec(ours) is None:
            return None
        return ModuleSpec(name, self, origin=ours)

    def create_module(self, spec):
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just replaced the specification of a module that is complete.
        module.__spec__ = module.__spec__.loader_state


def install_as_chainer():
    """Makes ``import chainer`` and ``import chainer.functions as F`` import catena.

    Call it before the first import of ``chainer``. It affects the whole process, so it is meant for
    programs and test suites. In a module, write ``import catena as chainer`` instead. Modules of
    catena have the names of Chainer's packages; a module inside them, for example
    ``chainer.functions.activation.relu``, is not found.

    Raises:
        ImportError: the process has imported another ``chainer``.
    """
    import catena
    if sys.modules.get("chainer", catena) is not catena:
        raise ImportError("[install_as_chainer] chainer: expected a name that is not imported yet, "
                          f"got {sys.modules['chainer']!r}")
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    importlib.import_module("chainer")
