"""Trains a perceptron, a convolutional net and a GPT for ten steps on the CPU and on a GPU, call by call and
as a recorded step: all losses must agree, and fall.

usage: training_test.py PROGRAM SPEED [--tiny]
  PROGRAM  gpu-speed
  SPEED    speed.py, which is imported and must be in this folder
  --tiny   sizes that an emulator can do

The convolutional net is trained twice: with catena's own convolutions, and with cuDNN's if it is there.
"""
import sys

from speed import Side

# The largest difference of losses, relative to the first loss. Both sides compute in float32, whose steps are
# 1e-7, with sums in different orders: in the tiny sizes results of other processors and of PyTorch differ by
# up to 2e-7. There, a gradient that is missing changes the losses by more than 1e-6 for each parameter except
# the biases of keys, which have no effect. The limits of a GPU are estimates.
TINY_LIMIT = 1e-6
# Work, tiny sizes, sizes, settings of the GPU's side, limit.
WORKS = (
    ("mlp", dict(images=4, units=5), dict(images=100, units=100), {}, 1e-5),
    ("cnn", dict(images=4), dict(images=8), {"CATENA_CUDNN": "0"}, 1e-5),
    ("cnn", dict(images=4), dict(images=8), {}, 1e-4),  # cuDNN may use Winograd's transforms
    ("gpt", dict(words=13, units=8, layers=2, heads=2, length=6, texts=2),
     dict(words=1000, units=128, layers=2, heads=4, length=64, texts=8), {}, 1e-5),
)


def losses(program, device, mode, work, sizes, settings):
    side = Side(device, (mode,), program, "--device", device, "--samples", "0", **settings)
    _, *values = side.ask(" ".join([work, mode, *(f"{name}={size}" for name, size in sizes.items())]))
    side.end()
    return values


def main():
    program = sys.argv[1]
    bad = []
    for work, tiny, sizes, settings, limit in WORKS:
        if "--tiny" in sys.argv:
            sizes, limit = tiny, TINY_LIMIT
        expected = losses(program, "cpu:0", "eager", work, sizes, {})
        title = " ".join([work, *(f"{name}={value}" for name, value in settings.items())])
        print(f"{title}: {' '.join(f'{loss:.7g}' for loss in expected)} on cpu:0", flush=True)
        if not all(b < a for a, b in zip(expected, expected[1:])):
            bad.append(f"{title}: expected losses that fall, got the above")
        for mode in ("eager", "graph"):
            got = losses(program, "cuda:0", mode, work, sizes, settings)
            worst = max(abs(a - b) / expected[0] for a, b in zip(expected, got, strict=True))
            print(f"{title}: {' '.join(f'{loss:.7g}' for loss in got)} on cuda:0, {mode}: "
                  f"differ by up to {worst:.1e} of the first", flush=True)
            if not worst <= limit:
                bad.append(f"{title}, {mode}: expected losses that differ by up to {limit} of the first, "
                           f"got {worst:.1e}")
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
