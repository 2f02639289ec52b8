"""Reference cases of functions/normalization.hpp."""
from generate import uniform


def cases(case):
    import torch
    import torch.nn.functional as F

    def values(*shape):
        return uniform(-2, 3, shape)

    case("instance_normalization", "instance_normalization",
         {"x": values(2, 3, 4), "gamma": values(3), "beta": values(3)},
         lambda x, gamma, beta: F.group_norm(x, 3, gamma, beta))
    case("instance_normalization_plain", "instance_normalization", {"x": values(2, 3, 2, 2)},
         lambda x: F.group_norm(x, 3, eps=0.1), {"eps": 0.1})
    case("normalize", "normalize", {"x": values(3, 4)},
         lambda x: x / (torch.linalg.vector_norm(x, dim=1, keepdim=True) + 1e-5))
    case("normalize_axes", "normalize", {"x": values(2, 3, 4)},
         lambda x: x / (torch.linalg.vector_norm(x, dim=(0, 2), keepdim=True) + 0.1),
         {"eps": 0.1, "axis": [0, 2]})
    case("weight_standardization", "weight_standardization", {"W": values(3, 2, 2, 2)},
         lambda W: F.layer_norm(W, W.shape[1:]))
