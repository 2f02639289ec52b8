"""The functions and classes that Chainer has and catena lacks; sdk/doc/python.md has their kinds."""
import importlib
import inspect

import pytest

chainer = pytest.importorskip("chainer")

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
