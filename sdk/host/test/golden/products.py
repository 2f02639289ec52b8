"""Reference cases of functions/products.hpp."""
import torch
from generate import uniform


def cases(case):
    def einsum(name, subscripts, *shapes):
        inputs = {f"x{i}": uniform(-1, 1, shape) for i, shape in enumerate(shapes)}
        case(f"einsum_{name}", "einsum", inputs, lambda **x: torch.einsum(subscripts, *x.values()),
             {"subscripts": subscripts})

    einsum("matmul", "ij,jk->ik", (2, 3), (3, 4))
    einsum("transposed", "ji,kj->ki", (3, 2), (4, 3))
    einsum("implicit", "cb,ba", (2, 3), (3, 4))
    einsum("ellipsis", "...ij,...jk->...ik", (2, 1, 2, 3), (2, 3, 2))
    einsum("broadcast", "bij,bjk->bik", (1, 2, 3), (2, 3, 2))
    einsum("diagonal", "iji->ji", (2, 3, 2))
    einsum("trace", "ii->", (3, 3))
    einsum("outer", "i,j->ji", (2,), (3,))
    einsum("attention", "bthd,bshd->bhts", (1, 2, 2, 3), (1, 3, 2, 3))
    einsum("bilinear", "bi,kij,bj->bk", (2, 2), (3, 2, 2), (2, 2))
    einsum("four", "ab,bc,cd,de->ea", (2, 3), (3, 2), (2, 4), (4, 2))
    case("tensordot", "tensordot", {"a": uniform(-1, 1, (2, 3, 2)), "b": uniform(-1, 1, (3, 2, 2))},
         lambda a, b: torch.tensordot(a, b, 2), {"axes": 2})
    case("tensordot_axes", "tensordot",
         {"a": uniform(-1, 1, (2, 3, 2)), "b": uniform(-1, 1, (2, 4, 3))},
         lambda a, b: torch.tensordot(a, b, ([0, 1], [0, 2])), {"axes_a": [0, 1], "axes_b": [0, 2]})
    case("batch_matmul", "batch_matmul",
         {"a": uniform(-1, 1, (2, 3, 2)), "b": uniform(-1, 1, (2, 4, 3))},
         lambda a, b: a.mT @ b.mT, {"transa": True, "transb": True})
    case("batch_matmul_columns", "batch_matmul",
         {"a": uniform(-1, 1, (2, 3)), "b": uniform(-1, 1, (2, 3))},
         lambda a, b: (a * b).sum(1).reshape(2, 1, 1), {"transa": True, "transb": False})
