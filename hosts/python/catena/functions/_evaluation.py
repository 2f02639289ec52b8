"""Scores of predictions with Chainer's arguments."""
from typing import Any

from catena import _core
from catena import functions as F
from catena.functions._plugins import check_choice, plugins, variable, variables

__all__ = [
    "accuracy", "binary_accuracy", "classification_summary", "f1_score", "precision", "r2_score",
    "recall"]


def accuracy(y, t, ignore_label=None) -> Any:
    """The fraction of the rows whose largest score is at their label.

    Args:
        y: scores (N, classes, ...).
        t: labels (N, ...).
        ignore_label: rows with this label do not count; None: all count.
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


def binary_accuracy(y, t) -> Any:
    """The fraction of scores that are at least 0 for label 1, or below for 0; -1 is ignored."""
    y, t = variables("binary_accuracy", y=y, t=t)
    if y.shape != t.shape:
        raise _core.ShapeError(f"[binary_accuracy] t: expected the shape {y.shape}, got {t.shape}")
    right = F.equal(F.cast(F.greater_equal(y, 0), t.dtype), t)
    counted = F.maximum(F.sum(F.cast(F.not_equal(t, -1), "float64")), 1)
    return F.cast(F.sum(F.cast(right, "float64")) / counted, y.dtype)


def classification_summary(y, t, label_num=None, beta=1.0, ignore_label=-1) -> Any:
    """The precision, recall, F-beta score and number of labels of each class.

    Args:
        y: scores (N, classes, ...).
        t: labels (N, ...).
        label_num: the number of classes; None: one more than the largest label.
        beta: the weight of recall.
        ignore_label: rows with this label do not count.

    Returns a tuple of variables (classes,). The scores of a class without labels are NaN.
    """
    y, t = variable(y, "classification_summary", "y"), F.flatten(t)
    if label_num is None:
        label_num = int(F.max(t).array) + 1
    best = F.flatten(F.argmax(y, 1))
    if best.shape != t.shape:
        raise _core.ShapeError(f"[classification_summary] t: expected {best.size} labels for y of "
                               f"the shape {y.shape}, got {t.size}")
    counted = F.not_equal(t, ignore_label)
    true, found = (F.one_hot(F.where(counted, F.cast(labels, "int64"), -1), label_num,
                             dtype="float64") for labels in (t, best))
    right, support, relevant = F.sum(true * found, 0), F.sum(true, 0), F.sum(found, 0)
    precision, recall = right / relevant, right / support
    score = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return precision, recall, score, F.cast(support, "int64")


def precision(y, t, label_num=None, ignore_label=-1) -> Any:
    """The precision, and the number of labels, of each class."""
    return classification_summary(y, t, label_num, 1.0, ignore_label)[0::3]


def recall(y, t, label_num=None, ignore_label=-1) -> Any:
    """The recall, and the number of labels, of each class."""
    return classification_summary(y, t, label_num, 1.0, ignore_label)[1::2]


def f1_score(y, t, label_num=None, ignore_label=-1) -> Any:
    """The F1 score, and the number of labels, of each class."""
    return classification_summary(y, t, label_num, 1.0, ignore_label)[2:]


def r2_score(pred, true, sample_weight=None, multioutput="uniform_average") -> Any:
    """The coefficient of determination.

    It is 1 - sum((pred - true)^2) / sum((true - mean)^2), with sums and the mean over axis 0.

    Args:
        pred, true: arrays of one shape.
        sample_weight: must be None.
        multioutput: "uniform_average", or "raw_values" for the score of each element.
    """
    if sample_weight is not None:
        raise NotImplementedError("[r2_score] sample_weight: expected None")
    check_choice("r2_score", "multioutput", multioutput, ("uniform_average", "raw_values"))
    pred, true = (each.array for each in variables("r2_score", pred=pred, true=true))
    rest = F.sum(F.squared_error(pred, true), 0)
    total = F.sum(F.squared_error(true, F.broadcast_to(F.mean(true, 0), true.shape)), 0)
    score = F.where(F.equal(total, 0), 0.0, 1 - rest / F.where(F.equal(total, 0), 1.0, total))
    return F.mean(score) if multioutput == "uniform_average" else score
