"""Memory: cycles through graphs are collected, objects in use are not, and nothing grows."""
import collections
import gc
import random
import resource
import sys
import tracemalloc
import weakref

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Device, Function, FunctionNode, Parameter, Variable


class Scale(FunctionNode):
    """Doubles the inputs; has any number of inputs and outputs."""

    def forward(self, inputs):
        self.factor = 2
        with np.errstate(over="ignore"):
            return tuple(x * self.factor for x in inputs)

    def backward(self, indexes, grads):
        return tuple(None if g is None else g * self.factor for g in grads)


def variables(n=1):
    return [Variable(np.ones(3, "float32")) for _ in range(n)]


# ---- cycles

def one_output(node, other):
    node.result, = node.apply(variables())


def result_of_plugins(node, other):
    y, = node.apply(variables())
    node.result = F.exp(y * 2) + 1


def branches_that_meet(node, other):
    y, = node.apply(variables())
    z = F.exp(y) + F.tanh(y) * y
    node.result = F.sum(z * z)


def several_outputs(node, other):
    node.results = node.apply(variables(3))


def one_of_several_outputs(node, other):
    node.result = node.apply(variables(3))[1]


def outputs_that_meet(node, other):
    a, b = node.apply(variables(2))
    node.result = a * b


def in_a_list(node, other):
    y, = node.apply(variables())
    node.results = {"list": [(y * 2,)]}


def attribute_of_a_variable(node, other):
    y, = node.apply(variables())
    y.mine = [y, node]


def two_nodes(node, other):
    y, = node.apply(variables())
    z, = other.apply((F.exp(y) + y,))
    node.result = F.sum(z * z)
    other.back = node


def two_nodes_with_several_outputs(node, other):
    a, b = node.apply(variables(2))
    node.results = other.apply((a, F.exp(a) * b))
    other.back = node


def outputs_of_a_plugin_that_meet(node, other):
    y, = node.apply(variables())
    a, b, c = F.split_axis(y, 3, 0)
    node.result = a + b + c


def kept_in_backward(node, other):
    class Keeps(FunctionNode):
        def forward(self, inputs):
            self.retain_outputs((0,))
            return inputs[0] * 2

        def backward(self, indexes, grads):
            self.y, = self.get_retained_outputs()
            self.grads = grads
            return grads[0] * 2
    keeps, x = Keeps(), Variable(np.ones(3, "float32"))
    node.mine = keeps
    keeps.mine = node
    F.sum(keeps.apply((x,))[0]).backward()


def gradients_with_graphs(node, other):
    x, = variables()
    gx, = catena.grad([F.sum(node.apply((x * x,))[0] ** 2)], [x], enable_double_backprop=True)
    node.gradient = gx * 2


CYCLES = [one_output, result_of_plugins, branches_that_meet, several_outputs,
          one_of_several_outputs,
          outputs_that_meet, in_a_list, attribute_of_a_variable, two_nodes,
          two_nodes_with_several_outputs, outputs_of_a_plugin_that_meet, kept_in_backward,
          gradients_with_graphs]


@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_cycles_are_collected(make):
    node, other = Scale(), Scale()
    alive = [weakref.ref(node), weakref.ref(other)]
    gc.collect()
    make(node, other)
    assert all(each() is not None for each in alive)
    del node, other
    for _ in range(3):
        gc.collect()
    assert [each() for each in alive] == [None, None]


@pytest.mark.parametrize("make", CYCLES, ids=lambda f: f.__name__)
def test_cycles_in_use_are_not_collected(make):
    node, other = Scale(), Scale()
    make(node, other)
    marks = [object(), object()]
    node.mark, other.mark = marks
    kept = vars(node).get("result", vars(node).get("results"))
    alive = weakref.ref(node)
    if kept is None or isinstance(kept, dict):
        return
    del node, other
    for _ in range(3):
        gc.collect()
    kept = kept if isinstance(kept, tuple) else (kept,)
    assert alive() is not None and alive().mark is marks[0] and alive().factor == 2
    F.sum(sum(kept[1:], kept[0])).backward()
    for y in kept:
        call = y.creator
        assert call is not alive() or call.factor == 2


def test_each_output_keeps_the_call():
    for n in range(3):
        node = Scale()
        alive = weakref.ref(node)
        results = node.apply(variables(3))
        node.results = results
        kept = results[n]
        del node, results
        gc.collect()
        assert alive().factor == 2 and len(alive().results) == 3
        kept.grad = np.ones(3, "float32")
        kept.backward()
        assert kept.creator is alive()
        del kept
        gc.collect()
        assert alive() is None


def check_counts(nodes):
    """The collector visits no more references than there are."""
    visited = collections.Counter()
    for each in gc.get_objects():
        visited.update(id(x) for x in gc.get_referents(each) if type(x) is Scale)
    assert all(1 <= visited[id(node)] <= sys.getrefcount(node) for node in nodes)


def test_random_graphs():
    """Collections at any time change nothing for variables that are in use."""
    rng = random.Random(0)
    thresholds = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        for seed in range(15):
            pool = [(v, 1.0, v) for v in variables(3)]  # variable, its derivative, the leaf
            nodes = []
            for _ in range(40):
                v, derivative, leaf = rng.choice(pool)
                kind = rng.randrange(5)
                if kind == 0:
                    node = Scale()
                    others = [rng.choice(pool) for _ in range(rng.randrange(3))]
                    results = node.apply([v] + [o[0] for o in others])
                    for y, (_, d, x) in zip(results, [(v, derivative, leaf)] + others):
                        pool.append((y, d * 2, x))
                    nodes.append(node)
                    node.keeps = [rng.choice(pool)[0] for _ in range(2)]
                elif kind == 1:
                    pool.append((v * 3, derivative * 3, leaf))
                elif kind == 2:
                    pool.append((v + v, derivative * 2, leaf))
                elif kind == 3 and nodes:
                    rng.choice(nodes).extra = rng.choice(pool)[0]
                elif len(pool) > 6:
                    del pool[rng.randrange(3, len(pool))]
                if rng.random() < 0.2:
                    rng.shuffle(nodes)
                    del nodes[5:]
                if rng.random() < 0.1:
                    gc.collect()
            if seed % 3 == 0:
                check_counts(nodes)
            del nodes
            gc.collect()
            for y, derivative, leaf in pool[3:]:
                leaf.cleargrad()
                F.sum(y).backward()
                assert np.allclose(leaf.grad, derivative), seed
    finally:
        gc.set_threshold(*thresholds)


def test_long_chains():
    """Freeing a long graph of Python's calls does not use the stack."""
    x = y = variables()[0]
    for i in range(20000):
        y, = Scale().apply((y,)) if i % 2 else (y + 1,)
    del y
    gc.collect()
    node = None
    for _ in range(5000):
        after = Scale()
        after.before, after.y = node, after.apply((x,))
        node = after
    del node, after
    gc.collect()


# ---- no growth

def blocks(function, n=300):
    """The blocks of memory that n more calls leave behind."""
    for _ in range(20):
        function()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(n):
        function()
    gc.collect()
    return sys.getallocatedblocks() - before


def failing(call):
    def run():
        try:
            call()
        except Exception:  # noqa: BLE001
            return
        raise AssertionError("expected an exception")
    return run


class Fails(FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2

    def backward(self, indexes, grads):
        raise KeyError("mine")


class Old(Function):
    def forward(self, inputs):
        self.mask = inputs[0] > 1
        return inputs[0] * self.mask,

    def backward(self, inputs, grads):
        return grads[0] * self.mask,


def step(x=Parameter(np.ones((3, 3), "float32"))):
    y = F.sum(F.relu(x @ x + x))
    y.backward()
    x.cleargrad()


def calls():
    x = Variable(np.ones((3, 4), "float32"))
    a = np.ones(4, "float32")
    keep = Variable(np.ones(3, "float32"))
    return {
        "step": step, "node": lambda: F.sum(Scale().apply((x,))[0]).backward(),
        "old": lambda: F.sum(Old()(x)).backward(), "cycle": lambda: two_nodes(Scale(), Scale()),
        "double": lambda: gradients_with_graphs(Scale(), Scale()),
        "grad": lambda: catena.grad([F.sum(x * x)], [x], enable_double_backprop=True),
        "failing node": failing(lambda: F.sum(Fails().apply((x,))[0]).backward()),
        "wrong shape": failing(lambda: x + keep), "wrong array": failing(lambda: Variable([1])),
        "wrong dtype": failing(lambda: Variable(np.zeros(2, "int8"))),
        "wrong index": failing(lambda: x[9]), "wrong argument": failing(lambda: F.relu(x, 3)),
        "wrong result": failing(lambda: Scale().apply((None,))),
        "attributes": lambda: (x.array, x.grad, x.shape, x.dtype, x.device, x.node, x.creator,
                               x.name, x.grad_var),
        "text": lambda: (repr(x), str(x), x.label),
        "operators": lambda: (x + a, a * x, x * 2, x == a),
        "index": lambda: (x[0], x[:, [1, 2]], x[None], list(x)),
        "set": lambda: setattr(x, "array", x.array),
        "views": lambda: (Variable(x.array.T), np.asarray(x), catena.from_dlpack(x),
                          Variable(a[::2])),
        "parameter": lambda: (Parameter(1, (2, 2)), Parameter()),
        "config": lambda: catena.using_config("train", False).__enter__(),
        "graph": lambda: (x * 2).creator.inputs[0].get_variable(),
    }


@pytest.mark.parametrize("name", calls())
def test_nothing_grows(name):
    call = calls()[name]
    if name == "config":
        def call():
            with catena.using_config("train", False), catena.no_backprop_mode():
                catena.config.mine = 3
            del catena.config.mine
    in_use = []
    for _ in range(10):  # at first, caches fill
        growth = blocks(call, 300)
        in_use.append(Device(-1).memory()["in_use"])
        if growth < 100 and in_use[-1] <= in_use[0]:
            return
    pytest.fail(f"{growth} blocks, {in_use} bytes")


def test_memory_of_many_steps():
    x = Parameter(np.ones((64, 64), "float32"))

    def steps(n):
        for _ in range(n):
            y = F.sum(Scale().apply((x * 2,))[0])
            y.backward()
            x.cleargrad()
            with pytest.raises(KeyError):
                F.sum(Fails().apply((x,))[0]).backward()
    steps(200)
    gc.collect()
    before = Device(-1).memory()["in_use"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        first = tracemalloc.take_snapshot()
        steps(1500)
        gc.collect()
        grown = tracemalloc.take_snapshot().compare_to(first, "filename")
    finally:
        tracemalloc.stop()
    assert sum(each.size_diff for each in grown if "catena" in str(each.traceback)) < 10000
    assert Device(-1).memory()["in_use"] <= before[0] + 65536
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before[1] < 32 * 1024


def test_many_calls():
    x = Variable(np.ones(1, "float32"))
    memory = Device(-1).memory()["in_use"]
    for _ in range(100000):
        x + x
    assert Device(-1).memory()["in_use"] <= memory + 4096


def test_arrays_are_freed_at_once():
    """Data of results that only the graph needs is freed without the collector."""
    gc.disable()
    try:
        x = Variable(np.ones((256, 256), "float32"))
        before = Device(-1).memory()["in_use"]
        for _ in range(20):
            y = x + 1
        assert Device(-1).memory()["in_use"] <= before + 2 * 256 * 1024 * 1.3
        a = np.ones(1000, "float32")
        alive = weakref.ref(a)
        z = Variable(a) * 2
        assert z.creator is not None
        del a
        assert alive() is None or z is not None
        del y, z
        assert alive() is None
    finally:
        gc.enable()
