"""Threads that share variables, graphs, links and optimizers: they wait, and no memory is corrupted."""
import subprocess
import sys
import textwrap
import threading

import catena
import catena.functions as F
import catena.links as L
import numpy as np
import pytest
from catena import FunctionNode, Variable


def script(text):
    """Runs a program in a process of its own, because a fault may end it."""
    start = """
        import threading, sys
        import catena, catena.functions as F, catena.links as L
        import numpy as np
        from catena import Variable
        sys.setswitchinterval(1e-5)
        allowed = ()  # parts of the errors that may come
        wrong = []  # other errors

        def attempt(f):
            try:
                f()
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
                if not any(part in text for part in allowed):
                    wrong.append(text)
                return False
            return True

        def repeat(f, enough):
            # Calls f until that is enough and has succeeded once.
            calls = successes = 0
            while not wrong and (successes == 0 or not enough(calls)):
                successes += attempt(f)
                calls += 1

        def together(*functions):
            threads = [threading.Thread(target=attempt, args=(f,)) for f in functions]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert not wrong, wrong

        def ones(*shape):
            return np.ones(shape, "float32")
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(text)],
                             capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout


# What one thread does while another computes gradients of the same graph.
ACTIONS = {
    "cleargrad": "x.cleargrad()",
    "zerograd": "x.zerograd()",
    "set_grad": "x.grad = ones(50, 50)",
    "read_grad": "x.grad; x.grad_var",
    "set_array": "x.array = ones(50, 50)",
    "addgrad": "x.addgrad(other)",
    "free": "h = x * 1; g = h + h; del h; g.backward.__self__",
    "unchain": "y.unchain_backward()",
    "nodes": "y.creator_node.inputs[0].grad; y.creator_node.outputs[0].data",
}


# Parts of the errors that the change may cause.
ERRORS = {
    "set_array": ("was replaced after the call",),
    "unchain": ("unchain",),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_change_during_backward(action):
    script(f"""
        allowed = {ERRORS.get(action, ())}
        x, other = Variable(ones(50, 50)), Variable(ones(50, 50))
        other.grad = ones(50, 50)
        done = threading.Event()

        def step():
            global y
            h = x
            for _ in range(10):
                h = F.tanh(h * x) + x
            y = h
            y.grad = ones(50, 50)
            y.backward()

        def backward():
            repeat(step, lambda calls: calls >= 60)
            done.set()

        def change():
            {ACTIONS[action]}

        step()
        together(backward, lambda: repeat(change, lambda _: done.is_set()))
        """)


def test_two_threads_differentiate_one_graph():
    out = script("""
        x = Variable(ones(64, 64))
        trunk = x
        for _ in range(20):
            trunk = trunk * 0.5 + x
        heads = [F.sum(trunk * 2), F.sum(trunk * 3), F.sum(trunk)]
        expected = []
        for head in heads:
            x.cleargrad()
            head.backward()
            expected.append(x.grad.copy())
        x.cleargrad()
        together(*[lambda h=h: [h.backward() for _ in range(30)] for h in heads])
        np.testing.assert_allclose(x.grad, 30 * sum(expected), rtol=1e-4)
        gradients = [None] * 3
        def grad(i):
            for _ in range(30):
                gradients[i] = catena.grad([heads[i]], [x])[0].array
        together(*[lambda i=i: grad(i) for i in range(3)])
        for got, want in zip(gradients, expected):
            np.testing.assert_allclose(got, want, rtol=1e-5)
        print("ok")
        """)
    assert out == "ok\n"


def test_threads_share_a_link_and_an_optimizer():
    out = script("""
        allowed = ("was replaced after the call", "unmodified since the call")
        net = catena.Sequential(L.Linear(64, 64), F.relu, L.Linear(64, 64))
        optimizer = catena.optimizers.Adam().setup(net)
        x = ones(64, 64)
        def train():
            loss = F.sum(net(x) ** 2)
            net.cleargrads()
            loss.backward()
            optimizer.update()
        def infer():
            with catena.no_backprop_mode():
                net(x)
        def move():
            net[0].W.array = net[0].W.array.copy()
            net[0].b.grad = None
            net.copyparams(net.copy("copy"))
        def renew():
            optimizer.setup(net)
        together(*[lambda f=f, n=n: repeat(f, lambda calls: calls >= n)
                   for f, n in [(train, 30), (train, 30), (infer, 60), (move, 30), (renew, 30)]])
        print("ok")
        """)
    assert out == "ok\n"


def test_array_of_an_operand_is_replaced():
    script("""
        x, y = Variable(ones(300, 300)), Variable(ones(300, 300))
        done = threading.Event()
        def compute():
            with catena.no_backprop_mode():
                F.matmul(x, y), x + y, F.concat([x, y]), F.tanh(x)
        def compute_all():
            repeat(compute, lambda calls: calls >= 200)
            done.set()
        def replace():
            x.array = ones(300, 300)
            y.array = ones(300, 300)
        together(compute_all, lambda: repeat(replace, lambda _: done.is_set()))
        """)


def test_a_function_of_python_can_wait_for_another_thread():
    """That thread may compute and change gradients of the same variables meanwhile."""
    class Waits(FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 1

        def backward(self, indexes, grads):
            begun.set()
            assert other_ended.wait(600)
            return grads[0]

    begun, other_ended = threading.Event(), threading.Event()
    x, shared = (Variable(np.ones((70, 70), "float32")) for _ in range(2))
    y = F.sum(Waits().apply((x * shared,))[0] * shared)

    def other():
        assert begun.wait(600)
        z = F.sum(shared * shared * 2)
        z.backward()
        shared.cleargrad()  # the first thread runs Python, so it can be changed
        z.backward()
        other_ended.set()
    thread = threading.Thread(target=other)
    thread.start()
    y.backward()
    thread.join()
    # The gradient of the last product was there before cleargrad().
    np.testing.assert_array_equal(shared.grad, np.full((70, 70), 4 + 1, "float32"))
    np.testing.assert_array_equal(x.grad, np.ones((70, 70), "float32"))


def test_a_change_waits_for_the_end_of_a_pass():
    """cleargrad() of another thread never removes a part of a gradient."""
    x = Variable(np.ones((100, 100), "float32"))
    h = x
    for _ in range(30):
        h = h * 1 + x
    y = F.sum(h)
    stop = threading.Event()
    seen = set()

    def look():
        while not stop.is_set():
            gradient = x.grad
            seen.add(None if gradient is None else float(gradient[0, 0]))
            x.cleargrad()
    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(30):
            y.backward()
    finally:
        stop.set()
        thread.join()
    assert seen <= {None} | {31.0 * n for n in range(1, 31)}


def test_link_in_threads():
    net = L.Linear(200, 200)
    x = np.ones((200, 200), "float32")
    with catena.no_backprop_mode():
        expected = net(x).array
    results = []

    def infer():
        with catena.no_backprop_mode():
            for _ in range(10):
                results.append(np.array_equal(net(x).array, expected))
    threads = [threading.Thread(target=infer) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 80
