"""The training loop, its triggers and extensions, with the names of chainer.training."""
from . import extension, extensions, trigger, triggers, updater, updaters, util
from catena.training.extension import *
from catena.training.trainer import *
from catena.training.triggers import IntervalTrigger as IntervalTrigger
from catena.training.triggers import get_trigger as get_trigger
from catena.training.updater import *
