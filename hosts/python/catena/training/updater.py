"""Updaters make one iteration of a training."""
import operator
from typing import Any

from catena import _core
from catena.configuration import force_backprop_mode, using_device
from catena.dataset.convert import _call_converter, _device, concat_examples
from catena.dataset.iterator import Iterator

__all__ = ["ParallelUpdater", "StandardUpdater", "Updater"]


class Updater:
    """Makes one iteration. Subclasses implement the methods."""

    def connect_trainer(self, trainer) -> Any:
        """Is called when a trainer is made with it."""

    def finalize(self) -> Any:
        """Is called at the end of the training."""
        raise NotImplementedError

    def get_optimizer(self, name) -> Any:
        raise NotImplementedError

    def get_all_optimizers(self) -> dict[str, Any]:
        """A dictionary of names and optimizers."""
        raise NotImplementedError

    def update(self) -> Any:
        """Makes one iteration."""
        raise NotImplementedError

    def serialize(self, serializer) -> Any:
        raise NotImplementedError


def _call(function, arguments, *before):
    """Calls a function with what a converter made: a tuple, a dictionary or an array."""
    if isinstance(arguments, tuple):
        return function(*before, *arguments)
    if isinstance(arguments, dict):
        return function(*before, **arguments)
    return function(*before, arguments)


def _of_main_iterator(name) -> Any:
    return property(lambda updater: getattr(updater._iterators["main"], name),
                    doc=f"The {name} of the main iterator.")


class StandardUpdater(Updater):
    """Takes a minibatch, computes the loss and updates the parameters.

    Args:
        iterator: an iterator, or a dictionary of iterators with an entry "main".
        optimizer: an optimizer whose target is set up, or a dictionary with an entry "main".
        converter: makes arrays from a minibatch.
        device: the device to which the targets and minibatches are sent; None: they stay.
        loss_func: computes the loss; None: the target of the optimizer.
        loss_scale: the factor of the loss in mixed precision; None: that of the optimizer.
        auto_new_epoch: whether ``optimizer.new_epoch()`` is called after each epoch.
        input_device: the device to which minibatches are sent; None: `device`.

    Attributes:
        iteration: the number of iterations.
    """

    def __init__(self, iterator, optimizer, converter=concat_examples, device=None, loss_func=None,
                 loss_scale=None, auto_new_epoch=True, *, input_device=None) -> None:
        self._device = _device(device)
        self._input_device = self._device if input_device is None else _device(input_device)
        self._iterators = {"main": iterator} if isinstance(iterator, Iterator) else iterator
        self._optimizers = optimizer if isinstance(optimizer, dict) else {"main": optimizer}
        self.converter = converter
        self.loss_func = loss_func
        self.loss_scale = loss_scale
        self.auto_new_epoch = auto_new_epoch
        self.iteration = 0
        for optimizer in self._optimizers.values():
            if self._device is not None:
                optimizer.target.to_device(self._device)
            if loss_scale is not None:
                optimizer.set_loss_scale(loss_scale)
            if auto_new_epoch:
                optimizer.use_auto_new_epoch = True

    device = property(operator.attrgetter("_device"))
    input_device = property(operator.attrgetter("_input_device"))
    epoch, epoch_detail, previous_epoch_detail, is_new_epoch = map(
        _of_main_iterator, ["epoch", "epoch_detail", "previous_epoch_detail", "is_new_epoch"])

    def finalize(self) -> None:
        for iterator in self._iterators.values():
            iterator.finalize()

    def get_optimizer(self, name) -> Any:
        return self._optimizers[name]

    def get_all_optimizers(self) -> dict[str, Any]:
        return dict(self._optimizers)

    def get_iterator(self, name) -> Any:
        return self._iterators[name]

    def update(self) -> None:
        self.update_core()
        self.iteration += 1

    def update_core(self) -> None:
        """One iteration without counting it; subclasses may override it."""
        iterator, optimizer = self._iterators["main"], self._optimizers["main"]
        arrays = _call_converter(self.converter, iterator.next(), self.input_device)
        _call(optimizer.update, arrays, self.loss_func or optimizer.target)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def serialize(self, serializer) -> None:
        for name, iterator in self._iterators.items():
            iterator.serialize(serializer["iterator:" + name])
        for name, optimizer in self._optimizers.items():
            optimizer.serialize(serializer["optimizer:" + name])
            optimizer.target.serialize(serializer["model:" + name])
        self.iteration = serializer("iteration", self.iteration)


class ParallelUpdater(StandardUpdater):
    """Divides each minibatch over models on several devices and adds their gradients.

    Args:
        iterator, optimizer, converter, loss_func, loss_scale, auto_new_epoch: see StandardUpdater.
        models: a dictionary of models with the keys of `devices`; None: the optimizer's target is
            "main", and the others are copies of it.
        devices: a dictionary of devices with an entry "main".
    """

    def __init__(self, iterator, optimizer, converter=concat_examples, models=None, devices=None,
                 loss_func=None, loss_scale=None, auto_new_epoch=True) -> None:
        super().__init__(iterator, optimizer, converter, loss_func=loss_func,
                         loss_scale=loss_scale, auto_new_epoch=auto_new_epoch)
        if models is None and devices is None:
            raise ValueError("either models or devices must be specified")
        self._devices = None if devices is None else {k: _device(d) for k, d in devices.items()}
        if models is None:
            if "main" not in devices:
                raise KeyError("'devices' must contain a 'main' key.")
            import copy
            models = {"main": optimizer.target, **{
                name: copy.deepcopy(optimizer.target) for name in devices if name != "main"}}
            for name, model in models.items():
                model.to_device(self._devices[name])
        self._models = models

    def _others(self):
        main = self.get_optimizer("main").target
        return {name: model for name, model in self._models.items() if model is not main}

    def connect_trainer(self, trainer) -> None:
        for name, model in self._others().items():
            trainer.reporter.add_observer(name, model)
            trainer.reporter.add_observers(name, model.namedlinks(skipself=True))

    def _batches(self):
        """The examples of each model."""
        batch, n = self.get_iterator("main").next(), len(self._models)
        return [batch[i::n] for i in range(n)]

    def update_core(self) -> None:
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        models = self._models
        losses = []
        for model in models.values():
            model.cleargrads()
        for batch, (name, model) in zip(self._batches(), models.items()):
            device = None if self._devices is None else self._devices[name]
            arrays = _call_converter(self.converter, batch, device)
            with force_backprop_mode(), using_device(device or _core.current_device()):
                losses.append(_call(self.loss_func or model, arrays))
        for model in models.values():
            model.cleargrads()  # also of parameters that the loss has initialized
        for loss in losses:
            loss.backward(loss_scale=self.loss_scale)
        for model in self._others().values():
            optimizer.target.addgrads(model)
        optimizer.update()
        for model in self._others().values():
            model.copyparams(optimizer.target)
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def serialize(self, serializer) -> None:
        super().serialize(serializer)
        for model in self._others().values():  # they are equal between iterations
            model.copyparams(self.get_optimizer("main").target)
