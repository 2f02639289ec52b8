"""Losses with Chainer's arguments."""
from typing import Any

from catena import _core
from catena import functions as F
from catena.functions._plugins import check_choice, in_dtype_of, plugins, variable, variables
from catena.variable import as_array, as_variable

__all__ = [
    "argmax_crf1d", "black_out", "connectionist_temporal_classification", "contrastive", "crf1d",
    "cross_covariance", "decov",
    "discriminative_margin_based_clustering_loss", "negative_sampling", "softmax_cross_entropy",
    "triplet"]


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


def _reduced(loss, reduce):
    """The mean over the batch, unless reduce is "no"."""
    return F.mean(loss) if reduce == "mean" else loss


def _check_margin(function, margin):
    if margin <= 0:
        raise ValueError(f"[{function}] margin: expected more than 0, got {margin}")


def contrastive(x0, x1, y, margin=1, reduce="mean") -> Any:
    """(y d^2 + (1 - y) max(margin - d, 0)^2) / 2 for the distances d of pairs of vectors.

    Args:
        x0, x1: vectors (N, size).
        y: 1 for pairs that should be close, 0 for those that should be apart: (N,).
        margin: the distance from which pairs are apart.
        reduce: "mean", or "no" for the loss of each pair.
    """
    _check_margin("contrastive", margin)
    check_choice("contrastive", "reduce", reduce, ("mean", "no"))
    difference = variable(x0, "contrastive", "x0", 2) - x1
    near = F.cast(y, difference.dtype)
    far = F.relu(margin - F.norm(difference, 2, 1))
    return _reduced((near * F.sum(difference**2, 1) + (1 - near) * far**2) * 0.5, reduce)


def triplet(anchor, positive, negative, margin=0.2, reduce="mean") -> Any:
    """max(|anchor - positive|^2 - |anchor - negative|^2 + margin, 0), for vectors (N, size).

    Args:
        anchor, positive, negative: vectors; the second one should be nearer to the first one.
        margin: by how much.
        reduce: "mean", or "no" for the loss of each triple.
    """
    _check_margin("triplet", margin)
    check_choice("triplet", "reduce", reduce, ("mean", "no"))
    anchor = variable(anchor, "triplet", "anchor")
    far = F.sum((anchor - positive)**2 - (anchor - negative)**2, 1)
    return _reduced(F.relu(far + margin), reduce)


def cross_covariance(y, z, reduce="half_squared_sum") -> Any:
    """The covariance of each element of y and of z over a batch, or half the sum of their squares.

    Args:
        y, z: (N, size of y), (N, size of z).
        reduce: "half_squared_sum", or "no" for the matrix (size of y, size of z).
    """
    check_choice("cross_covariance", "reduce", reduce, ("half_squared_sum", "no"))
    y, z = (variable(each, "cross_covariance", name, 2) - F.mean(each, 0, keepdims=True)
            for each, name in ((y, "y"), (z, "z")))
    covariance = F.matmul(y, z, True) / len(y)
    return F.sum(covariance**2) * 0.5 if reduce == "half_squared_sum" else covariance


def decov(h, reduce="half_squared_sum") -> Any:
    """The covariance of different elements of h over a batch, or half the sum of their squares.

    Args:
        h: (N, size).
        reduce: "half_squared_sum", or "no" for the matrix (size, size), whose diagonal is 0.
    """
    check_choice("decov", "reduce", reduce, ("half_squared_sum", "no"))
    covariance = cross_covariance(h, h, "no")
    diagonal = F.eye(len(covariance), dtype="bool", device=covariance.device)
    covariance = F.where(diagonal, 0, covariance)
    return F.sum(covariance**2) * 0.5 if reduce == "half_squared_sum" else covariance


def discriminative_margin_based_clustering_loss(
        embeddings, labels, delta_v, delta_d, max_embedding_dim, norm=1, alpha=1.0, beta=1.0,
        gamma=0.001) -> Any:
    """Pulls the embeddings of a cluster together and pushes the clusters apart.

    Args:
        embeddings: (N, max_embedding_dim, H, W).
        labels: the cluster of each pixel: (N, H, W), 1 to max_embedding_dim; others count nowhere.
        delta_v: the distance from their cluster's mean up to which embeddings are close.
        delta_d: half the distance from which means are apart.
        max_embedding_dim: the number of clusters, and of elements of an embedding.
        norm: 1 or 2: the norm of the distances.
        alpha, beta, gamma: the weights of the three losses.

    Returns a tuple of the losses of distances from means, between means, and of the means.
    """
    function = "discriminative_margin_based_clustering_loss"
    check_choice(function, "norm", norm, (1, 2))
    x, n = variable(embeddings, function, "embeddings", 4), max_embedding_dim
    if n <= 0 or x.shape[1] != n:
        raise _core.ShapeError(
            f"[{function}] embeddings: expected (N, {n}, H, W) with {n} > 0, got {x.shape}")
    size = len(x)
    clusters = F.arange(1, n + 1, device=x.device).reshape(n, 1, 1, 1)
    mask = F.cast(F.equal(labels, clusters), x.dtype).reshape(n, size, 1, *x.shape[2:])
    counts = F.sum(mask, (2, 3, 4))
    means = F.sum(x * mask, (3, 4)) / F.maximum(counts, 1).reshape(n, size, 1)
    distances = F.norm((means.reshape(n, size, n, 1, 1) - x) * mask, norm, 2)
    variance = F.sum(F.relu(distances - delta_v)**2, (1, 2, 3))
    variance = F.sum(variance / F.maximum(F.sum(counts, 1), 1)) / n
    between = [F.sum(F.relu(2 * delta_d - F.norm(means[a] - means[b], norm, 1))**2)
               for a in range(n) for b in range(a + 1, n)]
    apart = sum(between) / max(len(between) * size, 1)
    regular = F.sum(F.norm(means, norm, (1, 2))) / (n * size)
    return alpha * variance, beta * apart, gamma * regular


def black_out(x, t, W, samples, reduce="mean") -> Any:
    """The loss of labels and sampled other classes.

    Args:
        x: (N, size).
        t: labels (N,).
        W: (classes, size).
        samples: other classes for each label (N, number).
        reduce: "mean", or "no" for the loss of each label.
    """
    check_choice("black_out", "reduce", reduce, ("mean", "no"))
    ids = F.concat([F.expand_dims(t, 1), F.cast(samples, as_variable(t).dtype)])
    scores = F.sum(F.embed_id(ids, W) * F.expand_dims(x, 1), 2)
    logz = F.logsumexp(scores, 1, True)
    others = F.log1p(-F.exp(scores[:, 1:] - logz))
    loss = logz[:, 0] - scores[:, 0] - F.sum(others, 1)
    return F.mean(loss) if reduce == "mean" else loss


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
    x, t = variables("negative_sampling", x=x, t=t)
    samples = F.cast(as_variable(sampler((len(t), sample_size + 1))), t.dtype)
    samples = F.concat([F.expand_dims(t, 1), samples[:, 1:]])
    used = F.not_equal(t, -1)
    ids = F.where(F.expand_dims(used, 1), samples, 0)
    scores = F.sum(F.embed_id(ids, W) * F.expand_dims(x, 1), 2)
    loss = F.sum(F.softplus(F.concat([-scores[:, :1], scores[:, 1:]])), 1)
    loss = loss * F.cast(used, loss.dtype)
    loss = F.sum(loss) if reduce == "sum" else loss
    return (loss, samples.array) if return_samples else loss


def crf1d(cost, xs, ys, reduce="mean") -> Any:
    """The negative log-likelihood of label sequences in a conditional random field.

    Args:
        cost: the score of label j after label i (labels, labels).
        xs: the scores of the labels at each step, (N, labels); N must not increase.
        ys: the labels at each step, (N,).
        reduce: "mean", or "no" for the loss of each sequence.
    """
    check_choice("crf1d", "reduce", reduce, ("mean", "no"))
    cost = variable(cost, "crf1d", "cost", 2)
    n = len(cost)
    if xs[0].shape[1] != n:
        raise _core.ShapeError(f"[crf1d] xs: expected {n} labels, got {xs[0].shape}")
    lengths = [len(x) for x in xs]
    if lengths != sorted(lengths, reverse=True):
        raise _core.ShapeError("[crf1d] xs: expected steps of a number of sequences that does not "
                               f"increase, got {lengths}")
    alpha, score = as_variable(xs[0]), F.select_item(xs[0], ys[0])
    done = []
    for x, y, before in zip(xs[1:], ys[1:], ys):
        alpha, score = _running(len(x), done, alpha, score)
        alpha = F.logsumexp(F.expand_dims(alpha, 2) + cost, 1) + x
        step = F.take(cost, as_variable(before)[:len(x)], 0)
        score = score + F.select_item(x, y) + F.select_item(step, y)
    alpha, score = (F.concat(parts, 0) for parts in zip((alpha, score), *done[::-1]))
    loss = F.logsumexp(alpha, 1) - score
    return F.mean(loss) if reduce == "mean" else loss


def _running(n, done, *states):
    """The first n rows of the states. Moves other rows to `done`."""
    if len(states[0]) > n:
        done.append([state[n:] for state in states])
        states = [state[:n] for state in states]
    return states


def argmax_crf1d(cost, xs) -> Any:
    """The label sequences with the highest scores, as ``crf1d()`` scores them.

    Returns the scores (N,), and a list with an array of labels for each step.
    """
    alpha, done, came_from = as_variable(xs[0]), [], []
    for x in xs[1:]:
        ended = []
        alpha, = _running(len(x), ended, alpha)
        done.append(ended[0][0] if ended else None)
        scores = F.expand_dims(alpha, 2) + cost
        came_from.append(F.argmax(scores, 1))
        alpha = F.max(scores, 1) + x
    labels, score = F.argmax(alpha, 1), F.max(alpha, 1)
    path = [labels.array]
    for before, ended in zip(came_from[::-1], done[::-1]):
        labels = F.select_item(before, labels)
        if ended is not None:
            labels = F.concat([labels, F.argmax(ended, 1)], 0)
            score = F.concat([score, F.max(ended, 1)], 0)
        path.append(labels.array)
    return score, path[::-1]


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
    function = "connectionist_temporal_classification"
    check_choice(function, "reduce", reduce, ("mean", "no"))
    if not isinstance(x, (list, tuple)) or not isinstance(blank_symbol, int):
        raise TypeError(f"[{function}] x, blank_symbol: expected a list and an integer, got "
                        f"{type(x).__name__} and {type(blank_symbol).__name__}")
    scores = F.log_softmax(F.stack(x), 2)
    t = variable(t, function, "t", 2)
    blanks = F.full_like(t, blank_symbol)
    path = F.stack([blanks, t], 2).reshape(len(t), -1)  # labels between blanks
    path = F.concat([path, blanks[:, :1]], 1)
    never = -1e4 if scores.dtype == "float16" else -1e10  # the logarithm of 0, with a gradient
    scores = F.take_along_axis(scores, F.broadcast_to(path, (len(x),) + path.shape), 2)

    def moved(states, by):
        return F.pad(states[:, :-by], ((0, 0), (by, 0)), "constant", constant_values=never)

    # a step moves on by one symbol, or by two if it leaves out a blank between different labels
    skip = F.where(F.equal(path[:, 2:], path[:, :-2]), never, F.full_like(scores[0, :, 2:], 0))
    skip = F.pad(skip, ((0, 0), (2, 0)), "constant")
    alpha = F.pad(F.full_like(scores[0, :, :1], 0), ((0, 0), (0, path.shape[1] - 1)), "constant",
                  constant_values=never)
    for i in range(len(x)):
        step = F.logsumexp(F.stack([alpha, moved(alpha, 1), moved(alpha, 2) + skip]), 0) + scores[i]
        alpha = step if input_length is None else F.where(
            F.expand_dims(F.greater(input_length, i), 1), step, alpha)
    if label_length is None:
        ends = alpha[:, -2:]
    else:
        last = F.cast(label_length, "int64") * 2
        label = F.select_item(alpha, F.maximum(last - 1, 0))
        ends = F.stack([F.select_item(alpha, last), F.where(F.greater(last, 0), label, never)], 1)
    loss = -F.logsumexp(ends, 1)
    return F.mean(loss) if reduce == "mean" else loss
