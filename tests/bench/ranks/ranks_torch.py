"""The works of catena-bench-ranks by PyTorch: DistributedDataParallel on gloo, one thread for each rank.

usage: RANK=R WORLD_SIZE=N MASTER_ADDR=A MASTER_PORT=P ranks_torch.py FILTER BLOCK

FILTER is a regex for names of works, BLOCK the seconds of each measurement. Rank 0 prints a line of JSON
for each work. Steps are those of eager PyTorch, or with ", compiled" in the name those of torch.compile.
"""
import json
import logging
import os
import pathlib
import re
import statistics
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch_peer  # noqa: E402


class Loss(nn.Module):
    """The loss of a net as a module, for DistributedDataParallel."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, x, t):
        return self.loss(self.net, x, t)


def classify(net, shape):
    loss = Loss(net, lambda net, x, t: F.cross_entropy(net(x), t))
    return loss, (torch.randn(shape), torch.randint(10, shape[:1])), torch.optim.SGD, {"lr": 0.01}


def mlp(batch=50, units=1000):
    return classify(nn.Sequential(nn.Linear(784, units), nn.ReLU(), nn.Linear(units, units), nn.ReLU(),
                                  nn.Linear(units, 10)), (batch, 784))


def cnn(batch=50):
    return classify(nn.Sequential(
        nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10)),
        (batch, 1, 28, 28))


def gpt(texts=4):
    words = [torch.randint(65, (texts, 256)) for _ in range(2)]
    loss = Loss(torch_peer.Gpt(65, 256, 4, 4, 256), lambda net, x, t: net.loss(x, t))
    return loss, words, torch.optim.AdamW, {"lr": 3e-4, "fused": True}


def make_step(make, mode, compiled):
    model, inputs, rule, options = make()
    if mode != "no communication":
        model = nn.parallel.DistributedDataParallel(model)
    if mode == "bfloat16":
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    if mode == "shard":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=rule, **options)
    else:
        optimizer = rule(model.parameters(), **options)
    loss = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad()
        loss(*inputs).backward()
        optimizer.step()
    return step


def allreduce(size):
    x = torch.zeros(size)
    return lambda: dist.all_reduce(x)


def works():
    result = {}
    for net, make in {"MLP 1000": mlp, "CNN": cnn, "GPT": gpt}.items():
        for mode in ("", "no communication", "shard", "bfloat16"):
            name = f"{net}, {mode}" if mode else net
            for compiled in (False, True):
                result[name + ", compiled" * compiled] = \
                    lambda make=make, mode=mode, c=compiled: make_step(make, mode, c)
    for size in (4, 100_000, 1_000_000, 10_000_000, 100_000_000):
        result[f"allreduce {size}"] = lambda size=size: allreduce(size // 4)
    return result


def measure(run, block):
    """The median time of a run on rank 0. All ranks run it equally often."""
    def times(n):
        dist.barrier()
        return statistics.median(torch_peer.seconds(run) for _ in range(n))
    times(3)
    runs = torch.tensor(int(min(max(block / times(3), 5), 1e6)))
    dist.broadcast(runs, 0)
    return times(int(runs))


def main():
    wanted, block = sys.argv[1], float(sys.argv[2])
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # warns if there is no GPU
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for name, make in works().items():
        if re.search(wanted, name):
            seconds = measure(make(), block)
            if rank == 0:
                print(json.dumps({"work": name, "seconds": seconds}), flush=True)
    dist.destroy_process_group()


main()
