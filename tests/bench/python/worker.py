"""Measures one side for compare.py and prints the seconds of each work as JSON.

usage: worker.py catena|torch THREADS
       worker.py steps 1    the training steps per second of one thread
"""
import json
import sys
import threading
import time

import numpy

BATCH, UNITS = 100, 100


def smallest(function, seconds=1.0):
    """The time per run in the fastest of many short blocks."""
    function()
    begin = time.perf_counter()
    function()
    runs = max(1, int(0.01 / max(time.perf_counter() - begin, 1e-7)))
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(runs):
            function()
        best = min(best, (time.perf_counter() - begin) / runs)
    return best


def smallest_sum(x, y, seconds=1.0):
    """The time of x + y, without a function call around it and without the loop."""
    with_sum = loop = float("inf")
    end, many = time.perf_counter() + seconds, range(20000)
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in many:
            z = x + y
        with_sum = min(with_sum, time.perf_counter() - begin)
        begin = time.perf_counter()
        for _ in many:
            z = x
        loop = min(loop, time.perf_counter() - begin)
    del z
    return (with_sum - loop) / len(many)


def data():
    random = numpy.random.default_rng(1)
    return (random.random((BATCH, 784), dtype="float32"),
            random.integers(0, 10, BATCH).astype("int64"))


def catena_trainer():
    """Returns a function that trains an MLP for a step."""
    import catena as c
    F, L = c.functions, c.links

    class MLP(c.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l1, self.l2, self.l3 = (L.Linear(784, UNITS), L.Linear(UNITS, UNITS),
                                             L.Linear(UNITS, 10))

        def forward(self, x):
            return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))

    model = MLP()
    optimizer = c.optimizers.SGD(lr=0.01).setup(model)
    images, labels = (c.as_variable(a) for a in data())

    def step():
        loss = F.softmax_cross_entropy(model(images), labels)
        model.cleargrads()
        loss.backward()
        optimizer.update()
    return step


def steps_per_second(n_threads, seconds=1.0):
    """The steps of all threads together, each with a net of its own and kernels of one thread."""
    import catena
    catena.Device("cpu:0").threads = 1
    counts = [0] * n_threads
    barrier = threading.Barrier(n_threads)

    def work(i):
        step = catena_trainer()
        step()
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            step()
            counts[i] += 1
    workers = [threading.Thread(target=work, args=(i,)) for i in range(n_threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    return sum(counts) / seconds


def times_of(x, y, no_graph, step):
    """The works that both sides have: with two leaves of one element, and a training step."""
    def chain():
        z = x
        for _ in range(1000):
            z = z + y
        z.backward()

    times = {"add of 1 element, graph": smallest_sum(x, y)}
    with no_graph():
        times["add of 1 element"] = smallest_sum(x, y)
    times["chain of 1000 additions, both ways"] = smallest(chain)
    times["MLP step, 100 units"] = smallest(step)
    return times


def catena_works(threads):
    import catena as c
    c.Device("cpu:0").threads = threads
    x, y = (c.Variable(numpy.ones(1, "float32")) for _ in range(2))
    times = times_of(x, y, c.no_backprop_mode, catena_trainer())
    times["two threads"] = steps_per_second(2) / steps_per_second(1)
    return times


def torch_works(threads):
    import torch
    torch.set_num_threads(threads)
    layers = [torch.nn.Linear(784, UNITS), torch.nn.ReLU(), torch.nn.Linear(UNITS, UNITS),
              torch.nn.ReLU(), torch.nn.Linear(UNITS, 10)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    images, labels = (torch.from_numpy(a) for a in data())

    def step():
        loss = loss_of(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    x, y = (torch.ones(1, requires_grad=True) for _ in range(2))
    return times_of(x, y, torch.no_grad, step)


if __name__ == "__main__":
    works = {"catena": catena_works, "torch": torch_works, "steps": steps_per_second}
    print(json.dumps(works[sys.argv[1]](int(sys.argv[2]))))
