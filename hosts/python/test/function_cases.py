"""The calls that test_functions.py makes with Chainer and with catena: name, arguments, options."""
import copy

import numpy as np

floating = ("float16", "float32", "float64")


class Input:
    """An array of random numbers in the dtype of the test, with a gradient."""

    def __init__(self, shape, low, high):
        self.shape, self.low, self.high = shape, low, high

    def make(self, dtype, random):
        return np.asarray(random.uniform(self.low, self.high, self.shape)).astype(dtype)


class Constant(Input):
    """The same without a gradient."""


class Probabilities(Constant):
    """Numbers that sum to 1 along axis 1."""

    def make(self, dtype, random):
        numbers = super().make("float64", random)
        return (numbers / numbers.sum(1, keepdims=True)).astype(dtype)


def x(*shape, low=-1., high=1.):
    return Input(shape, low, high)


def positive(*shape):
    return Input(shape, 0.5, 1.5)


def constant(*shape, low=-1., high=1.):
    return Constant(shape, low, high)


def ints(*numbers, dtype="int32"):
    return np.array(numbers, dtype)


class Case:
    """A call.

    double: whether to compare second derivatives, too; tolerance: a factor; sizes: whether random
    calls may have inputs of other sizes.
    """

    def __init__(self, name, *args, dtypes=floating, double=True, tolerance=1, sizes=True, **kwargs):
        self.name, self.args, self.kwargs, self.sizes = name, args, kwargs, sizes
        self.dtypes, self.double, self.tolerance = dtypes, double, tolerance

    def with_arguments(self, change):
        """The case with the results of a function for its arguments."""
        other = copy.copy(self)
        other.args = [change(value) for value in self.args]
        other.kwargs = {key: change(value) for key, value in self.kwargs.items()}
        return other

    def __repr__(self):
        def text(value):
            if isinstance(value, Input):
                return "x" + str(value.shape).replace(" ", "")
            if isinstance(value, np.ndarray):
                return str(value.tolist()).replace(" ", "")
            if isinstance(value, (list, tuple)):
                return "[" + ",".join(map(text, value)) + "]"
            return str(value).replace(" ", "")
        given = [text(a) for a in self.args] + [f"{k}={text(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({','.join(given)})"


def unary(*names, make=x, **options):
    return [Case(name, make(*shape), **options) for name in names for shape in ((2, 3), (), (0, 2))]


first_order = dict(double=False)  # Chainer's has no second derivative, or a wrong one
labels = ints(1, 0, 3)
images = x(2, 3, 5, 6)
random_labels = ints([1, 0, 2, 1, 0], [2, 2, -1, 0, 1])

activations = [
    *unary("relu", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "clipped_relu",
           "hard_sigmoid", "relu6"),
    Case("leaky_relu", x(2, 3), slope=0.5), Case("elu", x(3), alpha=0.5),
    Case("selu", x(3), 0.5, 2.0), Case("softplus", x(3), beta=2.0),
    Case("clipped_relu", x(5, low=-2, high=2), z=0.5), Case("hard_sigmoid", x(9, low=-4, high=4)),
    Case("relu6", x(9, low=-9, high=9)),
    *[Case(name, x(2, 3, 4), axis=axis)
      for name in ("softmax", "log_softmax") for axis in (0, 1, -1)],
    Case("softmax", x(2, 3)), Case("log_softmax", x(2, 3)),
    Case("prelu", x(2, 3), x(3)), Case("prelu", x(2, 3, 4), x(3, 4)), Case("prelu", x(2, 3), x()),
    Case("swish", x(2, 3), x(3)), Case("crelu", x(2, 3)), Case("crelu", x(2, 3, 4), axis=-1),
    Case("maxout", x(2, 6), 3), Case("maxout", x(2, 3, 4), 2, axis=2),
]

arrays = [
    Case("as_strided", x(3, 4), (2, 3), (4, 1), 0, **first_order),
    Case("as_strided", x(5), (3, 3), (1, 1), **first_order),
    Case("as_strided", x(3, 4), (2, 2, 3), (0, 4, 1), 1, **first_order),
    Case("broadcast", x(2, 1), x(3)), Case("broadcast", x(2)),
    Case("broadcast_to", x(2, 1), (3, 2, 4)),
    Case("cast", x(2, 3), "float32"), Case("cast", x(2, 3), np.float64), Case("cast", x(3), "e"),
    Case("concat", [x(2, 3), x(2, 1)]), Case("concat", [x(2), x(3)], axis=0),
    Case("concat", (x(2, 0), x(2, 2)), axis=-1),
    Case("copy", x(2, 3), -1), Case("depth2space", x(2, 8, 2, 3), 2),
    Case("space2depth", x(2, 3, 4, 6), 2),
    Case("diagonal", x(3, 4)), Case("diagonal", x(3, 4), 1), Case("diagonal", x(4, 2), -2),
    Case("diagonal", x(2, 3, 4), 1, 2, 0), Case("diagonal", x(3, 2), 2),
    Case("dstack", [x(2, 3), x(2, 3)]), Case("dstack", [x(2), x(2)]),
    Case("hstack", [x(2, 3), x(2, 1)]), Case("hstack", [x(2), x(3)]),
    Case("vstack", [x(2, 3), x(1, 3)]), Case("vstack", [x(2), x(2)]),
    Case("stack", [x(2, 3), x(2, 3)]), Case("stack", [x(2), x(2)], axis=-1),
    Case("expand_dims", x(2, 3), 1), Case("expand_dims", x(2, 3), -1),
    Case("flatten", x(2, 3)), Case("flatten", x()),
    Case("flip", x(2, 3), 1), Case("flip", x(2, 3), -2), Case("fliplr", x(2, 3)),
    Case("flipud", x(2, 3)),
    Case("get_item", x(3, 4), 1), Case("get_item", x(3, 4), (slice(None), 2)),
    Case("get_item", x(3, 4), (Ellipsis, slice(None, None, -2))), Case("get_item", x(3), None),
    Case("get_item", x(3, 4), (ints(0, 2, 0), slice(1, 3))), Case("get_item", x(3, 4), [0, 2]),
    Case("get_item", x(3, 4), (ints(0, 1), ints(2, 2))),
    Case("get_item", x(3), np.array([True, False, True])),
    Case("im2col", images, 3), Case("im2col", images, (2, 3), (1, 2), 1, True, dilate=(2, 1)),
    Case("moveaxis", x(2, 3, 4), 0, -1), Case("moveaxis", x(2, 3, 4), (0, 1), (-1, 0)),
    Case("pad", x(2, 3), 1, "constant"), Case("pad", x(2, 3), ((1, 0), (0, 2)), "constant"),
    Case("pad", x(2), (1, 2), "constant", constant_values=3),
    Case("pad_sequence", [x(2), x(3), x(1)]), Case("pad_sequence", [x(2, 2), x(1, 2)], 4, -1),
    Case("permutate", x(3, 2), ints(2, 0, 1), sizes=False),
    Case("permutate", x(2, 3), ints(2, 0, 1), axis=1, inv=True, sizes=False),
    Case("repeat", x(2, 3), 2), Case("repeat", x(2, 3), 2, axis=1),
    Case("repeat", x(2, 3), (1, 2, 0), -1),
    Case("reshape", x(2, 3), (3, -1)), Case("reshape", x(2, 3), (6,)),
    *[Case("resize_images", x(2, 3, 4, 5), (7, 3), mode=mode, align_corners=align,
           dtypes=("float32",), double=False)
      for mode in ("bilinear", "nearest") for align in (True, False)],
    Case("rollaxis", x(2, 3, 4), 2), Case("rollaxis", x(2, 3, 4), 0, 2),
    Case("scatter_add", x(3, 4), (slice(None), ints(1, 1, 0)), x(3, 3)),
    Case("scatter_add", x(3, 4), 1, x(4)),
    Case("select_item", x(3, 4), labels), Case("separate", x(3, 2)),
    Case("separate", x(3, 2), axis=1),
    Case("separate", x(1, 2)),
    Case("spatial_transformer_grid", x(2, 2, 3), (4, 3), **first_order),
    Case("spatial_transformer_sampler", x(2, 3, 4, 5), x(2, 2, 3, 3, low=-1.3, high=1.3),
         tolerance=4,
         **first_order),
    Case("split_axis", x(4, 2), 2, 0), Case("split_axis", x(2, 5), [1, 3], 1),
    Case("split_axis", x(4), 1, 0),
    Case("split_axis", x(4), 1, 0, False), Case("split_axis", x(2, 5), ints(2), -1),
    Case("split_axis", x(3), [0, 3], 0),
    Case("squeeze", x(1, 2, 1)), Case("squeeze", x(1, 2, 1), 0),
    Case("squeeze", x(1, 2, 1), (0, -1)),
    Case("swapaxes", x(2, 3, 4), 0, 2), Case("tile", x(2, 3), 2), Case("tile", x(2, 3), (2, 1, 3)),
    Case("transpose", x(2, 3, 4)), Case("transpose", x(2, 3, 4), (1, 0, 2)),
    Case("transpose", x(2, 3), axes=(-1, 0)),
    Case("transpose_sequence", [x(3, 2), x(2, 2), x(2, 2)]),
    Case("transpose_sequence", [x(2), x(2)]),
    Case("where", np.array([[True], [False]]), x(2, 3), x(3)),
    Case("where", np.array([True, False, True]), x(3), x(3)),
]

connections = [
    Case("linear", x(2, 3), x(4, 3)), Case("linear", x(2, 3), x(4, 3), x(4)),
    Case("linear", x(2, 3, 2), x(4, 6), x(4)),
    Case("linear", x(2, 3, 2), x(4, 2), x(4), n_batch_axes=2),
    Case("linear", x(0, 3), x(4, 3), x(4)),
    Case("bilinear", x(2, 3), x(2, 4), x(3, 4, 2), dtypes=("float32",)),
    Case("bilinear", x(2, 3), x(2, 4), x(3, 4, 2), x(3, 2), x(4, 2), x(2), dtypes=("float32",)),
    Case("convolution_2d", images, x(4, 3, 3, 2), x(4), tolerance=4),
    Case("convolution_2d", images, x(4, 3, 3, 2), stride=2, pad=1),
    Case("convolution_2d", images, x(2, 3, 2, 2), x(2), (2, 3), (0, 1), True),
    Case("convolution_2d", x(2, 4, 5, 6), x(6, 2, 3, 2), x(6), groups=2, pad=1, tolerance=4),
    Case("convolution_2d", images, x(2, 3, 2, 2), x(2), dilate=(2, 3)),
    Case("convolution_2d", images, x(2, 3, 1, 1)),
    Case("deconvolution_2d", x(2, 3, 3, 4), x(3, 2, 3, 2), x(2)),
    Case("deconvolution_2d", x(2, 3, 3, 4), x(3, 2, 3, 2), x(2), (2, 1), 1, (6, 3)),
    Case("deconvolution_2d", x(2, 4, 3, 4), x(4, 3, 2, 2), x(6), stride=2, groups=2),
    Case("deconvolution_2d", x(1, 2, 3, 4), x(2, 2, 2, 2), dilate=2),
    Case("convolution_1d", x(2, 3, 7), x(4, 3, 3), x(4), 2, 1),
    Case("convolution_nd", x(2, 3, 7), x(4, 3, 3), dilate=2),
    Case("convolution_3d", x(2, 2, 4, 5, 3), x(3, 2, 2, 3, 2), x(3), (2, 1, 1), 1, tolerance=3),
    Case("convolution_nd", x(1, 4, 5, 4, 3), x(2, 2, 2, 2, 2), x(2), 2, (1, 0, 1), True, groups=2,
         tolerance=3),
    Case("convolution_nd", x(1, 2, 5, 4, 3), x(2, 2, 2, 2, 2), dilate=(2, 1, 2)),
    Case("convolution_nd", images, x(2, 3, 2, 2)),
    Case("deconvolution_1d", x(2, 3, 4), x(3, 2, 3), x(2), 2, 1),
    Case("deconvolution_nd", x(2, 3, 4), x(3, 2, 3), outsize=(6,)),
    Case("deconvolution_3d", x(2, 2, 2, 3, 2), x(2, 3, 2, 3, 2), x(3), (2, 1, 1), (1, 0, 1),
         tolerance=3),
    Case("deconvolution_nd", x(1, 4, 2, 3, 2), x(4, 2, 2, 1, 2), x(4), 2, 0, (5, 5, 4), groups=2,
         tolerance=3),
    Case("deconvolution_nd", x(1, 2, 2, 3, 2), x(2, 2, 2, 1, 2), None, 1, (2, 0, 2),
         dilate=(3, 1, 4)),
    Case("deformable_convolution_2d_sampler", x(2, 2, 4, 5), x(2, 8, 3, 4), x(3, 2, 2, 2), x(3),
         dtypes=("float32",), **first_order),
    Case("deformable_convolution_2d_sampler", x(1, 2, 4, 5), x(1, 12, 3, 3), x(3, 2, 3, 2), None,
         (1, 2), 1, dtypes=("float32",), **first_order),
    Case("depthwise_convolution_2d", images, x(2, 3, 3, 2), x(6), 1, 1),
    Case("dilated_convolution_2d", images, x(2, 3, 2, 2), x(2), 1, 1, 2),
    Case("dilated_convolution_2d", images, x(2, 3, 2, 2), dilate=(1, 2), cover_all=True),
    Case("embed_id", ints(0, 2, 2), x(3, 2)),
    Case("embed_id", ints([0, -1], [1, 1]), x(3, 2), ignore_label=-1),
    Case("local_convolution_2d", images, x(2, 4, 5, 3, 2, 2), x(2, 4, 5), **first_order),
    Case("local_convolution_2d", images, x(2, 2, 2, 3, 2, 3), stride=(2, 3), **first_order),
    Case("shift", x(2, 10, 4, 5)), Case("shift", x(2, 4, 4, 5), (1, 3), (2, 1)),
]

evaluation = [
    Case("accuracy", x(3, 4), labels), Case("accuracy", x(3, 4), ints(1, -1, 9)),
    Case("accuracy", x(3, 4), labels, ignore_label=0),
    Case("accuracy", x(2, 3, 5), random_labels), Case("accuracy", x(3, 4, 1, 1), labels, -1),
    Case("binary_accuracy", x(2, 3), ints([0, 1, 0], [1, 1, -1])),
    *[Case(name, x(2, 3, 5), random_labels + (kwargs != {}), **kwargs)
      for name in ("classification_summary", "precision", "recall", "f1_score")
      for kwargs in ({}, {"label_num": 4, "ignore_label": 0})],
    Case("classification_summary", x(9, 3), ints(*[0, 1, 2] * 3), None, 0.5),
    Case("r2_score", x(5, 2), x(5, 2)),
    Case("r2_score", x(5, 2), x(5, 2), multioutput="raw_values"),
    Case("r2_score", x(1, 2), x(1, 2)),
]

losses = [
    Case("absolute_error", x(2, 3), x(2, 3)), Case("squared_error", x(2, 3), x(2, 3)),
    Case("mean_absolute_error", x(2, 3), x(2, 3)), Case("mean_squared_error", x(2, 3), x(2, 3)),
    *[Case("bernoulli_nll", constant(2, 3, low=0), x(2, 3), **k)
      for k in ({}, {"reduce": "mean"}, {"reduce": "no"})],
    Case("black_out", x(3, 4), labels, x(5, 4), ints([1, 2], [3, 4], [0, 2]), tolerance=3),
    Case("black_out", x(3, 4), labels, x(5, 4), ints([1, 2], [3, 4], [0, 2]), "no", tolerance=3),
    Case("contrastive", x(3, 4), x(3, 4), ints(1, 0, 0)),
    Case("contrastive", x(3, 4), x(3, 4), ints(1, 0, 0), 3, "no"),
    *[Case("crf1d", x(3, 3), [x(2, 3), x(2, 3), x(1, 3)], [ints(0, 2), ints(1, 1), ints(2)], **k)
      for k in ({}, {"reduce": "no"})],
    Case("crf1d", x(3, 3), [x(2, 3)], [ints(0, 2)]),
    Case("argmax_crf1d", x(3, 3), [x(3, 3), x(2, 3), x(2, 3), x(1, 3)], **first_order),
    *[Case("connectionist_temporal_classification", [x(3, 5) for _ in range(6)],
           ints([1, 2], [3, 3], [4, 1]), 0, *more, dtypes=("float32", "float64"), sizes=False,
           double=False, **k)
      for more in ((), (ints(6, 5, 4), ints(2, 2, 1))) for k in ({}, {"reduce": "no"})],
    *[Case("cross_covariance", x(3, 2), x(3, 4), **k) for k in ({}, {"reduce": "no"})],
    *[Case("decov", x(3, 4), **k, **first_order) for k in ({}, {"reduce": "no"})],
    *[Case("discriminative_margin_based_clustering_loss", x(3, 3, 4, 5),
           np.arange(60).reshape(3, 4, 5) % 4, 0.1, 0.8, 3, **k,
           dtypes=("float32", "float64")) for k in ({}, {"alpha": 0.5, "beta": 2, "gamma": 0.1})],
    *[Case("gaussian_kl_divergence", x(2, 3), x(2, 3), **k)
      for k in ({}, {"reduce": "mean"}, {"reduce": "no"})],
    *[Case("gaussian_nll", x(2, 3), x(2, 3), x(2, 3), **k)
      for k in ({}, {"reduce": "mean"}, {"reduce": "no"})],
    *[Case("hinge", x(3, 4), labels, norm, reduce, **first_order) for norm in ("L1", "L2")
      for reduce in ("mean", "no")],
    Case("huber_loss", x(2, 3), x(2, 3), 0.5), Case("huber_loss", x(2, 3), x(2, 3), 0.5, "no"),
    *[Case("sigmoid_cross_entropy", x(2, 3), ints([0, 1, -1], [1, 0, 1]), normalize, reduce)
      for normalize in (True, False)
      for reduce in ("mean", "no")],
    Case("softmax_cross_entropy", x(3, 4), labels, enable_double_backprop=True),
    Case("softmax_cross_entropy", x(3, 4), labels, **first_order),
    Case("softmax_cross_entropy", x(2, 3, 5), random_labels, enable_double_backprop=True),
    Case("softmax_cross_entropy", x(2, 3, 5), random_labels, False, reduce="mean",
         enable_double_backprop=True),
    Case("softmax_cross_entropy", x(2, 3, 5), abs(random_labels), ignore_label=0, reduce="no",
         enable_double_backprop=True),
    *[Case("softmax_cross_entropy", x(3, 4), labels, normalize, class_weight=positive(4),
           reduce=reduce, enable_double_backprop=True)
      for normalize in (True, False) for reduce in ("mean", "no")],
    *[Case("softmax_cross_entropy", x(3, 4), Probabilities((3, 4), 0.1, 1), soft_target_loss=loss,
           reduce=reduce, **first_order)
      for loss in ("cross-entropy", "kl-divergence") for reduce in ("mean", "no")],
    Case("softmax_cross_entropy", x(3, 4), ints(-1, -1, -1), **first_order),
    Case("triplet", x(3, 4), x(3, 4), x(3, 4)), Case("triplet", x(3, 4), x(3, 4), x(3, 4), 2, "no"),
]

numbers = [
    *unary("absolute", "ceil", "cos", "cosh", "exp", "expm1", "fix", "floor", "sign", "sin", "sinh",
           "square", "tan"),
    *unary("log", "log10", "log1p", "log2", "rsqrt", "sqrt", make=positive), Case("arctanh",
                                                                                  x(2, 3, low=-0.8,
                                                                                    high=0.8)),
    Case("erf", x(2, 3)), Case("erf", x()), Case("add", x(2, 3), x(2, 3)),
    Case("add", x(2), x(2), x(2)), Case("add", x(2, 1), x(3)),
    *[Case(name, x(2, 3, 4), axis=axis) for name in ("argmax", "argmin", "cumsum", "cumprod")
      for axis in (None, 0, -1)],
    *[Case(name, x(2, 3, 4), axis=axis, keepdims=keepdims)
      for name in ("sum", "max", "min", "prod", "average")
      for axis in (None, 1, (0, 2), (-1,)) for keepdims in (False, True)],
    *[Case(name, x(2, 3), axis=()) for name in ("sum", "max", "min", "prod", "average")],
    *[Case(name, x(2, 3))
      for name in ("sum", "max", "min", "prod", "average", "mean", "logsumexp")],
    *[Case("logsumexp", x(2, 3, 4), axis) for axis in (None, 1, (0, 2))], Case("mean", x(2, 3), 1),
    Case("mean", x(2, 3), (0,), keepdims=True),
    Case("mean", x(2, 3), 0, positive(2)), Case("average", x(2, 3), None, positive(2, 3)),
    Case("average", x(2, 3), -1, positive(3), True),
    Case("batch_l2_norm_squared", x(2, 3, 2)),
    Case("batch_matmul", x(2, 3, 4), x(2, 4, 2), dtypes=("float32",)),
    Case("batch_matmul", x(2, 3), x(2, 3), True, dtypes=("float32",)),
    Case("batch_matmul", x(2, 4, 3), x(2, 2, 4), True, True, dtypes=("float32",)),
    Case("bias", x(2, 3, 4), x(3)), Case("bias", x(2, 3, 4), x(2, 3), axis=0),
    Case("scale", x(2, 3, 4), x(3)), Case("scale", x(2, 3, 4), x(3, 4)),
    Case("clip", x(9, low=-2, high=2), -0.5, 1.0),
    Case("einsum", "ij,jk->ik", x(2, 3), x(3, 4)), Case("einsum", "ij,ij", x(2, 3), x(2, 3)),
    Case("einsum", "...ij->...ji", x(2, 3, 4)),
    Case("einsum", x(2, 3), [0, 1], x(3, 4), [1, 2], [2, 0]),
    Case("einsum", x(2, 3), [Ellipsis, 0], x(3), [0], [Ellipsis]),
    Case("einsum", x(2, 3), [0, 1], x(3), [1]),
    Case("fmod", x(2, 3, low=-3, high=3), positive(2, 3)), Case("identity", x(2)),
    Case("identity", x(2), x(3)),
    Case("linear_interpolate", x(2, 3), x(2, 3), x(2, 3)),
    Case("matmul", x(2, 3), x(3, 4)), Case("matmul", x(3, 2), x(4, 3), True, True),
    Case("matmul", x(3), x(3)), Case("matmul", x(2, 1, 2, 3), x(4, 3, 2)),
    Case("maximum", x(2, 3), x(3)), Case("minimum", x(2, 1), x(2, 3)),
    Case("squared_difference", x(2, 3), x(2, 3)),
    Case("sum_to", x(2, 3), (1, 3)), Case("sum_to", x(2, 3), ()),
    Case("tensordot", x(2, 3, 4), x(3, 4, 2)), Case("tensordot", x(2, 3), x(3, 4), axes=1),
    Case("tensordot", x(2, 3, 4), x(4, 2), ((2, 0), (0, 1))),
]

normalizations = [
    Case("batch_normalization", x(4, 3), positive(3), x(3), tolerance=4),
    Case("batch_normalization", images, positive(3), x(3), eps=0.1, tolerance=4),
    Case("batch_normalization", x(4, 3, 2), positive(3, 2), x(3, 2), tolerance=20),
    Case("batch_normalization", x(4, 3, 2), positive(2), x(2), axis=(0, 1), tolerance=4),
    Case("batch_normalization", x(4, 3, 2), positive(3), x(3), axis=(0, 2), tolerance=4),
    Case("batch_normalization", x(4, 3), positive(3), x(3), axis=0, tolerance=4),
    Case("batch_renormalization", x(4, 3, 2), positive(3), x(3), 2., 0.1, running_mean=constant(3),
         running_var=positive(3), tolerance=4, **first_order),
    Case("batch_renormalization", x(4, 3), positive(3), x(3), 1.1, 1, 1e-3, constant(3),
         constant(3, low=0.5), tolerance=4, **first_order),
    Case("fixed_batch_normalization", images, positive(3), x(3), x(3), positive(3), eps=0.1),
    Case("fixed_batch_normalization", x(4, 2), x(2), x(2), x(2), positive(2)),
    Case("fixed_batch_normalization", x(4, 3, 2), x(2), x(2), x(2), positive(2), axis=(0, 1)),
    Case("fixed_batch_renormalization", images, positive(3), x(3), x(3), positive(3)),
    Case("group_normalization", x(2, 4, 3), 2, positive(4), x(4), tolerance=8),
    Case("group_normalization", x(2, 4, 3, 2), 4, positive(4), x(4), 0.1, tolerance=4),
    Case("layer_normalization", x(2, 5), positive(5), x(5), tolerance=32),
    Case("layer_normalization", x(2, 5), positive(5), x(5), 0.1, tolerance=4),
    Case("local_response_normalization", x(2, 7, 3, 2), **first_order),
    Case("local_response_normalization", x(2, 7), 3, 1, 0.1, 0.5, **first_order),
    Case("normalize", x(2, 5)), Case("normalize", x(2, 3, 4), 0.1, (1, 2)),
]

pooling = [
    *[Case(name, images, 3, 2, 1) for name in ("max_pooling_2d", "average_pooling_2d")],
    Case("average_pooling_2d", images, (2, 3), (1, 2), (0, 1)),
    Case("max_pooling_2d", images, (2, 3), (1, 2), (0, 1), False),
    Case("max_pooling_2d", images, 2), Case("average_pooling_2d", images, 2),
    Case("max_pooling_2d", images, 3, 2, 1, return_indices=True),
    *[Case(name + "_1d", x(2, 3, 7), 3, 2, 1) for name in ("max_pooling", "average_pooling")],
    Case("max_pooling_1d", x(2, 3, 7), 2, cover_all=False),
    *[Case(name + "_3d", x(2, 2, 5, 4, 3), (2, 3, 2), 2, (0, 1, 1),
           double=name != "max_pooling") for name in ("max_pooling", "average_pooling")],
    *[Case(name + "_nd", x(1, 2, 3, 4, 3, 4), 2) for name in ("max_pooling", "average_pooling")],
    Case("max_pooling_nd", images, 3, return_indices=True),
    Case("average_pooling_nd", images, 3, 2, 1, pad_value=None),
    Case("average_pooling_nd", x(2, 2, 5, 4, 3), 2, None, 1, None),
    Case("spatial_pyramid_pooling_2d", x(2, 3, 5, 6), 3, "max", **first_order),
    Case("unpooling_2d", x(2, 3, 2, 3), 2), Case("unpooling_2d", x(2, 3, 2, 3), 3, 2, 1),
    Case("unpooling_2d", x(2, 3, 2, 3), 2, cover_all=False, outsize=(5, 7)),
    Case("unpooling_1d", x(2, 3, 3), 3, 2),
    Case("unpooling_3d", x(1, 2, 2, 3, 2), 2, None, 0, (4, 5, 3)),
    Case("unpooling_nd", x(1, 2, 2, 3, 2), 2, 1, 1, cover_all=False),
    Case("upsampling_2d", x(1, 2, 2, 3), np.arange(12).reshape(1, 2, 2, 3) % 4, 2),
    Case("upsampling_2d", x(1, 2, 2, 3), np.arange(12).reshape(1, 2, 2, 3) % 9, 3, 2, 1),
    Case("upsampling_2d", x(1, 2, 2, 3), np.arange(12).reshape(1, 2, 2, 3) % 4, 2, 2, 0, (4, 5)),
]


def weights(inputs, units, n, layers=2, directions=1):
    """The matrices or vectors of recurrent layers with n of them for the input and the state."""
    sizes = [inputs] + [units * directions] * (layers - 1)
    return [[x(units, size) for _ in range(n)] + [x(units, units) for _ in range(n)]
            for size in sizes for _ in range(directions)]


def biases(units, n, layers=2, directions=1):
    return [[x(units) for _ in range(2 * n)] for _ in range(layers * directions)]


steps = [x(4, 4), x(3, 4), x(1, 4)]
recurrent = [
    Case("lstm", x(2, 3), x(2, 12)), Case("lstm", x(3, 2), x(2, 8)),
    Case("slstm", x(2, 3), x(2, 3), x(2, 12), x(2, 12)),
    Case("tree_lstm", x(2, 3), x(2, 3), x(2, 15), **first_order),
    Case("tree_lstm", x(2, 3), x(2, 12), **first_order),
    *[Case("n_step_lstm", n, 0., x(n, 4, 3), x(n, 4, 3), weights(4, 3, 4, n), biases(3, 4, n),
           steps, double=n == 1) for n in (1, 2)],
    Case("n_step_bilstm", 2, 0., x(4, 4, 3), x(4, 4, 3), weights(4, 3, 4, 2, 2), biases(3, 4, 2, 2),
         steps, **first_order),
    Case("n_step_gru", 2, 0., x(2, 4, 3), weights(4, 3, 3), biases(3, 3), steps, **first_order),
    Case("n_step_bigru", 2, 0., x(4, 4, 3), weights(4, 3, 3, 2, 2), biases(3, 3, 2, 2), steps,
         **first_order),
    Case("n_step_rnn", 2, 0., x(2, 4, 3), weights(4, 3, 1), biases(3, 1), steps, **first_order),
    Case("n_step_birnn", 2, 0., x(4, 4, 3), weights(4, 3, 1, 2, 2), biases(3, 1, 2, 2), steps,
         activation="relu", tolerance=4, **first_order),
]

noise = [
    Case("dropout", x(2, 3), mask=constant(2, 3), return_mask=False), Case("dropout", x(2, 3), 0.),
    Case("gaussian", x(2, 3), x(2, 3), eps=constant(2, 3)),
    Case("gaussian", x(2, 3), x(2, 3), eps=constant(2, 3), return_eps=True),
    Case("rrelu", x(2, 3), r=constant(2, 3, low=0), return_r=True, **first_order),
    Case("simplified_dropconnect", x(2, 3), x(4, 3), x(4), 0.25,
         mask=np.arange(24).reshape(2, 4, 3) % 3 > 0),
    Case("simplified_dropconnect", x(2, 3), x(4, 3), None, 0.5, True,
         np.arange(12).reshape(4, 3) % 3 > 0, False),
    Case("zoneout", x(2, 3), x(2, 3), 0.), Case("zoneout", x(2, 3), x(2, 3), 1.),
    Case("simplified_dropconnect", x(2, 3), x(4, 3), x(4), train=False),
]

cases = (activations + arrays + connections + evaluation + losses + numbers + normalizations
         + pooling + recurrent + noise)
# Functions that draw random numbers or take functions; test_functions_more.py has their tests.
elsewhere = {"forget", "gumbel_softmax", "negative_sampling"}

# Where random calls differ from Chainer's: functions, patterns of what
# differs and of the text, and why.
differences = [
    ("accuracy softmax_cross_entropy", "error", "expected a label", "catena checks labels"),
    ("n_step_lstm n_step_bilstm n_step_gru n_step_bigru n_step_rnn n_step_birnn", "error",
     "do not increase", "catena checks that the sequences are sorted by length"),
    ("argmax_crf1d", "error", "do not increase",
     "catena checks that the sequences are sorted by length"),
    ("sum_to", "error", "expected one that broadcasts", "catena checks the shape"),
    ("convolution_1d convolution_2d convolution_3d convolution_nd deconvolution_1d deconvolution_2d "
     "deconvolution_nd depthwise_convolution_2d dilated_convolution_2d local_convolution_2d", "error",
     "expected at least|expected a divisor of", "catena refuses filters without elements"),
    ("as_strided depth2space space2depth unpooling_2d unpooling_nd", ".*: gradients",
     "expected float", "Chainer's gradient has another shape than x"),
    ("logsumexp crf1d", "special: values", r"expected \[ *nan.*got \[ *-?inf",
     "the sum of exponentials with infinity is infinity; in Chainer NaN"),
    ("connectionist_temporal_classification", "special: values", r"expected.*e\+.*got \[ *nan",
     "Chainer's 1e10, which stands for infinity, hides NaN"),
    ("fixed_batch_renormalization", "special: values", r"got \[ *nan", "a variance of -inf gives NaN"),
    ("max min maxout argmax_crf1d", ".*: (gradients|second derivatives)", "",
     "equal extremes share the gradient, as in PyTorch; in Chainer, each gets all of it"),
    ("sigmoid_cross_entropy", "special: values", r"expected \[ *nan",
     "scores of ignored labels do not matter, even if they are infinite or NaN"),
    ("contrastive zoneout", "special: values", r"expected \[.*nan",
     "numbers that are not selected do not matter, even if they are infinite or NaN"),
    ("triplet", "special: (values|gradients)", r"expected \[.*nan|expected \[[- ]*0",
     "differences of infinite distances have the limit; in Chainer, NaN with the gradient 0"),
    ("bernoulli_nll", "special: values", r"expected \[ *nan.*got \[ *-?inf", "catena has the limit"),
    ("decov", ".*: values", r"x\(0,", "the covariance of an empty batch has a diagonal of 0, not NaN"),
    ("rrelu", "(ties|special): gradients", "", "Chainer takes r = 0 for a slope of 1"),
    ("resize_images", "special: values", "mode=nearest.*expected .*nan", "Chainer adds 0 times NaN"),
    ("softmax_cross_entropy", "(ties|special): gradients", r"soft_target_loss",
     "Chainer's gradient is wrong for targets whose sum is not 1"),
    ("max_pooling_3d max_pooling_nd", "ties: .*", "",
     "the maxima along one axis after the other: another of equal elements gets the gradient"),
    ("spatial_transformer_sampler", "ties: gradients", r"expected \[[- ]*0",
     "a point one pixel outside of the image has the gradient of its inner side"),
]
# The same with other seeds.
rare_differences = [
    ("convolution_2d convolution_nd deconvolution_3d deconvolution_nd dilated_convolution_2d",
     "special: values", r"got \[ *nan", "holes of filters and images are zeros: with infinity, NaN"),
    ("accuracy", ".*: values", r"x\(0,", "the accuracy of an empty batch is NaN, with ignore_label too"),
    ("softmax_cross_entropy", "special: values", r"(-1|ignore_label).*expected \[ *nan",
     "scores of ignored labels do not matter, even if they are infinite or NaN"),
    ("crf1d", "error", "do not increase", "catena checks that the sequences are sorted by length"),
    ("deconvolution_2d", "error", "catena.reshape", "catena checks the shape of b"),
    ("deconvolution_2d", "special: values", r"got \[ *nan", "holes are zeros: with infinity, NaN"),
    ("fixed_batch_normalization", "special: values", r"got \[ *nan", "a variance of -inf gives NaN"),
    ("deformable_convolution_2d_sampler", "(ties|special): gradients", r"expected \[[- ]*0",
     "a point one pixel outside of the image has the gradient of its inner side"),
    ("normalize", "ties: second derivatives", "expected .*nan",
     "the gradient at 0 is that of eps; in Chainer, the second one is NaN"),
    ("contrastive", "ties: second derivatives", "",
     "the gradient at distance 0 is 0; in Chainer, the second one is NaN or that of the root"),
    ("linear n_step_rnn", "special: values", r"got \[ *nan",
     "the product of 0 and infinity is NaN; NumPy's BLAS leaves out vectors of 0"),
    ("get_item", "error", r"x\(.*\b0\b.*expected an index", "NumPy does not check indices of nothing"),
    ("convolution_1d convolution_2d convolution_3d dilated_convolution_2d", "error",
     "attribute 'outsize'", "images without rows have no gradient"),
    ("max_pooling_1d max_pooling_2d max_pooling_3d spatial_pyramid_pooling_2d", "special: gradients", "",
     "an element of -inf gets the gradient; in Chainer, padding"),
]
