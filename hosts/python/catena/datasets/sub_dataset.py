"""Parts of datasets."""
import numbers
from typing import Any

import numpy

from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["SubDataset", "get_cross_validation_datasets", "get_cross_validation_datasets_random",
           "split_dataset", "split_dataset_n", "split_dataset_n_random", "split_dataset_random"]


class SubDataset(DatasetMixin):
    """The examples from start to finish of a dataset, after it was put into an order.

    order: the indices of the dataset's examples; None: their own order.
    """

    def __init__(self, dataset, start, finish, order=None) -> None:
        if start < 0 or finish > len(dataset):
            raise ValueError("subset overruns the base dataset.")
        if order is not None and len(order) != len(dataset):
            raise ValueError("order option must have the same length as the base dataset: "
                             f"len(order) = {len(order)} while len(dataset) = {len(dataset)}")
        self._dataset = dataset
        self._start = start
        self._finish = finish
        self._order = order

    def __len__(self) -> int:
        return self._finish - self._start

    def get_example(self, i) -> Any:
        if not -len(self) <= i < len(self):
            raise IndexError("dataset index out of range")
        index = i + (self._start if i >= 0 else self._finish)
        return self._dataset[index if self._order is None else self._order[index]]


def _shuffled(dataset, seed):
    return numpy.random.RandomState(seed).permutation(len(dataset))


def split_dataset(dataset, split_at, order=None) -> tuple[SubDataset, SubDataset]:
    """Two parts: the first `split_at` examples, and the others."""
    if not isinstance(split_at, numbers.Integral):
        raise TypeError(f"split_at must be int, got {type(split_at)} instead")
    if split_at < 0:
        raise ValueError("split_at must be non-negative")
    if split_at > len(dataset):
        raise ValueError("split_at exceeds the dataset size")
    return (SubDataset(dataset, 0, split_at, order),
            SubDataset(dataset, split_at, len(dataset), order))


def split_dataset_random(dataset, first_size, seed=None) -> tuple[SubDataset, SubDataset]:
    """Two parts in a random order; the first has `first_size` examples."""
    return split_dataset(dataset, first_size, _shuffled(dataset, seed))


def split_dataset_n(dataset, n, order=None) -> list[SubDataset]:
    """n parts of equal size; the last examples that do not suffice for one are left out."""
    size = len(dataset) // n
    return [SubDataset(dataset, size * i, size * (i + 1), order) for i in range(n)]


def split_dataset_n_random(dataset, n, seed=None) -> list[SubDataset]:
    """n parts of equal size in a random order."""
    return split_dataset_n(dataset, n, _shuffled(dataset, seed))


def get_cross_validation_datasets(dataset, n_folds, order=None) -> Any:
    """n_folds pairs of training and test parts; each example is in one test part."""
    order = numpy.arange(len(dataset)) if order is None else numpy.array(order)
    size = len(dataset)
    splits = []
    for i in reversed(range(n_folds)):
        test_size = size * (i + 1) // n_folds - size * i // n_folds
        splits.append(split_dataset(dataset, size - test_size, order))
        order = numpy.roll(order, test_size)
    return splits


def get_cross_validation_datasets_random(dataset, n_folds, seed=None) -> Any:
    """n_folds pairs of training and test parts in a random order."""
    return get_cross_validation_datasets(dataset, n_folds, _shuffled(dataset, seed))
