"""Reference cases of normalization.catena."""
from generate import uniform


def cases(case):
    import torch.nn.functional as F

    def layer(x, gamma=None, beta=None, axes=1, eps=1e-5):
        return F.layer_norm(x, x.shape[-axes:], gamma, beta, eps)

    def rms(x, gamma=None, axes=1, eps=1e-5):
        return F.rms_norm(x, x.shape[-axes:], gamma, eps)

    def values(*shape):
        return uniform(-2, 3, shape)

    case("layer_normalization", "layer_normalization",
         {"x": values(3, 5), "gamma": values(5), "beta": values(5)}, layer)
    case("layer_normalization_axes", "layer_normalization",
         {"x": values(2, 3, 4), "gamma": values(3, 4), "beta": values(3, 4)},
         lambda x, gamma, beta: layer(x, gamma, beta, 2, 0.1), {"eps": 0.1})
    case("layer_normalization_gamma", "layer_normalization",
         {"x": values(2, 2, 4), "gamma": values(4)}, layer)
    case("layer_normalization_plain", "layer_normalization", {"x": values(3, 4)}, layer)
    case("rms_normalization", "rms_normalization", {"x": values(3, 5), "gamma": values(5)}, rms)
    case("rms_normalization_axes", "rms_normalization",
         {"x": values(2, 3, 4), "gamma": values(3, 4)},
         lambda x, gamma: rms(x, gamma, 2, 0.1), {"eps": 0.1})
    case("rms_normalization_plain", "rms_normalization", {"x": values(3, 4)}, rms)
    case("group_normalization", "group_normalization",
         {"x": values(2, 4, 3), "gamma": values(4), "beta": values(4)},
         lambda x, gamma, beta: F.group_norm(x, 2, gamma, beta), {"groups": 2})
    case("group_normalization_rank2", "group_normalization",
         {"x": values(2, 6), "gamma": values(6), "beta": values(6)},
         lambda x, gamma, beta: F.group_norm(x, 2, gamma, beta, 0.1), {"groups": 2, "eps": 0.1})
    case("group_normalization_plain", "group_normalization", {"x": values(2, 4, 2, 3)},
         lambda x: F.group_norm(x, 4), {"groups": 4})
