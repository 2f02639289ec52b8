"""DeviceResident, the base of objects whose arrays move between devices together."""
import operator
import warnings
from typing import Any

from catena import _core, backend

_older = ("to_cpu", "to_gpu", "to_intel64")  # which classes could override before Chainer 7


class DeviceResidentsVisitor:
    """The visitor of device_resident_accept(). A subclass implements the methods."""

    def visit_device_resident(self, device_resident) -> Any:
        """Is called with each DeviceResident, before its arrays and variables."""
        raise NotImplementedError

    def visit_array(self, arr) -> Any:
        """Returns an array that replaces this one, or the array itself."""
        raise NotImplementedError

    def visit_variable(self, param) -> Any:
        """Is called with each variable."""
        raise NotImplementedError


class _ToDevice(DeviceResidentsVisitor):
    def __init__(self, device, start=None) -> None:
        self._device = device
        self._start = start  # whose older method has made this visitor

    def visit_device_resident(self, device_resident) -> None:
        device_resident._device = self._device
        is_gpu = self._device.is_gpu
        name, args = ("to_gpu", (self._device.id,)) if is_gpu else ("to_cpu", ())
        # A class may override the older methods, to move what the class itself does not know.
        if device_resident is not self._start and getattr(
                type(device_resident), name) is not getattr(DeviceResident, name):
            getattr(device_resident, name)(*args)

    def visit_array(self, arr) -> Any:
        return self._device.send(arr)

    def visit_variable(self, param) -> None:
        param.to_device(self._device)


class DeviceResident:
    """An object that is on a device, with arrays, variables and other such objects.

    A class with arrays that are no persistent values of a link moves them in this way::

        def device_resident_accept(self, visitor):
            super().device_resident_accept(visitor)
            self.table = visitor.visit_array(self.table)
    """

    _device = None  # None is the host

    def __init_subclass__(cls, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("to_device", "to_chx", "from_chx"):
            if name in cls.__dict__:
                raise TypeError(f"method {name!r} is final. Override device_resident_accept().")
        for name in _older:
            if name in cls.__dict__:
                warnings.warn(f"Overriding method {name!r}. Override device_resident_accept() "
                              "instead.", DeprecationWarning, stacklevel=2)

    def device_resident_accept(self, visitor) -> None:
        """Calls the methods of a DeviceResidentsVisitor with this object and all in it."""
        visitor.visit_device_resident(self)

    @property
    def device(self):
        """The device of the object, which is that of new parameters and of its ``xp``."""
        return _core.Device(-1) if self._device is None else self._device

    xp = property(operator.attrgetter("device.xp"),
                  doc="The module for arrays on the device: numpy, or cupy on a GPU.")

    def to_device(self, device) -> Any:
        """Moves all variables and arrays to a device. Returns the object."""
        self.device_resident_accept(_ToDevice(backend.get_device(device)))
        return self

    def to_cpu(self) -> Any:
        """``to_device("@numpy")``, the older form."""
        return self._move("@numpy", _core.Device(-1))

    def to_gpu(self, device=None) -> Any:
        """``to_device("@cupy:NUMBER")`` with the number of a GPU or the current one, the older form."""
        return self._move("@cupy:N", _core.gpu(device))

    def _move(self, name, device):
        older = "to_gpu" if device.is_gpu else "to_cpu"
        warnings.warn(f"{older} is deprecated. Please use to_device({name!r}) instead.",
                      DeprecationWarning, stacklevel=3)
        self.device_resident_accept(_ToDevice(device, self))
        return self

    def to_intel64(self) -> None:
        """Raises RuntimeError, because iDeep is not available."""
        backend.Intel64Device()

    def to_chx(self) -> None:
        """Raises RuntimeError, because ChainerX is not available."""
        backend.ChainerxDevice()

    def from_chx(self) -> Any:
        """Returns the object, of which no array is one of ChainerX."""
        return self
