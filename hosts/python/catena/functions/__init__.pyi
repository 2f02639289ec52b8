from catena._core import plugin_function as plugin_function
from catena._core import plugin_function_names as plugin_function_names
from catena._plugin_functions import *
from catena.functions._arrays import *
from catena.functions._forms import *
from catena.functions._layers import *
from catena.functions._losses import *
from catena.functions._math import *
from catena.functions._recurrent import *
from catena.links.chainer1 import *
