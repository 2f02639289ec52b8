"""Reference cases of the losses."""
import numpy

from generate import integers, uniform

LABELS = numpy.array([[0, -1, 2], [3, 1, -1]], "int64")  # (2, 3), for 4 classes
WEIGHTS = numpy.array([0.5, 2, 1, 0.25], "float32")


def cases(case):
    import torch
    import torch.nn.functional as F

    def probabilities(shape):
        p = uniform(0.1, 1, shape)
        return p / p.sum(1, keepdims=True)

    names = {"mean": "mean", "sum": "sum", "no": "none"}
    for reduce, reduction in names.items():
        for smoothing in (0, 0.25):
            for weighted in (False, True):
                attrs = {"ignore_label": -1, "reduce": reduce, "label_smoothing": float(smoothing)}
                inputs = {"x": uniform(-2, 2, (2, 4, 3)), "t": LABELS}
                if weighted:
                    inputs["class_weight"] = WEIGHTS

                def hard(x, t, class_weight=None, reduction=reduction, smoothing=smoothing):
                    weight = None if class_weight is None else class_weight.detach()
                    return F.cross_entropy(x, t, weight, ignore_index=-1, reduction=reduction,
                                           label_smoothing=smoothing)

                name = f"{reduce}{'_smoothed' if smoothing else ''}{'_weighted' if weighted else ''}"
                case(f"softmax_cross_entropy_{name}", "softmax_cross_entropy", inputs, hard, attrs,
                     ["loss"], constants=["class_weight"])

                inputs = {"x": uniform(-2, 2, (2, 4, 3)), "t": probabilities((2, 4, 3))}
                if weighted:
                    inputs["class_weight"] = WEIGHTS
                case(f"softmax_cross_entropy_soft_{name}", "softmax_cross_entropy_soft", inputs, hard,
                     {key: attrs[key] for key in ("reduce", "label_smoothing")}, ["loss"],
                     constants=["class_weight"])
                if smoothing:
                    continue

                inputs = {"x": uniform(-3, -0.1, (2, 4, 3)), "t": LABELS}
                if weighted:
                    inputs["class_weight"] = WEIGHTS
                case(f"nll_loss_{name}", "nll_loss", inputs,
                     lambda x, t, class_weight=None, reduction=reduction: F.nll_loss(
                         x, t, None if class_weight is None else class_weight.detach(),
                         ignore_index=-1, reduction=reduction),
                     {"ignore_label": -1, "reduce": reduce}, ["loss"], constants=["class_weight"])

    case("softmax_cross_entropy_by_batch", "softmax_cross_entropy",
         {"x": uniform(-2, 2, (2, 4, 3)), "t": LABELS},
         lambda x, t: F.cross_entropy(x, t, ignore_index=-1, reduction="sum") / 2,
         {"normalize": False}, ["loss"])
    case("nll_loss_by_batch", "nll_loss", {"x": uniform(-3, -0.1, (5, 4)), "t": integers(0, 4, 5)},
         lambda x, t: F.nll_loss(x, t, ignore_index=2, reduction="sum") / 5,
         {"normalize": False, "ignore_label": 2}, ["loss"])
    case("softmax_cross_entropy_row", "softmax_cross_entropy",
         {"x": uniform(-5, 5, (3, 70)), "t": integers(0, 70, 3, "int32"),
          "class_weight": uniform(0.5, 2, (70,))},
         lambda x, t, class_weight: F.cross_entropy(x, t.long(), class_weight.detach(),
                                                    label_smoothing=0.1),
         {"label_smoothing": 0.1}, ["loss"], constants=["class_weight"])
    case("softmax_cross_entropy_soft_row", "softmax_cross_entropy_soft",
         {"x": uniform(-5, 5, (3, 70)), "t": probabilities((3, 70))},
         lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), {"label_smoothing": 0.1}, ["loss"])

    case("bce_with_logits", "bce_with_logits",
         {"x": uniform(-6, 6, (4, 5)), "t": uniform(0, 1, (4, 5))},
         lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"))
    case("bce_with_logits_large", "bce_with_logits",
         {"x": numpy.array([-200, -90, -20, 20, 90, 200], "float32"),
          "t": numpy.array([0, 1, 0, 1, 0, 0.5], "float32")},
         lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"))
    for delta in (1.0, 0.25):
        case(f"huber_{delta}", "huber", {"x0": uniform(-2, 2, (4, 5)), "x1": uniform(-2, 2, (4, 5))},
             lambda x0, x1, delta=delta: F.huber_loss(x0, x1, reduction="none", delta=delta),
             {"delta": delta})
