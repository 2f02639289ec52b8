"""Compares catena with PyTorch on one GPU: networks and kernels, measured in turns, in one table. Fails
where a time exceeds its limit, or where the results differ; without PyTorch only catena is timed.

usage: speed.py PROGRAM [--peer SCRIPT] [--tiny] [--rounds N] [--device NAME] [--only WORK]
  PROGRAM        gpu-speed
  --peer SCRIPT  speed_torch.py; without, catena is timed alone
  --tiny         sizes that an emulator can do, whose times say nothing

Columns: a step call by call, and as a CUDA graph that is replayed; "best" is call by call with what has
to be asked for: of catena cuDNN's plans that are measured and those whose bits vary, of PyTorch those and
fused optimizers. Held are catena's defaults to PyTorch's, call by call: everything to at most 1 of its
time, small networks to 0.5, and to 0.3 where they are replayed. What keeps the device busy by itself, as
Adam does, is as fast replayed as not. Both compute in float32: TF32, which PyTorch's convolutions use
unless told otherwise, is off.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys

# Title, work, sizes, tiny sizes, maximum ratio to PyTorch's eager time: eager, as a graph.
WORKS = (
    ("MLP step, 100 units", "mlp", dict(images=100, units=100), dict(images=2, units=3), 0.5, 0.3),
    ("MLP step, 1000 units", "mlp", dict(images=100, units=1000), dict(images=3, units=5), 0.5, 0.3),
    ("CNN step", "cnn", dict(images=100), dict(images=1), 0.5, 0.3),
    ("LSTM language model step", "language_model", dict(words=10000, units=650, length=35, texts=20),
     dict(words=7, units=3, length=4, texts=2), 1, 1),
    ("GPT step, 4 layers of 768 units", "gpt",
     dict(words=10000, units=768, layers=4, heads=12, length=512, texts=8),
     dict(words=13, units=8, layers=2, heads=2, length=6, texts=2), 1, 1),
    ("3x3 convolution, both ways", "convolution", dict(images=32, channels=64, side=56),
     dict(images=1, channels=3, side=5), 1, 1),
    ("softmax cross entropy, 32,000 classes", "softmax_cross_entropy", dict(rows=1024, classes=32000),
     dict(rows=3, classes=70), 1, 1),
    ("Adam, 100M parameters", "adam", dict(parameters=100_000_000), dict(parameters=1000), 1, 1),
)
COLUMNS = (("catena", "eager"), ("catena", "graph"), ("catena, best", "eager"), ("torch", "eager"),
           ("torch", "best"), ("torch", "graph"))
BEST = {"CATENA_CUDNN_AUTOTUNE": "1", "CATENA_CUDNN_NONDETERMINISTIC": "1"}


class Side:
    """A program that measures works on request."""

    def __init__(self, name, modes, *command, **settings):
        self.name, self.modes = name, modes
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **settings})

    def ask(self, question):
        """Returns the milliseconds, followed by the values."""
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"speed: {self.name} ended at '{question}', status {self.process.wait()}")
        return [float(word) for word in line.split()]

    def end(self):
        """Waits until the program has ended, as it does when there are no more requests."""
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise SystemExit(f"speed: {self.name} ended with status {self.process.returncode}")


class Result:
    """The median times and the values of one work, by side and mode."""

    def __init__(self):
        self.times, self.values = {}, {}

    def add(self, key, answer):
        self.times.setdefault(key, []).append(answer[0])
        self.values[key] = answer[1:]

    def __getitem__(self, key):
        return statistics.median(self.times[key]) if key in self.times else math.nan

    def disagreement(self):
        """Returns a description of values that differ between the sides, or None."""
        (first, expected), *others = self.values.items()
        for key, values in others:
            for step, (a, b) in enumerate(zip(expected, values, strict=True)):
                if not abs(a - b) <= 1e-3 * abs(a):
                    return f"step {step}: {' '.join(first)} {a}, {' '.join(key)} {b}"
        return None


def options():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("--peer")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only")
    return parser.parse_args()


def sides(args):
    more = ["--samples", "1", "--least", "0"] if args.tiny else []
    own = [args.program, "--device", args.device, *more]
    graph = ("graph",) if args.device.startswith("cuda") else ()
    yield Side("catena", ("eager", *graph), *own)
    if not args.peer:
        return
    yield Side("catena, best", ("eager",), *own, **BEST)
    yield Side("torch", ("eager", "best", *graph), sys.executable, args.peer,
               "--device", args.device.replace("cpu:0", "cpu"), *more)


def main():
    args = options()
    there = "import torch; assert torch.cuda.is_available()" if "cuda" in args.device else "import torch"
    alone = args.peer and subprocess.run([sys.executable, "-c", there],
                                         stderr=subprocess.DEVNULL).returncode != 0
    if alone:
        args.peer = None
    asked = list(sides(args))
    heads = [f"{' '.join(key)[:19]:>19}" for key in COLUMNS] + ["eager / torch", "graph / torch", " ok"]
    print(f"| {'work, ms':<37} | {' | '.join(heads)} |")
    print(f"|{'-' * 39}|{'|'.join('-' * (len(h) + 1) + ':' for h in heads)}|")
    bad, worst = [], 0
    for title, name, sizes, tiny, eager_bound, graph_bound in WORKS:
        if args.only not in (None, name):
            continue
        result = Result()
        settings = " ".join(f"{key}={value}" for key, value in (tiny if args.tiny else sizes).items())
        for _ in range(args.rounds):
            for side in asked:
                for mode in side.modes:
                    result.add((side.name, mode), side.ask(f"{name} {mode} {settings}"))
        peer = result["torch", "eager"]
        ratios = result["catena", "eager"] / peer, result["catena", "graph"] / peer
        before = len(bad)
        if ratios[0] > eager_bound or ratios[1] > graph_bound:
            bad.append(f"{title}: expected at most {eager_bound} and {graph_bound} of PyTorch's time, "
                       f"got {ratios[0]:.2f} and {ratios[1]:.2f}")
        if (words := result.disagreement()):
            bad.append(f"{title}: expected the same on all sides, got {words}")
        ok = "NO" if len(bad) > before else "yes" if args.peer else ""
        worst = max(worst, *ratios)
        cells = [f"{result[key]:19.3f}" for key in COLUMNS] + [f"{r:13.2f}" for r in ratios] + [f"{ok:>3}"]
        print(f"| {title:<37} | {' | '.join(cells)} |", flush=True)
    for side in asked:
        side.end()
    print(*bad, sep="\n", end="\n" if bad else "")
    print(f"measured: at most {worst:.2f} of PyTorch's time" if args.peer else "measured: catena alone")
    if alone and not bad:
        print(f"skipped: expected PyTorch for {args.device} to compare with, got none: catena was timed alone")
        return 77
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
