"""DatasetMixin, the base of datasets."""
from typing import Any

import numpy

__all__ = ["DatasetMixin"]


class DatasetMixin:
    """Adds indexing with slices and lists to a class with ``get_example(i)`` and ``__len__()``."""

    def __getitem__(self, index) -> Any:
        """An example, or a list of examples for a slice, a list or an array of indices."""
        if isinstance(index, slice):
            return [self.get_example(i) for i in range(*index.indices(len(self)))]
        if isinstance(index, (list, numpy.ndarray)):
            return [self.get_example(i) for i in index]
        return self.get_example(index)

    def __len__(self) -> int:
        raise NotImplementedError

    def get_example(self, i) -> Any:
        """The example with a number."""
        raise NotImplementedError
