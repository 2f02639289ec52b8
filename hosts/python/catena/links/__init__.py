"""Links: functions with parameters, with the names and defaults of chainer.links."""
from catena.links.activation import *
from catena.links.attention import *
from catena.links.classifier import *
from catena.links.connection import *
from catena.links.convolution import *
from catena.links.loss import *
from catena.links.normalization import *
from catena.links.recurrent import *
