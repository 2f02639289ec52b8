"""Extensions of trainers, with the names of chainer.training.extensions."""
from catena.training.extensions import snapshot_writers, util
from catena.training.extensions._snapshot import snapshot, snapshot_object
from catena.training.extensions.computational_graph import DumpGraph
from catena.training.extensions.computational_graph import DumpGraph as dump_graph
from catena.training.extensions.evaluator import Evaluator
from catena.training.extensions.log_report import LogReport
from catena.training.extensions.plot_report import PlotReport
from catena.training.extensions.print_report import PrintReport
from catena.training.extensions.progress_bar import ProgressBar
from catena.training.extensions.shifts import (
    ExponentialShift, InverseShift, LinearShift, MultistepShift, PolynomialShift, StepShift,
    WarmupShift)
from catena.training.extensions.values import (
    FailOnNonNumber, MicroAverage, ParameterStatistics, observe_lr, observe_value,
    unchain_variables)
