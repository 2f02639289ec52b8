"""The names of chainer.training.updaters."""
from catena.training.updater import ParallelUpdater as ParallelUpdater
from catena.training.updater import StandardUpdater as StandardUpdater
