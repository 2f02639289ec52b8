"""The functions with parameters of Chainer 1.0, which catena.functions has under their old names."""
from catena import links
from catena.configuration import using_config
from catena.function import Arrays
from catena.initializers import LeCunNormal
from catena.link import Link
from catena.links import Inception
from catena.variable import Parameter as _Parameter

__all__ = ["BatchNormalization", "BinaryHierarchicalSoftmax", "Convolution2D", "EmbedID", "Inception",
           "Linear", "PReLU", "Parameter"]


def _array(name, part):
    """An attribute that is the array or the gradient of a parameter."""
    def get(function):
        parameter = function.__dict__[name]
        return None if parameter is None else getattr(parameter, part)

    def assign(function, value):
        if value is None or isinstance(value, _Parameter):
            function.__dict__[name] = value
        else:
            setattr(function.__dict__[name], part, value)
    return property(get, assign)


class _Function(Link):
    """A link whose attributes are arrays: W and its gradient gW, for example."""

    parameter_names = ()
    gradient_names = ()
    parameters = Arrays("parameter_names")
    gradients = Arrays("gradient_names")

    def __init_subclass__(cls, link=None, names=(), **keywords):
        super().__init_subclass__(**keywords)
        if link is None:
            return
        cls._link = link
        cls.parameter_names = names
        cls.gradient_names = tuple("g" + name for name in names)
        for name, gradient in zip(names, cls.gradient_names):
            setattr(cls, name, _array(name, "array"))
            setattr(cls, gradient, _array(name, "grad"))

    def __init__(self, *args, **keywords):
        self.__dict__ = self._link(*args, **keywords).__dict__

    def forward(self, *args, **keywords):
        link = object.__new__(self._link)  # that of Chainer 7 with the same attributes
        link.__dict__ = self.__dict__
        return link.forward(*args, **keywords)


def _initial(wscale, bias, initialW, initial_bias):
    return {"initialW": LeCunNormal(wscale) if initialW is None else initialW,
            "initial_bias": bias if initial_bias is None else initial_bias}


class Linear(_Function, link=links.Linear, names=("W", "b")):
    """A fully connected layer, with arrays W and b and their gradients gW and gb.

    The initial weights have the standard deviation wscale / sqrt(in_size), and the initial bias is ``bias``;
    initialW and initial_bias are arrays instead of these.
    """

    def __init__(self, in_size, out_size, wscale=1, bias=0, nobias=False, initialW=None,
                 initial_bias=None):
        super().__init__(in_size, out_size, nobias,
                         **_initial(wscale, bias, initialW, initial_bias))


class Convolution2D(_Function, link=links.Convolution2D, names=("W", "b")):
    """A convolution of images; see catena.links.Convolution2D, and Linear for other arguments."""

    def __init__(self, in_channels, out_channels, ksize, stride=1, pad=0, wscale=1, bias=0,
                 nobias=False, use_cudnn=True, initialW=None, initial_bias=None):
        super().__init__(in_channels, out_channels, ksize, stride, pad, nobias,
                         **_initial(wscale, bias, initialW, initial_bias))


class BatchNormalization(_Function, link=links.BatchNormalization, names=("gamma", "beta")):
    """Normalizes each channel; see catena.links.BatchNormalization."""

    def __init__(self, size, decay=0.9, eps=1e-5):
        super().__init__(size, decay, eps)

    def forward(self, x, test=False, finetune=False):
        """Normalizes by the statistics of the batch, or by the running ones with ``test``."""
        with using_config("train", not test):
            return super().forward(x, finetune=finetune)


class BinaryHierarchicalSoftmax(_Function, link=links.BinaryHierarchicalSoftmax, names=("W",)):
    """A loss over the words at the leaves of a tree; see catena.links.BinaryHierarchicalSoftmax."""

    def __init__(self, in_size, tree):
        super().__init__(in_size, tree)


class EmbedID(_Function, link=links.EmbedID, names=("W",)):
    """A vector for each number; see catena.links.EmbedID."""


class PReLU(_Function, link=links.PReLU, names=("W",)):
    """A rectifier with learned slopes; see catena.links.PReLU."""


class Parameter(_Function, link=links.Parameter, names=("W",)):
    """A function without inputs that returns its array W as a variable; see catena.links.Parameter."""
