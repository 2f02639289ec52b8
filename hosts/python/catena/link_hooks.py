"""Hooks of links: measured times, and weights that are normalized before each call."""
import sys
import time
from typing import Any

from catena import functions as F
from catena.configuration import config, no_backprop_mode
from catena.link_hook import LinkHook
from catena.variable import Parameter, Variable

_units = {"sec": 1, "ms": 10 ** 3, "us": 10 ** 6, "ns": 10 ** 9}


def _unit_for(seconds):
    return next((unit for unit, factor in _units.items() if seconds * factor >= 1), "ns")


class TimerHook(LinkHook):
    """Measures the times of calls: ``with TimerHook() as timer: ...; timer.print_report()``.

    The time of a call includes those of the links that it calls.

    Attributes:
        call_history: a list with the class's name and the seconds of each call.
    """

    name = "TimerHook"

    def __init__(self) -> None:
        self.call_history: Any = []
        self._starts = []
        self._total = 0.0

    def _now(self, args):
        args.link.device.synchronize()
        return time.perf_counter()

    def forward_preprocess(self, args) -> None:
        self._starts.append(self._now(args))

    def forward_postprocess(self, args) -> None:
        seconds = self._now(args) - self._starts.pop()
        self.call_history.append((type(args.link).__name__, seconds))
        if not self._starts:
            self._total += seconds

    def total_time(self) -> Any:
        """The seconds of all calls, without those of the links that they called."""
        return self._total

    def summary(self) -> Any:
        """The seconds and the number of calls for each class."""
        found = {}
        for name, seconds in self.call_history:
            record = found.setdefault(name, {"elapsed_time": 0.0, "occurrence": 0})
            record["elapsed_time"] += seconds
            record["occurrence"] += 1
        return found

    def print_report(self, unit="auto", file=None) -> None:
        """Prints a table to a file, by default the standard output.

        ``unit`` is "sec", "ms", "us", "ns", "auto" for one unit that fits the largest time, or
        "auto_foreach" for one in each row.
        """
        if unit not in (*_units, "auto", "auto_foreach"):
            raise ValueError("[TimerHook] unit: expected one of "
                             f"{[*_units, 'auto', 'auto_foreach']}, got {unit!r}")
        found = self.summary()
        if unit == "auto":
            unit = _unit_for(max((each["elapsed_time"] for each in found.values()), default=0))
        rows = [("LinkName", "ElapsedTime", "Occurrence")]
        for name, each in found.items():
            seconds = each["elapsed_time"]
            own = _unit_for(seconds) if unit == "auto_foreach" else unit
            rows.append((name, f"{seconds * _units[own]:3.2f}{own}", str(each["occurrence"])))
        widths = [max(map(len, column)) for column in zip(*rows)]
        for row in rows:
            print("  ".join(f"{text:>{width}}" for text, width in zip(row, widths)),
                  file=file or sys.stdout)


class _WeightHook(LinkHook):
    """Replaces the weights of one link during its calls."""

    def __init__(self, weight_name, name) -> None:
        self.weight_name = weight_name
        if name is not None:
            self.name = name

    def __enter__(self) -> Any:
        raise NotImplementedError(f"[{self.name}] expected a link that has the hook by add_hook(), "
                                  "got a with statement")

    def added(self, link) -> None:
        if not hasattr(link, self.weight_name):
            raise ValueError(f"Weight '{self.weight_name}' does not exist!")

    def prepare(self, link) -> Any:
        """Called before each call of the link, when the weights have an array."""

    def forward_preprocess(self, args) -> None:
        link = args.link
        if getattr(link, self.weight_name).array is None:
            link._initialize_params(args.args[0].shape[1])
        self.prepare(link)
        self._weight = getattr(link, self.weight_name)
        setattr(link, self.weight_name, self.normalized(link, self._weight))

    def forward_postprocess(self, args) -> None:
        setattr(args.link, self.weight_name, self._weight)


class WeightStandardization(_WeightHook):
    """Weights with the mean 0 and the variance 1, to which ``eps`` is added, for each output."""

    name = "WeightStandardization"

    def __init__(self, *, eps=1e-5, weight_name="W", name=None) -> None:
        super().__init__(weight_name, name)
        self.eps = eps

    def normalized(self, link, weight) -> Any:
        return F.weight_standardization(weight, self.eps)


class SpectralNormalization(_WeightHook):
    """Weights divided by their largest singular value, as a matrix with a row for each output.

    The link gets a persistent vector that approximates a singular vector, and is improved in each
    call. Add the hook before an optimizer is set up if ``use_gamma`` is True.

    Args:
        n_power_iteration: the number of improvements in a call.
        eps: is added to norms.
        use_gamma: whether to multiply by a parameter ``gamma``, which is first the singular value.
        factor: the singular value is divided by it, unless it is None.
        weight_name, name: the names of the weights and of the hook.
    """

    name = "SpectralNormalization"

    def __init__(self, n_power_iteration=1, eps=1e-6, use_gamma=False, factor=None,
                 weight_name="W", name=None) -> None:
        super().__init__(weight_name, name)
        assert n_power_iteration > 0
        self.n_power_iteration, self.eps = n_power_iteration, eps
        self.use_gamma, self.factor = use_gamma, factor
        self.vector_name = weight_name + "_u"
        self.v: Any = None  # the other singular vector in the last call, an array
        self.axis = 0  # of the outputs

    def added(self, link) -> None:
        from catena import links
        super().added(link)
        if isinstance(link, (links.Deconvolution2D, links.DeconvolutionND)):
            self.axis = 1
        if getattr(link, self.weight_name).array is not None:
            self.prepare(link)

    def deleted(self, link) -> None:
        delattr(link, self.vector_name)
        if self.use_gamma:
            del link.gamma

    def _matrix(self, weight):
        if self.axis:
            weight = F.moveaxis(weight, self.axis, 0)
        return F.reshape(weight, (weight.shape[0], -1))

    def prepare(self, link) -> None:
        if hasattr(link, self.vector_name):
            return
        import numpy
        weight = getattr(link, self.weight_name)
        n = weight.shape[self.axis]
        if n == 0:
            raise ValueError(f"Expect {self.weight_name}.shape[{self.axis}] > 0")
        u = numpy.random.normal(size=n).astype(str(weight.dtype))
        setattr(link, self.vector_name, link.device.send(u))
        link.register_persistent(self.vector_name)
        if self.use_gamma:
            matrix = Variable(weight.array)
            with no_backprop_mode():
                matrix = self._matrix(matrix)
            matrix.to_cpu()
            largest = numpy.linalg.svd(matrix.array.astype("float64"), compute_uv=False)[0]
            with link.init_scope():
                link.gamma = Parameter(numpy.asarray(largest, str(weight.dtype)))
            link.gamma.to_device(link.device)

    def _unit(self, vector):
        return F.reshape(F.normalize(F.reshape(vector, (1, -1)), self.eps), (-1,))

    def normalized(self, link, weight) -> Any:
        matrix = self._matrix(weight)
        u = getattr(link, self.vector_name)
        kept = config._kept_for_recomputing
        if kept is not None and config.in_recomputing:  # F.forget() repeats the call
            u, v = next(kept)
        elif config.in_recomputing and self.v is not None:
            v = self.v
        else:
            with no_backprop_mode():
                for _ in range(self.n_power_iteration):
                    v = self._unit(F.matmul(u, matrix))
                    u = self._unit(F.matmul(matrix, v))
            self.v = v.array
            if kept is not None:
                kept.append((u, v))
        sigma = F.matmul(F.matmul(u, matrix), v)
        if self.factor is not None:
            sigma = sigma / self.factor
        if config.train and not config.in_recomputing:
            from catena import backend
            backend.copyto(getattr(link, self.vector_name), u.array)
        scale = link.gamma / sigma if self.use_gamma else 1.0 / sigma
        return weight * F.broadcast_to(scale, weight.shape)
