"""Links: functions with parameters, with the names and defaults of chainer.links."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from catena.links.activation import *
from catena.links.attention import *
from catena.links.classifier import *
from catena.links.connection import *
from catena.links.convolution import *
from catena.links.loss import *
from catena.links.normalization import *
from catena.links.recurrent import *

if not _TYPE_CHECKING:
    def __getattr__(name):
        from catena import functions
        from catena.functions._plugins import no_attribute
        names = [each for each in globals() if each[0].isupper()]
        raise no_attribute("catena.links", name, names, functions)
