"""The names of chainer.training.trigger."""
from catena.training.triggers import IntervalTrigger, get_trigger  # noqa: F401
