"""Functions against PyTorch's: values, gradients and second derivatives, also in bfloat16."""
import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import catena
from differential import (Differences, compare, flat, mapped, random_of, run, times,
                          weights_of, with_sizes)
from function_cases import Case, Constant, Input, constant, ints, positive, x

pytestmark = pytest.mark.filterwarnings("ignore")
T, N = torch, torch.nn.functional
DTYPES = ("float16", "bfloat16", "float32", "float64")
CALLS = []  # a call of catena, and what PyTorch calls with the same arguments


def same(call, name, *args, **kwargs):
    """Adds a call of catena with the arguments, and PyTorch's, whose arguments are the inputs."""
    options = {"dtypes": DTYPES, **{key: kwargs.pop(key) for key in (
        "dtypes", "double", "tolerance", "sizes") if key in kwargs}}
    CALLS.append((Case(name, *args, **options, **kwargs), call))


rounding = dict(ceil=T.ceil, fix=T.trunc, floor=T.floor, sign=T.sign, isnan=T.isnan, isinf=T.isinf,
                isfinite=T.isfinite)
smooth = dict(absolute=T.abs, cos=T.cos, cosh=T.cosh, erf=T.erf, exp=T.exp, expm1=T.expm1, neg=T.neg,
              sin=T.sin, sinh=T.sinh, square=T.square, tan=T.tan, tanh=T.tanh, relu=T.relu, sigmoid=T.sigmoid,
              softplus=N.softplus, elu=N.elu, selu=N.selu, celu=N.celu, gelu=N.gelu, silu=N.silu, mish=N.mish,
              hard_swish=N.hardswish, relu6=N.relu6)
for name, call in {**smooth, **rounding}.items():
    for shape in ((2, 3), (), (5, 1, 7)):
        same(call, name, x(*shape, low=-4, high=4), double=name in smooth)
for name, call in dict(log=T.log, log2=T.log2, log10=T.log10, log1p=T.log1p, sqrt=T.sqrt,
                       rsqrt=T.rsqrt).items():
    same(call, name, positive(2, 3))
for name, call in dict(add=T.add, sub=T.sub, mul=T.mul, maximum=T.maximum, minimum=T.minimum, greater=T.gt,
                       greater_equal=T.ge, less=T.lt, less_equal=T.le, equal=T.eq, not_equal=T.ne).items():
    same(call, name, x(2, 3), x(2, 3))
    same(call, name, x(2, 1), x(3))
same(T.atanh, "arctanh", x(2, 3, low=-0.8, high=0.8))
same(T.div, "div", x(2, 3), positive(3))
same(T.fmod, "fmod", x(2, 3, low=-3, high=3), positive(2, 3), double=False)
same(T.pow, "pow", positive(2, 3), x(3), tolerance=2)
same(lambda x: T.clip(x, -0.5, 0.5), "clip", x(2, 3), -0.5, 0.5)
same(N.prelu, "prelu", x(2, 3), x(3))
same(lambda x: N.leaky_relu(x, 0.2), "leaky_relu", x(2, 3))
same(N.glu, "glu", x(2, 6))
same(lambda x: N.gelu(x, approximate="tanh"), "gelu", x(2, 3), approximate="tanh")

along_axis = dict(
    sum=T.sum, mean=T.mean, prod=T.prod, logsumexp=T.logsumexp, cumsum=T.cumsum, cumprod=T.cumprod,
    max=T.amax, min=T.amin, softmax=T.softmax, log_softmax=T.log_softmax,
    flip=lambda x, axis: T.flip(x, (axis,)),
    argmax=lambda x, axis: T.argmax(x, axis).int(), argmin=lambda x, axis: T.argmin(x, axis).int(),
    norm=lambda x, axis: T.linalg.norm(x, dim=axis), var=lambda x, axis: T.var(x, axis, correction=0),
    std=lambda x, axis: T.std(x, axis, correction=0),
    sort=lambda x, axis: T.sort(x, dim=axis, stable=True)[0],
    argsort=lambda x, axis: T.argsort(x, dim=axis, stable=True), any=lambda x, axis: T.any(x != 0, axis),
    all=lambda x, axis: T.all(x != 0, axis))
for axis in (0, 1, -1):
    for name, call in along_axis.items():
        same(lambda x, call=call, axis=axis: call(x, axis), name, x(3, 4, 5), axis=axis,
             tolerance={"prod": 4, "cumprod": 64}.get(name, 1))
same(lambda x: T.var(x, 1, correction=1), "var", x(3, 4), axis=1, ddof=1)
same(lambda x: T.topk(x, 2), "topk", x(3, 4), 2)

same(lambda a, b: T.cat([a, b], 1), "concat", [x(2, 3), x(2, 1)])
same(lambda a, b: T.stack([a, b], 1), "stack", [x(2, 3), x(2, 3)], axis=1)
same(lambda x: x.reshape(-1), "flatten", x(2, 3))
same(lambda x: x.permute(2, 0, 1), "transpose", x(2, 3, 4), (2, 0, 1))
same(lambda x: x.swapaxes(0, 2), "swapaxes", x(2, 3, 4), 0, 2)
same(lambda x: x.movedim(0, -1), "moveaxis", x(2, 3, 4), 0, -1)
same(lambda x: x.roll((1, 2), (0, 1)), "roll", x(3, 4), (1, 2), (0, 1))
same(lambda x: x.tile(2, 3), "tile", x(2, 3), (2, 3))
same(lambda x: x.repeat_interleave(2, 1), "repeat", x(2, 3), 2, axis=1)
same(lambda x: x[:, None], "expand_dims", x(2, 3), 1)
same(lambda x: x.squeeze(1), "squeeze", x(2, 1, 3), 1, sizes=False)
same(lambda x: x.expand(4, 2, 3), "broadcast_to", x(2, 1), (4, 2, 3), sizes=False)
same(lambda x: T.diagonal(x, 1), "diagonal", x(3, 4), 1)
same(T.tril, "tril", x(3, 4))
same(lambda x: T.triu(x, 1), "triu", x(3, 4), 1)
for mode in ("constant", "reflect"):
    same(lambda x, mode=mode: N.pad(x, (2, 2, 1, 1), mode), "pad", x(2, 3, 4, 5),
         ((0, 0), (0, 0), (1, 1), (2, 2)), mode)
indices = ints([2, 0], [1, 1], dtype="int64")
places = T.tensor(indices)
same(lambda x: x[1:, ::2], "get_item", x(3, 4), (slice(1, None), slice(None, None, 2)))
same(lambda x: x[[2, 0, 0]], "get_item", x(3, 4), ([2, 0, 0],), sizes=False)
same(lambda x, y: T.where(T.tensor([[True], [False]]), x, y), "where", np.array([[True], [False]]), x(2,
     3), x(3),
     sizes=False)
same(lambda x: T.gather(x, 1, places), "gather", x(2, 3), 1, indices, sizes=False)
same(lambda x: T.take(x, T.tensor([5, 0])), "take", x(6), ints(5, 0), 0, sizes=False)
same(lambda x: T.take_along_dim(x, places, 1), "take_along_axis", x(2, 3), indices, 1, sizes=False)
same(lambda x, s: T.index_add(x, 0, T.tensor([1, 1]), s), "index_add", x(4, 3), 0, ints(1, 1), x(2, 3),
     sizes=False)
same(lambda x, s: T.scatter(x, 1, places[:1], s), "scatter", x(2, 3), 1, indices[:1], x(1, 2), sizes=False)
same(lambda: N.one_hot(T.tensor([0, 2]), 3).to(T.float32), "one_hot", ints(0, 2), 3, sizes=False)
same(lambda x: N.pixel_shuffle(x, 2), "depth2space", x(1, 4, 2, 3), 2, sizes=False)
same(lambda x: N.interpolate(x, (7, 3), mode="bilinear", align_corners=True), "resize_images", x(2, 3, 4,
     5), (7, 3),
     dtypes=("float32", "float64"))

same(T.matmul, "matmul", x(2, 3, 4), x(2, 4, 5))
same(lambda a, b: T.tensordot(a, b, 2), "tensordot", x(2, 3, 4), x(3, 4, 5))
same(lambda a, b: T.einsum("bij,bjk->bki", a, b), "einsum", "bij,bjk->bki", x(2, 3, 4), x(2, 4, 5))
same(N.linear, "linear", x(2, 3), x(4, 3), x(4))
same(lambda a, b, W: N.bilinear(a, b, W.permute(2, 0, 1)), "bilinear", x(2, 3), x(2, 4), x(3, 4, 5),
     dtypes=("float32", "float64"))
same(lambda W: N.embedding(T.tensor([0, 2, 2]), W), "embed_id", ints(0, 2, 2), x(3, 4), sizes=False)
same(N.scaled_dot_product_attention, "scaled_dot_product_attention", x(2, 3, 5, 4), x(2, 3, 7, 4), x(2,
     3, 7, 4),
     tolerance=2)
same(lambda q, k, v: N.scaled_dot_product_attention(q, k, v, is_causal=True),
     "scaled_dot_product_attention",
     x(2, 3, 5, 4), x(2, 3, 5, 4), x(2, 3, 5, 4), causal=True, tolerance=2)
same(lambda x, W, b: N.conv1d(x, W, b, 2, 1), "convolution_1d", x(2, 3, 7), x(4, 3, 3), x(4), 2, 1)
same(lambda x, W, b: N.conv2d(x, W, b, (1, 2), (1, 0)), "convolution_2d", x(2, 3, 5, 6), x(4, 3, 3, 2),
     x(4),
     (1, 2), (1, 0))
same(lambda x, W: N.conv2d(x, W, groups=2, dilation=2), "convolution_2d", x(2, 4, 5, 6), x(6, 2, 3, 2),
     groups=2,
     dilate=2)
same(N.conv3d, "convolution_3d", x(1, 2, 3, 4, 3), x(3, 2, 2, 2, 2), x(3), tolerance=2)
same(lambda x, W, b: N.conv_transpose1d(x, W, b, 2, 1), "deconvolution_1d", x(2, 3, 4), x(3, 2, 3), x(2),
     2, 1)
same(lambda x, W, b: N.conv_transpose2d(x, W, b, 2, 1), "deconvolution_2d", x(2, 3, 3, 4), x(3, 2, 3, 2),
     x(2), 2, 1)
for n, maximum, average in ((1, N.max_pool1d, N.avg_pool1d), (2, N.max_pool2d, N.avg_pool2d),
                            (3, N.max_pool3d, N.avg_pool3d)):
    shape = (2, 3, 5, 6, 4)[:n + 2]
    same(lambda x, call=maximum: call(x, 3, 2, 1), f"max_pooling_{n}d", x(*shape), 3, 2, 1, cover_all=False)
    same(lambda x, call=average: call(x, 3, 2, 1), f"average_pooling_{n}d", x(*shape), 3, 2, 1,
         double=n < 3)

norm = dict(tolerance=4)
same(lambda x, g, b: N.batch_norm(x, None, None, g, b, True, 0, 0.1), "batch_normalization", x(4, 3, 2),
     positive(3),
     x(3), eps=0.1, **norm)
same(lambda x, g, b, m, v: N.batch_norm(x, m, v, g, b, False, 0, 0.1), "fixed_batch_normalization", x(4,
     3, 2),
     positive(3), x(3), constant(3), constant(3, low=0.5, high=1.5), eps=0.1, **norm)
same(lambda x, g, b: N.layer_norm(x, x.shape[1:], g, b, 0.1), "layer_normalization", x(4, 5),
     positive(5), x(5), 0.1,
     **norm)
same(lambda x, g, b: N.group_norm(x, 2, g, b, 0.1), "group_normalization", x(2, 4, 3), 2, positive(4),
     x(4), 0.1,
     **norm)
same(lambda x: N.instance_norm(x, eps=0.1), "instance_normalization", x(2, 3, 7), eps=0.1, **norm)
same(lambda x, g: N.rms_norm(x, x.shape[1:], g, 0.1), "rms_normalization", x(4, 5), positive(5), 0.1,
     **norm)
same(lambda x: N.local_response_norm(x, 5, 5e-4, 0.75, 2.0), "local_response_normalization", x(2, 7, 3),
     k=2.0,
     double=False, **norm)

labels, t = ints(1, 0, 3), T.tensor([1, 0, 3])
for reduce, kind in (("mean", "mean"), ("no", "none")):
    same(lambda x, kind=kind: N.cross_entropy(x, t, reduction=kind), "softmax_cross_entropy", x(3, 4),
         labels,
         reduce=reduce, sizes=False)
    same(lambda x, kind=kind: N.nll_loss(x, t, reduction=kind), "nll_loss", x(3, 4), labels,
         reduce=reduce, sizes=False)
    same(lambda x, kind=kind: N.binary_cross_entropy_with_logits(x, t.new_tensor([[0, 1], [1, 1]]).to(x),
         reduction=kind),
         "sigmoid_cross_entropy", x(2, 2), ints([0, 1], [1, 1]), reduce=reduce, sizes=False)
    same(lambda x, y, kind=kind: N.l1_loss(x, y, reduction=kind), "l1_loss", x(2, 3), x(2, 3),
         reduce=reduce)
    same(lambda x, y, kind=kind: N.smooth_l1_loss(x, y, reduction=kind), "smooth_l1_loss", x(2, 3), x(2, 3),
         reduce=reduce, sizes=False)
    same(lambda x, y, kind=kind: N.kl_div(x, y, reduction=kind), "kl_div", x(2, 3), constant(2, 3,
         low=0.5, high=1.5),
         reduce=reduce, sizes=False)
same(N.mse_loss, "mean_squared_error", x(2, 3), x(2, 3))
same(N.l1_loss, "mean_absolute_error", x(2, 3), x(2, 3))
same(lambda x, y: N.huber_loss(x, y, reduction="none"), "huber", x(2, 3, low=-2, high=2), x(2, 3))
same(lambda *xs: N.ctc_loss(T.log_softmax(T.stack(xs), 2), T.tensor([[1, 2], [3, 3], [4, 1]]), (6, 5, 4),
     (2, 2, 1),
                            reduction="none"),
     "connectionist_temporal_classification", [x(3, 5) for _ in range(6)], ints([1, 2], [3, 3], [4, 1]), 0,
     ints(6, 5, 4), ints(2, 2, 1), reduce="no", dtypes=("float32", "float64"), double=False, sizes=False)

# Where random calls differ from PyTorch's: see differences in function_cases.py.
differences = [
    ("convolution_1d convolution_3d", "error", "expected at least 1",
     "catena refuses filters without elements"),
    ("scaled_dot_product_attention", "error", "expected at least 1", "catena refuses heads without elements"),
    ("clip", ".*: gradients", r"expected \[ *0", "Chainer's gradient at the limits is 1"),
    ("maximum minimum", ".*: gradients", "", "of equal operands the first gets the gradient, as in Chainer"),
    ("prelu", "special: gradients", "", "the gradient at 0 is that of the positive side, as in Chainer"),
    ("max_pooling_3d", ".*: gradients", "float16",
     "the maxima along one axis after the other: another of equal elements gets the gradient"),
    ("gelu silu mish hard_swish", "special: values", r"expected \[ *nan.*got \[ *-?0",
     "catena has the limit at -inf"),
    ("sigmoid_cross_entropy", "special: values", r"expected \[ *nan.*got \[ *inf",
     "catena has the limit; PyTorch computes inf - inf"),
    ("connectionist_temporal_classification", "special: values", "expected .*inf.*got .*e",
     "Chainer's 1e10 stands for infinity"),
    ("bilinear", "special: values", r"got \[ *nan", "the products of all pairs: 0 times infinity is NaN"),
    ("kl_div", "special: values", r"expected \[ *nan.*got \[ *inf", "t (log t - x); PyTorch: t log t - t x"),
    ("batch_normalization group_normalization fixed_batch_normalization", "special: values",
     r"expected \[ *nan.*got \[ *-?inf", "with an infinite gamma, x a + b has another order of operations"),
    ("scaled_dot_product_attention", "special: values", r"expected \[ *-?0.*got \[ *nan",
     "rows whose scores are NaN are 0 in PyTorch's kernel"),
    ("sign", "special: values", r"expected \[ *0.*got \[ *nan", "the sign of NaN is NaN, as in NumPy"),
    ("std", "random: second derivatives", "expected .*nan", "the gradient of a deviation of 0 is 0"),
]
rare_differences = [
    ("convolution_2d", "error", "expected at least", "catena refuses filters without elements"),
    ("prelu", "special: values", r"expected \[ *nan.*got \[ *0", "an infinite slope has no effect on 0"),
    ("mean mean_squared_error mean_absolute_error l1_loss", ".*: second derivatives", r"x\(.*\b0\b",
     "the mean of nothing"),
    ("convolution_2d", "special: values", r"dilate.*got \[ *nan", "holes are zeros: with infinity, NaN"),
    ("resize_images", "special: values", "", "a weight of 0 of NaN or infinity gives NaN"),
    ("scaled_dot_product_attention", "special: values", r"expected \[ *nan",
     "without keys, and for keys that a causal mask leaves out, PyTorch's kernel gives NaN"),
]


def run_torch(call, case, args, dtype, double):
    tensors, variables = [], []

    def tensor(value):
        if isinstance(value, Input):
            tensors.append(torch.tensor(args[value], dtype=getattr(torch, dtype)))
            if not isinstance(value, Constant):
                variables.append(tensors[-1].requires_grad_())

    for value in (*case.args, *case.kwargs.values()):
        mapped(value, tensor)
    ys = call(*tensors)
    firsts = seconds = [None] * len(variables)

    def weighted(ys):
        weights = [torch.tensor(w, dtype=y.dtype).requires_grad_()
                   for y, w in zip(ys, weights_of([tuple(y.shape) for y in ys]))]
        return sum((y * w).sum() for y, w in zip(ys, weights)), weights

    outputs = [y for y in flat(ys) if y.is_floating_point()]
    total, weights = weighted(outputs)
    if variables and outputs and total.grad_fn is not None:
        firsts = torch.autograd.grad(total, variables, create_graph=double, allow_unused=True)
        if double:
            total, _ = weighted([g for g in firsts if g is not None])
            seconds = torch.autograd.grad(total, variables + weights, allow_unused=True)

    def array(x):
        x = x.detach() if x is not None else None
        return None if x is None else (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    return [[array(x) for x in flat(each)] for each in (ys, firsts, seconds)]


names = {case.name for case, _ in CALLS}
known = Differences(differences, rare_differences, names)


@pytest.mark.parametrize("name", sorted(names))
def test_random_calls(name):
    random, found, compared = random_of("torch " + name), [], 0
    mine = [each for each in CALLS if each[0].name == name]
    for i in range(times(60)):
        case, call = mine[i % len(mine)]
        if i >= 4 * len(mine):
            case = with_sizes(case, random)
        kind = "special" if i % 3 == 2 else "random"
        dtype = case.dtypes[i // len(mine) % len(case.dtypes)]
        compared += compare(case, kind, dtype, random, functools.partial(run_torch, call),
                            functools.partial(run, catena), found)
    assert compared >= 10
    known.check(name, found)


def test_known_differences_exist():
    known.check_required()


def test_number_of_functions():
    assert len(names) >= 60
