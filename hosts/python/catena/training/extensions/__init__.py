"""Extensions of trainers, with the names of chainer.training.extensions."""
from . import snapshot_writers, util
from catena.training.extensions._snapshot import *
from catena.training.extensions.computational_graph import *
from catena.training.extensions.evaluator import *
from catena.training.extensions.log_report import *
from catena.training.extensions.plot_report import *
from catena.training.extensions.print_report import *
from catena.training.extensions.progress_bar import *
from catena.training.extensions.shifts import *
from catena.training.extensions.values import *
from catena.training.extensions.variable_statistics_plot import *

dump_graph = DumpGraph
