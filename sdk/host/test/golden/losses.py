"""Reference cases of functions/losses.hpp."""
import numpy

from generate import uniform

NAMES = {"mean": "mean", "sum": "sum", "no": "none"}


def reduced(y, reduce):
    return {"mean": y.mean, "sum": y.sum, "no": lambda: y,
            "batchmean": lambda: y.sum() / len(y),
            "sum_along_second_axis": lambda: y.sum(1)}[reduce]()


def cases(case):
    import torch
    import torch.nn.functional as F

    labels = numpy.array([[0, 1, -1, 1], [-1, 1, 0, 0]], "int32")
    keep = torch.tensor(labels != -1)
    for reduce in NAMES:
        for normalize in (True, False):
            def by_labels(x, t, reduce=reduce, normalize=normalize):
                y = F.binary_cross_entropy_with_logits(x, t.clamp(min=0).double(), reduction="none")
                y = torch.where(keep, y, torch.zeros_like(y))
                if reduce == "mean":
                    return y.sum() / (keep.sum() if normalize else 2)
                return reduced(y, reduce)

            case(f"sigmoid_cross_entropy_{reduce}_{normalize}", "sigmoid_cross_entropy",
                 {"x": uniform(-3, 3, (2, 4)), "t": labels}, by_labels,
                 {"normalize": normalize, "reduce": reduce})
        case(f"sigmoid_cross_entropy_floats_{reduce}", "sigmoid_cross_entropy",
             {"x": uniform(-3, 3, (2, 4)), "t": uniform(0, 1, (2, 4))},
             lambda x, t, reduce=reduce: F.binary_cross_entropy_with_logits(
                 x, t, reduction=NAMES[reduce]), {"normalize": True, "reduce": reduce})

        two = {"x": uniform(-2, 2, (2, 4)), "t": uniform(-2, 2, (2, 4))}
        case(f"smooth_l1_loss_{reduce}", "smooth_l1_loss", two,
             lambda x, t, reduce=reduce: F.smooth_l1_loss(x, t, reduction=NAMES[reduce], beta=0.5),
             {"beta": 0.5, "reduce": reduce})
        case(f"l1_loss_{reduce}", "l1_loss", two,
             lambda x, t, reduce=reduce: reduced(((x - t)**2).sqrt(), reduce),
             {"reduce": reduce})
        case(f"gaussian_kl_divergence_{reduce}", "gaussian_kl_divergence",
             {"mean": uniform(-1, 1, (2, 3)), "ln_var": uniform(-1, 1, (2, 3))},
             lambda mean, ln_var, reduce=reduce: reduced(torch.distributions.kl_divergence(
                 torch.distributions.Normal(mean, (ln_var / 2).exp()),
                 torch.distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))), reduce),
             {"reduce": reduce})
        case(f"bernoulli_nll_{reduce}", "bernoulli_nll",
             {"x": uniform(0, 1, (2, 3)), "y": uniform(-2, 2, (2, 3))},
             lambda x, y, reduce=reduce: F.binary_cross_entropy_with_logits(
                 y, x, reduction=NAMES[reduce]), {"reduce": reduce})
        case(f"gaussian_nll_{reduce}", "gaussian_nll",
             {"x": uniform(-1, 1, (2, 3)), "mean": uniform(-1, 1, (2, 3)),
              "ln_var": uniform(-1, 1, (2, 3))},
             lambda x, mean, ln_var, reduce=reduce: reduced(
                 -torch.distributions.Normal(mean, (ln_var / 2).exp()).log_prob(x), reduce),
             {"reduce": reduce})

    for reduce in ("sum_along_second_axis", *NAMES):
        case(f"huber_loss_{reduce}", "huber_loss",
             {"x": uniform(-2, 2, (2, 3, 2)), "t": uniform(-2, 2, (2, 3, 2))},
             lambda x, t, reduce=reduce: reduced(
                 F.huber_loss(x, t, reduction="none", delta=0.75), reduce),
             {"delta": 0.75, "reduce": reduce})
    for norm in ("L1", "L2"):
        for reduce in NAMES:
            def hinge(x, t, norm=norm, reduce=reduce):
                y = (1 + x * (1 - 2 * F.one_hot(t, 4))).clamp(min=0)
                y = y if norm == "L1" else y**2
                return reduced(y, "batchmean" if reduce == "mean" else reduce)

            case(f"hinge_{norm}_{reduce}", "hinge",
                 {"x": uniform(-2, 2, (3, 4)), "t": numpy.array([0, 3, 1])}, hinge,
                 {"norm": norm, "reduce": reduce})
    two = {"x0": uniform(-2, 2, (2, 4)), "x1": uniform(-2, 2, (2, 4))}
    case("smooth_l1_loss_0", "smooth_l1_loss", {"x": two["x0"], "t": two["x1"]},
         lambda x, t: ((x - t)**2).sqrt().mean(), {"beta": 0.0, "reduce": "mean"})
    case("absolute_error", "absolute_error", two, lambda x0, x1: ((x0 - x1)**2).sqrt())
    case("squared_error", "squared_error", two, lambda x0, x1: (x0 - x1)**2)
    case("mean_absolute_error", "mean_absolute_error", two,
         lambda x0, x1: ((x0 - x1)**2).sqrt().mean())
    for reduce, name in {**NAMES, "batchmean": "batchmean"}.items():
        x = uniform(-3, -0.1, (2, 4))
        case(f"kl_div_{reduce}", "kl_div", {"x": x, "t": uniform(0.1, 1, (2, 4))},
             lambda x, t, name=name: F.kl_div(x, t, reduction=name),
             {"reduce": reduce, "log_target": False})
        case(f"kl_div_log_target_{reduce}", "kl_div", {"x": x, "t": uniform(-3, -0.1, (2, 4))},
             lambda x, t, name=name: F.kl_div(x, t, reduction=name, log_target=True),
             {"reduce": reduce, "log_target": True})
