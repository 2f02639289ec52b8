"""The folder of datasets, and files that are downloaded into it."""
import os
import sys
from typing import Any

__all__ = ["cache_or_load_file", "cached_download", "get_dataset_directory", "get_dataset_root",
           "set_dataset_root"]

_root = os.environ.get("CHAINER_DATASET_ROOT") or os.path.join(
    os.path.expanduser("~"), ".chainer", "dataset")


def get_dataset_root() -> str:
    """The folder of datasets: $CHAINER_DATASET_ROOT, else ~/.chainer/dataset."""
    return _root


def set_dataset_root(path) -> None:
    """Sets the folder of datasets."""
    global _root
    _root = path


def get_dataset_directory(dataset_name, create_directory=True) -> str:
    """The folder of one dataset, which is created unless create_directory is False."""
    path = os.path.join(_root, dataset_name)
    if create_directory:
        os.makedirs(path, exist_ok=True)
    return path


def _write(path, write):
    """Calls write() with the name of a temporary file, then renames the file to its place."""
    import tempfile
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        file = os.path.join(temporary, os.path.basename(path))
        result = write(file)
        if not os.path.exists(file):
            raise RuntimeError(f"[cache_or_load_file] creator: expected a function that writes "
                               f"{file}, got no file")
        os.replace(file, path)
    return result


def cached_download(url) -> str:
    """Downloads a file unless it was downloaded before. Returns its path in the dataset root."""
    import hashlib
    from urllib import request
    path = os.path.join(_root, "_dl_cache", hashlib.md5(url.encode()).hexdigest())
    if not os.path.exists(path):
        sys.stderr.write(f"Downloading from {url}...\n")
        try:
            _write(path, lambda file: request.urlretrieve(url, file))
        except OSError as e:
            raise OSError(f"[cached_download] {url}: expected to download it to {path}, got: {e}"
                          ) from e
    return path


def cache_or_load_file(path, creator, loader) -> Any:
    """loader(path) if the file exists, else creator(file), which writes it and returns a result."""
    return loader(path) if os.path.exists(path) else _write(path, creator)
