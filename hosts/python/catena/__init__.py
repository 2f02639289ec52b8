"""catena: define-by-run deep learning, with Chainer's interface.

Arrays, the graph and all functions are those of catena's C++ libraries and plugins. ``import
catena as chainer`` runs code that was written for Chainer.
"""
from catena._core import (
    Array, DataError, Device, DeviceError, DtypeError, Error, GraphError, InternalError,
    InvalidError, InvalidType, InvalidValueError, NanError, NotDifferentiableError,
    OutOfMemoryError, PluginError, ShapeError, UnsupportedError, from_dlpack, load_plugin,
    load_plugins, plugin_report, __version__ as __version__)
from catena.configuration import (
    DebugMode, config, force_backprop_mode, get_compute_mode, get_dtype, global_config, is_debug,
    mixed16, no_backprop_mode, seed, set_debug, using_config, using_device)
from catena.variable import Parameter, Variable, as_array, as_variable, backward, grad
from catena.function_node import FunctionNode
from catena.function import Function, FunctionAdapter, force_backprop_mode, no_backprop_mode
from catena.backend import (
    get_array_types, get_cpu_array_types, get_device, is_arrays_compatible)
from catena import backend, backends, cuda, functions
from catena.cuda import should_use_cudnn, should_use_cudnn_tensor_core
from catena.device_resident import DeviceResident
from catena.functions import plugin_function
from catena.initializers import Initializer
from catena.kernels import ElementwiseKernel, ReductionKernel
from catena.link import Chain, ChainList, Link
from catena.link_hook import LinkHook
from catena.sequential import Sequential
from catena.function_set import FunctionSet
from catena import initializer, initializers, links
from catena.serializer import AbstractSerializer, Deserializer, Serializer
from catena.optimizer import GradientMethod, Optimizer, UpdateRule
from catena import optimizer_hooks, optimizers, serializers
from catena.reporter import (
    DictSummary, Reporter, Summary, get_current_reporter, report, report_scope)
from catena.compat import install_as_chainer

disable_experimental_feature_warning = False  # of utils.experimental()
# A name here is public for type checkers too. torch is not: it is also the name of PyTorch.
__all__ = [
    "AbstractSerializer", "Array", "Chain", "ChainList", "DataError", "DebugMode", "Deserializer",
    "Device", "DeviceError", "DeviceResident", "DictSummary", "DtypeError", "ElementwiseKernel",
    "Error", "Function", "FunctionAdapter", "FunctionNode", "FunctionSet", "GradientMethod",
    "GraphError", "Initializer", "InternalError", "InvalidError", "InvalidType",
    "InvalidValueError", "Link", "LinkHook", "NanError", "NotDifferentiableError", "Optimizer",
    "OutOfMemoryError", "Parameter", "PluginError", "ReductionKernel", "Reporter", "Sequential",
    "Serializer", "ShapeError", "Summary", "UnsupportedError", "UpdateRule", "Variable", "as_array",
    "as_variable", "backend", "backends", "backward", "basic_math", "chainerx",
    "computational_graph", "config", "cuda", "dataset", "datasets",
    "disable_experimental_feature_warning", "force_backprop_mode", "from_dlpack", "functions",
    "get_array_types", "get_compute_mode", "get_cpu_array_types", "get_current_reporter",
    "get_device", "get_dtype", "global_config", "grad", "gradient_check", "initializer",
    "initializers", "install_as_chainer", "is_arrays_compatible", "is_debug", "iterators", "links",
    "load_plugin", "load_plugins", "memory_layouts", "mixed16", "no_backprop_mode",
    "optimizer_hooks", "optimizers", "plugin_function", "plugin_report", "print_runtime_info",
    "report", "report_scope", "seed", "serializers", "set_debug", "should_use_cudnn",
    "should_use_cudnn_tensor_core", "testing", "training", "using_config", "using_device", "utils"]
# Not all programs need these modules, so they are imported when they are used.
_later = ("computational_graph", "dataset", "datasets", "gradient_check", "iterators", "link_hooks",
          "memory_layouts", "testing", "torch", "training", "utils")
# Modules of Chainer whose contents are in others.
_elsewhere = ("basic_math", "chainerx")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (
        compat, computational_graph, configuration, dataset, datasets, function, function_node,
        function_set, gradient_check, iterators, kernels, link, link_hook, link_hooks, optimizer,
        memory_layouts, reporter, sequential, serializer, testing, torch, training, utils, variable)
    from . import functions as basic_math
    from .compat import chainerx
else:
    def __getattr__(name):
        if name in _later:
            import importlib
            return importlib.import_module("catena." + name)
        if name == "basic_math":
            return functions
        if name == "chainerx":
            from catena.compat import chainerx
            return chainerx
        raise AttributeError(f"module 'catena' has no attribute {name!r}")


def print_runtime_info(out=None):
    """Prints the system, versions and the plugins that were looked for. A report of a bug needs it.

    Args:
        out: a file, by default sys.stdout.
    """
    import platform

    import numpy
    print(f"Platform: {platform.platform()}", f"catena: {__version__}",
          f"NumPy: {numpy.__version__}", plugin_report(), sep="\n", file=out)


def __dir__():
    from importlib.util import find_spec
    # Code that reads all attributes, such as help(), requires modules that can be imported.
    absent = {"torch"} if find_spec("torch") is None else set()
    return sorted({*globals(), *_later, *_elsewhere} - absent)
