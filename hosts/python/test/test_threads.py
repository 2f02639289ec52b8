"""Threads: graphs of their own, errors, the interpreter's lock, first use, forks, the end."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Function, FunctionNode, Parameter, Variable


class Scale(FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2

    def backward(self, indexes, grads):
        return grads[0] * 2


class Old(Function):
    def forward(self, inputs):
        return inputs[0] * 3,

    def backward(self, inputs, grads):
        return grads[0] * 3,


class Fails(FunctionNode):
    def __init__(self, error):
        self.error = error

    def forward(self, inputs):
        return inputs[0] * 1

    def backward(self, indexes, grads):
        raise self.error


def run(*functions):
    """Runs functions in threads. Returns their results; raises the first exception."""
    results = [None] * len(functions)

    def call(i):
        try:
            results[i] = functions[i](), None
        except BaseException as error:  # noqa: BLE001
            results[i] = None, error
    threads = [threading.Thread(target=call, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _, error in results:
        if error is not None:
            raise error
    return [result for result, _ in results]


def script(text, code=0, env=None):
    """Runs a program; returns what it prints."""
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True,
                             text=True, env={**os.environ, **(env or {})})
    assert process.returncode == code, process.stderr
    return process.stdout


# ---- graphs in threads

def train(size, seed):
    """The gradient of a small net, with functions of plugins and of Python."""
    def function():
        random = np.random.RandomState(seed)
        for _ in range(15):
            a = random.uniform(-1, 1, (size, size)).astype("float32")
            x, w = Variable(a), Parameter(a.T.copy())
            y = x
            for _ in range(3):
                y = Old()(Scale().apply((F.tanh(y @ w),))[0])
            F.sum(y).backward()
            kept = x.grad
            x.cleargrad()
            gx, = catena.grad([F.sum(y)], [x])
            assert np.array_equal(gx.array, kept)
        return kept
    return function


@pytest.mark.parametrize("size", [3, 64])  # small calls keep the interpreter's lock
def test_each_thread_has_its_graph(size):
    functions = [train(size, seed) for seed in range(6)]
    expected = [function() for function in functions]
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect()
            [Variable(np.ones(10, "float32")) * 2 for _ in range(50)]
    collector = threading.Thread(target=collect)
    collector.start()
    try:
        found = run(*functions)
    finally:
        stop.set()
        collector.join()
    for a, b in zip(found, expected):
        assert np.allclose(a, b, 1e-5)


def test_threads_share_parameters():
    w = Parameter(np.random.RandomState(0).uniform(-1, 1, (64, 64)).astype("float32"))

    def function():
        for _ in range(30):
            y = F.sum(F.tanh(w @ w) * Scale().apply((w,))[0])
            gw, = catena.grad([y], [w])
        return gw.array
    found = run(*[function] * 4)
    assert all(np.allclose(each, found[0], 1e-5) for each in found) and w.grad is None


def test_arrays_that_others_replace():
    """A call keeps its operands while another thread sets the variable's array."""
    arrays = [np.full((64, 64), value, "float32") for value in range(1, 5)]
    x = Variable(arrays[0])
    stop = threading.Event()

    def replace():
        i = 0
        while not stop.is_set():
            i += 1
            x.array = None
            x.array = arrays[i % 4].copy()

    def use():
        try:
            for _ in range(300):
                try:
                    with catena.no_backprop_mode():
                        y = (x + 1).array
                except (RuntimeError, ValueError):  # between None and the next array
                    continue
                assert y.min() == y.max() and 2 <= y.min() <= 5
        finally:
            stop.set()
    run(replace, use)


def test_arrays_of_numpy_are_dropped_without_the_lock():
    def function():
        for i in range(200):
            x = Variable(np.full((60, 60), i, "float32"))
            y = x + 1
            del x
            assert y.array[0, 0] == i + 1
    run(*[function] * 4)


def test_other_threads_run_during_long_calls():
    x = Variable(np.ones((700, 700), "float32"))
    turns = []

    def count():
        while not stop.is_set():
            turns.append(len(turns))
            time.sleep(0)
    stop = threading.Event()
    thread = threading.Thread(target=count)
    thread.start()
    with catena.no_backprop_mode():
        while len(turns) < 5:
            x @ x
    stop.set()
    thread.join()


# ---- errors

def test_errors_in_threads():
    def fail(i):
        def function():
            for _ in range(50):
                x = Variable(np.ones((3, 60 if i % 2 else 1000), "float32"))
                y = F.sum(Fails(KeyError(i)).apply((Scale().apply((x,))[0],))[0])
                with pytest.raises(KeyError) as caught:
                    y.backward()
                assert caught.value.args == (i,) and x.grad is None
                with pytest.raises(catena.ShapeError):
                    x + Variable(np.ones((4, 4), "float32"))
            return i
        return function
    assert run(*map(fail, range(6))) == list(range(6))


def test_interrupt():
    """SIGINT during backward() through functions of Python raises KeyboardInterrupt."""
    out = script("""
        import os, signal, threading, time
        import catena, catena.functions as F, numpy as np
        class Slow(catena.FunctionNode):
            def forward(self, inputs):
                return inputs[0] * 1
            def backward(self, indexes, grads):
                started.set()
                time.sleep(0.01)
                return grads[0]
        started = threading.Event()
        def interrupt():
            started.wait()
            os.kill(os.getpid(), signal.SIGINT)
        x = y = catena.Variable(np.ones(3, "float32"))
        for _ in range(3000):
            y, = Slow().apply((y,))
        threading.Thread(target=interrupt).start()
        try:
            F.sum(y).backward()
        except KeyboardInterrupt:
            print("interrupted", x.grad)
        F.sum(x * 2).backward()
        print(x.grad)
        """)
    assert out.split("\n")[:2] == ["interrupted None", "[2. 2. 2.]"]


def test_interrupt_between_functions():
    """A signal ends backward() and grad() between functions of C++, before they reach the leaf."""
    out = script("""
        import os, signal, time
        import catena, catena.functions as F, numpy as np
        class Interrupted(Exception): pass
        between = False  # whether functions of C++ run
        missed = False
        class First(catena.FunctionNode):
            def forward(self, inputs):
                return inputs[0] * 1
            def backward(self, indexes, grads):
                global between
                between = True
                return grads[0]
        class Last(First):
            def backward(self, indexes, grads):
                global between
                between = False
                return grads[0]
        def handler(_, frame):
            global between, missed
            if not between: return
            if frame.f_code in (First.backward.__code__, Last.backward.__code__):
                missed = True
                return
            between = False
            raise Interrupted
        signal.signal(signal.SIGUSR1, handler)
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            while os.getppid() == parent:
                os.kill(parent, signal.SIGUSR1)
                time.sleep(0.001)
            os._exit(0)

        def is_interrupted(differentiate):
            # Signals are looked for at times: the functions between must take long enough.
            global missed
            n = 1 << 12
            while n <= 1 << 18:
                x = catena.Variable(np.ones((10, 10), "float32"))
                y, = Last().apply((x,))
                for _ in range(n):
                    y = F.tanh(y)
                y, = First().apply((y,))
                missed = False
                try:
                    differentiate(F.sum(y), x)
                except Interrupted:
                    return x.grad is None
                if missed: n *= 2  # else no signal came
            return False
        print(is_interrupted(lambda y, x: y.backward()),
              is_interrupted(lambda y, x: catena.grad([y], [x])))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        """)
    assert out == "True True\n"


# ---- first use, forks and the end of the program

FIRST_USE = """
    import threading
    barrier = threading.Barrier(8)
    def use(i):
        barrier.wait()
        import catena, catena.functions as F, numpy as np
        x = catena.Variable(np.ones((50, 50), "float32"))
        y = [F.relu, F.exp, F.tanh, F.sigmoid, abs, lambda x: x @ x, lambda x: x + 1,
             F.softmax][i](x)
        F.sum(y).backward()
        repr(x), x.T, x[[0, 1]], catena.Parameter(0.5, (2,)), catena.config.train
        done.append(i)
    done = []
    {imports}
    threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(sorted(done))
    """


@pytest.mark.parametrize("imports", ["", "import catena", "import catena, numpy"])
def test_first_use_in_several_threads(imports):
    assert script(FIRST_USE.replace("{imports}", imports)) == "[0, 1, 2, 3, 4, 5, 6, 7]\n"


FORK = """
    import os, sys, signal
    import catena, catena.functions as F, numpy as np
    x = catena.Variable(np.ones(({n}, {n}), "float32"))
    def compute():
        x.cleargrad()
        y = F.sum(F.tanh(x @ x) + x)
        y.backward()
        return float(x.grad.sum())
    expected = compute()
    kept = F.sum(x * 2)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        kept.backward()
        os._exit(0 if abs(compute() - expected) < 1e-3 * abs(expected) else 3)
    _, status = os.waitpid(child, 0)
    print(status, abs(compute() - expected) < 1e-3 * abs(expected))
    """


@pytest.mark.parametrize("n", [3, 300])  # large products use threads
def test_fork(n):
    assert script(FORK.replace("{n}", str(n))) == "0 True\n"


def test_multiprocessing():
    assert script("""
        import multiprocessing, numpy as np, catena, catena.functions as F
        def work(a):
            x = catena.Variable(a)
            F.sum(F.exp(x @ x)).backward()
            return x.grad
        work(np.ones((200, 200), "float32") / 200)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.map(work, [np.full((200, 200), i / 200, "float32") for i in range(4)])
        print([float(f[0, 0]) > i for i, f in enumerate(found)])
        """) == "[False, True, True, True]\n"


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)", "raise SystemExit(0)"])
def test_the_end_of_the_program(end):
    """Threads that compute, objects in modules and exit handlers do not disturb the end."""
    script(f"""
        import atexit, os, sys, threading, time
        import catena, catena.functions as F, numpy as np
        class Node(catena.FunctionNode):
            def forward(self, inputs):
                return inputs[0] * 1
            def backward(self, indexes, grads):
                return grads[0]
        class Late:
            def __del__(self):
                repr(x), x * 2, catena.Variable(np.ones(3, "float32")).array
        x = catena.Variable(np.ones((300, 300), "float32"))
        kept = node = Node()
        node.result, = node.apply((x,))
        late = sys.late = Late()
        atexit.register(lambda: F.sum(Node().apply((x,))[0]).backward())
        def forever():
            v = catena.Variable(np.ones((300, 300), "float32"))
            while True:
                F.sum(Node().apply((v @ v,))[0]).backward()
                v.cleargrad()
        threading.Thread(target=forever, daemon=True).start()
        time.sleep(0.3)
        {end}
        """)


def test_interpreter_switches_between_calls():
    """Many short calls in threads, with a switch after almost every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run(*[train(3, seed) for seed in range(4)])
    finally:
        sys.setswitchinterval(before)


def test_signals_have_python_handlers():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
