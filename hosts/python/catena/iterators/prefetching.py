"""Iterators whose minibatches are loaded ahead by threads or processes."""
import collections
import warnings
from typing import Any

from catena.iterators.serial_iterator import OrderedIterator

__all__ = ["MultiprocessIterator", "MultithreadIterator"]


class _PrefetchingIterator(OrderedIterator):
    """Keeps a queue of minibatches that a pool loads."""

    _pool = None
    _n_prefetch = 1

    def reset(self) -> None:
        self._queue = collections.deque()
        super().reset()

    def finalize(self) -> None:
        """Ends the pool, after the examples that it loads ahead."""
        pool, self._pool = self._pool, None
        if pool is not None:
            self._queue = collections.deque()
            # Not terminate(): it waits forever if it ends a process that holds a lock of the pool.
            pool.close()
            pool.join()

    def _fill(self):
        while len(self._queue) < self._n_prefetch:
            state, _, drawn = self._queue[-1] if self._queue else (self._state, None, 0)
            state, indices, drawn = self._advance(state, drawn)
            if indices is not None and self._pool is None:
                self._pool = self._make_pool()
            self._queue.append((state, None if indices is None else self._load(indices), drawn))

    def __next__(self) -> Any:
        self._fill()
        state, loading, drawn = self._queue.popleft()
        # Batches that were prefetched are counted from the current state.
        self._queue = collections.deque((s, l, d - drawn) for s, l, d in self._queue)
        self._enter(state, drawn)
        if loading is None:
            raise StopIteration
        batch = self._result(loading)
        self._fill()
        return batch

    def serialize(self, serializer) -> None:
        from catena.serializer import Serializer
        super().serialize(serializer)
        if not isinstance(serializer, Serializer):
            self._queue = collections.deque()

    def __getstate__(self):
        return {**super().__getstate__(), "_pool": None, "_queue": collections.deque()}


class MultithreadIterator(_PrefetchingIterator):
    """Loads the examples of the next minibatch in threads. The arguments are SerialIterator's.

    Args:
        n_threads: the number of threads.
    """

    _is_order_private = True

    def __init__(self, dataset, batch_size, repeat=True, shuffle=None, n_threads=1,
                 order_sampler=None) -> None:
        self.n_threads = n_threads
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def _make_pool(self):
        from multiprocessing.pool import ThreadPool
        return ThreadPool(self.n_threads)

    def _load(self, indices):
        return self._pool.map_async(self.dataset.__getitem__, indices)

    def _result(self, loading):
        return loading.get()


_dataset = None  # of this process, if it loads examples for a MultiprocessIterator


def _start_process(dataset):
    global _dataset
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _dataset = dataset


def _example(index):
    return _dataset[index]


class MultiprocessIterator(_PrefetchingIterator):
    """Loads the examples of the next minibatches in processes. The dataset must be picklable.

    The arguments are SerialIterator's and these:

    Args:
        n_processes: the number of processes; None: that of processors.
        n_prefetch: the number of minibatches that are loaded ahead.
        shared_mem: has no effect: examples are sent through pipes.
        dataset_timeout: the seconds after which a TimeoutWarning is given, for each minibatch;
            None: never.
        maxtasksperchild: the number of examples after which a process is replaced; None: never.
    """

    class TimeoutWarning(RuntimeWarning):
        """A minibatch takes longer than dataset_timeout."""

    def __init__(self, dataset, batch_size, repeat=True, shuffle=None, n_processes=None,
                 n_prefetch=1, shared_mem=None, order_sampler=None, dataset_timeout=30.0,
                 maxtasksperchild=None) -> None:
        import os
        self.n_processes = n_processes or os.cpu_count()
        self.n_prefetch = self._n_prefetch = max(n_prefetch, 1)
        self.shared_mem = shared_mem
        self.shuffle = shuffle
        self.dataset_timeout = dataset_timeout
        self._maxtasksperchild = maxtasksperchild
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def _make_pool(self):
        import multiprocessing
        return multiprocessing.Pool(
            self.n_processes, _start_process, (self.dataset,), self._maxtasksperchild)

    def _load(self, indices):
        return self._pool.map_async(_example, indices, chunksize=1)

    def _result(self, loading):
        loading.wait(self.dataset_timeout)
        if not loading.ready():
            warnings.warn(
                f"[MultiprocessIterator] dataset_timeout: a minibatch took longer than "
                f"{self.dataset_timeout} s", self.TimeoutWarning)
        return loading.get()
