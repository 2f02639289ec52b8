"""The functions and classes that Chainer has and catena lacks; sdk/doc/python.md has their kinds."""
import importlib
import inspect

import pytest
from catena import _core
from catena import functions as F

# Functions of the hosts. They call functions of plugins with other names: for operands of several
# dtypes and numbers, lists of results, indices, devices or functions of Python.
CONVERSIONS = """
absolute equal greater greater_equal less less_equal maximum minimum not_equal where
broadcast separate split_axis transpose_sequence
nonzero set_item
arange full_like
copy fixed_batch_renormalization forget plugin_function plugin_function_names
""".split()


def test_each_function_is_a_function_of_a_plugin():
    plugins = {name.removeprefix("catena.") for name in F.plugin_function_names()}
    ours = {name for name in dir(F) if name[0].islower() and inspect.isroutine(getattr(F, name))}
    assert sorted(ours - plugins) == sorted(CONVERSIONS)
    for name in ours - set(CONVERSIONS):
        found = _core._plugin_function_name(getattr(F, name))
        assert found in (None, "catena." + name), name


chainer = pytest.importorskip("chainer")


def test_functions_of_chainer_in_plugins():
    plugins = {name.removeprefix("catena.") for name in F.plugin_function_names()}
    theirs = {name for name, value in vars(chainer.functions).items()
              if inspect.isfunction(value) and value.__module__.startswith("chainer.functions")}
    assert len(theirs) > 200
    assert len(theirs & plugins) >= 165, sorted(theirs - plugins)

MISSING = {
    "": "Distribution FunctionHook cross_entropy get_function_hooks kl_divergence register_kl static_code "
        "static_graph",
    "functions": "arccos arcsin arctan arctan2 batch_det batch_inv cholesky "
        "decorrelated_batch_normalization det digamma erfc erfcinv erfcx erfinv fft "
        "fixed_decorrelated_batch_normalization ifft inv lgamma log_ndtr ndtr ndtri polygamma "
        "roi_average_align_2d roi_average_pooling_2d roi_max_align_2d roi_max_pooling_2d "
        "roi_pooling_2d sparse_matmul zeta",
    "links": "DecorrelatedBatchNormalization GoogLeNet ResNet101Layers ResNet152Layers "
        "ResNet50Layers TheanoFunction VGG16Layers VGG19Layers",
    "initializers": "", "optimizers": "", "optimizer_hooks": "", "link_hooks": "",
    "serializers": "", "training": "", "training.triggers": "", "training.extensions": "",
    "training.updaters": "", "iterators": "DaliIterator", "dataset": "TabularDataset", "datasets": "",
    "backend": "", "backends.cuda": "get_cudnn_dropout_states get_cudnn_dropout_states_core raw",
    "utils": "CooMatrix get_order to_coo", "utils.argument": "", "utils.array": "", "utils.cache": "",
    "utils.conv": "", "utils.conv_nd": "", "utils.experimental": "", "utils.imgproc": "",
    "utils.meta": "", "utils.precision": "", "utils.type_check":
        "Atom LightMode Testable get_function_check_context in_light_mode", "utils.walker_alias": "", "device_resident": "",
    "gradient_check": "", "reporter": "", "sequential": "", "computational_graph": "DotNode",
}


@pytest.mark.parametrize("module", MISSING)
def test_missing(module):
    path = "." + module if module else ""
    theirs, ours = (importlib.import_module(each + path) for each in ("chainer", "catena"))
    found = [name for name, value in vars(theirs).items()
             if not name.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value))
             and value.__module__.startswith("chainer") and not hasattr(ours, name)]
    assert sorted(found) == MISSING[module].split()
