"""Extensions that report or check values."""
from typing import Any

import numpy

from catena import _core
from catena.configuration import config
from catena.cupy import asnumpy
from catena.reporter import DictSummary, report
from catena.training.extension import (
    PRIORITY_EDITOR, PRIORITY_WRITER, Extension, make_extension)
from catena.training.triggers import get_trigger
from catena.variable import as_array

__all__ = ["FailOnNonNumber", "MicroAverage", "ParameterStatistics", "observe_lr", "observe_value",
           "unchain_variables"]


def observe_value(observation_key, target_func) -> Any:
    """An extension that records ``target_func(trainer)`` once in an epoch."""
    @make_extension(trigger=(1, "epoch"), priority=PRIORITY_WRITER)
    def _observe_value(trainer):
        trainer.observation[observation_key] = target_func(trainer)
    return _observe_value


def observe_lr(optimizer_name="main", observation_key="lr") -> Any:
    """An extension that records the learning rate of an optimizer once in an epoch."""
    return observe_value(
        observation_key, lambda trainer: trainer.updater.get_optimizer(optimizer_name).lr)


class FailOnNonNumber(Extension):
    """Raises RuntimeError when a parameter contains NaN or infinity."""

    def __call__(self, trainer) -> None:
        for name, optimizer in trainer.updater.get_all_optimizers().items():
            for path, param in optimizer.target.namedparams(include_uninit=False):
                if not numpy.isfinite(asnumpy(param.array)).all():
                    raise RuntimeError(
                        "Kill the process since parameters in optimizer "
                        f"'{name}' diverge: {path} contains NaN or infinity.")


class MicroAverage(Extension):
    """Reports the sum of one value divided by the sum of another when a trigger fires.

    The arguments are the names of the values and of the result. The sums start again after each report.
    """

    priority = PRIORITY_EDITOR

    def __init__(self, numerator_key, denominator_key, result_key, trigger=(1, "epoch")) -> None:
        self._trigger = get_trigger(trigger)
        self._numerator_key = numerator_key
        self._denominator_key = denominator_key
        self._result_key = result_key
        self._numerator = self._denominator = 0.0

    def __call__(self, trainer) -> None:
        observation = trainer.observation
        if self._numerator_key not in observation or self._denominator_key not in observation:
            return
        self._numerator += float(as_array(observation[self._numerator_key]))
        self._denominator += float(as_array(observation[self._denominator_key]))
        if self._trigger(trainer):
            result = self._numerator / self._denominator
            self._numerator = self._denominator = 0.0
            report({self._result_key: result})

    def serialize(self, serializer) -> None:
        if hasattr(self._trigger, "serialize"):
            try:
                self._trigger.serialize(serializer["_trigger"])
            except KeyError:  # a snapshot of Chainer
                pass
        self._numerator = float(serializer("_numerator", self._numerator))
        self._denominator = float(serializer("_denominator", self._denominator))


class ParameterStatistics(Extension):
    """Reports statistics of parameters and gradients, averaged over the trigger's interval.

    Args:
        links: a link or a list of links.
        statistics: a dictionary of names and functions of a vector; "default": those of
            default_statistics; None: no statistics.
        report_params, report_grads: whether the elements and the gradients are used.
        prefix: the beginning of the names.
        trigger: when the means are reported.
        skip_nan_params: whether statistics of arrays with NaN are NaN without calling the function.
    """

    default_name = "parameter_statistics"
    priority = PRIORITY_WRITER
    report_key_template = "{prefix}{link_name}{param_name}/{attr_name}/{function_name}"
    default_statistics = {
        "mean": lambda x: x.mean(),
        "std": lambda x: x.std(),
        "min": lambda x: x.min(),
        "max": lambda x: x.max(),
        "zeros": lambda x: (x == 0).sum(),
        "percentile": lambda x: numpy.percentile(x, (0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87)),
    }

    def __init__(self, links, statistics="default", report_params=True, report_grads=True,
                 prefix=None, trigger=(1, "epoch"), skip_nan_params=False) -> None:
        self._links = links if isinstance(links, (list, tuple)) else (links,)
        self._statistics = dict(
            self.default_statistics if statistics == "default" else statistics or {})
        self._attrs = ["data"] * bool(report_params) + ["grad"] * bool(report_grads)
        self._prefix = prefix
        self._trigger = get_trigger(trigger)
        self._summary = DictSummary()
        self._skip_nan_params = skip_nan_params

    def register_statistics(self, name, function) -> None:
        """Adds a function of a vector that gives a number or an array of numbers."""
        self._statistics[name] = function

    def _values(self):
        for link in self._links:
            for path, param in link.namedparams():
                for attr in self._attrs:
                    array = asnumpy(getattr(param, attr)).ravel()
                    skip = self._skip_nan_params and numpy.isnan(array).any()
                    for name, function in self._statistics.items():
                        key = self.report_key_template.format(
                            prefix=self._prefix + "/" if self._prefix else "",
                            link_name=getattr(link, "name", "None"), param_name=path,
                            attr_name=attr, function_name=name)
                        yield key, numpy.nan if skip else function(array)

    def __call__(self, trainer) -> None:
        statistics = {}
        for key, value in self._values():
            if getattr(value, "size", 1) > 1:
                statistics.update({f"{key}/{i}": each for i, each in enumerate(value)})
            else:
                statistics[key] = value
        self._summary.add(statistics)
        if self._trigger(trainer):
            report(self._summary.compute_mean())
            self._summary = DictSummary()

    def serialize(self, serializer) -> None:
        try:
            self._summary.serialize(serializer["_summary"])
            if hasattr(self._trigger, "serialize"):
                self._trigger.serialize(serializer["_trigger"])
        except KeyError:  # a snapshot of Chainer
            pass


class unchain_variables(Extension):
    """Frees the graphs of reported variables, which ``config.keep_graph_on_report`` keeps.

    It is called last in an iteration, unless the flag was off before.
    """

    priority = 0

    def __init__(self) -> None:
        self._previous = None

    def initialize(self, trainer) -> None:
        self._previous = config.keep_graph_on_report

    def trigger(self, trainer) -> Any:
        kept, self._previous = self._previous, config.keep_graph_on_report
        return kept

    def __call__(self, trainer) -> None:
        for value in trainer.observation.values():
            if isinstance(value, _core.Variable):
                value.unchain_backward()
