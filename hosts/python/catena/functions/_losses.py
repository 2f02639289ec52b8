"""Losses and scores with Chainer's arguments."""
from catena._core import Array, ShapeError, forms
from catena.functions._plugins import plugins
from catena.variable import as_array, as_variable

__all__ = ["accuracy", "softmax_cross_entropy"]


def accuracy(y, t, ignore_label=None):
    """The fraction of the rows whose largest score is at their label.

    Args:
        y: scores (N, classes, ...).
        t: labels (N, ...).
        ignore_label: rows with this label do not count; None: all count.
    """
    y, t = as_variable(y), as_variable(t)
    if y.ndim > t.ndim + 1 and y.size == y.shape[1] * t.size:
        y = y.reshape(y.shape[:2] + t.shape[1:])
    if ignore_label is not None:
        return plugins.accuracy(y, t, ignore_label)
    best = plugins.argmax(y, 1)  # plugins.accuracy refuses labels that are no classes
    if best.shape != t.shape:
        raise ShapeError(f"[accuracy] t: expected the shape {best.shape}, got {t.shape}")
    return plugins.mean(plugins.cast(forms.equal(best, t), y.dtype))


def softmax_cross_entropy(x, t, normalize=True, cache_score=True, class_weight=None,
                          ignore_label=-1, reduce="mean", enable_double_backprop=False,
                          soft_target_loss="cross-entropy"):
    """The cross entropy of softmax(x) and labels, or of it and probabilities of the classes.

    Args:
        x: scores (N, classes, ...).
        t: labels (N, ...), or probabilities in the shape of x.
        normalize: divides the sum by the number of labels that are not ignored, else by N.
        cache_score: has no effect: the scores are not kept.
        class_weight: an array with a weight for each class.
        ignore_label: the loss of rows with this label is 0.
        reduce: "mean", or "no" for the loss of each label.
        enable_double_backprop: has no effect: all gradients can be differentiated.
        soft_target_loss: "cross-entropy" or "kl-divergence", for probabilities.
    """
    if reduce not in ("mean", "no"):
        raise ValueError(f"[softmax_cross_entropy] reduce: expected 'mean' or 'no', got {reduce!r}")
    if soft_target_loss not in ("cross-entropy", "kl-divergence"):
        raise ValueError("[softmax_cross_entropy] soft_target_loss: expected 'cross-entropy' or "
                         f"'kl-divergence', got {soft_target_loss!r}")
    if class_weight is not None:
        _check_class_weight(class_weight)
    kind = getattr(getattr(t, "dtype", None), "kind", "i")
    if kind in "iu":
        if class_weight is None or reduce == "no" or not normalize:
            return plugins.softmax_cross_entropy(x, t, class_weight, ignore_label, reduce, 0.0,
                                                 normalize)
        loss = plugins.softmax_cross_entropy(x, t, class_weight, ignore_label, "no")
        count = plugins.sum(plugins.cast(forms.not_equal(t, ignore_label), "int64"))
        return plugins.sum(loss) / max(int(count.array), 1)
    loss = plugins.softmax_cross_entropy_soft(x, t, class_weight, "no")
    if soft_target_loss == "kl-divergence":
        t = as_variable(t)
        loss += forms.sum(t * plugins.log(t + 1e-7), 1)
    return plugins.mean(loss) if reduce == "mean" else loss


def _check_class_weight(class_weight):
    if not isinstance(as_array(class_weight), Array) and not hasattr(class_weight, "dtype"):
        raise ValueError("[softmax_cross_entropy] class_weight: expected an array, got "
                         f"{type(class_weight).__name__}")
    if class_weight.ndim != 1 or class_weight.dtype.kind != "f":
        raise ValueError("[softmax_cross_entropy] class_weight: expected one axis and a floating "
                         f"dtype, got {class_weight.ndim} axes and {class_weight.dtype}")
