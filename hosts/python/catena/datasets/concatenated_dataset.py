"""ConcatenatedDataset, datasets one after another."""
from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["ConcatenatedDataset"]


class ConcatenatedDataset(DatasetMixin):
    """The examples of several datasets, one after another."""

    def __init__(self, *datasets):
        self._datasets = datasets

    def __len__(self):
        return sum(len(dataset) for dataset in self._datasets)

    def get_example(self, i):
        if i >= 0:
            for dataset in self._datasets:
                if i < len(dataset):
                    return dataset[i]
                i -= len(dataset)
        raise IndexError("dataset index out of range")
