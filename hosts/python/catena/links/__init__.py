"""Links: functions with parameters, with the names and defaults of chainer.links."""
from catena.links.activation import Maxout, PReLU, Swish
from catena.links.attention import MultiHeadAttention, RotaryPositions
from catena.links.classifier import Classifier
from catena.links.connection import (
    Bias, Bilinear, Convolution1D, Convolution2D, ConvolutionND, Deconvolution2D,
    DepthwiseConvolution2D, DilatedConvolution2D, EmbedID, Highway, Inception, InceptionBN, Linear,
    MLPConvolution2D, Parameter, Scale)
from catena.links.loss import BinaryHierarchicalSoftmax
from catena.links.normalization import (
    BatchNormalization, GroupNormalization, LayerNormalization, RMSNormalization)
from catena.links.recurrent import (
    GRU, LSTM, NStepBiGRU, NStepBiLSTM, NStepBiRNNReLU, NStepBiRNNTanh, NStepGRU, NStepLSTM,
    NStepRNNReLU, NStepRNNTanh, StatefulGRU, StatefulMGU, StatefulPeepholeLSTM, StatefulZoneoutLSTM,
    StatelessGRU, StatelessLSTM, StatelessMGU)
