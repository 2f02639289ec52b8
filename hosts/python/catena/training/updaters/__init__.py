"""The names of chainer.training.updaters."""
from catena.training.updaters.multiprocess_parallel_updater import *
from catena.training.updater import ParallelUpdater as ParallelUpdater
from catena.training.updater import StandardUpdater as StandardUpdater
