"""Tests of install_as_chainer(), each in a process of its own because it is about imports."""
import os
import subprocess
import sys

import catena
import numpy
import pytest


def run(code, folder):
    env = {**os.environ, "PYTHONPATH": f"{folder}:{catena.__path__[0]}/.."}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_the_same(tmp_path):
    run("""
import sys
import catena
before = catena.functions.__spec__
assert "chainer" not in sys.modules
catena.install_as_chainer()
catena.install_as_chainer()
import chainer
import chainer.functions as F
from chainer import links as L, training
from chainer.training import extensions
import chainer.training.triggers
import chainer.backends.cuda
from chainer.backends.cuda import to_gpu
assert chainer.backends.cuda is chainer.cuda and to_gpu is chainer.cuda.to_gpu
from chainer.functions import relu
assert chainer is catena and F is catena.functions and relu is F.relu
assert extensions is catena.training.extensions
assert F.__spec__ is before and F.__name__ == F.__spec__.name == "catena.functions"
assert not any(name.startswith("chainer.functions.") for name in sys.modules)
import pickle
link = pickle.loads(pickle.dumps(L.Linear(2, 3)))
assert type(link) is catena.links.Linear
""", tmp_path)


def test_modules_that_are_missing(tmp_path):
    out = run("""
import catena
catena.install_as_chainer()
import importlib.util
assert importlib.util.find_spec("chainer.nothing") is None
for name in ["chainer.nothing", "chainer.functions.nothing"]:
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
""", tmp_path)
    assert out.splitlines() == ["No module named 'chainer.nothing'",
                                "No module named 'chainer.functions.nothing'"]


def test_another_chainer(tmp_path):
    (tmp_path / "chainer.py").write_text("")
    run("""
import catena, chainer
try:
    catena.install_as_chainer()
except ImportError as error:
    assert "expected a name that is not imported yet, got <module 'chainer'" in str(error), error
else:
    raise AssertionError
assert chainer is not catena
""", tmp_path)
    run("""
import catena
catena.install_as_chainer()
import chainer
assert chainer is catena
""", tmp_path)


def test_modules_inside_packages(tmp_path):
    run("""
import catena
relu, linear = catena.functions.relu, catena.links.Linear
catena.install_as_chainer()
import chainer, chainer.functions.activation.relu, chainer.links.connection.linear
from chainer.functions.activation import lstm
from chainer.functions.array.concat import concat
assert chainer.functions.relu is relu and lstm.lstm is chainer.functions.lstm
assert concat is chainer.functions.concat
assert chainer.links.connection.linear.Linear is linear is chainer.links.Linear
from chainer.optimizers import adam
import chainer.optimizers.momentum_sgd
assert adam.Adam is catena.optimizers.Adam is chainer.optimizers.adam.Adam
from chainer.backends import cuda, intel64
assert cuda is chainer.cuda and not intel64.is_ideep_available()
import chainer.serializers.npz, chainer.initializers.constant
from chainer.testing import array, attr, backend, condition
from chainer.training.triggers import interval_trigger
from chainer.training.triggers.interval_trigger import IntervalTrigger
assert IntervalTrigger is chainer.training.triggers.IntervalTrigger
assert IntervalTrigger is interval_trigger.IntervalTrigger
from chainer.training.extensions import evaluator
from chainer.iterators import serial_iterator
assert serial_iterator.SerialIterator is chainer.iterators.SerialIterator
import chainerx
assert not chainerx.is_available() and not isinstance(1, chainerx.ndarray)
for text in ["from chainer.functions import nothing", "from chainer.optimizers import nothing",
             "import chainer.training.extensions.nothing", "import numpy.functions.nothing"]:
    try:
        exec(text)
    except ImportError:
        continue
    raise AssertionError(text)
try:
    lstm.nothing
except AttributeError as error:
    assert "nothing" in str(error)
else:
    raise AssertionError
""", tmp_path)


def test_modules_as_attributes():
    """What `import catena as chainer` has without an import of its own."""
    assert catena.initializers.constant.Zero is catena.initializers.Zero
    assert catena.optimizers.adam.Adam is catena.optimizers.Adam
    assert catena.basic_math.add is catena.functions.add
    assert catena.backends.CpuDevice is catena.backend.CpuDevice
    assert not catena.chainerx.is_available()
    with pytest.raises(RuntimeError, match="chainerx is not available"):
        catena.chainerx.ndarray()
    layouts = catena.memory_layouts
    x = numpy.zeros((1, 2, 3, 4), "float32")
    assert layouts.CUDNN_CHANNEL_FIRST_X is None and layouts.get_raw_shape(x) == x.shape
    assert layouts.get_semantic_shape(catena.Variable(x)) == x.shape
    assert layouts.get_semantic_shape(
        x, assumed_layout=layouts.CUDNN_CHANNEL_LAST_X) == (1, 4, 2, 3)
    with pytest.raises(ValueError, match="assumed_layout"):
        layouts.get_semantic_shape(x, assumed_layout="NHWC")
    for module in (catena.initializers, catena.optimizers, catena.backends):
        with pytest.raises(AttributeError, match="nothing"):
            module.nothing
