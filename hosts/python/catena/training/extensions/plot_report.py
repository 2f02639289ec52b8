"""PlotReport, which draws reported values."""
import os
import warnings

from catena.serializer import serialize_json
from catena.training.extension import Extension
from catena.training.extensions.log_report import Averages

__all__ = ["PlotReport"]


class PlotReport(Extension):
    """Draws the means of reported values into a file, with matplotlib. Without it, it warns.

    Args:
        y_keys: the name or the names of the values.
        x_key: "iteration" or "epoch".
        trigger: when a point is added. It is not the extension's own trigger.
        postprocess: a function of the figure, the axes and the summary.
        filename, file_name: the name of the file in the trainer's folder; by default "plot.png".
        marker, grid: matplotlib's marker of the points, and whether there is a grid.
    """

    def __init__(self, y_keys, x_key="iteration", trigger=(1, "epoch"), postprocess=None,
                 filename=None, marker="x", grid=True, *, file_name="plot.png") -> None:
        self.available()
        self._x_key = x_key
        self._y_keys = (y_keys,) if isinstance(y_keys, str) else y_keys
        self._averages = Averages(self._y_keys, trigger)
        self._file_name = file_name if filename is None else filename
        self._marker = marker
        self._grid = grid
        self._postprocess = postprocess
        self._data = {key: [] for key in self._y_keys}

    @staticmethod
    def available() -> bool:
        """Whether matplotlib can be imported; warns otherwise."""
        try:
            import matplotlib  # noqa: F401
            return True
        except ImportError:
            pass
        warnings.warn("matplotlib is not installed on your environment, so nothing will be plotted "
                      "at this time. Please install matplotlib to plot figures: "
                      "pip install matplotlib")
        return False

    def __call__(self, trainer) -> None:
        summary = self._averages.summary
        means = self._averages(trainer)
        if means is None:
            return
        for key in self._y_keys:
            if key in means:
                self._data[key].append((means[self._x_key], means[key]))
        if self.available():
            self._draw(os.path.join(trainer.out, self._file_name), summary)

    def _draw(self, path, summary):
        from matplotlib.figure import Figure  # no window, whatever the backend is
        figure = Figure()
        axes = figure.add_subplot(111)
        axes.set_xlabel(self._x_key)
        if self._grid:
            axes.grid()
        for key, points in self._data.items():
            if points:
                axes.plot(*zip(*points), marker=self._marker, label=key)
        if axes.has_data():
            if self._postprocess is not None:
                self._postprocess(figure, axes, summary)
            legend = axes.legend(bbox_to_anchor=(1.05, 1), loc=2, borderaxespad=0.0)
            figure.savefig(path, bbox_extra_artists=(legend,), bbox_inches="tight")

    def serialize(self, serializer) -> None:
        self._data = serialize_json(serializer, f"_plot_{self._file_name}", self._data)
        try:
            self._averages.serialize(serializer)
        except KeyError:  # a snapshot of Chainer
            pass
