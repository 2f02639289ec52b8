"""Writers of snapshots: at once, or in a thread or process of their own."""
import multiprocessing
import os
import queue
import threading
from typing import Any

from catena import utils


def _save_npz(path, target, **kwargs):
    from catena import serializers
    serializers.save_npz(path, target, **kwargs)


class Writer:
    """Writes the serialized objects that it is called with. Subclasses have ``__call__()``."""

    def __init__(self) -> None:
        self._post_save_hooks = []

    def __call__(self, filename, outdir, target) -> Any:
        """Writes a dictionary of arrays to a file in a folder."""
        raise NotImplementedError

    def __del__(self):
        self.finalize()

    def finalize(self) -> Any:
        """Waits until everything is written."""

    def save(self, filename, outdir, target, savefun, **kwds) -> None:
        """Writes a temporary file and renames it, so that no file is ever incomplete."""
        with utils.tempdir(prefix="tmp" + filename, dir=outdir) as folder:
            path = os.path.join(folder, filename)
            savefun(path, target, **kwds)
            os.replace(path, os.path.join(outdir, filename))
        for hook in self._post_save_hooks:
            hook()

    def _add_cleanup_hook(self, hook):
        self._post_save_hooks.append(hook)


class SimpleWriter(Writer):
    """Writes at once. savefun: a function of a path, a dictionary and kwds; None: save_npz()."""

    def __init__(self, savefun=None, **kwds) -> None:
        super().__init__()
        self._savefun = savefun or _save_npz
        self._kwds = kwds

    def __call__(self, filename, outdir, target) -> None:
        self.save(filename, outdir, target, self._savefun, **self._kwds)


class StandardWriter(SimpleWriter):
    """Writes in a worker; the next call waits for it. A subclass implements ``create_worker()``."""

    _worker = None
    _worker_class: Any = None

    def __call__(self, filename, outdir, target) -> None:
        self.finalize()
        # Training continues while the worker writes.
        target = {key: value.copy() for key, value in target.items()}
        self._worker = self.create_worker(filename, outdir, target, **self._kwds)
        self._worker.start()

    def create_worker(self, filename, outdir, target, **kwds) -> Any:
        """An object with start() and join() that calls save()."""
        if self._worker_class is None:
            raise NotImplementedError
        return self._worker_class(
            target=self.save, args=(filename, outdir, target, self._savefun), kwargs=kwds)

    def finalize(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.join()


class ThreadWriter(StandardWriter):
    """Writes in a thread."""

    _worker_class = threading.Thread


class ProcessWriter(StandardWriter):
    """Writes in a process."""

    _worker_class = multiprocessing.Process


class QueueWriter(Writer):
    """Writes in a worker that takes snapshots from a queue and calls ``task``, by default a SimpleWriter."""

    _consumer = None
    _queue_class: Any = None
    _worker_class: Any = None

    def __init__(self, savefun=None, task=None) -> None:
        super().__init__()
        self._task = self.create_task(savefun) if task is None else task
        self._queue = self.create_queue()
        self._consumer = self.create_consumer(self._queue)
        self._consumer.start()

    def __call__(self, filename, outdir, target) -> None:
        target = {key: value.copy() for key, value in target.items()}
        self._queue.put([self._task, filename, outdir, target])

    def create_task(self, savefun) -> Any:
        return SimpleWriter(savefun)

    def create_queue(self) -> Any:
        if self._queue_class is None:
            raise NotImplementedError
        return self._queue_class()

    def create_consumer(self, q) -> Any:
        """An object with start() and join() that calls consume()."""
        return self._worker_class(target=self.consume, args=(q,))

    def consume(self, q) -> None:
        """Writes until None comes."""
        while True:
            found = q.get()
            if found is not None:
                found[0](*found[1:])
            q.task_done()
            if found is None:
                return

    def finalize(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            self._queue.put(None)
            self._queue.join()
            consumer.join()

    def _add_cleanup_hook(self, hook):
        if isinstance(self._task, Writer):
            self._task._add_cleanup_hook(hook)


class ThreadQueueWriter(QueueWriter):
    """Writes in a thread."""

    _queue_class, _worker_class = queue.Queue, threading.Thread


class ProcessQueueWriter(QueueWriter):
    """Writes in a process."""

    _queue_class, _worker_class = multiprocessing.JoinableQueue, multiprocessing.Process
