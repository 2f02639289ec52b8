"""Trainers in tests of extensions."""
from typing import Any


def get_trainer_with_mock_updater(stop_trigger=(10, "iteration"), iter_per_epoch=10,
                                  extensions=None) -> Any:
    """A trainer whose updater counts iterations and epochs, and calls a Mock ``update_core()``."""
    from unittest import mock

    from catena import training
    updater = mock.Mock()
    updater.get_all_optimizers.return_value = {}

    def count(iteration):
        updater.iteration = iteration
        updater.epoch = iteration // iter_per_epoch
        updater.epoch_detail = iteration / iter_per_epoch
        updater.is_new_epoch = (iteration - 1) // iter_per_epoch != updater.epoch
        updater.previous_epoch_detail = (iteration - 1) / iter_per_epoch if iteration else None

    def update():
        updater.update_core()
        count(updater.iteration + 1)

    updater.update = update
    count(0)
    return training.Trainer(updater, stop_trigger, extensions=extensions or [])
