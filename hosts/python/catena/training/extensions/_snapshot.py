"""Extensions that save snapshots."""
import functools
import os
import warnings
from typing import Any

from catena.training.extension import Extension
from catena.training.extensions import snapshot_writers

__all__ = ["snapshot", "snapshot_object"]

_unset = object()


def snapshot_object(target, filename, savefun=None, **kwargs) -> Any:
    """An extension that saves an object. The arguments are those of ``snapshot()``."""
    return snapshot(savefun, filename, target=target, **kwargs)


def snapshot(savefun=None, filename="snapshot_iter_{.updater.iteration}", *, target=None,
             condition=None, writer=None, snapshot_on_error=False, n_retains=-1, autoload=False,
             num_retain=_unset) -> Any:
    """An extension that saves the trainer once in an epoch, after all other extensions.

    Args:
        savefun: a function of a path and a dictionary of arrays; None: serializers.save_npz().
        filename: a format of the trainer, or a function of it that gives the name.
        target: the object to save; None: the trainer.
        condition: a function without arguments; nothing is saved while it gives false.
        writer: an object of ``snapshot_writers``; None: a SimpleWriter with savefun.
        snapshot_on_error: whether it also saves when the training ends with an exception.
        n_retains: the number of newest files that are kept; -1: all.
        autoload: whether the newest file that fits filename is loaded before the training.
        num_retain: an old name of n_retains.
    """
    if num_retain is not _unset:
        warnings.warn("Argument `num_retain` is deprecated. Please use `n_retains` instead",
                      DeprecationWarning)
        n_retains = num_retain
    if savefun is not None and writer is not None:
        raise TypeError("savefun and writer arguments cannot be specified together.")
    if writer is None:
        writer = snapshot_writers.SimpleWriter(savefun)
    return _Snapshot(target, condition, writer, filename, snapshot_on_error, n_retains, autoload)


def _find_snapshot_files(filename, folder):
    """The times and names of files that have the prefix and suffix of a format, newest last."""
    prefix, suffix = filename.split("{")[0], filename.split("}")[-1]
    return sorted((os.stat(os.path.join(folder, name)).st_mtime, name)
                  for name in os.listdir(folder)
                  if name.startswith(prefix) and name.endswith(suffix))


def _find_latest_snapshot(filename, folder):
    """The name of the newest of these files, or None."""
    return max(_find_snapshot_files(filename, folder), default=(0, None))[1]


def _find_stale_snapshots(filename, folder, n_retains, num_retain=None):
    """The names of all but the newest n_retains files. num_retain is the old name of n_retains."""
    n_retains = n_retains if num_retain is None else num_retain
    files = _find_snapshot_files(filename, folder)
    yield from (name for _, name in files[:max(len(files) - n_retains, 0)])


def _remove_old(filename, folder, n_retains):
    for name in _find_stale_snapshots(filename, folder, n_retains):
        os.remove(os.path.join(folder, name))


class _Snapshot(Extension):
    trigger = 1, "epoch"
    priority = -100
    default_name = "_Snapshot"

    def __init__(self, target, condition, writer, filename, snapshot_on_error, n_retains,
                 autoload) -> None:
        self._target = target
        self.filename = filename
        self.condition = condition
        self.writer = writer
        self._snapshot_on_error = snapshot_on_error
        self.n_retains = n_retains
        self.autoload = autoload

    def initialize(self, trainer) -> None:
        from catena import serializers
        by_format = isinstance(self.filename, str)
        if self.autoload and by_format:
            latest = _find_latest_snapshot(self.filename, trainer.out)
            if latest is not None:
                serializers.load_npz(os.path.join(trainer.out, latest),
                                     trainer if self._target is None else self._target)
        if self.n_retains > 0 and by_format and hasattr(self.writer, "_add_cleanup_hook"):
            self.writer._add_cleanup_hook(functools.partial(
                _remove_old, self.filename, trainer.out, self.n_retains))

    def on_error(self, trainer, exc, tb) -> None:
        if self._snapshot_on_error:
            self._save(trainer)

    def __call__(self, trainer) -> None:
        if self.condition is None or self.condition():
            self._save(trainer)

    def _save(self, trainer):
        from catena import serializers
        name = (self.filename(trainer) if callable(self.filename)
                else self.filename.format(trainer))
        state = serializers.serialize(trainer if self._target is None else self._target)
        self.writer(name, trainer.out, state)

    def finalize(self) -> None:
        if hasattr(self.writer, "finalize"):
            self.writer.finalize()
