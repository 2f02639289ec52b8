"""The functions with parameters of Chainer 1.0, which catena.functions has under their old names."""
from catena.configuration import using_config
from catena.initializers import LeCunNormal
from catena.links import (
    BinaryHierarchicalSoftmax, EmbedID, Inception, Parameter, PReLU, connection, normalization)

__all__ = ["BatchNormalization", "BinaryHierarchicalSoftmax", "Convolution2D", "EmbedID", "Inception",
           "Linear", "PReLU", "Parameter"]


class Linear(connection.Linear):
    """A fully connected layer; see catena.links.Linear.

    Args:
        in_size, out_size: the numbers of inputs and outputs per sample.
        wscale: the initial weights have the standard deviation wscale / sqrt(in_size).
        bias: the initial bias.
        nobias: whether there is no bias.
        initialW, initial_bias: arrays instead of these.
    """

    def __init__(self, in_size, out_size, wscale=1, bias=0, nobias=False, initialW=None,
                 initial_bias=None):
        super().__init__(in_size, out_size, nobias, LeCunNormal(wscale) if initialW is None
                         else initialW, bias if initial_bias is None else initial_bias)


class Convolution2D(connection.Convolution2D):
    """A convolution of images; see catena.links.Convolution2D, and Linear for other arguments."""

    def __init__(self, in_channels, out_channels, ksize, stride=1, pad=0, wscale=1, bias=0,
                 nobias=False, use_cudnn=True, initialW=None, initial_bias=None):
        super().__init__(in_channels, out_channels, ksize, stride, pad, nobias, LeCunNormal(wscale)
                         if initialW is None else initialW,
                         bias if initial_bias is None else initial_bias)


class BatchNormalization(normalization.BatchNormalization):
    """Normalizes each channel; see catena.links.BatchNormalization."""

    def __init__(self, size, decay=0.9, eps=1e-5):
        super().__init__(size, decay, eps)

    def forward(self, x, test=False, finetune=False):
        """Normalizes by the statistics of the batch, or by the running ones with ``test``."""
        with using_config("train", not test):
            return super().forward(x, finetune=finetune)
