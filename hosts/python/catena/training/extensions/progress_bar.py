"""ProgressBar, an extension that shows how far the training is."""
from typing import Any

from catena.training.extension import Extension
from catena.training.extensions import util

__all__ = ["ProgressBar"]


class ProgressBar(Extension):
    """Prints a bar for the training and one for the epoch.

    Args:
        training_length: the length, such as ``(20, "epoch")``; None: that of the stop trigger.
        update_interval: the number of iterations after which the bar is printed again.
        bar_length: the number of characters of a bar.
        out: the stream; None: sys.stdout.
    """

    def __init__(self, training_length=None, update_interval=100, bar_length=50, out=None) -> None:
        self._update_interval = update_interval
        self._bar = _TrainerBar(training_length, bar_length, out)

    def initialize(self, trainer) -> None:
        self._bar.update_speed(trainer.updater.iteration, trainer.updater.epoch_detail)

    def __call__(self, trainer) -> None:
        self._bar.trainer = trainer
        if trainer.updater.iteration % self._update_interval == 0:
            self._bar.update()

    def finalize(self) -> None:
        self._bar.close()


class _TrainerBar(util.ProgressBar):
    def __init__(self, training_length, bar_length, out) -> None:
        super().__init__(bar_length, out)
        self._training_length = training_length

    def get_lines(self) -> Any:
        updater = self.trainer.updater
        length, unit = self._training_length or self.trainer.stop_trigger.get_training_length()
        iteration, epoch = updater.iteration, updater.epoch_detail
        speeds = self.update_speed(iteration, epoch)
        done, speed = (iteration, speeds[0]) if unit == "iteration" else (epoch, speeds[1])
        return [
            "     total " + self.bar(min(done / length, 1.0)),
            "this epoch " + self.bar(epoch - int(epoch)),
            f"{iteration:10} iter, {updater.epoch} epoch / {length} {unit}s\n",
            self.speed(speeds[0], (length - done) / speed if speed else float("inf"))]
