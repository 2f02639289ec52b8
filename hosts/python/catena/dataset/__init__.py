"""Datasets, iterators and converters, with the names of chainer.dataset."""
from catena.dataset.convert import *
from catena.dataset.dataset_mixin import *
from catena.dataset.download import *
from catena.dataset.iterator import *
