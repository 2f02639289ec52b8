"""Triggers that depend on reported values."""
import operator
import warnings
from typing import Any

from catena.reporter import DictSummary
from catena.training.triggers.schedule import get_trigger

__all__ = ["BestValueTrigger", "EarlyStoppingTrigger", "MaxValueTrigger", "MinValueTrigger"]


class BestValueTrigger:
    """Fires when the mean of a reported value is better than all before.

    Args:
        key: the name of the value.
        compare: a function of the best value and a new one; true if the new one is better.
        trigger: when means are compared.
    """

    def __init__(self, key, compare, trigger=(1, "epoch")) -> None:
        self._key = key
        self._best_value = None
        self._interval_trigger = get_trigger(trigger)
        self._summary = DictSummary()
        self._compare = compare

    def __call__(self, trainer) -> Any:
        if self._key in trainer.observation:
            self._summary.add({self._key: trainer.observation[self._key]})
        if not self._interval_trigger(trainer):
            return False
        value = float(self._summary.compute_mean()[self._key])
        self._summary = DictSummary()
        if self._best_value is not None and not self._compare(self._best_value, value):
            return False
        self._best_value = value
        return True

    def serialize(self, serializer) -> None:
        self._interval_trigger.serialize(serializer["interval_trigger"])
        self._summary.serialize(serializer["summary"])
        best = serializer("best_value", self._best_value)
        self._best_value = None if best is None else float(best)


class MaxValueTrigger(BestValueTrigger):
    """Fires when the mean of a reported value is the greatest so far."""

    def __init__(self, key, trigger=(1, "epoch")) -> None:
        super().__init__(key, operator.lt, trigger)


class MinValueTrigger(BestValueTrigger):
    """Fires when the mean of a reported value is the least so far."""

    def __init__(self, key, trigger=(1, "epoch")) -> None:
        super().__init__(key, operator.gt, trigger)


class EarlyStoppingTrigger:
    """A stop trigger that fires when a reported value stops to improve.

    Args:
        check_trigger: when the mean of the value is compared with the best one.
        monitor: the name of the value.
        patience: the number of comparisons without improvement after which it fires; None: 3.
        mode: "max", "min", or "auto": the greatest accuracy, or the least of other values.
        verbose: whether it prints why it fires.
        max_trigger: when the training stops in any case.
        patients: another name of patience.
    """

    def __init__(self, check_trigger=(1, "epoch"), monitor="main/loss", patience=None, mode="auto",
                 verbose=False, max_trigger=(100, "epoch"), *, patients=None) -> None:
        if patience is not None and patients is not None:
            raise TypeError("Both 'patience' and 'patients' arguments are specified. 'patients' is "
                            "an alias of the former. Specify only 'patience'.")
        given = patients if patience is None else patience
        self.patience = 3 if given is None else given
        self.count = 0
        self.monitor = monitor
        self.verbose = verbose
        self._max_trigger = get_trigger(max_trigger)
        self._interval_trigger = get_trigger(check_trigger)
        self._summary = DictSummary()
        greater = mode == "max" or (mode != "min" and "accuracy" in monitor)
        self._compare = operator.gt if greater else operator.lt
        self.best = float("-inf" if greater else "inf")
        if verbose:
            print(f"early stopping: operator is {'greater' if greater else 'less'}")

    def __call__(self, trainer) -> Any:
        observation = trainer.observation
        if self.monitor in observation:
            self._summary.add({self.monitor: observation[self.monitor]})
        if self._max_trigger(trainer):
            return True
        if not self._interval_trigger(trainer):
            return False
        if self.monitor not in observation:
            warnings.warn(f"{self.monitor} is not in observation")
            return False
        value = float(self._summary.compute_mean()[self.monitor])
        self._summary = DictSummary()
        if self._compare(value, self.best):
            self.best, self.count = value, 0
        else:
            self.count += 1
        if self.count < self.patience:
            return False
        if self.verbose:
            print(f"Epoch {trainer.updater.epoch}: early stopping")
        return True

    def get_training_length(self) -> Any:
        """The length of the longest training."""
        return self._max_trigger.get_training_length()

    def serialize(self, serializer) -> None:
        try:
            self._max_trigger.serialize(serializer["max_trigger"])
            self._interval_trigger.serialize(serializer["interval_trigger"])
            self._summary.serialize(serializer["summary"])
            self.best = float(serializer("best", self.best))
            self.count = serializer("count", self.count)
        except KeyError:
            warnings.warn("The state of EarlyStoppingTrigger is not saved.")
