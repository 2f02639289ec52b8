"""Trains a small GPT on the characters of a text and writes a text with it."""
import argparse
import gzip
import os

import numpy

import catena as chainer
import catena.functions as F
import catena.links as L
from catena import training
from catena.datasets.files import shipped
from catena.training import extensions


class Block(chainer.Chain):
    """Attention and two fully connected layers, each added to its input."""

    def __init__(self, units, heads, dropout):
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        with self.init_scope():
            self.norm1 = L.LayerNormalization(units)
            self.qkv = L.Linear(units, 3 * units)
            self.out = L.Linear(units, units)
            self.norm2 = L.LayerNormalization(units)
            self.l1 = L.Linear(units, 4 * units)
            self.l2 = L.Linear(4 * units, units)

    def attention(self, x, shape):
        n, length, units = shape
        qkv = F.reshape(self.qkv(x), (n, length, 3 * self.heads, units // self.heads))
        q, k, v = F.split_axis(qkv, 3, axis=2)
        y = F.scaled_dot_product_attention(
            q, k, v, causal=True, dropout=self.dropout, layout="BTHD")
        return self.out(F.reshape(y, (n * length, units)))

    def forward(self, x, shape):
        """x: (n * length, units)."""
        x = x + F.dropout(self.attention(self.norm1(x), shape), self.dropout)
        y = self.l2(F.gelu(self.l1(self.norm2(x))))
        return x + F.dropout(y, self.dropout)


class GPT(chainer.Chain):
    """The scores of the next character at each place of a text.

    Radford and others, "Language Models are Unsupervised Multitask Learners", 2019.
    """

    def __init__(self, n_characters, length, units, heads, layers, dropout):
        super().__init__()
        self.length = length
        small = chainer.initializers.Normal(0.02)
        with self.init_scope():
            self.characters = L.EmbedID(n_characters, units, initialW=small)
            self.positions = L.EmbedID(length, units, initialW=small)
            self.blocks = chainer.ChainList(*[Block(units, heads, dropout) for _ in range(layers)])
            self.norm = L.LayerNormalization(units)
            self.scores = L.Linear(units, n_characters, initialW=small)

    def forward(self, ids):
        """ids: (n, length). Returns (n * length, n_characters)."""
        n, length = ids.shape
        places = self.positions(chainer.dataset.to_device(
            self.device, numpy.tile(numpy.arange(length, dtype=numpy.int32), (n, 1))))
        x = self.characters(ids) + places
        shape = x.shape
        x = F.reshape(x, (n * length, shape[2]))
        for block in self.blocks:
            x = block(x, shape)
        return self.scores(self.norm(x))

    def write(self, ids, n, temperature=0.8):
        """The ids followed by n others, which are drawn from the model's probabilities."""
        ids = list(ids)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            for _ in range(n):
                seen = numpy.array([ids[-self.length:]], numpy.int32)
                scores = self(chainer.dataset.to_device(self.device, seen))
                p = F.softmax(scores[len(seen[0]) - 1:] / temperature).array
                p = chainer.dataset.to_device(-1, p)[0].astype(numpy.float64)
                ids.append(int(numpy.searchsorted(p.cumsum(), numpy.random.uniform(0, p.sum()))))
        return ids


class Pieces(chainer.dataset.DatasetMixin):
    """Pieces of a text, which overlap by three quarters, and the same one character later."""

    def __init__(self, ids, length):
        self.ids = ids
        self.length = length
        self.starts = range(0, len(ids) - length, max(length // 4, 1))

    def __len__(self):
        return len(self.starts)

    def get_example(self, i):
        start = self.starts[i]
        piece = self.ids[start:start + self.length + 1]
        return piece[:-1], piece[1:]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m catena.examples.gpt", description=__doc__)
    parser.add_argument("--text", metavar="FILE", help="UTF-8, plain or with gzip; default: plays "
                        "of Shakespeare that are part of the package")
    parser.add_argument("--iteration", "-i", type=int, default=500, help="number of minibatches")
    parser.add_argument("--batchsize", "-b", type=int, default=16, help="pieces in a minibatch")
    parser.add_argument("--length", type=int, default=64, help="characters of a piece")
    parser.add_argument("--unit", "-u", type=int, default=96, help="numbers that stand for a place")
    parser.add_argument("--head", type=int, default=4, help="heads of an attention")
    parser.add_argument("--layer", type=int, default=3, help="blocks")
    parser.add_argument("--dropout", type=float, default=0.0, help="ratio of what is dropped")
    parser.add_argument("--alpha", type=float, default=1e-3, help="learning rate of AdamW")
    parser.add_argument("--device", "-d", default="-1",
                        help="device, such as cpu:0, or the number of a GPU; -1: the host")
    parser.add_argument("--out", "-o", default="result", help="folder of the log and the snapshot")
    parser.add_argument("--resume", "-r", metavar="FILE", help="snapshot to continue from")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers")
    parser.add_argument("--sample", type=int, default=200, help="characters to write")
    args = parser.parse_args(arguments)
    if args.unit % args.head != 0:
        parser.error(f"--unit: expected a multiple of the {args.head} heads, got {args.unit}")
    return args


def read(file):
    path = file or os.path.join(shipped("shakespeare"), "shakespeare.txt.gz")
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as opened:
        return opened.read()


def main(arguments=None):
    """Trains, prints a text and returns the loss at each report."""
    args = parse(arguments)
    device = chainer.backend.get_device(
        int(args.device) if args.device.lstrip("-").isdigit() else args.device)
    device.use()
    numpy.random.seed(args.seed)
    chainer.configuration.seed(args.seed)

    text = read(args.text)
    if len(text) <= args.length:
        raise SystemExit(f"--text: expected more than {args.length} characters, got {len(text)}")
    characters = sorted(set(text))
    number_of = {c: i for i, c in enumerate(characters)}
    ids = numpy.array([number_of[c] for c in text], numpy.int32)
    print(f"{len(ids)} characters, {len(characters)} different ones")

    net = GPT(len(characters), args.length, args.unit, args.head, args.layer, args.dropout)
    model = L.Classifier(net, lossfun=lambda y, t: F.softmax_cross_entropy(y, F.flatten(t)))
    model.compute_accuracy = False
    # The rate is that of one step; other libraries multiply it by the learning rate.
    optimizer = chainer.optimizers.AdamW(args.alpha, weight_decay_rate=0.01 * args.alpha)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))

    iterator = chainer.iterators.SerialIterator(Pieces(ids, args.length), args.batchsize)
    updater = training.updaters.StandardUpdater(iterator, optimizer, device=device)
    trainer = training.Trainer(updater, (args.iteration, "iteration"), out=args.out)
    every = max(args.iteration // 10, 1), "iteration"
    trainer.extend(extensions.LogReport(trigger=every))
    trainer.extend(extensions.PrintReport(["iteration", "main/loss", "elapsed_time"]))
    trainer.extend(extensions.snapshot(filename="snapshot"), trigger=every)
    if args.resume is not None:
        chainer.serializers.load_npz(args.resume, trainer)
    trainer.run()
    if args.sample > 0:
        print("".join(characters[i] for i in net.write(ids[:1], args.sample)))
    return [entry["main/loss"] for entry in trainer.get_extension("LogReport").log]


if __name__ == "__main__":
    main()
