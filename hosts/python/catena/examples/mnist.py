"""Trains a network of three layers to recognize handwritten digits, as Chainer's example does."""
import argparse
import os

import catena as chainer
import catena.functions as F
import catena.links as L
from catena import _core, training
from catena.datasets.files import shipped
from catena.training import extensions


class MLP(chainer.Chain):
    """Three fully connected layers."""

    def __init__(self, n_units, n_out):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_units)  # the size of inputs is taken from the first one
            self.l2 = L.Linear(None, n_units)
            self.l3 = L.Linear(None, n_out)

    def forward(self, x):
        h1 = F.relu(self.l1(x))
        h2 = F.relu(self.l2(h1))
        return self.l3(h2)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m catena.examples.mnist", description=__doc__)
    parser.add_argument("--data", metavar="FOLDER", help="the folder of MNIST's four files; "
                        "default: where catena's programs find them, else 12,000 digits of the "
                        "package")
    parser.add_argument("--epoch", "-e", type=int, default=20, help="sweeps over the training set")
    parser.add_argument("--batchsize", "-b", type=int, default=100, help="images of a minibatch")
    parser.add_argument("--unit", "-u", type=int, default=1000, help="units of a layer")
    parser.add_argument("--device", "-d", default="-1",
                        help="device, such as cpu:0, or the number of a GPU; -1: the host")
    parser.add_argument("--out", "-o", default="result", help="folder of the log and the snapshot")
    parser.add_argument("--resume", "-r", metavar="FILE", help="snapshot to continue from")
    parser.add_argument("--seed", type=int, help="seed of the random numbers")
    parser.add_argument("--noplot", action="store_true", help="draw no curves")
    return parser.parse_args(arguments)


def load(folder):
    """The training and the test set."""
    if folder is None:
        folders = [f for f in _core.data_folders("mnist") if os.path.isdir(f)]
        folder = folders[0] if folders else shipped("digits")
    elif not os.path.isdir(folder):
        raise SystemExit(f"--data {folder}: expected a folder with MNIST's four files, got none")
    chainer.dataset.set_dataset_root(folder)
    return chainer.datasets.get_mnist()


def main(arguments=None):
    """Trains and returns the accuracy on the test set."""
    args = parse(arguments)
    device = chainer.backend.get_device(
        int(args.device) if args.device.lstrip("-").isdigit() else args.device)
    device.use()
    if args.seed is not None:
        import numpy
        numpy.random.seed(args.seed)
        chainer.configuration.seed(args.seed)
    print(f"Device: {device}\n# unit: {args.unit}\n# Minibatch-size: {args.batchsize}\n"
          f"# epoch: {args.epoch}\n")

    model = L.Classifier(MLP(args.unit, 10))
    model.to_device(device)
    optimizer = chainer.optimizers.Adam()
    optimizer.setup(model)

    train, test = load(args.data)
    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    test_iter = chainer.iterators.SerialIterator(test, args.batchsize, repeat=False, shuffle=False)

    updater = training.updaters.StandardUpdater(train_iter, optimizer, device=device)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    trainer.extend(extensions.Evaluator(test_iter, model, device=device), call_before_training=True)
    trainer.extend(extensions.snapshot(filename="snapshot_epoch_{.updater.epoch}"))
    trainer.extend(extensions.LogReport(), call_before_training=True)
    if not args.noplot and extensions.PlotReport.available():
        trainer.extend(extensions.PlotReport(
            ["main/accuracy", "validation/main/accuracy"], "epoch", filename="accuracy.png"),
            call_before_training=True)
    trainer.extend(extensions.PrintReport(
        ["epoch", "main/loss", "validation/main/loss", "main/accuracy", "validation/main/accuracy",
         "elapsed_time"]), call_before_training=True)
    if args.resume is not None:
        chainer.serializers.load_npz(args.resume, trainer)
    trainer.run()
    accuracy = trainer.get_extension("LogReport").log[-1]["validation/main/accuracy"]
    print(f"test accuracy: {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()
