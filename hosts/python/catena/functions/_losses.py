"""Losses and scores of predictions, with Chainer's arguments."""
from typing import Any

from catena import _core
from catena.functions._plugins import (
    F, check_choice, in_dtype_of, plugins, split, variable, variables)
from catena.variable import as_array, as_variable

__all__ = [
    "accuracy", "argmax_crf1d", "connectionist_temporal_classification", "crf1d", "hinge",
    "negative_sampling", "softmax_cross_entropy"]


def accuracy(y, t, ignore_label=None) -> Any:
    """The fraction of the rows of scores y (N, classes, ...) whose largest score is at their label.

    Labels t (N, ...) that are ``ignore_label`` do not count.
    """
    y, t = variables("accuracy", y=y, t=t)
    if getattr(t.dtype, "kind", "f") == "f":
        raise _core.DtypeError(f"[accuracy] t: expected integers, got {t.dtype}")
    if y.ndim > t.ndim + 1 and y.size == y.shape[1] * t.size:
        y = y.reshape(y.shape[:2] + t.shape[1:])
    if ignore_label is not None:
        return plugins.accuracy(y, t, ignore_label)
    best = plugins.argmax(y, 1)  # plugins.accuracy refuses labels that are no classes
    if best.shape != t.shape:
        raise _core.ShapeError(f"[accuracy] t: expected the shape {best.shape}, got {t.shape}")
    return plugins.mean(plugins.cast(F.equal(best, t), y.dtype))


def softmax_cross_entropy(x, t, normalize=True, cache_score=True, class_weight=None,
                          ignore_label=-1, reduce="mean", enable_double_backprop=False,
                          soft_target_loss="cross-entropy") -> Any:
    """The cross entropy of softmax(x) and labels, or of it and probabilities of the classes.

    t has labels (N, ...), or probabilities in the shape of x (N, classes, ...), which get no gradient; for
    these, soft_target_loss is "cross-entropy" or "kl-divergence". cache_score and enable_double_backprop
    have no effect.
    """
    check_choice("softmax_cross_entropy", "reduce", reduce, ("mean", "no"))
    check_choice("softmax_cross_entropy", "soft_target_loss", soft_target_loss,
                 ("cross-entropy", "kl-divergence"))
    if class_weight is not None:
        _check_class_weight(class_weight)
        x = as_variable(x)
        class_weight = plugins.cast(as_variable(class_weight), x.dtype)
    kind = getattr(getattr(t, "dtype", None), "kind", "i")
    if kind in "iu":
        if class_weight is None or reduce == "no" or not normalize:
            return plugins.softmax_cross_entropy(x, t, class_weight, ignore_label, reduce, 0.0,
                                                 normalize)
        loss = plugins.softmax_cross_entropy(x, t, class_weight, ignore_label, "no")
        count = plugins.sum(F.not_equal(t, ignore_label))
        half = str(loss.dtype) in ("float16", "bfloat16")  # their range is too small for the sum
        total = plugins.sum(plugins.cast(loss, "float32") if half else loss)
        return in_dtype_of(loss, total / max(int(count.array), 1))
    x = as_variable(x)
    t = in_dtype_of(x, as_variable(as_array(t)))  # a constant, as in Chainer
    loss = plugins.softmax_cross_entropy_soft(x, t, class_weight, "no")
    if soft_target_loss == "kl-divergence":
        loss += F.sum(t * plugins.log(t + 1e-7), 1)
    return plugins.mean(loss) if reduce == "mean" else loss


def _check_class_weight(class_weight):
    if not isinstance(as_array(class_weight), _core.Array) and not hasattr(class_weight, "dtype"):
        raise ValueError("[softmax_cross_entropy] class_weight: expected an array, got "
                         f"{type(class_weight).__name__}")
    if class_weight.ndim != 1 or class_weight.dtype.kind != "f":
        raise ValueError("[softmax_cross_entropy] class_weight: expected one axis and a floating "
                         f"dtype, got {class_weight.ndim} axes and {class_weight.dtype}")


def hinge(x, t, norm="L1", reduce="mean") -> Any:
    """max(0, 1 - x) at the label and max(0, 1 + x) at other classes; squared for "L2"."""
    if norm not in ("L1", "L2"):
        raise _core.UnsupportedError(f"[hinge] norm: expected 'L1' or 'L2', got {norm!r}")
    return plugins.hinge(x, t, norm, reduce)


def negative_sampling(x, t, W, sampler, sample_size, reduce="sum", *, return_samples=False) -> Any:
    """The loss of labels against ``sample_size`` classes for each, which a function of a shape draws.

    return_samples returns the array (N, 1 + sample_size) of the labels and the drawn classes, too.
    """
    check_choice("negative_sampling", "reduce", reduce, ("sum", "no"))
    t = variable(t, "negative_sampling", "t")
    samples = F.cast(as_variable(sampler((len(t), sample_size + 1))), t.dtype)[:, 1:]
    loss = plugins.negative_sampling(x, t, W, samples, reduce)
    return (loss, F.concat([F.expand_dims(t, 1), samples]).array) if return_samples else loss


def crf1d(cost, xs, ys, reduce="mean") -> Any:
    """The negative log-likelihood of label sequences in a conditional random field.

    xs and ys are lists with the scores of the labels (N, labels) and the labels (N,) at each step, where N
    must not increase.
    """
    return plugins.crf1d(cost, F.concat(xs, 0), F.concat(ys, 0), [len(x) for x in xs], reduce)


def argmax_crf1d(cost, xs) -> Any:
    """The label sequences with the highest scores, as ``crf1d()`` scores them.

    Returns the scores (N,), and a list with an array of labels for each step.
    """
    rows = [len(x) for x in xs]
    score, path = plugins.argmax_crf1d(cost, F.concat(xs, 0), rows)
    return score, [labels.array for labels in split(path, rows)]


def connectionist_temporal_classification(x, t, blank_symbol, input_length=None, label_length=None,
                                          reduce="mean") -> Any:
    """The negative log-likelihood of label sequences t (N, length) that are shorter than their inputs.

    ``catena.connectionist_temporal_classification`` of a list x with the scores of the symbols at each
    step, (N, symbols).
    """
    return plugins.connectionist_temporal_classification(
        F.stack(x), t, blank_symbol, input_length, label_length, reduce)
