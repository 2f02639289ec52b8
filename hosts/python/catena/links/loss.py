"""Links that compute losses."""
import heapq
import json
from typing import Any

import numpy

from catena import _core
from catena import functions as F
from catena.configuration import get_dtype
from catena.initializers import Uniform, Zero
from catena.link import Link
from catena.links.recurrent import _longest_first
from catena.utils.walker_alias import WalkerAlias
from catena.variable import Parameter

__all__ = ["BinaryHierarchicalSoftmax", "BlackOut", "CRF1d", "NegativeSampling"]


class BinaryHierarchicalSoftmax(Link):
    """A loss over many words that costs only the depth of a tree: -log p of the path to each word.

    Args:
        in_size: the number of inputs per sample.
        tree: a binary tree of words as nested pairs: ((1, 2), 3); see create_huffman_tree().
        dtype: that of W; by default config.dtype.
    """

    def __init__(self, in_size, tree, dtype=None) -> None:
        super().__init__()
        n_nodes = 0
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, tuple):
                if len(node) != 2:
                    raise ValueError("All internal nodes must have two child nodes, got "
                                     f"{len(node)}")
                n_nodes += 1
                waiting.extend(node)
        self._tree = json.dumps(tree, default=int)  # words may be integers of NumPy
        with self.init_scope():
            self.W = Parameter(Uniform(1, dtype=get_dtype(dtype)), (n_nodes, in_size))

    @staticmethod
    def create_huffman_tree(word_counts) -> Any:
        """The tree with the smallest mean depth for a dictionary of words and numbers of occurrences."""
        if not word_counts:
            raise ValueError("Empty vocabulary")
        queue = [(count, i, word) for i, (word, count) in enumerate(word_counts.items())]
        heapq.heapify(queue)
        while len(queue) >= 2:
            (count1, i1, word1), (count2, i2, word2) = heapq.heappop(queue), heapq.heappop(queue)
            heapq.heappush(queue, (count1 + count2, min(i1, i2), (word1, word2)))
        return queue[0][2]

    def forward(self, x, t) -> Any:
        # The sign of Chainer's code, which is not the one of its documentation and of the function.
        return F.binary_hierarchical_softmax(-x, t, self.W, self._tree)


class _Sampled(Link):
    """A link with a sampler of classes."""

    def _sample(self, shape):
        return _core.as_array(self.sampler.sample(shape)).to_device(self.device)


class NegativeSampling(_Sampled):
    """A loss over many classes that only compares the right one with random others.

    Args:
        in_size: the number of inputs per sample.
        counts: how often each class occurs.
        sample_size: the number of other classes for each sample.
        power: classes are drawn with probabilities proportional to counts^power.
        dtype: of the powers; by default config.dtype.
    """

    def __init__(self, in_size, counts, sample_size, power=0.75, dtype=None) -> None:
        super().__init__()
        self.sample_size = sample_size
        dtype = numpy.dtype(get_dtype(dtype))
        self.sampler = WalkerAlias(numpy.power(numpy.array(counts, dtype), dtype.type(power)))
        with self.init_scope():
            self.W = Parameter(0, (len(counts), in_size))

    def forward(self, x, t, reduce="sum", *, return_samples=False) -> Any:
        return F.negative_sampling(x, t, self.W, self._sample, self.sample_size, reduce=reduce,
                                   return_samples=return_samples)


class BlackOut(_Sampled):
    """A loss over many classes that approximates softmax with random classes.

    The arguments are those of NegativeSampling with the power 1.
    """

    sample_data = None  # the classes to use instead of random ones

    def __init__(self, in_size, counts, sample_size) -> None:
        super().__init__()
        self.sampler = WalkerAlias(counts)
        self.sample_size = sample_size
        with self.init_scope():
            self.W = Parameter(shape=(len(counts), in_size))

    def forward(self, x, t) -> Any:
        samples = self.sample_data
        if samples is None:
            samples = self._sample((x.shape[0], self.sample_size))
        return F.black_out(x, t, self.W, samples)


class CRF1d(Link):
    """A conditional random field over sequences of ``n_label`` labels.

    initial_cost is an initializer or array of the scores of label j after label i; by default 0.
    """

    def __init__(self, n_label, initial_cost=None) -> None:
        super().__init__()
        with self.init_scope():
            self.cost = Parameter(Zero() if initial_cost is None else initial_cost,
                                  (n_label, n_label))

    def forward(self, xs, ys, reduce="mean", transpose=False) -> Any:
        """The negative log-likelihood of the labels ys: the mean, or with "no" that of each sequence.

        xs has, for each step, the scores of labels (N, n_label), where N must not increase; with
        ``transpose``, sequences (length, n_label) in any order. ys has the same form.
        """
        if transpose:
            order = _longest_first(xs)
            xs, ys = (F.transpose_sequence([each[i] for i in order]) for each in (xs, ys))
        return F.crf1d(self.cost, xs, ys, reduce)

    def argmax(self, xs, transpose=False) -> Any:
        """The most likely labels of xs: their scores and the labels, in the form of xs."""
        if not transpose:
            return F.argmax_crf1d(self.cost, xs)
        order = _longest_first(xs)
        scores, path = F.argmax_crf1d(self.cost, F.transpose_sequence([xs[i] for i in order]))
        path = F.transpose_sequence(path)
        return scores, [path[i].array for i in numpy.argsort(order)]
