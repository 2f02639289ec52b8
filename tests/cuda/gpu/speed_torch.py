"""The works of gpu-speed in PyTorch, with the same protocol and two more modes. "best" has the fastest
options of PyTorch. "foreach" updates all parameters in one call on any device, as is PyTorch's default on
CUDA. The inputs are those of gpu-speed, so the values must be equal. TF32 is off.

usage: speed_torch.py [--device NAME] [--samples N] [--least MS]
"""
import argparse
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False
DEVICE = torch.device("cpu")  # of programs that import this file


def numbers(shape, series):
    n = math.prod(shape)
    mixed = (torch.arange(n, dtype=torch.int64) * 2654435761 + series * 40503) % 2**32
    return (mixed.double() / 2**31 - 1).float().reshape(shape)


def labels(shape, n):
    return (torch.arange(math.prod(shape)) * 7919 % n).reshape(shape).to(DEVICE)


def parameter_value(shape, series):
    scale = 1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.1
    return numbers(shape, series) * torch.tensor(scale, dtype=torch.float32)


def set_parameters(model):
    with torch.no_grad():
        for series, p in enumerate(model.parameters()):
            p.copy_(parameter_value(tuple(p.shape), series))
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight += 1


def mean_square(x):
    return (x.double() ** 2).mean().item()


class LanguageModel(nn.Module):
    """An LSTM of cuDNN, which processes all words in one call."""

    def __init__(self, words, units):
        super().__init__()
        self.embed = nn.Embedding(words, units)
        self.lstm = nn.LSTM(units, units)
        self.out = nn.Linear(units, words)

    def loss(self, text):
        h, _ = self.lstm(self.embed(text[:-1]))
        return F.cross_entropy(self.out(h).flatten(0, 1), text[1:].flatten())

    def set(self):
        # catena stores a, i, f and o of one unit together; PyTorch all i, then f, a (called g) and o.
        order = [1, 2, 0, 3]
        lstm = self.lstm
        with torch.no_grad():
            for series, (p, gates) in enumerate((
                    (self.embed.weight, False), (lstm.weight_ih_l0, True), (lstm.bias_ih_l0, True),
                    (lstm.weight_hh_l0, True), (self.out.weight, False), (self.out.bias, False))):
                value = parameter_value(tuple(p.shape), series)
                if gates:
                    rest = value.shape[1:]
                    value = value.reshape(-1, 4, *rest)[:, order].transpose(0, 1).reshape(-1, *rest)
                p.copy_(value)
            lstm.bias_hh_l0.zero_().requires_grad_(False)  # catena has only one bias


class Block(nn.Module):
    """A block of GPT-2, with the parameters in the order of catena's TransformerBlock."""

    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(units)
        self.q, self.k, self.v, self.out = (nn.Linear(units, units) for _ in range(4))
        self.norm2 = nn.LayerNorm(units)
        self.up = nn.Linear(units, 4 * units)
        self.down = nn.Linear(4 * units, units)

    def forward(self, x):
        normal = self.norm1(x)
        q, k, v = (project(normal).unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for project in (self.q, self.k, self.v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A transformer of GPT-2's layout, whose scores use the vectors of the tokens as weights."""

    def __init__(self, words, units, layers, heads, length):
        super().__init__()
        self.embed = nn.Embedding(words, units)
        self.position = nn.Embedding(length, units)
        self.blocks = nn.ModuleList(Block(units, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(units)

    def loss(self, x, t):
        h = self.embed(x) + self.position.weight[:x.shape[1]]
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(F.linear(self.norm(h), self.embed.weight).flatten(0, 1), t.flatten())


class Steps:
    """A step, called as it is or as a CUDA graph, and the value that it computed."""

    def __init__(self, body, value, graph):
        self.body, self.value, self.graph = body, value, None
        self.by_graph = graph

    def __call__(self):
        if not self.by_graph:
            return self.body()
        if self.graph is None:
            self.graph = 0
        if isinstance(self.graph, int):
            self.graph += 1
            if self.graph <= 2:
                side = torch.cuda.Stream()
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    self.body()
                torch.cuda.current_stream().wait_stream(side)
                return None
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.body()
        return self.graph.replay()


def training(model, batch, loss_of, mode):
    model.to(DEVICE)
    settings = {"best": {"fused": DEVICE.type == "cuda"}, "foreach": {"foreach": True}}.get(mode, {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, **settings)
    last = [None]

    def step():
        optimizer.zero_grad()
        loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        last[0] = loss.detach()

    return Steps(step, lambda: last[0].item(), mode == "graph")


def classifier(model, x, mode):
    set_parameters(model)
    return training(model, (x.to(DEVICE), labels((x.shape[0],), 10)),
                    lambda net, x, t: F.cross_entropy(net(x), t), mode)


def mlp(mode, images, units):
    model = nn.Sequential(nn.Linear(784, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(),
                          nn.Linear(units, 10))
    return classifier(model, numbers((images, 784), 100), mode)


def cnn(mode, images):
    model = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))
    if mode == "best":
        torch.backends.cudnn.benchmark = True
    return classifier(model, numbers((images, 1, 28, 28), 100), mode)


def language_model(mode, words, units, length, texts):
    model = LanguageModel(words, units)
    model.set()
    return training(model, (labels((length, texts), words),), lambda m, text: m.loss(text), mode)


def gpt(mode, words, units, layers, heads, length, texts):
    model = Gpt(words, units, layers, heads, length)
    set_parameters(model)
    text = labels((texts * length + 1,), words)
    batch = text[:-1].reshape(texts, length), text[1:].reshape(texts, length)
    return training(model, batch, lambda m, x, t: m.loss(x, t), mode)


def convolution(mode, images, channels, side):
    if mode == "best":
        torch.backends.cudnn.benchmark = True
    conv = nn.Conv2d(channels, channels, 3, padding=1)
    set_parameters(conv)
    conv.to(DEVICE)
    shape = (images, channels, side, side)
    x = numbers(shape, 100).to(DEVICE).requires_grad_()
    gy = numbers(shape, 101).to(DEVICE)

    def both_ways():
        conv.zero_grad()
        x.grad = None
        conv(x).backward(gy)

    return Steps(both_ways, lambda: mean_square(conv.weight.grad), mode == "graph")


def softmax_cross_entropy(mode, rows, classes):
    x = numbers((rows, classes), 100).to(DEVICE).requires_grad_()
    t = labels((rows,), classes)

    def both_ways():
        x.grad = None
        F.cross_entropy(x, t).backward()

    return Steps(both_ways, lambda: rows * rows * mean_square(x.grad), mode == "graph")


def adam(mode, parameters):
    p = numbers((parameters,), 0).to(DEVICE).requires_grad_()
    p.grad = numbers((parameters,), 100).to(DEVICE)
    settings = {"best": {"fused": DEVICE.type == "cuda"}, "graph": {"capturable": True}}.get(mode, {})
    optimizer = torch.optim.Adam([p], **settings)
    return Steps(optimizer.step, lambda: mean_square(p.detach()), mode == "graph")


WORKS = {work.__name__: work
         for work in (mlp, cnn, language_model, gpt, convolution, softmax_cross_entropy, adam)}


def time_of(step, steps):
    """Returns the milliseconds of a step, by the device's clock."""
    if DEVICE.type != "cuda":
        start = time.perf_counter()
        for _ in range(steps):
            step()
        return (time.perf_counter() - start) * 1e3 / steps
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(steps):
        step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / steps


def median(step):
    if ARGS.samples == 0:
        return math.nan
    time_of(step, 5)
    steps = int(min(max(ARGS.least / max(time_of(step, 5), 1e-6), 1), 1000))
    return statistics.median(time_of(step, steps) for _ in range(ARGS.samples))


def main():
    for line in sys.stdin:
        name, mode, *settings = line.split()
        torch.backends.cudnn.benchmark = False
        step = WORKS[name](mode, **{key: int(value) for key, value in (s.split("=") for s in settings)})
        values = []
        for _ in range(10):
            step()
            values.append(step.value())
        print(median(step), *values, flush=True)
        del step
        if DEVICE.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--samples", type=int, default=31)
    parser.add_argument("--least", type=float, default=5)
    ARGS = parser.parse_args()
    DEVICE = torch.device(ARGS.device)
    main()
