"""The training loop, its triggers and extensions, with the names of chainer.training."""
from catena.training import extension, extensions, trigger, triggers, updater, updaters, util
from catena.training.extension import (
    PRIORITY_EDITOR, PRIORITY_READER, PRIORITY_WRITER, Extension, make_extension)
from catena.training.trainer import Trainer
from catena.training.triggers import IntervalTrigger, get_trigger
from catena.training.updater import ParallelUpdater, StandardUpdater, Updater
