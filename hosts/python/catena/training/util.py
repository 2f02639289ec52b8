"""The name chainer.training.util.get_trigger."""
from catena.training.triggers import get_trigger  # noqa: F401
