"""Iterators: the same minibatches and positions as Chainer's, and exact continuation."""
import copy
import pickle
import subprocess
import sys
import time
import warnings

import numpy
import pytest

import catena
from catena import iterators, serializers
from catena.iterators import (
    MultiprocessIterator, MultithreadIterator, SerialIterator, ShuffleOrderSampler)

KINDS = ["SerialIterator", "MultithreadIterator", "MultiprocessIterator"]


def make(kind, *args, module=iterators, **kwargs):
    if kind == "MultiprocessIterator":
        kwargs["n_processes"] = 1
    return getattr(module, kind)(*args, **kwargs)


def trace(iterator, n):
    """What an iterator shows in n steps."""
    found = []
    for _ in range(n):
        try:
            batch = iterator.next()
        except StopIteration:
            batch = "end"
        found.append((batch, iterator.epoch, iterator.is_new_epoch, iterator.current_position,
                      iterator.epoch_detail, iterator.previous_epoch_detail))
    return found


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("shuffle", [None, True, False])
@pytest.mark.parametrize("size, batch", [(7, 3), (6, 3), (1, 1), (2, 5), (4, 4)])
def test_same_as_chainer(kind, repeat, shuffle, size, batch):
    chainer = pytest.importorskip("chainer")
    found = []
    for module in (iterators, chainer.iterators):
        numpy.random.seed(3)
        iterator = make(kind, list(range(size)), batch, module=module, repeat=repeat,
                        shuffle=shuffle)
        found.append(trace(iterator, 8))
        iterator.reset()
        found[-1] += trace(iterator, 3)
        found[-1].append(iterator.repeat)
        iterator.finalize()
    assert found[0] == found[1]


def test_processes_give_the_same_as_serial():
    found = []
    for kind in KINDS:
        numpy.random.seed(3)
        with make(kind, [10 * i for i in range(5)], 2) as iterator:
            found.append(trace(iterator, 8))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_empty_dataset(kind):
    with pytest.raises(ValueError, match="Epoch size must be positive"):
        make(kind, [], 2).next()
    iterator = make(kind, [], 2, repeat=False)
    assert iterator.next() == []
    with pytest.raises(StopIteration):
        iterator.next()


@pytest.mark.parametrize("kind", KINDS)
def test_order_sampler(kind):
    with pytest.raises(ValueError, match="`shuffle` is not `None`"):
        make(kind, [1, 2], 1, shuffle=True, order_sampler=ShuffleOrderSampler())
    seen = []

    def reverse(order, position):
        seen.append((list(order), position))
        return numpy.arange(len(order))[::-1]

    with make(kind, [1, 2, 3], 2, order_sampler=reverse) as iterator:
        assert [iterator.next() for _ in range(3)] == [[3, 2], [1, 3], [2, 1]]
    assert seen[:2] == [([0, 1, 2], 0), ([2, 1, 0], 2)]

    def shorter(order, position):
        return order[:-1] if position else order

    with make(kind, [1, 2, 3], 2, order_sampler=shorter) as iterator:
        with pytest.raises(ValueError, match="The size of order does not match"):
            trace(iterator, 3)


def test_order_may_be_longer_than_the_dataset():
    iterator = SerialIterator([5, 6], 3, order_sampler=lambda order, _: numpy.array([0, 0, 1, 1]))
    assert iterator.next() == [5, 5, 6]
    assert iterator.epoch_detail == 0.75


def test_random_state_of_the_sampler():
    sampler = ShuffleOrderSampler(numpy.random.RandomState(5))
    expected = numpy.random.RandomState(5).permutation(6)
    numpy.testing.assert_array_equal(sampler(numpy.arange(6), 0), expected)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("own_state", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_continuation(tmp_path, kind, own_state, steps):
    if kind == "MultiprocessIterator" and (steps != 2 or own_state):
        pytest.skip("slow")

    def new(seed):
        numpy.random.seed(seed)
        sampler = ShuffleOrderSampler(numpy.random.RandomState(seed)) if own_state else None
        return make(kind, list(range(5)), 2, order_sampler=sampler)

    with new(1) as iterator:
        trace(iterator, steps)
        serializers.save_npz(tmp_path / "state", iterator)
        state = numpy.random.get_state()
        expected = trace(iterator, 9)
    with new(2) as other:
        trace(other, 3)
        numpy.random.set_state(state)
        serializers.load_npz(tmp_path / "state", other)
        assert trace(other, 9) == expected


def test_kinds_load_each_other(tmp_path):
    """A minibatch may be loaded by threads in one training and serially when it is resumed."""
    iterator = MultithreadIterator(list(range(5)), 2)
    trace(iterator, 2)  # the next minibatch begins an epoch, whose order is drawn already
    serializers.save_npz(tmp_path / "state", iterator)
    state = numpy.random.get_state()
    expected = trace(iterator, 9)
    other = SerialIterator(list(range(5)), 2)
    numpy.random.set_state(state)
    serializers.load_npz(tmp_path / "state", other)
    assert trace(other, 9) == expected


@pytest.mark.parametrize("kind", KINDS[:2])
def test_snapshots_of_chainer(tmp_path, kind):
    chainer = pytest.importorskip("chainer")
    theirs = make(kind, list(range(5)), 2, module=chainer.iterators)
    trace(theirs, 2)
    chainer.serializers.save_npz(str(tmp_path / "state"), theirs)
    ours = make(kind, list(range(5)), 2)
    serializers.load_npz(tmp_path / "state", ours)
    expected = trace(ours, 1)[0][1:]  # the second example is of an order that is not drawn yet
    assert trace(theirs, 1)[0][1:] == expected
    assert ours.epoch == 1 and ours.current_position == 1

    serializers.save_npz(tmp_path / "state", ours)
    with numpy.load(tmp_path / "state") as file:
        chainer.serializers.NpzDeserializer(file).load(theirs)
    numpy.random.seed(0)
    expected = trace(ours, 4)
    numpy.random.seed(0)
    assert trace(theirs, 4) == expected


class Failing:
    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise RuntimeError(f"no example {i}")


@pytest.mark.parametrize("kind", KINDS)
def test_exceptions_of_the_dataset(kind):
    with make(kind, Failing(), 1, shuffle=False) as iterator:
        with pytest.raises(RuntimeError, match="no example 0"):
            iterator.next()


class Waiting:
    """Its examples wait until a file exists."""

    def __init__(self, file):
        self.file = file

    def __len__(self):
        return 2

    def __getitem__(self, i):
        end = time.monotonic() + 600
        while not self.file.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return i


def test_timeout_warning(tmp_path):
    warned, told = tmp_path / "warned", []

    def show(message, category, *_):
        if category is MultiprocessIterator.TimeoutWarning:
            told.append(str(message))
            warned.touch()
    with MultiprocessIterator(Waiting(warned), 1, n_processes=1, dataset_timeout=0.05) as iterator:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = show
            iterator.next()
    assert told and "longer than 0.05 s" in told[0]


def test_end_while_examples_are_loaded():
    """A process that is ended while it sends an example would keep a lock of the pool."""
    program = """
from catena.iterators import MultiprocessIterator
for _ in range(300):
    with MultiprocessIterator(range(5), 1, n_processes=1) as iterator:
        iterator.next()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


def test_prefetches_several():
    with MultiprocessIterator(list(range(6)), 2, n_processes=2, n_prefetch=3,
                              shuffle=False) as iterator:
        assert [iterator.next() for _ in range(4)] == [[0, 1], [2, 3], [4, 5], [0, 1]]
        assert iterator.epoch == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("duplicate", [
    copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(kind, duplicate):
    with make(kind, list(range(4)), 2, shuffle=False) as iterator:
        iterator.next()
        with duplicate(iterator) as other:
            assert other.next() == iterator.next() == [2, 3]
            assert other.epoch == iterator.epoch == 1
    # The order of the epoch is copied; orders of later epochs are drawn from the same generator.
    with make(kind, list(range(20)), 4) as iterator:
        first = iterator.next()
        with duplicate(iterator) as other:
            rest = [iterator.next() for _ in range(4)]
            assert rest == [other.next() for _ in range(4)]
            assert sorted(first + sum(rest, [])) == list(range(20))
    sampler = duplicate(ShuffleOrderSampler(numpy.random))
    assert sorted(sampler(numpy.arange(3), 0)) == [0, 1, 2]


def test_base():
    class Two(catena.dataset.Iterator):
        n = 0

        def __next__(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration
            return [self.n]

    with Two() as iterator:
        assert list(iterator) == [[1], [2]]
    with pytest.raises(NotImplementedError):
        catena.dataset.Iterator().next()
