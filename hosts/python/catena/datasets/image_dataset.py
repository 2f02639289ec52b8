"""Datasets of image files, which Pillow reads."""
import os

import numpy

from catena.configuration import get_dtype
from catena.dataset.dataset_mixin import DatasetMixin

__all__ = ["ImageDataset", "LabeledImageDataset"]


def _read(path, dtype):
    from PIL import Image
    with Image.open(path) as file:
        image = numpy.asarray(file, dtype=dtype)
    return (image[..., None] if image.ndim == 2 else image).transpose(2, 0, 1)


class ImageDataset(DatasetMixin):
    """Images as arrays (channel, height, width).

    Args:
        paths: the names of the files, or the name of a file with one name in each line.
        root: the folder of the files.
        dtype: the dtype; None: config.dtype.
    """

    def __init__(self, paths, root=".", dtype=None):
        import PIL  # so that its absence shows here
        if isinstance(paths, str):
            with open(paths) as file:
                paths = [line.strip() for line in file]
        self._paths = paths
        self._root = root
        self._dtype = get_dtype(dtype)

    def __len__(self):
        return len(self._paths)

    def get_example(self, i):
        return _read(os.path.join(self._root, self._paths[i]), self._dtype)


class LabeledImageDataset(DatasetMixin):
    """Pairs of an image and its label, a 0-d array.

    Args:
        pairs: pairs of a file's name and a number, or the name of a file with one in each line.
        root, dtype: see ImageDataset.
        label_dtype: the dtype of labels.
    """

    def __init__(self, pairs, root=".", dtype=None, label_dtype=numpy.int32):
        if isinstance(pairs, str):
            with open(pairs) as file:
                lines = [line.split() for line in file]
            for i, line in enumerate(lines):
                if len(line) != 2:
                    raise ValueError(f"invalid format at line {i} in file {pairs}")
            pairs = [(path, int(label)) for path, label in lines]
        self._images = ImageDataset([path for path, _ in pairs], root, dtype)
        self._labels = numpy.array([label for _, label in pairs], label_dtype)

    def __len__(self):
        return len(self._images)

    def get_example(self, i):
        return self._images.get_example(i), self._labels[i, ...]
