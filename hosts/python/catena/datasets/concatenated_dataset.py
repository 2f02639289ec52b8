"""ConcatenatedDataset, datasets one after another."""
from typing import Any

from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["ConcatenatedDataset"]


class ConcatenatedDataset(DatasetMixin):
    """The examples of several datasets, one after another."""

    def __init__(self, *datasets) -> None:
        self._datasets = datasets

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._datasets)

    def get_example(self, i) -> Any:
        if i >= 0:
            for dataset in self._datasets:
                if i < len(dataset):
                    return dataset[i]
                i -= len(dataset)
        raise IndexError("dataset index out of range")
