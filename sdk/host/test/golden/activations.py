"""Reference cases of functions/activations.hpp."""
from generate import uniform


def cases(case):
    import torch
    import torch.nn.functional as F

    def wide(*shape):
        return uniform(-3, 3, shape)

    case("swish", "swish", {"x": wide(2, 3, 4), "beta": wide(3)},
         lambda x, beta: x * torch.sigmoid(beta[:, None] * x))
    case("swish_all", "swish", {"x": wide(2, 3), "beta": wide(3)},
         lambda x, beta: x * torch.sigmoid(beta * x))
    case("swish_scalar", "swish", {"x": wide(1, 1), "beta": wide()},
         lambda x, beta: x * torch.sigmoid(beta * x))
    case("relu6", "relu6", {"x": uniform(-9, 9, (2, 6))}, lambda x: x.clip(0, 6))
    case("selu", "selu", {"x": wide(2, 6)}, lambda x: F.selu(x))
    case("celu", "celu", {"x": wide(2, 6)},  # F.celu() rounds alpha to float32 in backward
         lambda x: x.clamp(min=0) + 0.4 * torch.expm1(x.clamp(max=0) / 0.4), {"alpha": 0.4})
    case("crelu", "crelu", {"x": wide(2, 3, 2)}, lambda x: torch.cat([F.relu(x), F.relu(-x)], 1))
    case("crelu_axis", "crelu", {"x": wide(2, 3)},
         lambda x: torch.cat([F.relu(x), F.relu(-x)], -2), {"axis": -2})
    case("maxout", "maxout", {"x": wide(2, 6, 2)},
         lambda x: x.reshape(2, 2, 3, 2).amax(2), {"pool_size": 3})
    case("maxout_axis", "maxout", {"x": wide(2, 3, 4)},
         lambda x: x.reshape(2, 3, 2, 2).amax(3), {"pool_size": 2, "axis": -1})
    case("glu", "glu", {"x": wide(2, 6)}, lambda x: F.glu(x))
    case("glu_axis", "glu", {"x": wide(2, 4, 3)}, lambda x: F.glu(x, 1), {"axis": 1})
    case("swiglu_axis", "swiglu_axis", {"x": wide(2, 4, 3)},
         lambda x: F.silu(x[:, :2]) * x[:, 2:], {"axis": 1})
    case("geglu", "geglu", {"x": wide(2, 6)}, lambda x: F.gelu(x[:, :3]) * x[:, 3:])
