"""Trainer, the training loop."""
import collections
import os
import sys
import time
import traceback
from typing import Any

from catena import _core
from catena.reporter import Reporter, scalar_of
from catena.serializer import Serializer, serialize_json
from catena.training.extension import PRIORITY_READER, _removed
from catena.training.triggers import get_trigger
from catena.utils import argument, random_state

__all__ = ["Trainer"]


_Entry = collections.namedtuple("_Entry", "extension trigger priority call_before_training")


def _write_exception(what, e):
    sys.stderr.write(f"{what}: {e}\nTraceback (most recent call last):\n")
    traceback.print_tb(e.__traceback__)


class Trainer:
    """The training loop: it calls the updater, then each extension whose trigger fires.

    A trainer that was saved with ``serializers.save_npz()`` after any iteration, and loaded into a
    new trainer of equal settings, goes on as if it had not been interrupted. For this, a snapshot
    contains the states of the random numbers of catena's devices, of NumPy's global generator and
    of Python's module random.

    Args:
        updater: makes one iteration.
        stop_trigger: a trigger, or an interval such as ``(20, "epoch")``; the loop stops when it
            fires.
        out: the folder of what extensions write.
        extensions: extensions, as for ``extend()``.

    Attributes:
        observation: the values that the last iteration reported, a dictionary.
        reporter: the Reporter, whose observers are the links that are trained.
    """

    def __init__(self, updater, stop_trigger=None, out="result", extensions=None) -> None:
        self.updater = updater
        self.stop_trigger = get_trigger(stop_trigger)
        self.observation: Any = {}
        self.out = out
        self.reporter = Reporter()
        for name, optimizer in updater.get_all_optimizers().items():
            self.reporter.add_observer(name, optimizer.target)
            self.reporter.add_observers(name, optimizer.target.namedlinks(skipself=True))
        self._extensions = {}
        self._start_at = None
        self._elapsed_before = 0.0
        self._done = False
        self._final_elapsed_time = None
        updater.connect_trainer(self)
        for extension in extensions or []:
            self.extend(extension)

    @property
    def is_before_training(self):
        """Whether no iteration was made."""
        return self.updater.iteration == 0

    @property
    def elapsed_time(self):
        """The seconds of training, also of earlier processes. Raises RuntimeError before run()."""
        if self._done:
            return self._final_elapsed_time
        if self._start_at is None:
            raise RuntimeError("training has not been started yet")
        return time.perf_counter() - self._start_at + self._elapsed_before

    def extend(self, extension, name=None, trigger=None, priority=None, *,
               call_before_training=False, **kwargs) -> None:
        """Adds an extension: a callable that takes the trainer.

        Args:
            extension: an Extension, or any other callable.
            name: the name; None: ``extension.name``, ``default_name`` or ``__name__``. A second
                extension of the same name gets the suffix "_1".
            trigger: a trigger or an interval; None: that of the extension, else each iteration.
            priority: extensions of higher priority are called first; None: that of the extension.
            call_before_training: whether it is also called before the first iteration.
        """
        argument.parse_kwargs(kwargs, invoke_before_training=_removed)
        for attribute in ("name", "default_name", "__name__"):
            if name is None:
                name = getattr(extension, attribute, None)
        if name is None:
            raise TypeError("name is not given for the extension")
        if name == "training":
            raise ValueError('the name "training" is prohibited as an extension name')
        if trigger is None:
            trigger = getattr(extension, "trigger", (1, "iteration"))
        if priority is None:
            priority = getattr(extension, "priority", PRIORITY_READER)
        unique, number = name, 0
        while unique in self._extensions:
            number += 1
            unique = f"{name}_{number}"
        extension.name = unique
        self._extensions[unique] = _Entry(
            extension, get_trigger(trigger), priority, call_before_training)

    def get_extension(self, name) -> Any:
        """The extension of a name. Raises ValueError if there is none."""
        if name not in self._extensions:
            raise ValueError(f"extension {name} not found")
        return self._extensions[name].extension

    def _initialize(self, entries):
        # A snapshot that is loaded automatically comes first: others initialize from their state.
        for entry in sorted(entries, key=lambda e: not getattr(e.extension, "autoload", False)):
            initialize = getattr(entry.extension, "initialize", None)
            if initialize and not getattr(entry.trigger, "finished", False):
                initialize(self)
        if self.is_before_training:
            self.observation = {}
            with self.reporter.scope(self.observation):
                for entry in entries:
                    if entry.call_before_training:
                        entry.extension(self)

    def run(self, show_loop_exception_msg=True) -> None:
        """Runs the training until the stop trigger fires. It can run once."""
        if self._done:
            raise RuntimeError("cannot run training loop multiple times")
        os.makedirs(self.out, exist_ok=True)
        entries = sorted(self._extensions.values(), key=lambda e: e.priority, reverse=True)
        self._start_at = time.perf_counter()
        self._initialize(entries)
        try:
            while not self.stop_trigger(self):
                self.observation = {}
                with self.reporter.scope(self.observation):
                    self.updater.update()
                    for entry in entries:
                        if entry.trigger(self):
                            entry.extension(self)
        except Exception as e:
            if show_loop_exception_msg:
                # finalize() below may wait for long, so the user sees the reason first.
                _write_exception("Exception in main training loop", e)
                sys.stderr.write("Will finalize trainer extensions and updater before reraising "
                                 "the exception.\n")
            for entry in entries:
                on_error = getattr(entry.extension, "on_error", None)
                if on_error:
                    try:
                        on_error(self, e, e.__traceback__)
                    except Exception as second:
                        _write_exception("Exception in error handler", second)
            raise
        finally:
            for entry in entries:
                finalize = getattr(entry.extension, "finalize", None)
                if finalize:
                    finalize()
            self.updater.finalize()
        self._final_elapsed_time = self.elapsed_time
        self._done = True

    def _random_states(self):
        import numpy
        devices = {_core.current_device()}
        for optimizer in self.updater.get_all_optimizers().values():
            devices.update(param.device for param in optimizer.target.params())
        states = {device.name: random_state.of_device(device) for device in devices}
        states["numpy"] = random_state.of_numpy(numpy.random)
        states["python"] = random_state.of_python()
        return states

    def serialize(self, serializer) -> None:
        self.updater.serialize(serializer["updater"])
        if hasattr(self.stop_trigger, "serialize"):
            self.stop_trigger.serialize(serializer["stop_trigger"])
        for name, entry in self._extensions.items():
            if hasattr(entry.extension, "serialize"):
                entry.extension.serialize(serializer["extensions"][name])
            if hasattr(entry.trigger, "serialize"):
                entry.trigger.serialize(serializer["extension_triggers"][name])
        saving = isinstance(serializer, Serializer)
        elapsed = serializer("_snapshot_elapsed_time", self.elapsed_time if saving else 0.0)
        # The stop trigger has not seen the last observation yet when a snapshot is saved.
        numbers = {name: float(scalar_of(value)) for name, value in self.observation.items()
                   if scalar_of(value) is not None and not isinstance(value, str)}
        observation = serialize_json(serializer, "observation", numbers, {})
        if not saving:
            self.observation = observation
            self._elapsed_before = elapsed
        random_state.serialize(serializer, "random", self._random_states())
