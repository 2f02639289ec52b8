"""Wrong calls of functions raise the exceptions that Chainer raises."""
import numpy as np
import pytest

import catena
import catena.functions as F

chainer = pytest.importorskip("chainer")
pytestmark = pytest.mark.filterwarnings("ignore")


def x(*shape, dtype="float32"):
    return np.random.RandomState(len(shape)).uniform(-1, 1, shape).astype(dtype)


def ints(*shape):
    return np.zeros(shape, "int32")


whole, matrix, images = ints(2, 3), x(2, 3), x(2, 3, 5, 6)
# name, arguments, keyword arguments, and a part of the message
calls = [
    ("relu", [whole], {}, "x: expected float16, bfloat16, float32 or float64, got int32"),
    ("sigmoid", [None], {}, "x: expected a variable or an array, got None"),
    ("tanh", ["text"], {}, "expected a numpy.ndarray or another array, got str"),
    ("clipped_relu", [matrix], {"limit": 1},
     r"unexpected argument 'limit'; its arguments are \(x, z"),
    ("softmax", [matrix], {"axis": 2}, "axis: expected from -2 to 1, got 2"),
    ("log_softmax", [matrix, -3], {}, "axis: expected from -2 to 1, got -3"),
    ("prelu", [matrix, x(4)], {}, "W.shape: expected"),
    ("maxout", [matrix, 2], {}, "expected a multiple"),
    ("rrelu", [matrix, 0.5, 0.2], {}, "expected 0 <= l < u < 1, got 0.5 and 0.2"),
    ("broadcast_to", [matrix, (2, 4)], {}, "shape: expected"),
    ("cast", [matrix, "nothing"], {}, "nothing"),
    ("concat", [[matrix, x(3, 3)]], {}, r"expected"),
    ("concat", [[matrix, matrix], 2], {}, "axis"),
    ("depth2space", [x(2, 3), 2], {}, "X.ndim: expected 4, got 2"),
    ("space2depth", [x(2, 3), 2], {}, "X.ndim: expected 4, got 2"),
    ("expand_dims", [matrix, 4], {}, "axis"),
    ("get_item", [matrix, 2], {}, "expected an index from -2 to 1, got 2"),
    ("scatter_add", [matrix, 2, x(3)], {}, "expected an index from -2 to 1, got 2"),
    ("get_item", [matrix, "text"], {}, "index: expected integers, slices"),
    ("im2col", [x(3, 5, 6), 3], {}, "x.ndim: expected 4, got 3"),
    ("pad", [matrix, 1, "constant"], {"unknown": 1}, "expected constant_values, got unknown"),
    ("reshape", [matrix, (4, 2)], {}, "shape: expected 6 elements"),
    ("resize_images", [x(3, 4), (2, 2)], {}, "x.ndim: expected 4, got 2"),
    ("select_item", [matrix, ints(3)], {}, "t.shape: expected"),
    ("separate", [matrix, 2], {}, "axis"),
    ("split_axis", [matrix, 2, 1], {}, "expected"),
    ("split_axis", [matrix, "text", 0], {}, ""),
    ("squeeze", [matrix, 0], {}, "expected"),
    ("stack", [[matrix, x(3, 2)]], {}, "expected"),
    ("transpose", [matrix, (0, 2)], {}, "axes: expected from -2 to 1, got 2"),
    ("transpose_sequence", [[x(2, 3), x(3, 3)]], {}, r"sorted by length, got \[2, 3\]"),
    ("where", [matrix > 0, matrix, x(4)], {}, "broadcast"),
    ("linear", [matrix, x(4, 2)], {}, "expected 2 elements, as W.shape"),
    ("linear", [matrix, x(4, 3), x(3)], {}, r"b.shape: expected \(4,\), got \(3,\)"),
    ("linear", [whole, x(4, 3)], {}, "W: expected int32 as x, got float32"),
    ("linear", [matrix], {}, "linear"),
    ("bilinear", [matrix, matrix, x(3, 3, 2), x(3, 2)], {}, "V1, V2, b: expected all or none"),
    ("convolution_2d", [images, x(4, 2, 3, 3)], {}, r"x.shape\[1\]: expected 2, got 3"),
    ("convolution_2d", [x(3, 5, 6), x(4, 3, 3, 3)], {}, "x.ndim: expected 4, got 3"),
    ("convolution_2d", [images, x(4, 3, 3, 3), x(3)], {}, r"b.shape: expected \(4,\), got \(3,\)"),
    ("convolution_2d", [images, x(4, 3, 3, 3)], {"padding": 1},
     "unexpected argument 'padding'"),
    ("convolution_nd", [images, x(4, 3, 3)], {}, "W.ndim: expected 4, got 3"),
    ("convolution_1d", [images, x(4, 3, 3, 3)], {}, "x.ndim: expected 3, got 4"),
    ("deconvolution_2d", [images, x(4, 2, 3, 3)], {}, r"x.shape\[1\]: expected 4, got 3"),
    ("dilated_convolution_2d", [images, x(4, 3, 3, 3), None, 1, 0, -1], {},
     "dilate': expected 1 to"),
    ("embed_id", [x(2), x(3, 2)], {}, "x: expected int32 or int64, got float32"),
    ("shift", [images], {}, r"x.shape: expected \(N, C, H, W\) with C >= 9"),
    ("shift", [x(2, 9, 5, 5), 2], {}, r"ksize: expected odd numbers, got \(2, 2\)"),
    ("accuracy", [matrix, ints(3)], {}, "t: expected the shape"),
    ("binary_accuracy", [matrix, ints(3)], {}, r"t.shape: expected \(2, 3\), got \(3,\)"),
    ("r2_score", [matrix, matrix], {"multioutput": "none"}, "multioutput': expected one of"),
    ("r2_score", [matrix, matrix], {"sample_weight": matrix}, "sample_weight: expected None"),
    ("contrastive", [matrix, matrix, ints(2)], {"margin": 0},
     "margin: expected more than 0, got 0"),
    ("contrastive", [matrix, matrix, ints(2)], {"reduce": "sum"},
     "reduce': expected one of mean, no"),
    ("cross_covariance", [matrix, matrix], {"reduce": "mean"}, "reduce': expected one of"),
    ("decov", [matrix], {"reduce": "mean"}, "reduce': expected one of"),
    ("hinge", [matrix, ints(2)], {"norm": "L3"}, "norm: expected 'L1' or 'L2', got 'L3'"),
    ("huber_loss", [matrix, matrix, 1], {"reduce": "most"}, "reduce': expected"),
    ("mean_squared_error", [matrix, x(3, 2)], {}, "shape"),
    ("sigmoid_cross_entropy", [matrix, ints(3, 2)], {}, "shape"),
    ("sigmoid_cross_entropy", [matrix, whole, True, "most"], {}, "reduce"),
    ("softmax_cross_entropy", [matrix, ints(3)], {}, r"t.shape: expected \(2,\), got \(3,\)"),
    ("softmax_cross_entropy", [whole, ints(2)], {}, "x: expected float16"),
    ("softmax_cross_entropy", [matrix, ints(2)], {"reduce": "sum"},
     "reduce: expected one of 'mean', 'no', got 'sum'"),
    ("softmax_cross_entropy", [matrix, ints(2)], {"soft_target_loss": "l2"},
     "soft_target_loss: expected one of"),
    ("softmax_cross_entropy", [matrix, ints(2)], {"class_weight": x(3, 1)},
     "class_weight: expected one axis"),
    ("softmax_cross_entropy", [matrix, ints(2)], {"class_weight": ints(3)},
     "class_weight: expected one axis"),
    ("triplet", [matrix, matrix, matrix, -1], {}, "margin: expected more than 0, got -1"),
    ("add", [matrix, x(4)], {}, "broadcast"),
    ("clip", [matrix, 2., 1.], {}, "expected x_min < x_max, got 2.0 and 1.0"),
    ("clip", [matrix, None, None], {}, "expected a limit"),
    ("batch_matmul", [x(2, 3, 4), x(2, 3, 4)], {}, "shape|elements|expected"),
    ("matmul", [matrix, matrix], {}, "expected"),
    ("cumsum", [matrix, 2], {}, "axis: expected from -2 to 1, got 2"),
    *[(name, [matrix, axis], {}, f"axis: expected from -2 to 1, got {axis}")
      for name in ("sum", "max", "min", "prod", "mean", "argmax") for axis in (2, -3)],
    *[(name, [matrix, (0, 2)], {}, "axis: expected from -2 to 1, got 2")
      for name in ("sum", "max", "mean")],
    *[(name, [matrix, (0, 0)], {}, "axis") for name in ("sum", "mean")],
    *[(name, [matrix, 1.5], {}, "axis: expected an integer")
      for name in ("sum", "max", "mean", "argmax")],
    ("batch_normalization", [matrix, x(4), x(4)], {}, "gamma"),
    ("batch_normalization", [matrix, x(3), x(4)], {}, r"beta"),
    ("batch_normalization", [whole, x(3), x(3)], {}, "x: expected a floating dtype, got int32"),
    ("batch_normalization", [matrix, x(3), x(3)], {"axis": (1, 0)}, "expected ascending axes"),
    ("batch_normalization", [matrix, x(3), x(3)], {"epsilon": 1},
     "unexpected keyword argument 'epsilon'"),
    ("batch_renormalization", [matrix, x(3), x(3), 1, 0], {"running_var": x(3)},
     "running_mean: expected a variable or an array, got None"),
    ("fixed_batch_normalization", [matrix, x(3), x(3), x(4), x(3)], {},
     "beta, mean, var: expected the shape"),
    ("accuracy", [matrix, x(2)], {}, "t: expected integers, got float32"),
    ("dropout", [matrix, 1.], {}, "ratio: expected 0 to below 1, got 1.0"),
    ("dropout", [matrix, -0.5], {}, "ratio: expected 0 to below 1, got -0.5"),
    ("max_pooling_2d", [x(2, 3, 4), 2], {}, "x.ndim: expected 4, got 3"),
    ("max_pooling_2d", [images, 2], {"mode": 1}, "unexpected keyword argument 'mode'"),
    ("max_pooling_1d", [images, 2], {}, "x.ndim: expected 3, got 4"),
    ("average_pooling_2d", [whole, 2], {}, "x"),
    ("average_pooling_nd", [images, 2], {"pad_value": 1},
     "pad_value: expected one of 0, None, got 1"),
    ("spatial_pyramid_pooling_2d", [images, 2, "mean"], {},
     "pooling': expected one of max, got 'mean'"),
    ("unpooling_2d", [x(1, 1, 2, 2), 2], {"outsize": (9, 9)}, "outsize: expected one with"),
    ("upsampling_2d", [x(1, 1, 2, 2), ints(1, 1, 2, 3), 2], {}, "indexes.shape: expected"),
    ("crf1d", [x(3, 3), [x(2, 3)], [ints(2)], "sum"], {}, "reduce': expected one of"),
    ("negative_sampling", [matrix, ints(2), matrix, None, 1, "mean"], {},
     "reduce: expected one of"),
    ("lstm", [matrix, x(2, 11)], {}, "expected"),
    ("forget", [None, matrix], {}, "func: expected a function, got NoneType"),
]


@pytest.mark.parametrize("name, args, kwargs, message", calls,
                         ids=[f"{call[0]}: {call[3]}" for call in calls])
def test_exception(name, args, kwargs, message):
    with pytest.raises(Exception) as expected:
        getattr(chainer.functions, name)(*args, **kwargs)
    kind = next(each for each in expected.type.__mro__ if each.__module__ == "builtins"
                or each.__name__ == "InvalidType")
    if kind.__name__ == "InvalidType" or "An Expr instance" in str(expected.value):  # Chainer's bug
        kind = catena.InvalidType
    if kind is AttributeError:  # from within Chainer
        kind = TypeError
    with pytest.raises(kind, match=message):
        getattr(F, name)(*args, **kwargs)
