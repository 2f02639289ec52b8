"""Links that compute losses."""
import heapq
import json

from catena import functions as F
from catena.configuration import get_dtype
from catena.initializers import Uniform
from catena.link import Link
from catena.variable import Parameter


class BinaryHierarchicalSoftmax(Link):
    """A loss over many words that costs only the depth of a tree: -log p of the path to each word.

    Args:
        in_size: the number of inputs per sample.
        tree: a binary tree of words as nested pairs, such as ((1, 2), 3); see create_huffman_tree().
        dtype: that of W; by default config.dtype.
    """

    def __init__(self, in_size, tree, dtype=None):
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
        self._tree = json.dumps(tree)
        with self.init_scope():
            self.W = Parameter(Uniform(1, dtype=get_dtype(dtype)), (n_nodes, in_size))

    @staticmethod
    def create_huffman_tree(word_counts):
        """The tree of words with the smallest mean depth.

        Args:
            word_counts: a dictionary of words with the numbers of their occurrences.
        """
        if not word_counts:
            raise ValueError("Empty vocabulary")
        queue = [(count, i, word) for i, (word, count) in enumerate(word_counts.items())]
        heapq.heapify(queue)
        while len(queue) >= 2:
            (count1, i1, word1), (count2, i2, word2) = heapq.heappop(queue), heapq.heappop(queue)
            heapq.heappush(queue, (count1 + count2, min(i1, i2), (word1, word2)))
        return queue[0][2]

    def forward(self, x, t):
        # The sign of Chainer's code, which is not the one of its documentation and of the function.
        return F.binary_hierarchical_softmax(-x, t, self.W, self._tree)
