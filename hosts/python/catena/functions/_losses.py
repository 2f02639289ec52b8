"""Losses with Chainer's arguments."""
from typing import Any

from catena import _core
from catena.functions._plugins import F, check_choice, ends_of, in_dtype_of, plugins, variable
from catena.variable import as_array, as_variable

__all__ = [
    "argmax_crf1d", "connectionist_temporal_classification", "crf1d", "hinge", "negative_sampling",
    "softmax_cross_entropy"]


def softmax_cross_entropy(x, t, normalize=True, cache_score=True, class_weight=None,
                          ignore_label=-1, reduce="mean", enable_double_backprop=False,
                          soft_target_loss="cross-entropy") -> Any:
    """The cross entropy of softmax(x) and labels, or of it and probabilities of the classes.

    Args:
        x: scores (N, classes, ...).
        t: labels (N, ...), or probabilities in the shape of x, which get no gradient.
        normalize: divides the sum by the number of labels that are not ignored, else by N.
        cache_score: has no effect: the scores are not kept.
        class_weight: an array with a weight for each class.
        ignore_label: the loss of rows with this label is 0.
        reduce: "mean", or "no" for the loss of each label.
        enable_double_backprop: has no effect: all gradients can be differentiated.
        soft_target_loss: "cross-entropy" or "kl-divergence", for probabilities.
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
    """The loss of labels against classes that a sampler draws.

    Args:
        x: (N, size).
        t: labels (N,); -1 is ignored.
        W: (classes, size).
        sampler: a function of a shape that returns an array of classes.
        sample_size: the number of classes for each label.
        reduce: "sum", or "no" for the loss of each label.
        return_samples: whether to return the array (N, 1 + sample_size) of the label and the
            samples, too. If it is an array, these samples are used.
    """
    check_choice("negative_sampling", "reduce", reduce, ("sum", "no"))
    t = variable(t, "negative_sampling", "t")
    samples = F.cast(as_variable(sampler((len(t), sample_size + 1))), t.dtype)[:, 1:]
    loss = plugins.negative_sampling(x, t, W, samples, reduce)
    return (loss, F.concat([F.expand_dims(t, 1), samples]).array) if return_samples else loss


def crf1d(cost, xs, ys, reduce="mean") -> Any:
    """The negative log-likelihood of label sequences in a conditional random field.

    Args:
        cost: the score of label j after label i (labels, labels).
        xs: the scores of the labels at each step, (N, labels); N must not increase.
        ys: the labels at each step, (N,).
        reduce: "mean", or "no" for the loss of each sequence.
    """
    return plugins.crf1d(cost, F.concat(xs, 0), F.concat(ys, 0), [len(x) for x in xs], reduce)


def argmax_crf1d(cost, xs) -> Any:
    """The label sequences with the highest scores, as ``crf1d()`` scores them.

    Returns the scores (N,), and a list with an array of labels for each step.
    """
    rows = [len(x) for x in xs]
    score, path = plugins.argmax_crf1d(cost, F.concat(xs, 0), rows)
    return score, [labels.array for labels in F.split_axis(path, ends_of(rows)[:-1], 0)]


def connectionist_temporal_classification(x, t, blank_symbol, input_length=None, label_length=None,
                                          reduce="mean") -> Any:
    """The negative log-likelihood of label sequences that are shorter than their inputs.

    A sequence of labels stands for all sequences of the inputs' length that become it if repeated
    symbols count once and blanks are then left out. (Graves et al., ICML 2006.)

    Args:
        x: a list with the scores of the symbols at each step (N, symbols).
        t: labels (N, length).
        blank_symbol: the number of the blank.
        input_length: the number of steps of each sequence, (N,); None: all.
        label_length: the number of labels of each sequence, (N,); None: all.
        reduce: "mean", or "no" for the loss of each sequence.
    """
    return plugins.connectionist_temporal_classification(
        F.stack(x), t, blank_symbol, input_length, label_length, reduce)
