"""Reference cases of activation.catena."""
from generate import uniform


def cases(case):
    import torch
    import torch.nn.functional as F

    def wide():
        return uniform(-6, 6, (3, 7))

    case("gelu", "gelu", {"x": wide()}, lambda x: F.gelu(x))
    case("gelu_tanh", "gelu", {"x": wide()}, lambda x: F.gelu(x, approximate="tanh"),
         {"approximate": "tanh"})
    case("silu", "silu", {"x": wide()}, lambda x: F.silu(x))
    case("softplus", "softplus", {"x": wide()}, lambda x: F.softplus(x, threshold=1e9))
    case("softplus_beta", "softplus", {"x": wide()}, lambda x: F.softplus(x, 0.5, threshold=1e9),
         {"beta": 0.5})
    case("mish", "mish", {"x": wide()}, lambda x: F.mish(x))
    case("elu", "elu", {"x": wide()}, lambda x: F.elu(x))
    case("elu_alpha", "elu", {"x": wide()}, lambda x: F.elu(x, 0.3), {"alpha": 0.3})
    case("elu_scale", "elu", {"x": wide()},
         lambda x: 2 * torch.where(x > 0, x, 0.3 * torch.expm1(0.5 * x)),
         {"alpha": 0.3, "scale": 2.0, "input_scale": 0.5})
    case("hard_sigmoid", "hard_sigmoid", {"x": wide()}, lambda x: (0.2 * x + 0.5).clip(0, 1))
    case("hard_swish", "hard_swish", {"x": wide()}, lambda x: F.hardswish(x), double=False)
    case("hard_swish_second_order", "hard_swish", {"x": wide()}, lambda x: x * F.relu6(x + 3) / 6)
    case("clipped_relu", "clipped_relu", {"x": wide()}, lambda x: x.clip(0, 20))
    case("clipped_relu_z", "clipped_relu", {"x": wide()}, lambda x: x.clip(0, 3), {"z": 3.0})
    case("swiglu", "swiglu", {"a": wide(), "b": wide()}, lambda a, b: F.silu(a) * b)
    case("swiglu_broadcast", "swiglu", {"a": uniform(-3, 3, (3, 1)), "b": uniform(-3, 3, (4,))},
         lambda a, b: F.silu(a) * b)
    case("log_softmax", "log_softmax", {"x": wide()}, lambda x: F.log_softmax(x, 1))
    case("log_softmax_axis0", "log_softmax", {"x": uniform(-60, 60, (4, 3))},
         lambda x: F.log_softmax(x, 0), {"axis": 0})
    case("log_softmax_middle", "log_softmax", {"x": uniform(-3, 3, (2, 5, 3))},
         lambda x: F.log_softmax(x, 1), {"axis": -2})
