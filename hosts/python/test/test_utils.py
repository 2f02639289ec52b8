"""Functions of catena.utils, and what the package says about itself."""
import abc
import importlib
import io
import itertools
import platform
import pydoc
import re
import sys
import warnings

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import utils


@pytest.mark.parametrize("k, s, p, d, cover_all", list(itertools.product(
    [1, 2, 3], [1, 2, 3], [0, 1], [1, 2], [False, True])))
def test_sizes_of_convolutions(k, s, p, d, cover_all):
    for size in (7, 8):
        found = utils.get_conv_outsize(size, k, s, p, cover_all, d)
        image = np.zeros((1, 1, size, 7), "float32")
        made = F.im2col(image, (k, 1), (s, 1), (p, 0), cover_all, (d, 1))
        assert found == utils.conv.get_conv_outsize(size, k, s, p, cover_all, d) == made.shape[2]
        back = utils.get_deconv_outsize(found, k, s, p, cover_all, d)
        assert utils.get_conv_outsize(back, k, s, p, cover_all, d) == found


def test_sizes_are_those_of_chainer():
    chainer = pytest.importorskip("chainer")
    theirs = chainer.utils
    for values in itertools.product([5, 8], [1, 3], [1, 2], [0, 1], [False, True], [1, 2]):
        assert utils.get_conv_outsize(*values) == theirs.get_conv_outsize(*values)
        assert utils.get_deconv_outsize(*values) == theirs.get_deconv_outsize(*values)


def random_array(*shape):
    return np.random.RandomState(0).normal(size=shape).astype("float32")


@pytest.mark.parametrize("cover_all, dilate", [(False, 1), (True, 1), (False, 2)])
@pytest.mark.parametrize("sizes, ksize, stride, pad", [
    ((7,), (3,), (2,), (1,)), ((7, 6), (3, 2), (1, 3), (0, 2)), ((4, 5, 6), (2, 1, 3), (1, 2, 1), (1, 0, 2))])
def test_windows(sizes, ksize, stride, pad, cover_all, dilate):
    """The windows are Chainer's, and col2im is the transpose of im2col, also for arrays of GPUs."""
    from catena.utils import conv_nd
    x = random_array(2, 3, *sizes)
    y = conv_nd.im2col_nd(x, ksize, stride, pad, cover_all, dilate)
    g = random_array(*y.shape)
    back = conv_nd.col2im_nd(g, stride, pad, sizes, dilate)
    np.testing.assert_allclose(np.vdot(y, g), np.vdot(x, back), rtol=1e-4)
    if len(sizes) == 2:
        d = (dilate, dilate)
        np.testing.assert_array_equal(y, utils.conv.im2col(x, *ksize, *stride, *pad, cover_all, *d))
        np.testing.assert_array_equal(back, utils.conv.col2im(g, *stride, *pad, *sizes, *d))
    there = conv_nd.im2col_nd(catena.Array(x), ksize, stride, pad, cover_all, dilate)
    np.testing.assert_array_equal(np.asarray(there), y)
    chainer = pytest.importorskip("chainer")
    theirs = chainer.utils.conv_nd.im2col_nd(x, ksize, stride, pad, cover_all, dilate)
    np.testing.assert_array_equal(y, theirs)
    np.testing.assert_allclose(
        back, chainer.utils.conv_nd.col2im_nd(g, stride, pad, sizes, dilate), rtol=1e-5, atol=1e-5)


def test_wrong_windows():
    from catena.utils import conv_nd
    x = random_array(1, 1, 4, 4)
    for call, message in [
            (lambda: conv_nd.im2col_nd(x, (2,), (1, 1), (0, 0)), "ksize: expected 2 values"),
            (lambda: conv_nd.im2col_nd(x, (9, 9), (1, 1), (0, 0)), "expected an output with elements"),
            (lambda: conv_nd.col2im_nd(x, (1, 1), (0, 0), (4, 4)), "col: expected 6 values"),
            (lambda: conv_nd.as_tuple([1], 2), "x: expected 2 values")]:
        with pytest.raises(AssertionError, match=message):
            call()
    assert conv_nd.as_tuple(3, 2) == (3, 3) and conv_nd.as_tuple([1, 2], 2) == (1, 2)


@pytest.mark.parametrize("shape, to", [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)),
                                       ((2, 3, 4), (3, 1)), ((2, 3), (2, 3))])
def test_sum_to(shape, to):
    x = random_array(*shape)
    expected = F.sum_to(x, to).array
    for array in (x, catena.Array(x)):
        found = utils.sum_to(array, to)
        assert found.shape == to
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    with pytest.raises(TypeError, match="catena.functions.sum_to"):
        utils.sum_to(catena.Variable(x), to)


def test_force():
    for made in (utils.force_array(2, "float16"), utils.force_array(np.float16(2)),
                 utils.force_array(np.ones((), "int32"), "float16")):
        assert isinstance(made, np.ndarray) and made.shape == () and made.dtype == np.float16
    x = np.ones(2, "int32")
    assert utils.force_array(x) is x is utils.force_type(x.dtype, x)
    assert utils.force_type(np.dtype("float32"), 3).dtype == np.float32
    assert utils.force_type(np.dtype("float32"), x).dtype == np.float32
    assert utils.size_of_shape((2, 3)) == 6


def test_keyword_arguments():
    from catena.utils import argument

    def function(**kwargs):
        return argument.parse_kwargs(kwargs, ("a", 1), ("b", 2), old="old was removed")

    assert function() == (1, 2) and function(b=3) == (1, 3)
    with pytest.raises(ValueError, match="old was removed"):
        function(old=1)
    with pytest.raises(TypeError, match=r"function\(\) got unexpected keyword argument\(s\) 'c', 'd'"):
        function(d=1, c=2)
    with pytest.raises(TypeError, match="test_keyword_arguments"):
        argument.assert_kwargs_empty({"x": 1})


def test_cached_property():
    class Model:
        calls = 0

        @utils.cache.cached_property
        def y(self):
            self.calls += 1
            return F.exp(catena.Variable(np.zeros(2, "float32")))

    model, other = Model(), Model()
    with catena.no_backprop_mode():
        first = model.y
        assert model.y is first and first.creator is None
    assert model.y is model.y and model.y.creator is not None and model.calls == 2
    assert other.y is not model.y
    with pytest.raises(AttributeError, match="'y' of .*Model.* is readonly"):
        model.y = 1


def test_warnings(monkeypatch):
    with pytest.warns(FutureWarning, match="f is experimental"):
        utils.experimental("f")
    with catena.using_config("warn_nondeterministic", True), pytest.warns(UserWarning, match="g$"):
        utils.nondeterministic("g")
    monkeypatch.setattr(catena, "disable_experimental_feature_warning", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utils.experimental("f")
        utils.nondeterministic("g")


def test_final_methods():
    class Base(utils.enable_final(meta_base=abc.ABCMeta)):
        @utils.final
        def f(self):
            pass

        @utils.final(action=DeprecationWarning)
        def g(self):
            pass

    with pytest.raises(TypeError, match="'f' is final"):
        type("Derived", (Base,), {"f": None})
    with pytest.warns(DeprecationWarning, match="'g'"):
        type("Derived", (Base,), {"g": None})


def test_float16_in_float32():
    from catena.utils import precision
    seen = []

    class Double(catena.FunctionNode):
        @precision._fp16_mixed_precision_helper
        def forward(self, inputs):
            seen.extend(x.dtype for x in inputs)
            return 2 * inputs[0],

    x = np.ones(2, "float16")
    assert Double().apply((x,))[0].dtype == np.float16 and seen == [np.float32]
    assert Double().apply((x, x.astype("float64")))[0].dtype == np.float32


def test_crops():
    from catena.utils import imgproc
    images = [random_array(3, 5, 6), random_array(3, 5, 6) + 1]
    made = imgproc.oversample(images, (3, 4))
    assert made.shape == (20, 3, 3, 4)
    pytest.importorskip("chainer")
    theirs = importlib.import_module("chainer.utils.imgproc").oversample(images, (3, 4))
    np.testing.assert_array_equal(made, theirs)


def test_print_runtime_info(capsys):
    F.relu(np.ones(2, "float32"))
    catena.print_runtime_info()
    text = io.StringIO()
    catena.print_runtime_info(text)
    assert capsys.readouterr().out == text.getvalue()
    lines = text.getvalue().splitlines()
    assert lines[:3] == [f"Platform: {platform.platform()}", f"catena: {catena.__version__}",
                         f"NumPy: {np.__version__}"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", catena.__version__)
    assert any("loaded org.catena.cpu" in line for line in lines)


def test_help_without_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "catena.torch", raising=False)
    monkeypatch.delitem(vars(catena), "torch", raising=False)
    text = pydoc.render_doc(catena, renderer=pydoc.plaintext)
    assert "define-by-run deep learning" in text and "class Variable" in text
    assert "torch" not in dir(catena)
    with pytest.raises(ImportError, match="torch"):
        catena.torch
