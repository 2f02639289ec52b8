"""Triggers decide at each iteration whether something happens. The names are chainer's."""
from catena.training.triggers.schedule import (
    IntervalTrigger, ManualScheduleTrigger, OnceTrigger, TimeTrigger, get_trigger)
from catena.training.triggers.values import (
    BestValueTrigger, EarlyStoppingTrigger, MaxValueTrigger, MinValueTrigger)
