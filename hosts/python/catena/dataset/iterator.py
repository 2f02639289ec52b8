"""Iterator, the base of dataset iterators."""

__all__ = ["Iterator"]


class Iterator:
    """Gives minibatches as lists of examples. A subclass implements ``__next__()``."""

    def __del__(self):
        self.finalize()

    def __iter__(self):
        return self

    def __next__(self):
        raise NotImplementedError

    def next(self):
        """The next minibatch, as ``next(iterator)``."""
        return self.__next__()

    def finalize(self):
        """Ends the threads and processes of the iterator."""

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.finalize()

    def serialize(self, serializer):
        """Saves or loads the position."""
