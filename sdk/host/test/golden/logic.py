"""Reference cases of functions/logic.hpp and functions/creation.hpp."""
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
