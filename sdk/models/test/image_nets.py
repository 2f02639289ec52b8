"""Prints the values for image_nets_golden_test.cpp. Needs Chainer 7. Usage: image_nets.py

The nets are those of the papers with an eighth of the width, for 5 classes, in float64. The image
sizes are not multiples of the pooling strides; cover_all, Chainer's default, includes every pixel.
"""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy

CLASSES = 5
LABELS = numpy.array([1, 3], "i")


def width(*channels):
    return [n // 8 for n in channels]


def conv(channels, ksize, stride=1, pad=0):
    return L.Convolution2D(None, channels // 8, ksize, stride, pad)


def pool(x):
    return F.max_pooling_2d(x, 3, stride=2)


class NIN(chainer.Chain):
    """Lin, Chen and Yan, "Network In Network"."""
    side = 72

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.block1 = L.MLPConvolution2D(None, width(96, 96, 96), 11, stride=4)
            self.block2 = L.MLPConvolution2D(None, width(256, 256, 256), 5, pad=2)
            self.block3 = L.MLPConvolution2D(None, width(384, 384, 384), 3, pad=1)
            self.block4 = L.MLPConvolution2D(None, width(1024, 1024) + [CLASSES], 3, pad=1)

    def layers(self):
        return [*self.block1, *self.block2, *self.block3, *self.block4]

    def forward(self, x):
        for block in self.block1, self.block2, self.block3:
            x = pool(F.relu(block(x)))
        return F.mean(self.block4(F.dropout(x, 0.5)), axis=(2, 3))


class AlexNetBN(chainer.Chain):
    """Krizhevsky, Sutskever and Hinton; batch normalization replaces response normalization."""
    side = 72

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = conv(96, 11, stride=4)
            self.bn1 = L.BatchNormalization(96 // 8, eps=1e-5)
            self.conv2 = conv(256, 5, pad=2)
            self.bn2 = L.BatchNormalization(256 // 8, eps=1e-5)
            self.conv3 = conv(384, 3, pad=1)
            self.conv4 = conv(384, 3, pad=1)
            self.conv5 = conv(256, 3, pad=1)
            self.fc6 = L.Linear(None, 4096 // 8)
            self.fc7 = L.Linear(None, 4096 // 8)
            self.fc8 = L.Linear(None, CLASSES)

    def layers(self):
        return [self.conv1, self.bn1, self.conv2, self.bn2, self.conv3, self.conv4, self.conv5,
                self.fc6, self.fc7, self.fc8]

    def forward(self, x):
        x = pool(F.relu(self.bn1(self.conv1(x))))
        x = pool(F.relu(self.bn2(self.conv2(x))))
        x = F.relu(self.conv3(x))
        x = F.relu(self.conv4(x))
        x = pool(F.relu(self.conv5(x)))
        x = F.dropout(F.relu(self.fc6(x)), 0.5)
        x = F.dropout(F.relu(self.fc7(x)), 0.5)
        return self.fc8(x)


class Auxiliary(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = conv(128, 1)
            self.fc1 = L.Linear(None, 1024 // 8)
            self.fc2 = L.Linear(None, CLASSES)

    def forward(self, x):
        x = F.relu(self.conv(F.average_pooling_2d(x, 5, stride=3)))
        return self.fc2(F.relu(self.fc1(x)))


class GoogLeNet(chainer.Chain):
    """Szegedy et al., "Going Deeper with Convolutions", table 1."""
    side = 128
    modules = {
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
        "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
        "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64),
        "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128),
        "5b": (384, 192, 384, 48, 128, 128),
    }

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = conv(64, 7, stride=2, pad=3)
            self.conv2_reduce = conv(64, 1)
            self.conv2 = conv(192, 3, pad=1)
            for name, channels in self.modules.items():
                setattr(self, name, L.Inception(None, *width(*channels)))
            self.loss1 = Auxiliary()
            self.loss2 = Auxiliary()
            self.fc = L.Linear(None, CLASSES)

    def layers(self):
        found = [self.conv1, self.conv2_reduce, self.conv2]
        for name in self.modules:
            m = self[name]
            found += [m.conv1, m.conv3, m.conv5, m.proj3, m.proj5, m.projp]
        for side in self.loss1, self.loss2:
            found += [side.conv, side.fc1, side.fc2]
        return found + [self.fc]

    def forward(self, x):
        x = F.local_response_normalization(pool(F.relu(self.conv1(x))), n=5)
        x = F.relu(self.conv2(F.relu(self.conv2_reduce(x))))
        x = pool(F.local_response_normalization(x, n=5))
        for name in self.modules:
            x = self[name](x)
            if name == "4a":
                self.first = self.loss1(x)
            if name == "4d":
                self.second = self.loss2(x)
            if name in ("3b", "4e"):
                x = pool(x)
        return self.fc(F.dropout(F.mean(x, axis=(2, 3)), 0.4))

    def of_the_middle(self):
        """Returns the auxiliary losses that training adds to the loss of the last call."""
        losses = [F.softmax_cross_entropy(y, LABELS) for y in (self.first, self.second)]
        return 0.3 * (losses[0] + losses[1])


class Draws:
    """Numbers from a Mersenne twister, as std::mt19937(1) draws them."""

    def __init__(self):
        self.random = numpy.random.RandomState(1)

    def __call__(self, shape, spread, center=0):
        drawn = self.random.randint(0, 2 ** 32, int(numpy.prod(shape)), numpy.uint32)
        return (center + spread * (drawn / 2.0 ** 31 - 1)).reshape(shape)


def fill(net, draws):
    for layer in net.layers():
        if isinstance(layer, L.BatchNormalization):
            layer.gamma.array = draws(layer.gamma.shape, 0.25, 1)
            layer.beta.array = draws(layer.beta.shape, 0.25)
        else:
            fan_in = layer.W.size // len(layer.W)
            layer.W.array = draws(layer.W.shape, numpy.sqrt(6 / fan_in))
            layer.b.array = draws(layer.b.shape, 0.25)
    for layer in net.layers():
        if isinstance(layer, L.BatchNormalization):
            layer.avg_mean = draws(layer.gamma.shape, 0.25)
            layer.avg_var = draws(layer.gamma.shape, 0.5, 1.5)


def show(what, values):
    print(f"{what}:", ", ".join(f"{v:.12g}" for v in numpy.ravel(values)))


if __name__ == "__main__":
    chainer.global_config.dtype = numpy.float64
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for net in NIN(), AlexNetBN(), GoogLeNet():
            name, shape = type(net).__name__, (2, 3, net.side, net.side)
            net(numpy.zeros(shape))  # sets the sizes of all parameters
            draws = Draws()
            fill(net, draws)
            scores = net(draws(shape, 4))
            show(f"{name} scores", scores.array)
            show(f"{name} loss", F.softmax_cross_entropy(scores, LABELS).array)
            if name == "GoogLeNet":
                show(f"{name} of the middle", net.of_the_middle().array)
