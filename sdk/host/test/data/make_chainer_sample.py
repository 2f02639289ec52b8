"""Writes the four .npz files in this folder. Needs Chainer 7. Usage: make_chainer_sample.py"""
import pathlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy
from chainer import datasets, iterators, training
from chainer.training import extensions

FOLDER = pathlib.Path(__file__).parent.resolve()


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(1, 2, 3)
            self.bn = L.BatchNormalization(2)
            self.l1 = L.Linear(8, 3)

    def __call__(self, x):
        return self.l1(F.relu(self.bn(self.conv(x))))


numpy.random.seed(0)
model = L.Classifier(Net())
optimizer = chainer.optimizers.Adam()
optimizer.setup(model)
images = numpy.random.rand(10, 1, 4, 4).astype("f")
data = datasets.TupleDataset(images, numpy.arange(10, dtype="i") % 3)
updater = training.StandardUpdater(iterators.SerialIterator(data, 4), optimizer)
trainer = training.Trainer(updater, (2, "epoch"), out=str(FOLDER))
trainer.extend(extensions.snapshot(filename="chainer_snapshot.npz"))
trainer.run()
with chainer.using_config("train", False):
    y = model.predictor(images).array
numpy.savez(FOLDER / "chainer_values.npz", x=images, y=y)

numpy.random.seed(1)
loss = L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, (3, 4))))
x = numpy.random.randn(6, 3).astype("f")
t = numpy.array([0, 1, 2, 3, 4, 1], "i")
chainer.serializers.save_npz(FOLDER / "chainer_tree.npz", loss)
numpy.savez(FOLDER / "chainer_tree_values.npz", x=x, t=t, loss=loss(x, t).array)
