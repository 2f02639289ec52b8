"""Triggers that depend on iterations, epochs and time."""
from typing import Any

from catena.serializer import serialize_or

__all__ = ["IntervalTrigger", "ManualScheduleTrigger", "OnceTrigger", "TimeTrigger", "get_trigger"]


def _never(trainer):
    return False


def get_trigger(trigger) -> Any:
    """A trigger from a callable, an interval such as ``(1, "epoch")``, or None: never."""
    if trigger is None:
        return _never
    return trigger if callable(trigger) else IntervalTrigger(*trigger)


class _ProgressTrigger:
    """Compares the iteration or epoch with that of the last call."""

    def __init__(self, unit) -> None:
        if unit not in ("epoch", "iteration"):
            raise ValueError("Trigger unit must be either 'epoch' or 'iteration'.")
        self.unit = unit
        self._previous_iteration = 0
        self._previous_epoch_detail = 0.0

    def _progress(self, trainer):
        """The progress at the last call, which a snapshot may lack, and now."""
        updater = trainer.updater
        if self.unit == "epoch":
            now, before = updater.epoch_detail, self._previous_epoch_detail
            if before < 0:
                before = updater.previous_epoch_detail
        else:
            now, before = updater.iteration, self._previous_iteration
            if before < 0:
                before = now - 1
        self._previous_iteration = updater.iteration
        self._previous_epoch_detail = getattr(
            updater, "epoch_detail", self._previous_epoch_detail)
        return before, now

    def serialize(self, serializer) -> None:
        for name, unknown in (("previous_iteration", -1), ("previous_epoch_detail", -1.0)):
            setattr(self, "_" + name, serialize_or(
                unknown, serializer, name, getattr(self, "_" + name), f"{name} of {type(self).__name__} is "
                "not saved: expected that it is called at every iteration"))


class IntervalTrigger(_ProgressTrigger):
    """Fires every `period` iterations or epochs. The period may be a fraction of an epoch."""

    count = 0

    def __init__(self, period, unit) -> None:
        super().__init__(unit)
        self.period = period

    def __call__(self, trainer) -> Any:
        before, now = self._progress(trainer)
        self.count = now // self.period
        return before // self.period != self.count

    def get_training_length(self) -> Any:
        """The period and its unit."""
        return self.period, self.unit

    def __str__(self):
        return f"{type(self).__name__}({self.period}, '{self.unit}')"


class ManualScheduleTrigger(_ProgressTrigger):
    """Fires at the given iterations or epochs: a number or a list.

    ``finished`` says that it will not fire again.
    """

    def __init__(self, points, unit) -> None:
        super().__init__(unit)
        self.points = points if isinstance(points, list) else [points]
        self.finished = False

    def __call__(self, trainer) -> Any:
        before, now = self._progress(trainer)
        self.finished = self.finished or now >= max(self.points)
        return any(before < point <= now for point in self.points)

    def serialize(self, serializer) -> None:
        super().serialize(serializer)
        self.finished = serialize_or(False, serializer, "finished", self.finished, "finished of "
                                     "ManualScheduleTrigger is not saved: False until its call")


class OnceTrigger:
    """Fires at the first iteration; with call_on_resume also at the first of a resumed training."""

    def __init__(self, call_on_resume=False) -> None:
        self._flag_first = True
        self._flag_resumed = call_on_resume

    @property
    def finished(self):
        """Whether it will not fire again."""
        return not (self._flag_first or self._flag_resumed)

    def __call__(self, trainer) -> Any:
        fire = not self.finished
        self._flag_first = self._flag_resumed = False
        return fire

    def serialize(self, serializer) -> None:
        self._flag_first = serialize_or(False, serializer, "_flag_first", self._flag_first, "_flag_first of "
                                        "OnceTrigger is not saved: expected that it has fired")


class TimeTrigger:
    """Fires every `period` seconds."""

    def __init__(self, period) -> None:
        self._period = period
        self._next_time = period

    def __call__(self, trainer) -> Any:
        if self._next_time < trainer.elapsed_time:
            self._next_time += self._period
            return True
        return False

    def serialize(self, serializer) -> None:
        self._next_time = serializer("next_time", self._next_time)
