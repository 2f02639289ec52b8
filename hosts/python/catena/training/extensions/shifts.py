"""Extensions that change a hyperparameter of an optimizer during the training."""
import math

from catena.serializer import serialize_or
from catena.training.extension import Extension

__all__ = ["ExponentialShift", "InverseShift", "LinearShift", "MultistepShift", "PolynomialShift",
           "StepShift", "WarmupShift"]


class _Shift(Extension):
    """Sets an attribute of an optimizer at each call, to a function of the number of calls."""

    def __init__(self, attr, optimizer, init=None, target=None, rises=False) -> None:
        self._attr = attr
        self._optimizer = optimizer
        self._init = init
        self._target = target
        self._rises = rises  # whether the target is an upper bound
        self._t = 0
        self._last_value = None

    def _value(self):
        """The value after _t calls."""
        raise NotImplementedError

    def _first_value(self):
        return self._init

    def _set(self, trainer, value):
        optimizer = self._optimizer or trainer.updater.get_optimizer("main")
        setattr(optimizer, self._attr, value)
        self._last_value = value

    def initialize(self, trainer) -> None:
        optimizer = self._optimizer or trainer.updater.get_optimizer("main")
        if self._init is None:
            self._init = getattr(optimizer, self._attr)
        first = self._first_value() if self._t == 0 else self._value()
        self._set(trainer, first if self._last_value is None else self._last_value)

    def __call__(self, trainer) -> None:
        self._t += 1
        value = self._value()
        if self._target is not None:
            # The ratio also serves for negative values.
            ratio = value / self._target
            if ratio > 1 if self._rises else ratio < 1:
                value = self._target
        self._set(trainer, value)

    def serialize(self, serializer) -> None:
        self._t = serializer("_t", self._t)
        # Snapshots of Chainer's MultistepShift and WarmupShift lack it.
        value = serialize_or(None, serializer, "_last_value", self._last_value)
        self._last_value = None if value is None else float(value)


class ExponentialShift(_Shift):
    """Multiplies an attribute of the optimizer by a rate at each call.

    Args:
        attr: the name of the attribute, such as "lr".
        rate: the factor.
        init: the first value; None: that of the optimizer.
        target: the value at which the shift stops; None: it does not.
        optimizer: the optimizer; None: the main one of the updater.
    """

    def __init__(self, attr, rate, init=None, target=None, optimizer=None) -> None:
        if rate < 0:
            raise ValueError("ExponentialShift does not support negative rate")
        super().__init__(attr, optimizer, init, target, rate > 1)
        self._rate = rate

    def _value(self):
        return self._init * self._rate ** self._t


class StepShift(_Shift):
    """Multiplies an attribute by gamma after every `step` calls. See ExponentialShift."""

    def __init__(self, attr, gamma, step, init=None, target=None, optimizer=None) -> None:
        super().__init__(attr, optimizer, init, target, gamma > 1)
        self._gamma, self._step = gamma, step

    def _value(self):
        return self._init * self._gamma ** math.floor(self._t / self._step)


class InverseShift(_Shift):
    """Sets an attribute to ``init * (1 + gamma * t) ** -power``. See ExponentialShift."""

    def __init__(self, attr, gamma, power, init=None, target=None, optimizer=None) -> None:
        if gamma < 0:
            raise ValueError("InverseShift does not support negative gamma")
        super().__init__(attr, optimizer, init, target, power < 0)
        self._gamma, self._power = gamma, power

    def _value(self):
        return self._init * (1 + self._gamma * self._t) ** -self._power


class PolynomialShift(_Shift):
    """Sets an attribute to ``init * (1 - t / max_count) ** rate``. See ExponentialShift."""

    def __init__(self, attr, rate, max_count, init=None, target=None, optimizer=None) -> None:
        super().__init__(attr, optimizer, init, target, rate <= 0)
        self._rate, self._max_count = rate, max_count

    def _value(self):
        return self._init * max(1 - self._t / self._max_count, 0) ** self._rate


class LinearShift(_Shift):
    """Changes an attribute linearly. See ExponentialShift.

    Args:
        value_range: the first and the last value.
        time_range: the numbers of calls at which the change begins and ends.
    """

    def __init__(self, attr, value_range, time_range, optimizer=None) -> None:
        super().__init__(attr, optimizer)
        self._value_range, self._time_range = value_range, time_range

    def _value(self):
        (t1, t2), (v1, v2) = self._time_range, self._value_range
        if self._t <= t1:
            return v1
        return v2 if self._t >= t2 else v1 + (self._t - t1) / (t2 - t1) * (v2 - v1)

    _first_value = _value


class MultistepShift(_Shift):
    """Multiplies an attribute by gamma when the number of calls reaches each of `step_value`.

    init: the first value; None: that of the optimizer.
    """

    def __init__(self, attr, gamma, step_value, init, optimizer=None) -> None:
        super().__init__(attr, optimizer, init)
        self._gamma, self._step_value = gamma, step_value

    def _value(self):
        return self._init * self._gamma ** self._current_step()

    def _current_step(self):
        return sum(step <= self._t for step in self._step_value)

    def serialize(self, serializer) -> None:
        super().serialize(serializer)
        serializer("_current_step", self._current_step())  # Chainer reads it


class WarmupShift(_Shift):
    """Changes an attribute linearly from warmup_start to init in warmup_iter calls.

    warmup_start: None: the value of the optimizer.
    """

    def __init__(self, attr, warmup_start, warmup_iter, init, optimizer=None) -> None:
        super().__init__(attr, optimizer, warmup_start)
        self._warmup_iter, self._end = warmup_iter, init

    def _value(self):
        n = self._warmup_iter
        return (self._t * self._end + (n - self._t) * self._init) / n

    def __call__(self, trainer) -> None:
        if self._t < self._warmup_iter:
            super().__call__(trainer)  # later calls leave the attribute to others
