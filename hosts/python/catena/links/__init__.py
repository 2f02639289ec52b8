"""Links: functions with parameters, with the names and defaults of chainer.links."""
from catena.links.activation import Maxout, PReLU, Swish
from catena.links.attention import MultiHeadAttention, RotaryPositions
from catena.links.classifier import Classifier
from catena.links.connection import (
    Bias, Bilinear, EmbedID, Highway, Linear, Parameter, Scale, SimplifiedDropconnect)
from catena.links.convolution import (
    Convolution1D, Convolution2D, Convolution3D, ConvolutionND, Deconvolution1D, Deconvolution2D,
    Deconvolution3D, DeconvolutionND, DeformableConvolution2D, DepthwiseConvolution2D,
    DilatedConvolution2D, Inception, InceptionBN, LocalConvolution2D, MLPConvolution2D)
from catena.links.loss import BinaryHierarchicalSoftmax, BlackOut, CRF1d, NegativeSampling
from catena.links.normalization import (
    BatchNormalization, BatchRenormalization, GroupNormalization, LayerNormalization,
    RMSNormalization)
from catena.links.recurrent import (
    GRU, LSTM, ChildSumTreeLSTM, NaryTreeLSTM, NStepBiGRU, NStepBiLSTM, NStepBiRNNReLU,
    NStepBiRNNTanh, NStepGRU, NStepLSTM, NStepRNNReLU, NStepRNNTanh, StatefulGRU, StatefulMGU,
    StatefulPeepholeLSTM, StatefulZoneoutLSTM, StatelessGRU, StatelessLSTM, StatelessMGU)
