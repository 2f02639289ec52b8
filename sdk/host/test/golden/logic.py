"""Reference cases of functions/logic.hpp and functions/creation.hpp."""
import numpy
import torch

from generate import integers, uniform


def cases(case):
    two = lambda: {"a": uniform(-1, 1, (2, 3)), "b": uniform(-1, 1, (3,))}
    whole = lambda: {"a": integers(-2, 3, (3, 4), "int32"), "b": integers(-2, 3, (3, 1))}
    for name, function in (("equal", torch.eq), ("not_equal", torch.ne), ("greater", torch.gt),
                           ("greater_equal", torch.ge), ("less", torch.lt),
                           ("less_equal", torch.le)):
        case(name, name, two(), lambda a, b: function(a, b))
        case(f"{name}_integers", name, whole(), lambda a, b: function(a, b))
        case(f"{name}_mixed", name,
             {"a": uniform(-1, 1, (2, 3)), "b": integers(-1, 2, (2, 3), "bool")},
             lambda a, b: function(a, b))
    for name in ("logical_and", "logical_or", "logical_xor"):
        case(name, name, whole(), lambda a, b: getattr(torch, name)(a, b))
    case("logical_not", "logical_not", {"a": integers(-1, 2, (2, 3))}, lambda a: a.logical_not())
    case("where", "where", {"condition": integers(0, 2, (2, 3), "bool"),
                            "a": uniform(-1, 1, (2, 1)), "b": uniform(-1, 1, (3,))},
         lambda condition, a, b: torch.where(condition, a, b))
    case("where_integers", "where", {"condition": integers(0, 2, (3,), "bool"),
                                     "a": integers(-3, 3, (2, 3)), "b": integers(-3, 3, (), "int32")},
         lambda condition, a, b: torch.where(condition, a, b.long()))
    case("maximum", "maximum", two(), lambda a, b: torch.maximum(a, b))
    case("minimum", "minimum", two(), lambda a, b: torch.minimum(a, b))
    case("one_hot", "one_hot", {"t": integers(0, 4, (2, 3))},
         lambda t: torch.nn.functional.one_hot(t, 4).double(), {"depth": 4, "axis": -1})
    case("one_hot_axis", "one_hot", {"t": integers(0, 4, (2, 3), "int32")},
         lambda t: torch.nn.functional.one_hot(t.long(), 4).permute(2, 0, 1).double(),
         {"depth": 4, "axis": 0})
    special = numpy.array([[0, numpy.nan, 2], [numpy.inf, -numpy.inf, -3]], "float32")
    for name in ("isnan", "isinf", "isfinite"):
        case(name, name, {"x": special}, lambda x: getattr(torch, name)(x))
        case(f"{name}_integers", name, {"x": integers(-2, 3, (3,))},
             lambda x: getattr(torch, name)(x))
    others = numpy.array([[0.125, numpy.nan, 2.5], [numpy.inf, numpy.inf, -4]], "float32")
    for name, options in (("isclose", {}), ("isclose_nan", {"equal_nan": True}),
                          ("isclose_rtol", {"rtol": 0.225}), ("isclose_atol", {"atol": 0.25})):
        case(name, "isclose", {"a": special, "b": others},
             lambda a, b: torch.isclose(a, b, **options), options)
    like = {"like": numpy.zeros((2, 3), "float32")}
    create = lambda name, function, make, attrs: case(
        name, function, like, lambda like: make().double(), attrs)
    create("arange", "arange", lambda: torch.arange(0, 5), {"start": 0.0, "stop": 5.0, "step": 1.0})
    create("arange_step", "arange", lambda: torch.arange(1.5, -2, -0.75, dtype=torch.double),
           {"start": 1.5, "stop": -2.0, "step": -0.75})
    case("arange_integers", "arange_integers", like, lambda like: torch.arange(3, 20, 4),
         {"start": 3, "stop": 20, "step": 4})
    create("linspace", "linspace", lambda: torch.linspace(-1, 2, 8, dtype=torch.double),
           {"start": -1.0, "stop": 2.0, "n": 8, "endpoint": True})
    create("linspace_open", "linspace",
           lambda: torch.linspace(-1, 2, 9, dtype=torch.double)[:-1],
           {"start": -1.0, "stop": 2.0, "n": 8, "endpoint": False})
    create("full_like", "full_like", lambda: torch.full((2, 3), -1.5), {"value": -1.5})
    for k in (-1, 0, 2):
        for n, m in ((3, -1), (2, 4), (4, 2)):
            ones = torch.ones(n, n if m < 0 else m)
            attrs = {"n": n, "m": m, "k": k}
            create(f"eye_{n}_{m}_{k}", "eye", lambda: ones.tril(k).triu(k), attrs)
            create(f"tri_{n}_{m}_{k}", "tri", lambda: ones.tril(k), attrs)
