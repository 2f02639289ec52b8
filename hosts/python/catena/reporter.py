"""Values that links and extensions report during training, with the names of chainer.reporter."""
import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from catena import _core
from catena.configuration import config
from catena.serializer import Serializer, serialize_json
from catena.variable import as_array


class _Thread(threading.local):
    def __init__(self) -> None:
        self.reporters = []


_thread = _Thread()


def _without_graph(value):
    if not isinstance(value, _core.Variable) or value.array is None:
        return value
    return _core.Variable(value._array, name=value.name, requires_grad=value.requires_grad)


class Reporter:
    """Collects reported values in the dictionary ``observation``.

    A value that an observer reports gets the observer's name as a prefix: "main/loss". ``with
    reporter:`` makes it the current reporter of the thread, to which ``report()`` reports.
    """

    def __init__(self) -> None:
        self._observer_names = {}
        self.observation: Any = {}

    def __enter__(self) -> None:
        _thread.reporters.append(self)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _thread.reporters.pop()

    @contextlib.contextmanager
    def scope(self, observation) -> Iterator[Any]:
        """Makes this the current reporter, which writes to the given dictionary, in the scope."""
        before = self.observation
        self.observation = observation
        try:
            with self:
                yield
        finally:
            self.observation = before

    def add_observer(self, name, observer) -> None:
        """Gives an object, which is recognized by its identity, a name."""
        self._observer_names[id(observer)] = name

    def add_observers(self, prefix, observers) -> None:
        """Gives objects the names ``prefix + name``. observers: pairs of names and objects."""
        for name, observer in observers:
            self.add_observer(prefix + name, observer)

    def report(self, values, observer=None) -> None:
        """Writes a dictionary of values to the observation.

        Variables are stored without their graph unless ``config.keep_graph_on_report`` is set.
        Raises KeyError for an observer without a name.
        """
        prefix = ""
        if observer is not None:
            if id(observer) not in self._observer_names:
                raise KeyError("Given observer is not registered to the reporter.")
            prefix = self._observer_names[id(observer)] + "/"
        keep = config.keep_graph_on_report
        for name, value in values.items():
            self.observation[prefix + name] = value if keep else _without_graph(value)


def get_current_reporter() -> Any:
    """The current reporter of the thread."""
    return _thread.reporters[-1]


def report(values, observer=None) -> None:
    """Reports a dictionary of values to the current reporter, if there is one."""
    if _thread.reporters:
        _thread.reporters[-1].report(values, observer)


@contextlib.contextmanager
def report_scope(observation) -> Iterator[Any]:
    """The current reporter writes to the given dictionary in the scope."""
    with get_current_reporter().scope(observation):
        yield


def _number(value):
    """A value that the host holds, as a float. Later changes of an array do not change it."""
    on_host = not isinstance(value, _core.Array) or value.device.host_accessible
    return float(value) if on_host else value


class Summary:
    """The mean and standard deviation of numbers, accumulated in double precision."""

    def __init__(self) -> None:
        self._x = 0.0
        self._x2 = 0.0
        self._n = 0.0
        self._added = []  # numbers on a GPU are fetched later: add() need not wait for them

    def add(self, value, weight=1) -> None:
        """Adds a number or a 0-d array."""
        self._added.append((_number(value), _number(weight)))
        if len(self._added) >= 1024:
            self._fold()

    def _fold(self):
        for value, weight in self._added:
            value, weight = float(value), float(weight)
            self._x += weight * value
            self._x2 += weight * value * value
            self._n += weight
        self._added = []

    def compute_mean(self) -> Any:
        """The weighted mean."""
        return self.make_statistics()[0]

    def make_statistics(self) -> Any:
        """The mean and the standard deviation."""
        import numpy
        self._fold()
        with numpy.errstate(invalid="ignore", divide="ignore"):
            mean = numpy.float64(self._x) / self._n
            variance = numpy.float64(self._x2) / self._n - mean * mean
            return mean, numpy.sqrt(numpy.maximum(variance, 0))  # rounding may make it negative

    def serialize(self, serializer) -> None:
        self._fold()
        saving = isinstance(serializer, Serializer)
        try:
            self._x = float(serializer("_x", self._x))
            self._x2 = float(serializer("_x2", self._x2))
            # Chainer reads the sum of the weights as an integer.
            is_count = saving and self._n.is_integer()
            self._n = float(serializer("_n", int(self._n) if is_count else self._n))
        except KeyError:
            warnings.warn("The previous statistics are not saved.")


def scalar_of(value) -> Any:
    """The array of a variable; None unless it is a number or a 0-d array."""
    import numpy
    value = as_array(value)
    return value if numpy.isscalar(value) or getattr(value, "ndim", -1) == 0 else None


class DictSummary:
    """The statistics of dictionaries with equal keys. Only numbers and 0-d arrays are used."""

    def __init__(self) -> None:
        self._summaries = {}

    def add(self, d) -> None:
        """Adds the numbers of a dictionary; a tuple consists of a number and its weight."""
        for key, value in d.items():
            weight = 1
            if isinstance(value, tuple):
                value, weight = value[0], scalar_of(value[1])
                if weight is None:
                    raise ValueError(f"Given weight to {key} was not scalar.")
            value = scalar_of(value)
            if value is not None:
                self._summaries.setdefault(key, Summary()).add(value, weight=weight)

    def compute_mean(self) -> Any:
        """The mean of each key."""
        return {name: summary.compute_mean() for name, summary in self._summaries.items()}

    def make_statistics(self) -> Any:
        """The mean of each key, and its standard deviation as ``key + ".std"``."""
        found = {}
        for name, summary in self._summaries.items():
            found[name], found[name + ".std"] = summary.make_statistics()
        return found

    def serialize(self, serializer) -> None:
        names = serialize_json(serializer, "_names", list(self._summaries), [],
                               "The names of statistics are not saved.")
        if not isinstance(serializer, Serializer):
            self._summaries = {name: Summary() for name in names}
        for index, summary in enumerate(self._summaries.values()):
            summary.serialize(serializer["_summaries"][str(index)])
