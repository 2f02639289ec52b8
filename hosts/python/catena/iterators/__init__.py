"""Iterators that give minibatches of a dataset, with the names of chainer.iterators."""
from catena.iterators.order_samplers import *
from catena.iterators.serial_iterator import SerialIterator as SerialIterator
from catena.iterators.prefetching import *
