"""Iterator, the base of dataset iterators."""
from typing import Any

__all__ = ["Iterator"]


class Iterator:
    """Gives minibatches as lists of examples. A subclass implements ``__next__()``."""

    def __del__(self):
        self.finalize()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError

    def next(self) -> Any:
        """The next minibatch, as ``next(iterator)``."""
        return self.__next__()

    def finalize(self) -> Any:
        """Ends the threads and processes of the iterator."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.finalize()

    def serialize(self, serializer) -> Any:
        """Saves or loads the position."""
