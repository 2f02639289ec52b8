"""The names of chainer.training.updaters."""
from catena.training.updater import ParallelUpdater, StandardUpdater
