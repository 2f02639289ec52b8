"""Triggers decide at each iteration whether something happens. The names are chainer's."""
from catena.training.triggers.schedule import *
from catena.training.triggers.values import *
