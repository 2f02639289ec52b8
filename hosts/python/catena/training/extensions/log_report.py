"""LogReport, which writes the means of reported values to a file."""
import json
import operator
import os
import warnings
from typing import Any

from catena.reporter import DictSummary
from catena.serializer import serialize_json
from catena.training.extension import Extension
from catena.training.triggers import get_trigger

__all__ = ["LogReport"]


class Averages:
    """The means of reported values over the interval of a trigger."""

    def __init__(self, keys, trigger) -> None:
        self._keys = keys
        self._trigger = get_trigger(trigger)
        self.summary = DictSummary()

    def __call__(self, trainer) -> Any:
        """Adds the values of the iteration. Returns the means, epoch and iteration when due."""
        observation = trainer.observation
        self.summary.add(observation if self._keys is None else {
            key: observation[key] for key in self._keys if key in observation})
        if not (trainer.is_before_training or self._trigger(trainer)):
            return None
        means = {name: float(value) for name, value in self.summary.compute_mean().items()}
        means["epoch"] = trainer.updater.epoch
        means["iteration"] = trainer.updater.iteration
        self.summary = DictSummary()
        return means

    def serialize(self, serializer) -> None:
        if hasattr(self._trigger, "serialize"):
            self._trigger.serialize(serializer["_trigger"])
        try:
            self.summary.serialize(serializer["_summary"])
        except KeyError:
            warnings.warn("The statistics are not saved.")


class LogReport(Extension):
    """Writes the means of reported values to a JSON file, a list with an entry for each interval.

    Args:
        keys: the names of the values; None: all numbers.
        trigger: when the means are written. It is not the extension's own trigger.
        postprocess: a function that may change each entry, a dictionary, before it is written.
        filename, log_name: the name of the file in the trainer's folder, a format of the entry's
            values, by default "log"; None: no file.
    """

    def __init__(self, keys=None, trigger=(1, "epoch"), postprocess=None, filename=None, *,
                 log_name="log") -> None:
        self._averages = Averages(keys, trigger)
        self._postprocess = postprocess
        self._log_name = log_name if filename is None else filename
        self._log = []

    def __call__(self, trainer) -> None:
        entry = self._averages(trainer)
        if entry is None:
            return
        entry["elapsed_time"] = trainer.elapsed_time
        if self._postprocess is not None:
            self._postprocess(entry)
        self._log.append(entry)
        if self._log_name is not None:
            from catena import utils
            name = self._log_name.format(**entry)
            with utils.tempdir(prefix=name, dir=trainer.out) as folder:
                path = os.path.join(folder, "log.json")
                with open(path, "w") as file:
                    json.dump(self._log, file, indent=4)
                os.replace(path, os.path.join(trainer.out, name))

    log = property(operator.attrgetter("_log"), doc="The entries, a list of dictionaries.")

    def serialize(self, serializer) -> None:
        self._averages.serialize(serializer)
        self._log = serialize_json(serializer, "_log", self._log)
