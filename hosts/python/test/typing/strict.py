"""A program with a Trainer, which passes `mypy --strict`; nothing runs."""
import argparse
from typing import Any

import numpy as np

import catena as chainer
import catena.functions as F
import catena.links as L
from catena import Variable, training
from catena.training import extensions, triggers


class MLP(chainer.Chain):
    def __init__(self, units: int, classes: int = 10) -> None:
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.norm = L.BatchNormalization(units)
            self.l2 = L.Linear(None, classes, initialW=chainer.initializers.HeNormal())

    def forward(self, x: Variable) -> Variable:
        h = F.dropout(F.relu(self.norm(self.l1(x))), ratio=0.1)
        y: Variable = self.l2(h)
        return y


@training.make_extension(trigger=(1, "epoch"))
def show(trainer: training.Trainer) -> None:
    print(trainer.updater.epoch, trainer.observation["main/loss"])


def scaled(example: tuple[Any, Any]) -> tuple[Any, Any]:
    return example[0] * 0.5, example[1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=-1)
    parser.add_argument("--resume")
    args = parser.parse_args()
    train, test = chainer.datasets.get_mnist()
    model = L.Classifier(MLP(100), lossfun=F.softmax_cross_entropy)
    optimizer = chainer.optimizers.Adam(alpha=0.01).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    iterator = chainer.iterators.SerialIterator(
        chainer.datasets.TransformDataset(train, scaled), 100)
    evaluation = chainer.iterators.SerialIterator(test, 100, repeat=False, shuffle=False)
    updater = training.updaters.StandardUpdater(iterator, optimizer, device=args.gpu)
    trainer = training.Trainer(updater, (20, "epoch"), out="result")
    trainer.extend(extensions.Evaluator(evaluation, model, device=args.gpu))
    trainer.extend(extensions.LogReport(trigger=(1, "epoch")))
    trainer.extend(extensions.PrintReport(["epoch", "main/loss", "elapsed_time"]))
    trainer.extend(extensions.ProgressBar(update_interval=10))
    trainer.extend(extensions.PlotReport(["main/loss"], filename="loss.png"))
    trainer.extend(extensions.snapshot(filename="best", n_retains=1),
                   trigger=triggers.MinValueTrigger("validation/main/loss"))
    trainer.extend(extensions.ExponentialShift("alpha", 0.5), trigger=(5, "epoch"))
    trainer.extend(extensions.observe_lr("alpha"))
    trainer.extend(show)
    if args.resume:
        chainer.serializers.load_npz(args.resume, trainer)
    trainer.run()
    chainer.serializers.save_npz("model.npz", model)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        x, t = chainer.dataset.concat_examples(test[:10])
        predictor: Any = model.predictor
        print(np.argmax(predictor(x).array, axis=1), t, float(model.accuracy))


if __name__ == "__main__":
    main()
