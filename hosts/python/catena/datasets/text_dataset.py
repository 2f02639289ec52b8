"""TextDataset, the lines of text files."""
import threading
from typing import Any

from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["TextDataset"]


class TextDataset(DatasetMixin):
    """The lines of a text file, or tuples of the lines of several files, which have equal numbers.

    Lines are read when they are used. The constructor reads the files once and keeps the places
    where lines begin, which are part of a pickle too: the files must not change.

    Args:
        paths: the name of a file, or several.
        encoding, errors, newline: see open(); one value for all files, or one for each.
        filter_func: takes the lines of all files with one number, and returns whether to use them.
    """

    def __init__(self, paths, encoding=None, errors=None, newline=None, filter_func=None) -> None:
        paths = [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
        if not paths:
            raise ValueError("[TextDataset] paths: expected at least one text file, got none")
        options = {"encoding": encoding, "errors": errors, "newline": newline}
        for name, option in options.items():
            if option is None or isinstance(option, str):
                options[name] = [option] * len(paths)
            elif len(option) != len(paths):
                raise ValueError(f"[TextDataset] {name}: expected a value for each of {len(paths)} "
                                 f"files, got {len(option)}")
        self._arguments = [
            dict(zip(("file", *options), each)) for each in zip(paths, *options.values())]
        self._open()
        try:
            self._find_lines(filter_func)
        except BaseException:
            self.close()
            raise

    def _open(self):
        self._lock = threading.Lock()
        self._fps = []
        try:
            for arguments in self._arguments:
                self._fps.append(open(**arguments))
        except BaseException:
            self.close()
            raise

    def _find_lines(self, filter_func):
        self._begins = []  # for each line, its places in the files
        while True:
            places = [file.tell() for file in self._fps]
            lines = [file.readline() for file in self._fps]
            if not all(lines):
                break
            if filter_func is None or filter_func(*lines):
                self._begins.append(places)
        if any(lines):
            raise ValueError("[TextDataset] paths: expected files with equal numbers of lines, got "
                             "files of which some end earlier: " + ", ".join(
                                 str(arguments["file"]) for arguments, line in
                                 zip(self._arguments, lines) if not line))

    def __getstate__(self):
        return {"_arguments": self._arguments, "_begins": self._begins}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return len(self._begins)

    def close(self) -> None:
        """Closes the files. Otherwise they are closed with the dataset."""
        error = None
        for file in self._fps:
            try:
                file.close()
            except Exception as e:
                error = e
        if error is not None:
            raise error

    def get_example(self, i) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(f"[TextDataset] expected an index below {len(self)}, got {i}")
        with self._lock:
            for file, begin in zip(self._fps, self._begins[i]):
                file.seek(begin)
            lines = tuple(file.readline() for file in self._fps)
        return lines if len(lines) > 1 else lines[0]
