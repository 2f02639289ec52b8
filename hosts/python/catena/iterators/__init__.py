"""Iterators that give minibatches of a dataset, with the names of chainer.iterators."""
from catena.iterators.order_samplers import OrderSampler, ShuffleOrderSampler
from catena.iterators.serial_iterator import SerialIterator
from catena.iterators.prefetching import MultiprocessIterator, MultithreadIterator
