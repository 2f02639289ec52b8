"""MultiprocessParallelUpdater, which trains copies of a model with their own data."""
import warnings

from catena.backend import get_device
from catena.dataset.convert import concat_examples
from catena.training.updater import ParallelUpdater

__all__ = ["MultiprocessParallelUpdater"]


class MultiprocessParallelUpdater(ParallelUpdater):
    """Trains copies of the model on several devices, each with its own iterator.

    It computes what Chainer's updater computes: the gradients of all devices are added and the
    optimizer's learning rate, or its eps, is changed accordingly. Unlike in Chainer, all devices
    belong to one process. Work on a GPU is asynchronous, so that GPUs work at the same time; the
    programs that train in several processes are catena's own, see the guide of distributed
    training.

    Args:
        iterators: an iterator for each device, of datasets of equal lengths.
        optimizer, converter, auto_new_epoch: see StandardUpdater.
        devices: a list of devices, or a dictionary with an entry "main". Each is another one.
    """

    def __init__(self, iterators, optimizer, converter=concat_examples, devices=None,
                 auto_new_epoch=True) -> None:
        if isinstance(devices, dict):
            if "main" not in devices:
                raise KeyError("[MultiprocessParallelUpdater] devices: expected an entry 'main', "
                               f"got {list(devices)}")
            devices = {"main": devices["main"], **devices}
        elif isinstance(devices, (list, tuple)) and devices:
            devices = {str(i) if i else "main": device for i, device in enumerate(devices)}
        else:
            raise ValueError("[MultiprocessParallelUpdater] devices: expected a dictionary, a list "
                             f"or a tuple of devices, got {devices!r}")
        if None in devices.values():
            raise ValueError("[MultiprocessParallelUpdater] devices: expected a device in each "
                             "place, got None")
        devices = {name: get_device(device) for name, device in devices.items()}
        if len(set(devices.values())) < len(devices):
            raise ValueError("[MultiprocessParallelUpdater] devices: expected different devices, "
                             f"got {[str(device) for device in devices.values()]}")
        if len(iterators) != len(devices):
            raise ValueError("[MultiprocessParallelUpdater] iterators: expected one for each of "
                             f"{len(devices)} devices, got {len(iterators)}")
        lengths = {len(iterator.dataset) for iterator in iterators}
        if len(lengths) > 1:
            raise ValueError("[MultiprocessParallelUpdater] iterators: expected datasets of equal "
                             f"lengths, got {sorted(lengths)}")
        super().__init__(iterators[0], optimizer, converter, devices=devices,
                         auto_new_epoch=auto_new_epoch)
        self._adapt(optimizer, len(devices))
        self._all_iterators = list(iterators)

    @staticmethod
    def available() -> bool:
        """True: no library is needed."""
        return True

    @staticmethod
    def _adapt(optimizer, n):
        """Changes a hyperparameter for gradients that are sums over n minibatches."""
        kind = type(optimizer).__name__
        if kind in ("Adam", "AdaGrad", "RMSprop"):
            name, value = "eps", optimizer.eps * n
        elif kind in ("RMSpropGraves", "AdaDelta"):
            name, value = "eps", optimizer.eps * n ** 2
        elif hasattr(optimizer, "lr"):
            name, value = "lr", optimizer.lr / n
        else:
            return
        setattr(optimizer, name, value)
        warnings.warn(f"optimizer.{name} is changed to {value} by MultiprocessParallelUpdater for "
                      "new batch size.", stacklevel=4)

    def _batches(self):
        return [iterator.next() for iterator in self._all_iterators]

    def serialize(self, serializer) -> None:
        super().serialize(serializer)
        for i, iterator in enumerate(self._all_iterators[1:], 1):
            iterator.serialize(serializer[f"iterator:{i}"])

    def finalize(self) -> None:
        for iterator in self._all_iterators:
            iterator.finalize()
