"""Datasets, with the names of chainer.datasets."""
from catena.datasets.concatenated_dataset import *
from catena.datasets.files import *
from catena.datasets.image_dataset import *
from catena.datasets.pickle_dataset import *
from catena.datasets.sub_dataset import *
from catena.datasets.text_dataset import *
from catena.datasets.transform_dataset import *
from catena.datasets.tuple_dataset import *
