"""PickleDataset, objects that are pickled one after another in a file."""
import io
import multiprocessing.util
import pickle
import threading
from typing import Any

from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["PickleDataset", "PickleDatasetWriter", "open_pickle_dataset",
           "open_pickle_dataset_writer"]


class PickleDatasetWriter:
    """Writes the objects of a PickleDataset.

    Args:
        writer: a file that is open for writing bytes.
        protocol: that of pickle.
    """

    def __init__(self, writer, protocol=pickle.HIGHEST_PROTOCOL) -> None:
        self._writer = writer
        self._protocol = protocol

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.close()

    def write(self, x) -> None:
        """Appends an object."""
        pickle.dump(x, self._writer, protocol=self._protocol)

    def flush(self) -> None:
        """Flushes the file."""
        if hasattr(self._writer, "flush"):
            self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


class PickleDataset(DatasetMixin):
    """The objects of a file that a PickleDatasetWriter wrote; each is read when it is used.

    The constructor reads the file once to find the objects. Unpickling runs code that the file
    names, so the file must come from a trusted source.

    Args:
        reader: a file that is open for reading bytes, with random access. Its method after_fork(),
            if it has one, is called in processes that are forked.
    """

    def __init__(self, reader) -> None:
        if not reader.seekable():
            raise ValueError("[PickleDataset] reader: expected a file with random access, got "
                             f"{reader!r}")
        self._reader = reader
        self._positions = []
        reader.seek(0)
        while True:
            position = reader.tell()
            try:
                pickle.load(reader)
            except EOFError:
                break
            self._positions.append(position)
        self._start()

    def _start(self):
        self._lock = threading.RLock()
        multiprocessing.util.register_after_fork(self, PickleDataset._after_fork)

    def _after_fork(self):
        after_fork = getattr(self._reader, "after_fork", None)
        if callable(after_fork):
            after_fork()

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._positions)

    def close(self) -> None:
        """Closes the file, after which the dataset cannot be used."""
        with self._lock:
            self._reader.close()

    def get_example(self, i) -> Any:
        with self._lock:
            self._reader.seek(self._positions[i])
            return pickle.load(self._reader)


class _FileReader(io.RawIOBase):
    """A file that is pickled as its name, and that forked processes reopen.

    Processes that share an open file would share its position.
    """

    def __init__(self, path) -> None:
        super().__init__()
        self._path = path
        self._file = open(path, "rb")

    def after_fork(self) -> None:
        self._file.close()
        self._file = open(self._path, "rb")

    def __getstate__(self):
        return self._path

    def __setstate__(self, path):
        self.__init__(path)

    def close(self) -> None:
        self._file.close()

    def fileno(self) -> Any:
        return self._file.fileno()

    def seekable(self) -> Any:
        return self._file.seekable()

    def seek(self, offset, whence=io.SEEK_SET) -> Any:
        return self._file.seek(offset, whence)

    def tell(self) -> Any:
        return self._file.tell()

    def readinto(self, buffer) -> Any:
        return self._file.readinto(buffer)


def open_pickle_dataset(path) -> PickleDataset:
    """The PickleDataset of a file; its close(), or a ``with`` block, closes the file."""
    return PickleDataset(_FileReader(path))


def open_pickle_dataset_writer(path, protocol=pickle.HIGHEST_PROTOCOL) -> PickleDatasetWriter:
    """A PickleDatasetWriter of a new file; its close(), or a ``with`` block, closes the file."""
    return PickleDatasetWriter(open(path, "wb"), protocol)
