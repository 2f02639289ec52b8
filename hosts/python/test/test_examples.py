"""The examples: they learn, resume exactly, run on other devices, and refuse wrong arguments."""
import gzip
import os
import subprocess
import sys
import textwrap

import numpy
import pytest

import catena
from catena.datasets.files import shipped
from catena.examples import gpt, mnist


@pytest.fixture(autouse=True)
def restored():
    device, root = catena.Device(-1), catena.dataset.get_dataset_root()
    yield
    device.use()
    catena.dataset.set_dataset_root(root)


def train_mnist(out, *arguments):
    return mnist.main(["--data", shipped("digits"), "--unit", "64", "--seed", "1", "--noplot",
                       "--out", str(out), *arguments])


def test_mnist(tmp_path, capsys):
    accuracy = train_mnist(tmp_path, "--epoch", "2")
    assert accuracy > 0.9
    text = capsys.readouterr().out
    assert "validation/main/accuracy" in text and text.endswith(f"test accuracy: {accuracy:.4f}\n")
    assert sorted(os.listdir(tmp_path)) == ["log", "snapshot_epoch_1", "snapshot_epoch_2"]
    resumed = train_mnist(tmp_path / "more", "--epoch", "2", "--resume",
                          str(tmp_path / "snapshot_epoch_1"))
    assert resumed == accuracy


def test_mnist_on_another_device(tmp_path):
    assert train_mnist(tmp_path, "--epoch", "1", "--device", "cpu:1", "--batchsize", "50") > 0.85


def test_mnist_without_data(tmp_path):
    with pytest.raises(SystemExit, match="none: expected a folder with MNIST's four files"):
        mnist.main(["--data", str(tmp_path / "none")])


def train_gpt(out, *arguments):
    text = out / "corpus"
    out.mkdir(exist_ok=True)
    text.write_text(gpt.read(None)[:20000])
    return gpt.main(["--text", str(text), "--alpha", "0.003", "--batchsize", "4", "--length", "16",
                     "--unit", "32", "--head", "2", "--layer", "2", "--out", str(out), *arguments])


def test_gpt(tmp_path, capsys):
    losses = train_gpt(tmp_path, "--iteration", "60", "--dropout", "0.1", "--sample", "30")
    assert len(losses) == 10 and losses[0] > 3.5 and losses[-1] < 3.2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20000 characters, 58 different ones"
    assert len("\n".join(lines[12:])) == 31
    # Training resumes from the snapshot of the last iteration.
    longer = train_gpt(tmp_path / "a", "--iteration", "80", "--dropout", "0.1", "--sample", "0")
    resumed = train_gpt(tmp_path / "b", "--iteration", "80", "--dropout", "0.1", "--sample", "0",
                        "--resume", str(tmp_path / "snapshot"))
    assert resumed[:10] == losses
    # The reports are at other iterations, so only the parameters are comparable.
    with numpy.load(tmp_path / "a" / "snapshot") as a, numpy.load(tmp_path / "b" / "snapshot") as b:
        names = [name for name in a.files if "model:main" in name]
        assert len(names) > 20 and len(longer) == 10
        for name in names:
            numpy.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("compress", [False, True])
def test_gpt_of_another_text(tmp_path, capsys, compress):
    file = tmp_path / ("text.gz" if compress else "text")
    (gzip.open if compress else open)(file, "wt").write("abcd" * 40)
    losses = train_gpt(tmp_path, "--text", str(file), "--iteration", "40", "--alpha", "0.01",
                       "--device", "cpu:1", "--sample", "8")
    assert losses[-1] < 0.5
    text = capsys.readouterr().out
    assert text.startswith("160 characters, 4 different ones")
    assert text.splitlines()[-1] == "abcdabcda"


def test_shipped_text():
    text = gpt.read(None)
    assert len(text) == 1115394 and len(set(text)) == 65


def test_gpt_refuses(tmp_path, capsys):
    (tmp_path / "short").write_text("abc")
    with pytest.raises(SystemExit, match="expected more than 16 characters, got 3"):
        train_gpt(tmp_path, "--text", str(tmp_path / "short"))
    with pytest.raises(SystemExit):
        gpt.main(["--unit", "10", "--head", "3"])
    assert "expected a multiple of the 3 heads, got 10" in capsys.readouterr().err


SCRIPT = """
    import catena as chainer
    import catena.functions as F
    import catena.links as L
    from catena import training
    from catena.training import extensions
    import numpy as np

    np.random.seed(4)

    class MLP(chainer.Chain):
        def __init__(self, n_units, n_out):
            super(MLP, self).__init__()
            with self.init_scope():
                self.l1 = L.Linear(None, n_units)
                self.l2 = L.Linear(None, n_out)

        def forward(self, x):
            return self.l2(F.relu(self.l1(x)))

    chainer.dataset.set_dataset_root(DATA)
    device = chainer.get_device(-1)
    model = L.Classifier(MLP(32, 10))
    model.to_device(device)
    device.use()
    optimizer = chainer.optimizers.Adam()
    optimizer.setup(model)
    train, test = chainer.datasets.get_mnist()
    train_iter = chainer.iterators.SerialIterator(train, 100)
    test_iter = chainer.iterators.SerialIterator(test, 100, repeat=False, shuffle=False)
    updater = training.updaters.StandardUpdater(train_iter, optimizer, device=device)
    trainer = training.Trainer(updater, (1, 'epoch'), out=OUT)
    trainer.extend(extensions.Evaluator(test_iter, model, device=device), call_before_training=True)
    trainer.extend(extensions.DumpGraph('main/loss'))
    trainer.extend(extensions.snapshot(), trigger=(1, 'epoch'))
    trainer.extend(extensions.LogReport(), call_before_training=True)
    trainer.extend(extensions.PlotReport(
        ['main/loss', 'validation/main/loss'], 'epoch', file_name='loss.png'),
        call_before_training=True)
    trainer.extend(extensions.PrintReport(
        ['epoch', 'main/loss', 'validation/main/loss', 'main/accuracy',
         'validation/main/accuracy', 'elapsed_time']), call_before_training=True)
    trainer.extend(extensions.ProgressBar())
    trainer.run()
    chainer.serializers.save_npz(OUT + '/mlp.model', model)
    print('last', trainer.get_extension('LogReport').log[-1]['validation/main/accuracy'])
"""


def test_code_of_chainer(tmp_path):
    """A program in the style of Chainer's examples runs unchanged."""
    code = textwrap.dedent(SCRIPT).replace("DATA", repr(shipped("digits"))).replace(
        "OUT", repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("last")[1]) > 0.85
    assert {"log", "cg.dot", "snapshot_iter_100", "mlp.model"} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize("name", ["mnist", "gpt"])
def test_help(name):
    done = subprocess.run([sys.executable, "-m", "catena.examples." + name, "--help"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and f"usage: python -m catena.examples.{name}" in done.stdout
