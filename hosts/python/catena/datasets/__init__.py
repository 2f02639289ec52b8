"""Datasets, with the names of chainer.datasets."""
from catena.datasets.concatenated_dataset import ConcatenatedDataset
from catena.datasets.files import (
    get_cifar10, get_cifar100, get_digits, get_fashion_mnist, get_fashion_mnist_labels,
    get_kuzushiji_mnist, get_mnist, get_ptb_words, get_ptb_words_vocabulary)
from catena.datasets.image_dataset import ImageDataset, LabeledImageDataset
from catena.datasets.sub_dataset import (
    SubDataset, get_cross_validation_datasets, get_cross_validation_datasets_random, split_dataset,
    split_dataset_n, split_dataset_n_random, split_dataset_random)
from catena.datasets.transform_dataset import TransformDataset
from catena.datasets.tuple_dataset import DictDataset, TupleDataset
