"""Datasets whose examples are tuples or dictionaries."""
from typing import Any

__all__ = ["DictDataset", "TupleDataset"]


class TupleDataset:
    """Combines datasets of equal length. An example is the tuple of their examples."""

    def __init__(self, *datasets) -> None:
        if not datasets:
            raise ValueError("no datasets are given")
        for i, dataset in enumerate(datasets):
            if len(dataset) != len(datasets[0]):
                raise ValueError(f"dataset of the index {i} has a wrong length")
        self._datasets = datasets

    def __getitem__(self, index) -> Any:
        found = [dataset[index] for dataset in self._datasets]
        return list(zip(*found)) if isinstance(index, slice) else tuple(found)

    def __len__(self) -> int:
        return len(self._datasets[0])


class DictDataset:
    """Combines datasets of equal length. An example is a dictionary of their examples."""

    def __init__(self, **datasets) -> None:
        if not datasets:
            raise ValueError("no datasets are given")
        self._keys = list(datasets)
        lengths = [len(dataset) for dataset in datasets.values()]
        for key, length in zip(self._keys, lengths):
            if length != lengths[0]:
                raise ValueError(f'dataset length conflicts at "{key}"')
        self._datasets = TupleDataset(*datasets.values())

    def __getitem__(self, index) -> Any:
        found = self._datasets[index]
        if isinstance(index, slice):
            return [dict(zip(self._keys, each)) for each in found]
        return dict(zip(self._keys, found))

    def __len__(self) -> int:
        return len(self._datasets)
