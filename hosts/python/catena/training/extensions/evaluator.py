"""Evaluator, which computes the means of reported values on a validation set."""
import copy
import warnings
from typing import Any

from catena import reporter as reporter_module
from catena.configuration import no_backprop_mode, using_config
from catena.dataset.convert import _call_converter, _device, concat_examples
from catena.dataset.iterator import Iterator
from catena.training.extension import PRIORITY_WRITER, Extension
from catena.training.extensions import util
from catena.training.updater import _call

__all__ = ["Evaluator"]


class Evaluator(Extension):
    """Calls a model on all minibatches of an iterator and reports the means of what it reports.

    The names get the prefix "validation/". The model is called with ``config.train`` false and
    without a graph.

    Args:
        iterator: an iterator that does not repeat, or a dictionary with an entry "main".
        target: a link, or a dictionary of links with an entry "main".
        converter, device: see StandardUpdater.
        eval_hook: a function of this object that is called before each evaluation.
        eval_func: is called on each minibatch; None: the main target.
        progress_bar: whether a progress bar is shown.
    """

    trigger = 1, "epoch"
    default_name = "validation"
    priority = PRIORITY_WRITER

    def __init__(self, iterator, target, converter=concat_examples, device=None, eval_hook=None,
                 eval_func=None, *, progress_bar=False) -> None:
        from catena.link import Link
        self.device = _device(device)
        self._iterators = {"main": iterator} if isinstance(iterator, Iterator) else iterator
        self._targets = {"main": target} if isinstance(target, Link) else target
        self.converter = converter
        self.eval_hook = eval_hook
        self.eval_func = eval_func
        self._progress_bar = progress_bar
        for name, each in self._iterators.items():
            if getattr(each, "repeat", False):
                warnings.warn(f"The `repeat` property of the iterator {name} is set to `True`. The "
                              "evaluator sweeps over iterators until they stop, so it might not "
                              "end.")

    def get_iterator(self, name) -> Any:
        return self._iterators[name]

    def get_all_iterators(self) -> Any:
        return dict(self._iterators)

    def get_target(self, name) -> Any:
        return self._targets[name]

    def get_all_targets(self) -> Any:
        return dict(self._targets)

    def __call__(self, trainer=None) -> Any:
        """Evaluates and reports. Returns the dictionary of means."""
        reporter = reporter_module.Reporter()
        prefix = "" if self.name is None else self.name + "/"
        for name, target in self._targets.items():
            reporter.add_observer(prefix + name, target)
            reporter.add_observers(prefix + name, target.namedlinks(skipself=True))
        with reporter, using_config("train", False):
            result = self.evaluate()
        reporter_module.report(result)
        return result

    def evaluate(self) -> Any:
        """The means over one sweep; subclasses may override it."""
        if self.eval_hook:
            self.eval_hook(self)
        iterator = self._iterators["main"]
        if hasattr(iterator, "reset"):
            iterator.reset()
        else:
            warnings.warn("This iterator does not have the reset method. Evaluator copies the "
                          "iterator instead of resetting. This behavior is deprecated. Please "
                          "implement the reset method.", DeprecationWarning)
            iterator = copy.copy(iterator)
        summary = reporter_module.DictSummary()
        bar = _IteratorBar(iterator) if self._progress_bar else None
        for batch in iterator:
            observation = {}
            with reporter_module.report_scope(observation):
                arrays = _call_converter(self.converter, batch, self.device)
                with no_backprop_mode():
                    _call(self.eval_func or self._targets["main"], arrays)
            summary.add(observation)
            if bar:
                bar.update()
        if bar:
            bar.close()
        return summary.compute_mean()

    def finalize(self) -> None:
        for iterator in self._iterators.values():
            iterator.finalize()


class _IteratorBar(util.ProgressBar):
    def __init__(self, iterator) -> None:
        if not hasattr(iterator, "current_position") or not hasattr(iterator, "epoch_detail"):
            raise TypeError("Iterator must have the following attributes to enable a progress bar: "
                            "current_position, epoch_detail")
        super().__init__()
        self._iterator = iterator
        self.update_speed(iterator.current_position, iterator.epoch_detail)

    def get_lines(self) -> Any:
        iteration, epoch = self._iterator.current_position, self._iterator.epoch_detail
        size = getattr(self._iterator, "_epoch_size", None)
        speed, epoch_speed = self.update_speed(iteration, epoch)
        return ["validation " + self.bar(epoch),
                f"{iteration:10} / {size} iterations\n" if size else f"{iteration:10} iterations\n",
                self.speed(speed, (1.0 - epoch) / epoch_speed if epoch_speed else float("inf"))]
