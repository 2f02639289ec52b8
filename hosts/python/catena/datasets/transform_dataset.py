"""TransformDataset, which applies a function to the examples of a dataset."""
from typing import Any

from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["TransformDataset"]


class TransformDataset(DatasetMixin):
    """Its examples are ``transform(example)`` of another dataset, computed when they are used."""

    def __init__(self, dataset, transform) -> None:
        self._dataset = dataset
        self._transform = transform

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i) -> Any:
        return self._transform(self._dataset[i])
