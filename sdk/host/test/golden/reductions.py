"""Reference cases of <catena/functions/reductions.hpp>."""
from generate import uniform


def cases(case):
    x = lambda *shape: {"x": uniform(-2, 2, shape)}
    case("std", "std", x(3, 4), lambda x: x.std(correction=0))
    case("std_axis", "std", x(3, 4, 2), lambda x: x.std((0, 2), correction=1, keepdim=True),
         {"axis": [0, -1], "keepdims": True, "ddof": 1})
    for name, norm in (("1", lambda x, *to: (x * x.detach().sign()).sum(*to)),
                       ("2", lambda x, *to: x.square().sum(*to).sqrt()),
                       ("inf", lambda x, *to: (x * x.detach().sign()).amax(*to))):
        case("norm_" + name, "norm", x(3, 4), lambda x, norm=norm: norm(x), {"ord": name})
        case(f"norm_{name}_axis", "norm", x(3, 4, 2), lambda x, norm=norm: norm(x, 1, True),
             {"ord": name, "axis": [1], "keepdims": True})
    case("average", "average", x(3, 4), lambda x: x.mean())
    case("average_axis", "average", x(3, 4), lambda x: x.mean(1, keepdim=True), {"axis": [1], "keepdims": True})
    case("average_weights", "average", x(3, 4) | {"weights": uniform(0.5, 2, (3, 4))},
         lambda x, weights: (x * weights).sum() / weights.sum())
    case("average_weights_axis", "average", x(3, 4) | {"weights": uniform(0.5, 2, (3,))},
         lambda x, weights: (x * weights[:, None]).sum(0) / weights.sum(), {"axis": [0]})
    case("average_weights_axes", "average", x(3, 4, 2) | {"weights": uniform(0.5, 2, (2, 3))},
         lambda x, weights: (x * weights.T[:, None]).sum((0, 2)) / weights.sum(), {"axis": [2, 0]})
    case("average_weights_same", "average", x(3, 4) | {"weights": uniform(0.5, 2, (3, 4))},
         lambda x, weights: (x * weights).sum(1) / weights.sum(1), {"axis": [-1]})
    case("sort", "sort", x(3, 5), lambda x: x.sort().values)
    case("sort_descending", "sort", x(5, 3), lambda x: x.sort(0, True).values, {"axis": 0, "descending": True})
    case("argsort", "argsort", x(3, 5), lambda x: x.argsort())
    case("argsort_descending", "argsort", x(5, 3), lambda x: x.argsort(0, True), {"axis": 0, "descending": True})
