"""The name chainer for this package, for programs that import it by that name."""
import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Chainer's packages, of which catena has the contents in one module or in other modules.
_packages = frozenset("catena." + name for name in (
    "backends", "dataset", "datasets", "function_hooks", "functions", "initializers", "iterators",
    "link_hooks", "links", "optimizer_hooks", "optimizers", "serializers", "testing",
    "training", "training.extensions", "training.triggers", "training.updaters", "utils"))


# The packages inside two of them.
_inner = frozenset(
    [f"catena.functions.{name}" for name in (
        "activation", "array", "connection", "evaluation", "loss", "math", "noise", "normalization",
        "pooling", "rnn", "util")]
    + [f"catena.links.{name}" for name in (
        "activation", "connection", "loss", "model", "normalization", "rnn")])


def _ours(name):
    """The name in catena of a module of Chainer."""
    return "catena" + name[name.index("."):] if "." in name else "catena"


class _Part(ModuleType):
    """A module of Chainer inside a package, which has all that the package has.

    It is a module of its own because an import sets submodules as attributes of their parent.
    A package inside a package, such as chainer.functions.activation, has modules only.
    """

    def __init__(self, name) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if _ours(self.__name__) in _inner:
            return importlib.import_module(f"{self.__name__}.{name}")
        parent, _, _ = self.__name__.rpartition(".")
        if _ours(parent) in _inner:
            parent, _, _ = parent.rpartition(".")
        return getattr(sys.modules[parent], name)


class _Finder:
    """Finds ``chainer.X`` as the module ``catena.X``: the same object, not a second copy."""

    def find_spec(self, name, path=None, target=None) -> Any:
        if name != "chainer" and not name.startswith("chainer."):
            return None
        ours = _ours(name)
        inner = ours in _inner or ours.rpartition(".")[0] in _inner
        if not inner and (ours in sys.modules or importlib.util.find_spec(ours)):
            return ModuleSpec(name, self, origin=ours)
        return _parts.find_spec(name)

    def create_module(self, spec) -> Any:
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        if module.__name__ in _packages and not hasattr(module, "__path__"):
            module.__path__ = []  # so that modules inside it are looked for
        return module

    def exec_module(self, module) -> None:
        # The import system has just replaced the specification of a module that is complete.
        module.__spec__ = module.__spec__.loader_state


class _Parts:
    """Finds the modules inside Chainer's packages that catena does not have."""

    def find_spec(self, name, path=None, target=None) -> Any:
        parent, _, part = name.rpartition(".")
        if not name.startswith(("catena.", "chainer.")) or part.startswith("__"):
            return None
        if _ours(name) in _inner or _ours(parent) in _inner:
            return ModuleSpec(name, self)
        if _ours(parent) in _packages and _ours(name) not in sys.modules:
            # For example, adam because of Adam.
            if any(part.replace("_", "") in each.lower().replace("_", "")
                   for each in dir(sys.modules[parent])):
                return ModuleSpec(name, self)
        return None

    def create_module(self, spec) -> Any:
        return _Part(spec.name)

    def exec_module(self, module) -> Any:
        pass


_parts = _Parts()


class _ChainerX(ModuleType):
    """The module ``chainerx`` of a Chainer without ChainerX."""

    __path__ = []  # it has no parts

    class ndarray:
        """No object is one."""

        __module__ = "chainerx"

        def __init__(self, *args, **kwargs) -> None:
            raise RuntimeError("[chainerx] chainerx is not available.")

    @staticmethod
    def is_available() -> Any:
        """False."""
        return False


chainerx = _ChainerX("chainerx", "ChainerX, which is not available.")


def install_as_chainer() -> None:
    """Makes ``import chainer`` and ``import chainer.functions as F`` import catena.

    Call it before the first import of ``chainer``. It affects the whole process, so it is meant for
    programs and test suites. In a module, write ``import catena as chainer`` instead. Modules of
    catena have the names of Chainer's packages; a module inside them, for example
    ``chainer.functions.activation.relu``, has what the package has. ``import chainerx`` imports a
    module that says that ChainerX is not available.

    Raises:
        ImportError: the process has imported another ``chainer``.
    """
    import catena
    if sys.modules.get("chainer", catena) is not catena:
        raise ImportError("[install_as_chainer] chainer: expected a name that is not imported yet, "
                          f"got {sys.modules['chainer']!r}")
    if _parts not in sys.meta_path:
        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(_parts)  # "from chainer.optimizers import adam" asks for catena's name
    importlib.import_module("chainer")
    sys.modules.setdefault("chainerx", chainerx)
    catena.Variable._has_chainerx_array = False  # which Chainer's own tests read
