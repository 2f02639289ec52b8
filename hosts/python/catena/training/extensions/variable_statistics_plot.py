"""VariableStatisticsPlot, which draws how the values of variables are distributed."""
import os
from typing import Any

import numpy

from catena import _core
from catena.link import Link
from catena.training.extension import Extension
from catena.training.extensions.plot_report import PlotReport
from catena.training.triggers import get_trigger

__all__ = ["VariableStatisticsPlot"]


def _variables(targets):
    """The variables in a variable, a link, or a list or tuple of them."""
    if isinstance(targets, _core.Variable):
        return [targets]
    if isinstance(targets, Link):
        return list(targets.params())
    if isinstance(targets, (list, tuple)):
        return [variable for each in targets for variable in _variables(each)]
    raise TypeError("[VariableStatisticsPlot] targets: expected variables or links, got "
                    f"{type(targets)}")


class Reservoir:
    """Keeps up to `size` arrays of those that are added, each with the same probability."""

    def __init__(self, size, data_shape, dtype=numpy.float32) -> None:
        self.size = size
        self.data = numpy.zeros((size, *data_shape), dtype)
        self.idxs = numpy.zeros(size, numpy.int32)
        self.counter = 0

    def add(self, x, idx=None) -> None:
        """Adds an array with its number, by default the number of those before it."""
        place = self.counter
        if place >= self.size:
            place = numpy.random.randint(self.counter + 1)
        if place < self.size:
            self.data[place] = x
            self.idxs[place] = self.counter if idx is None else idx
        self.counter += 1

    def get_data(self) -> Any:
        """The numbers in ascending order, and the arrays."""
        idxs = self.idxs[:self.counter]
        order = numpy.argsort(idxs)
        return idxs[order], self.data[order]


class Statistician:
    """Computes the mean, the standard deviation and percentiles of an array, as a dictionary."""

    def __init__(self, collect_mean, collect_std, percentile_sigmas) -> None:
        self.collect_mean = collect_mean
        self.collect_std = collect_std
        self.percentile_sigmas = percentile_sigmas

    def __call__(self, x, axis=0, dtype=None, xp=None) -> Any:
        found = {}
        if self.collect_mean:
            found["mean"] = x.mean(axis=axis)
        if self.collect_std:
            found["std"] = x.std(axis=axis)
        if numpy.size(self.percentile_sigmas):
            found["percentile"] = numpy.percentile(x, self.percentile_sigmas, axis=axis)
        return found


class VariableStatisticsPlot(Extension):
    """Draws statistics of variables and of their gradients into a file, with matplotlib.

    The values of all variables are taken together. The file shows a sample of the iterations.

    Args:
        targets: a variable, a link, or a list of them.
        max_sample_size: the number of iterations in the sample.
        report_data, report_grad: whether the values, and whether the gradients are shown.
        plot_mean, plot_std, percentile_sigmas: whether the mean and the standard deviation are shown, and
            which percentiles.
        trigger: when the file is written. It is not the extension's own trigger.
        figsize: matplotlib's size of the figure.
        filename, file_name, marker, grid: see PlotReport; by default "statistics.png".
    """

    def __init__(self, targets, max_sample_size=1000, report_data=True, report_grad=True,
                 plot_mean=True, plot_std=True,
                 percentile_sigmas=(0, 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87, 100),
                 trigger=(1, "epoch"), filename=None, figsize=None, marker=None, grid=True, *,
                 file_name="statistics.png") -> None:
        self._vars = _variables(targets)
        if not self._vars:
            raise ValueError("[VariableStatisticsPlot] targets: expected at least one variable, "
                             "got none")
        n_percentiles = numpy.size(percentile_sigmas)
        if not (plot_mean or plot_std or n_percentiles):
            raise ValueError("[VariableStatisticsPlot] expected something to draw, got neither "
                             "plot_mean nor plot_std nor percentile_sigmas")
        self._keys = ["data"] * bool(report_data) + ["grad"] * bool(report_grad)
        if not self._keys:
            raise ValueError("[VariableStatisticsPlot] expected report_data or report_grad, got "
                             "neither")
        self._statistician = Statistician(plot_mean, plot_std, percentile_sigmas)
        self._trigger = get_trigger(trigger)
        self._filename = file_name if filename is None else filename
        self._figsize, self._marker, self._grid = figsize, marker, grid
        n = bool(plot_mean) + bool(plot_std) + n_percentiles
        self._samples = Reservoir(max_sample_size, (len(self._keys), n))

    available = staticmethod(PlotReport.available)

    def __call__(self, trainer) -> None:
        if not self.available():
            return
        stats = numpy.zeros(self._samples.data.shape[1:], numpy.float32)
        host = _core.Device(-1)
        for row, key in zip(stats, self._keys):
            arrays = [host.send(getattr(variable, key)).ravel() for variable in self._vars
                      if getattr(variable, key) is not None]
            if arrays:
                found = self._statistician(numpy.concatenate(arrays).astype(numpy.float32))
                row[:] = numpy.concatenate([numpy.atleast_1d(each) for each in found.values()])
        self._samples.add(stats, trainer.updater.iteration)
        if self._trigger(trainer):
            self._draw(os.path.join(trainer.out, self._filename))

    def _draw(self, path):
        import matplotlib.pyplot as plt
        mean, std = self._statistician.collect_mean, self._statistician.collect_std
        idxs, data = self._samples.get_data()
        percentiles = data[:, :, bool(mean) + bool(std):]
        n = percentiles.shape[-1]
        figure, axes = plt.subplots(bool(mean or std) + bool(n), len(self._keys), sharex=True,
                                    squeeze=False, figsize=self._figsize)
        for column, (key, places) in enumerate(zip(self._keys, axes.T)):
            places[0].set_title(key)
            places[-1].set_xlabel("iteration")
            if mean and std:
                places[0].errorbar(idxs, data[:, column, 0], data[:, column, 1], label="mean, std",
                                   marker=self._marker, color="C0", ecolor=("C0", 0.2))
            elif mean or std:
                places[0].plot(idxs, data[:, column, 0], label="mean" if mean else "std",
                               marker=self._marker)
            for i in range(n // 2):  # a band from each percentile to the one as far from the other end
                places[-1].fill_between(
                    idxs, percentiles[:, column, i], percentiles[:, column, n - 1 - i], alpha=0.2,
                    linewidth=0, color="C0", label="" if n % 2 or i else "percentile")
            if n % 2:
                places[-1].plot(idxs, percentiles[:, column, n // 2], label="percentile",
                                marker=self._marker)
        for place in axes.flat:
            place.legend()
            if self._grid:
                place.grid()
                place.set_axisbelow(True)
        figure.savefig(path)
        plt.close(figure)
