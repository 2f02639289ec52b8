"""Datasets of image files, which Pillow reads."""
import importlib.util
import io
import os
import threading
import zipfile
from typing import Any

import numpy

from catena.configuration import get_dtype
from catena.dataset.dataset_mixin import DatasetMixin
from catena.datasets.concatenated_dataset import ConcatenatedDataset

__all__ = ["ImageDataset", "LabeledImageDataset", "LabeledZippedImageDataset",
           "MultiZippedImageDataset", "ZippedImageDataset"]

available = importlib.util.find_spec("PIL") is not None


def _read(file, dtype):
    from PIL import Image
    with Image.open(file) as opened:
        image = numpy.asarray(opened, dtype=dtype)
    return (image[..., None] if image.ndim == 2 else image).transpose(2, 0, 1)


def _read_pairs(path):
    """The pairs of a name and a number in the lines of a file."""
    with open(path) as file:
        lines = [line.split() for line in file]
    for i, line in enumerate(lines):
        if len(line) != 2:
            raise ValueError(f"invalid format at line {i} in file {path}")
    return [(name, int(label)) for name, label in lines]


class _Images(DatasetMixin):
    """Images with paths."""

    def __init__(self, dtype) -> None:
        import PIL  # noqa: F401 (its absence shows here)
        self._dtype = get_dtype(dtype)

    def __len__(self) -> int:
        return len(self._paths)


class ImageDataset(_Images):
    """Images as arrays (channel, height, width).

    Args:
        paths: the names of the files, or the name of a file with one name in each line.
        root: the folder of the files.
        dtype: the dtype; None: config.dtype.
    """

    def __init__(self, paths, root=".", dtype=None) -> None:
        super().__init__(dtype)
        if isinstance(paths, str):
            with open(paths) as file:
                paths = [line.strip() for line in file]
        self._paths = paths
        self._root = root

    def get_example(self, i) -> Any:
        return _read(os.path.join(self._root, self._paths[i]), self._dtype)


class _Labeled(DatasetMixin):
    """Pairs of an image and its label, from pairs of a name and a number."""

    def __init__(self, images, pairs, label_dtype) -> None:
        self._images = images
        self._images._paths = [name for name, _ in pairs]
        self._labels = numpy.array([label for _, label in pairs], label_dtype)

    def __len__(self) -> int:
        return len(self._images)

    def get_example(self, i) -> Any:
        return self._images.get_example(i), self._labels[i, ...]


class LabeledImageDataset(_Labeled):
    """Pairs of an image and its label, a 0-d array; see ImageDataset.

    ``pairs`` are the names of files with a number each, or the name of a file with one pair in each line.
    """

    def __init__(self, pairs, root=".", dtype=None, label_dtype=numpy.int32) -> None:
        if isinstance(pairs, str):
            pairs = _read_pairs(pairs)
        super().__init__(ImageDataset([], root, dtype), pairs, label_dtype)


class ZippedImageDataset(_Images):
    """The images in a zip file, which contains nothing else; see ImageDataset."""

    def __init__(self, zipfilename, dtype=None) -> None:
        super().__init__(dtype)
        self._zipfilename = zipfilename
        self._open()
        self._paths = [name for name in self._file.namelist() if not name.endswith("/")]

    def _open(self):
        self._file, self._process = zipfile.ZipFile(self._zipfilename), os.getpid()
        self._lock = threading.Lock()

    def __getstate__(self):
        return {**self.__dict__, "_file": None, "_process": None, "_lock": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._open()

    def get_example(self, i) -> Any:
        """The image with a number, or with a name in the file."""
        if self._process != os.getpid():  # a fork, which would share the position in the file
            self._open()
        with self._lock:
            data = self._file.read(i if isinstance(i, str) else self._paths[i])
        return _read(io.BytesIO(data), self._dtype)


class MultiZippedImageDataset(ConcatenatedDataset):
    """The images in several zip files, one file after another; see ImageDataset."""

    def __init__(self, zipfilenames, dtype=None) -> None:
        super().__init__(*[ZippedImageDataset(name, dtype) for name in zipfilenames])

    def get_example(self, i) -> Any:
        if not -len(self) <= i < len(self):
            raise IndexError(f"[MultiZippedImageDataset] expected an index below {len(self)}, "
                             f"got {i}")
        return super().get_example(i % len(self))


class LabeledZippedImageDataset(_Labeled):
    """Pairs of an image in a zip file and its label, a 0-d array.

    Each line of ``labelfilename`` has the name of an image and a number.
    """

    def __init__(self, zipfilename, labelfilename, dtype=None, label_dtype=numpy.int32) -> None:
        super().__init__(ZippedImageDataset(zipfilename, dtype), _read_pairs(labelfilename), label_dtype)
