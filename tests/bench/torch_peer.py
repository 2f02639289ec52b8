"""Measures PyTorch for catena-bench (see worker.hpp): eager or compiled, whichever is faster.

usage: torch_peer.py QUESTIONS ANSWERS THREADS SECONDS

QUESTIONS and ANSWERS are file descriptors. Each question is the name of a work; the answer is its time
per run in a block of SECONDS, the waiting time, and the fastest way to compute it. For memory, the
answer is the peak memory of eager runs: of the process, or what was added after the work was prepared.
"""
import logging
import math
import os
import pathlib
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# A work is a function that returns the ways to compute it: functions by name.


def compiled(name, function):
    return {name: function, f"{name} compiled".strip(): torch.compile(function)}


def forward(functions, *inputs):
    def run(function):
        with torch.no_grad():
            function(*inputs)
    return {name: lambda f=f: run(f) for name, f in functions.items()}


def both_ways(functions, *inputs):
    """Computes the gradients of all floating-point inputs."""
    wanted = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    gy = torch.randn(next(iter(functions.values()))(*inputs).shape)
    return {name: lambda f=f: torch.autograd.grad(f(*inputs), wanted, gy)
            for name, f in functions.items()}


def attention(tokens):
    q, k, v = (torch.randn(8, 4, tokens, 64) for _ in range(3))
    function = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return both_ways(compiled("", function), q, k, v)


def layer_normalization():
    function = lambda x, gamma, beta: F.layer_norm(x, (1024,), gamma, beta)
    return both_ways(compiled("", function), torch.randn(2048, 1024), torch.ones(1024), torch.zeros(1024))


def gelu(approximate):
    function = lambda x: F.gelu(x, approximate=approximate)
    return both_ways(compiled("", function), torch.randn(1 << 20))


def cross_entropy():
    return both_ways(compiled("", F.cross_entropy), torch.randn(2048, 50257), torch.randint(50257, (2048,)))


def reduction(function):
    return forward(compiled("", function), torch.randn(4096, 1024))


def gather():
    x, rows = torch.randn(100_000, 64), torch.randint(100_000, (1_000_000,))
    return forward(compiled("", lambda x, rows: x[rows])
                   | compiled("index_select", lambda x, rows: x.index_select(0, rows))
                   | compiled("embedding", lambda x, rows: F.embedding(rows, x)), x, rows)


def scatter_add():
    x, rows, src = torch.randn(100_000, 64), torch.randint(100_000, (1_000_000,)), torch.randn(1_000_000, 64)
    return forward(compiled("", lambda x, rows, src: x.index_add(0, rows, src))
                   | compiled("scatter_add", lambda x, rows, src: x.scatter_add(
                       0, rows[:, None].expand_as(src), src)), x, rows, src)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None, position=None):
        """cache: keys and values of earlier words (2, N, heads, context, size); x is the next word."""
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, position], cache[1, :, :, position] = k[:, :, 0], v[:, :, 0]
            k, v = cache[:, :, :, :position + 1]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.projection(y.transpose(1, 2).reshape(n, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2, whose output layer shares its weights with the embedding."""

    def __init__(self, words, width, layers, heads, context):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(context, width)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, words):
        h = self.words(words) + self.positions.weight[:words.shape[1]]
        for block in self.blocks:
            h = block(h)
        return F.linear(self.norm(h), self.words.weight)

    def loss(self, words, next_words):
        return F.cross_entropy(self(words).flatten(0, 1), next_words.flatten())

    def next_word(self, word, caches, position):
        h = self.words(word) + self.positions.weight[position]
        for block, cache in zip(self.blocks, caches):
            h = block(h, cache, position)
        return F.linear(self.norm(h), self.words.weight).argmax(-1)


def gpt_step():
    model = Gpt(65, 256, 4, 4, 256)
    words, next_words = torch.randint(65, (8, 256)), torch.randint(65, (8, 256))

    def step(loss, optimizer):
        optimizer.zero_grad()
        loss(words, next_words).backward()
        optimizer.step()
    return {f"{name} {kind}".strip(): lambda f=f, o=optimizer: step(f, o)
            for kind in ("fused", "foreach")
            for optimizer in [torch.optim.AdamW(model.parameters(), 3e-4, **{kind: True})]
            for name, f in compiled("", model.loss).items()}


def token(threads):
    """The word after 256 words in the cache, by GPT-2 of 124M parameters."""
    torch.set_num_threads(threads)
    model = Gpt(50257, 768, 12, 12, 1024).eval()
    caches = [torch.randn(2, 1, 12, 1024, 64) for _ in model.blocks]
    word = torch.tensor([[0]])
    return forward(compiled("", lambda word: model.next_word(word, caches, 256)), word)


WORKS = {
    "attention, 256 tokens": lambda: attention(256),
    "attention, 2048 tokens": lambda: attention(2048),
    "layer normalization": layer_normalization,
    "GELU 1M": lambda: gelu("none"),
    "GELU by tanh 1M": lambda: gelu("tanh"),
    "cross entropy, 50257 classes": cross_entropy,
    "gather 1M rows": gather,
    "scatter-add 1M rows": scatter_add,
    "GPT step": gpt_step,
    "GPT step, peak memory": gpt_step,
    "GPT step, memory of the process": gpt_step,
    "token, 1 thread": lambda: token(1),
    "token, 2 threads": lambda: token(2),
}
for _axis in (0, 1):
    WORKS |= {f"max, axis {_axis}": lambda a=_axis: reduction(lambda x: x.amax(a)),
              f"mean, axis {_axis}": lambda a=_axis: reduction(lambda x: x.mean(a)),
              f"argmax, axis {_axis}": lambda a=_axis: reduction(lambda x: x.argmax(a)),
              f"cumsum, axis {_axis}": lambda a=_axis: reduction(lambda x: x.cumsum(a))}


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fastest(ways):
    """Warms up and returns the name and the function of the fastest way."""
    def best(run):
        for _ in range(3):
            run()
        return min(seconds(run) for _ in range(5))
    return min(ways.items(), key=lambda way: best(way[1])) if len(ways) > 1 else next(iter(ways.items()))


def waited():
    """Returns how long the threads of this process have been ready without a processor."""
    total = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except OSError:  # the thread has ended
            pass
    return total * 1e-9


def status(key):
    text = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(text.split(key + ":")[1].split()[0])


def peak_memory(make, block, added):
    if added:
        torch.compile(F.relu)  # loads the compiler, whose memory would count otherwise
    before = status("RssAnon")
    run = next(iter(make().values()))
    for _ in range(5):
        run()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # restarts VmHWM
    end = time.perf_counter() + max(block, 1)
    while time.perf_counter() < end:
        run()
    return status("VmHWM") - (status("RssFile") + status("RssShmem") + before if added else 0)


class Measurement:
    def __init__(self, make):
        torch._dynamo.reset()  # it compiles one function for few different closures
        self.way, self.run = fastest(make())
        self.runs = 3

    def __call__(self, block):
        before, start = waited(), time.perf_counter()
        times = [seconds(self.run) for _ in range(self.runs)]
        waiting = (waited() - before) / (time.perf_counter() - start)
        median = statistics.median(times)
        self.runs = max(math.floor(block / median), 3)
        return f"{median:.9g} {waiting:.9g} {self.way or 'eager'}"


def serve(questions, answers, block):
    name, measurement = None, None
    for line in questions:
        try:
            wanted = line.strip()
            if wanted not in WORKS:
                raise ValueError("no such work")
            if "memory" in wanted:
                answer = f"{peak_memory(WORKS[wanted], block, wanted.endswith('peak memory'))} 0 eager"
            else:
                if name != wanted:
                    measurement = None  # frees its arrays before the next work is prepared
                    name, measurement = wanted, Measurement(WORKS[wanted])
                answer = measurement(block)
        except Exception as error:
            answer = "? " + " ".join(str(error).split())
        print(answer, file=answers, flush=True)


if __name__ == "__main__":
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # warns if there is no GPU
    torch.manual_seed(1)
    torch.set_num_threads(int(sys.argv[3]))
    serve(os.fdopen(int(sys.argv[1])), os.fdopen(int(sys.argv[2]), "w"), float(sys.argv[4]))
