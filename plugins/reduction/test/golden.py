"""Reference cases of reduction.catena."""
import numpy as np
import torch

from generate import integers, uniform


def reductions(case, name, torch_function, **attrs):
    """Cases of axes; torch_function(x, axes, keepdims)."""
    for suffix, shape, axis, keepdims in (("", (3, 4), None, False), ("_axis", (3, 4, 2), [1], False),
                                          ("_axes", (3, 4, 2), [0, -1], True)):
        axes = tuple(range(len(shape))) if axis is None else tuple(axis)
        own = ({} if axis is None else {"axis": axis, "keepdims": keepdims}) | attrs
        case(name + suffix + "".join(f"_{a}" for a in attrs), name, {"x": uniform(-2, 2, shape)},
             lambda x, axes=axes, keepdims=keepdims: torch_function(x, axes, keepdims), own)


def prod(x, axes, keepdims):
    for a in sorted((a % x.ndim for a in axes), reverse=True):
        x = x.prod(a, keepdim=keepdims)
    return x


def cases(case):
    reductions(case, "max", lambda x, axes, keepdims: x.amax(axes, keepdims))
    reductions(case, "min", lambda x, axes, keepdims: x.amin(axes, keepdims))
    reductions(case, "mean", lambda x, axes, keepdims: x.mean(axes, keepdims))
    reductions(case, "prod", prod)
    reductions(case, "logsumexp", lambda x, axes, keepdims: x.logsumexp(axes, keepdims))
    for ddof in {}, {"ddof": 1}:
        reductions(case, "var", lambda x, axes, keepdims: x.var(
            axes, correction=ddof.get("ddof", 0), keepdim=keepdims), **ddof)
    # Equal extremes share the gradient.
    equal = np.array([[1, 3, 3, 2], [2, 2, 2, 2]], "float32")
    case("max_equal", "max", {"x": equal}, lambda x: x.amax(1), {"axis": [1]})
    case("min_equal", "min", {"x": equal}, lambda x: x.amin(1), {"axis": [1]})
    case("prod_zeros", "prod", {"x": np.array([[2, 0, 3], [0, 4, 0], [1, 2, 3]], "float32")},
         lambda x: x.prod(1), {"axis": [1]})

    for name in "argmax", "argmin":
        f = getattr(torch, name)
        case(name, name, {"x": uniform(-2, 2, (3, 4))}, f)
        case(name + "_axis", name, {"x": uniform(-2, 2, (3, 4, 2))}, lambda x, f=f: f(x, 1), {"axis": [1]})
        case(name + "_keepdims", name, {"x": uniform(-2, 2, (3, 4))},
             lambda x, f=f: f(x, 1, keepdim=True), {"axis": [-1], "keepdims": True})
    case("max_int32", "max", {"x": integers(-9, 9, (3, 4), "int32")}, lambda x: x.amax(1), {"axis": [1]})
    for name in "any", "all":
        f = getattr(torch, name)
        case(name + "_bool", name, {"x": integers(0, 2, (3, 4), "bool")}, f)
        case(name + "_axis", name, {"x": integers(0, 2, (3, 4))}, lambda x, f=f: f(x, 1), {"axis": [1]})
        case(name + "_axes", name, {"x": integers(0, 2, (3, 4, 2), "bool")},
             lambda x, f=f: f(x, (0, 2), keepdim=True), {"axis": [0, 2], "keepdims": True})

    for name in "cumsum", "cumprod":
        f = getattr(torch, name)
        identity = 0 if name == "cumsum" else 1

        def before(x, axis, f=f, identity=identity):
            first = torch.full_like(x.narrow(axis, 0, 1), identity)
            return torch.cat([first, f(x, axis).narrow(axis, 0, x.shape[axis] - 1)], axis)

        case(name, name, {"x": uniform(-2, 2, (3, 2))}, lambda x, f=f: f(x.flatten(), 0))
        case(name + "_axis", name, {"x": uniform(-2, 2, (3, 4, 2))}, lambda x, f=f: f(x, 1), {"axis": [1]})
        case(name + "_exclusive", name, {"x": uniform(-2, 2, (3, 4))}, lambda x, g=before: g(x, 1),
             {"axis": [-1], "exclusive": True})
        case(name + "_reverse", name, {"x": uniform(-2, 2, (4, 2))}, lambda x, f=f: f(x.flip(0), 0).flip(0),
             {"axis": [0], "reverse": True})
        case(name + "_exclusive_reverse", name, {"x": uniform(-2, 2, (4, 2))},
             lambda x, g=before: g(x.flip(0), 0).flip(0), {"axis": [0], "exclusive": True, "reverse": True})
    case("cumprod_zeros", "cumprod", {"x": np.array([[2, 0, 3, 4], [0, 4, 0, 1], [1, 2, 3, 0]], "float32")},
         lambda x: x.cumprod(1), {"axis": [1]})

    both = ["y", "indices"]
    case("topk", "topk", {"x": uniform(-2, 2, (3, 5))}, lambda x: tuple(x.topk(2)), {"k": 2}, both)
    case("topk_smallest", "topk", {"x": uniform(-2, 2, (5, 2, 3))},
         lambda x: tuple(x.topk(3, 0, False)), {"k": 3, "axis": 0, "largest": False}, both)
