"""Datasets, iterators and converters, with the names of chainer.dataset."""
from catena.dataset.convert import Converter, concat_examples, converter, to_device
from catena.dataset.dataset_mixin import DatasetMixin
from catena.dataset.download import (
    cache_or_load_file, cached_download, get_dataset_directory, get_dataset_root, set_dataset_root)
from catena.dataset.iterator import Iterator
