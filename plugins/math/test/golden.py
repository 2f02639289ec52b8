"""Reference cases of the functions of this folder."""
import torch
from generate import uniform


def cases(case):
    def matmul(name, a, b, transa=False, transb=False):
        case(f"matmul_{name}", "matmul", {"a": uniform(-1, 1, a), "b": uniform(-1, 1, b)},
             lambda a, b: torch.matmul(a.mT if transa else a, b.mT if transb else b),
             {"transa": transa, "transb": transb})

    matmul("stacks", (2, 2, 3), (2, 3, 2))
    matmul("transa", (2, 3, 2), (2, 3, 2), transa=True)
    matmul("transb", (2, 2, 3), (2, 2, 3), transb=True)
    matmul("shared_b", (2, 2, 3), (3, 2))
    matmul("shared_a", (2, 3), (2, 3, 2))
    matmul("shared_a_transposed", (3, 2), (2, 2, 3), transa=True, transb=True)
    matmul("broadcast", (2, 1, 2, 3), (3, 3, 2))
    matmul("dot", (4,), (4,))
    matmul("row", (3,), (2, 3, 2))
    matmul("column", (2, 2, 3), (3,))

    def wide():
        return uniform(-3, 3, (3, 5))

    case("erf", "erf", {"x": wide()}, lambda x: torch.erf(x))
    case("sin", "sin", {"x": uniform(-20, 20, (3, 5))}, lambda x: torch.sin(x))
    case("cos", "cos", {"x": uniform(-20, 20, (3, 5))}, lambda x: torch.cos(x))
    case("square", "square", {"x": wide()}, lambda x: torch.square(x))
    case("clip", "clip", {"x": wide()}, lambda x: x.clip(-1, 2), {"x_min": -1.0, "x_max": 2.0})
    case("sign", "sign", {"x": wide()}, lambda x: torch.sign(x).detach())
    case("floor", "floor", {"x": wide()}, lambda x: torch.floor(x).detach())
    case("ceil", "ceil", {"x": wide()}, lambda x: torch.ceil(x).detach())
