"""Tests of install_as_chainer(), each in a process of its own because it is about imports."""
import subprocess
import sys

import catena


def run(code, folder):
    env = {"PYTHONPATH": f"{folder}:{catena.__path__[0]}/.."}
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
