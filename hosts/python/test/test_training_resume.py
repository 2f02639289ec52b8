"""Snapshots: a resumed training gives the same results as one that was not interrupted."""
import io
import os
import random
import threading

import numpy
import pytest

import catena
from catena import serializers
from catena.training import extensions, triggers
from training_helpers import data_of, evaluator_of, model_of, params_of, trainer_of

ITERATIONS = 11


class Noise(catena.dataset.DatasetMixin):
    """Examples that draw numbers, as random crops of images do."""

    def __len__(self):
        return 10

    def get_example(self, i):
        x = numpy.random.uniform(size=3).astype("float32") + random.random()
        return x, numpy.int32(i % 2)


def full_trainer(out, seed, kind="SerialIterator", optimizer=catena.optimizers.Adam, device=None,
                 dataset=None):
    """A trainer with everything that has a state."""
    catena.configuration.seed(seed)
    random.seed(seed)
    trainer = trainer_of(catena, out, triggers.EarlyStoppingTrigger(
        (2, "iteration"), patience=100, max_trigger=(ITERATIONS, "iteration")),
        dropout=0.5, seed=seed, kind=kind, optimizer=optimizer(), device=device)
    if dataset is not None:
        trainer.updater.get_iterator("main").dataset = dataset
    e = extensions
    trainer.extend(evaluator_of(catena, trainer, device=device), trigger=(3, "iteration"))
    attr = "alpha" if optimizer is catena.optimizers.Adam else "lr"
    trainer.extend(e.ExponentialShift(attr, 0.9), trigger=(1, "epoch"))
    trainer.extend(e.observe_value("rate", lambda trainer: getattr(
        trainer.updater.get_optimizer("main"), attr)))
    trainer.extend(e.LogReport(trigger=(4, "iteration")))
    trainer.extend(e.MicroAverage("main/loss", "main/accuracy", "micro", (3, "iteration")))
    trainer.extend(e.ParameterStatistics(
        trainer.updater.get_optimizer("main").target, {"mean": numpy.mean}, prefix="p",
        trigger=(4, "iteration")))
    trainer.extend(e.FailOnNonNumber(), trigger=triggers.ManualScheduleTrigger([2, 9], "iteration"))
    best = trainer.best = []
    trainer.extend(lambda trainer: best.append(trainer.updater.iteration), name="best",
                   trigger=triggers.MinValueTrigger("main/loss", (2, "iteration")))
    return trainer


def state_of(trainer):
    """All that a training has computed."""
    log = [{name: value for name, value in entry.items() if name != "elapsed_time"}
           for entry in trainer.get_extension("LogReport").log]
    params = {name: array.tobytes() for name, array in params_of(trainer).items()}
    state = serializers.serialize(trainer.updater)
    stop = trainer.stop_trigger
    return log, params, {name: array.tobytes() for name, array in state.items()}, (
        stop.best, stop.count)


CASES = {
    "serial": {},
    "threads": {"kind": "MultithreadIterator"},
    "momentum": {"optimizer": catena.optimizers.MomentumSGD},
    "device": {"device": "cpu:1"},
    "noise": {"dataset": Noise()},
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """An uninterrupted training that saves all its iterations."""
    folder = tmp_path_factory.mktemp(request.param)
    trainer = full_trainer(folder, 1, **CASES[request.param])
    trainer.extend(extensions.snapshot(filename="{.updater.iteration}"), trigger=(1, "iteration"))
    trainer.run()
    return CASES[request.param], folder, trainer


@pytest.mark.parametrize("iteration", range(1, ITERATIONS + 1))
def test_exact(case, tmp_path, iteration):
    kwargs, folder, expected = case
    trainer = full_trainer(tmp_path, 2, **kwargs)
    trainer.extend(extensions.snapshot(filename="{.updater.iteration}"), trigger=(1, "iteration"))
    serializers.load_npz(folder / str(iteration), trainer)
    before = trainer.get_extension("LogReport").log[:]
    trainer.run()
    assert trainer.updater.iteration == ITERATIONS
    assert state_of(trainer) == state_of(expected)
    assert trainer.best == [i for i in expected.best if i > iteration]
    assert len(before) == iteration // 4
    assert trainer.elapsed_time > 0


def test_from_the_end(case, tmp_path):
    """A training that has ended can be continued with a later end."""
    kwargs, folder, _ = case
    longer = full_trainer(tmp_path, 3, **kwargs)
    serializers.load_npz(folder / str(ITERATIONS), longer)
    longer.stop_trigger = triggers.IntervalTrigger(ITERATIONS + 2, "iteration")
    longer.run()
    assert longer.updater.iteration == ITERATIONS + 2


def test_autoload(case, tmp_path):
    """The newest snapshot is loaded before other extensions initialize."""
    kwargs, folder, expected = case
    (tmp_path / "7").write_bytes((folder / "7").read_bytes())
    (tmp_path / "9").write_bytes((folder / "9").read_bytes())
    os.utime(tmp_path / "7", (1, 1))
    trainer = full_trainer(tmp_path, 2, **kwargs)
    trainer.extend(extensions.snapshot(filename="{.updater.iteration}", autoload=True),
                   trigger=(1, "iteration"))
    trainer.run()
    assert state_of(trainer) == state_of(expected)
    assert sorted(map(int, filter(str.isdigit, os.listdir(tmp_path)))) == [7, 9, 10, 11]


def test_elapsed_time(tmp_path):
    trainer = trainer_of(catena, tmp_path, (1, "iteration"))
    trainer.run()
    serializers.save_npz(tmp_path / "state", trainer)
    other = trainer_of(catena, tmp_path, (2, "iteration"))
    serializers.load_npz(tmp_path / "state", other)
    other.run()
    assert other.elapsed_time > trainer.elapsed_time


def test_parallel_updater(tmp_path):
    found = []
    for seed, load in ((1, False), (2, True)):
        numpy.random.seed(seed)
        optimizer = catena.optimizers.MomentumSGD(0.1).setup(model_of(catena, seed=seed))
        updater = catena.training.ParallelUpdater(
            catena.iterators.SerialIterator(data_of(), 4), optimizer,
            devices={"main": "cpu:0", "other": "cpu:1"})
        trainer = catena.training.Trainer(updater, (6, "iteration"), out=str(tmp_path))
        if load:
            serializers.load_npz(tmp_path / "4", trainer)
        else:
            trainer.extend(extensions.snapshot(filename="{.updater.iteration}"),
                           trigger=(4, "iteration"))
        trainer.run()
        found.append({name: array.tobytes() for name, array in params_of(trainer).items()})
    assert found[0] == found[1]


@pytest.mark.parametrize("direction", ["from chainer", "to chainer"])
def test_snapshots_of_chainer(tmp_path, direction):
    """Both read each other's snapshots: position, parameters, optimizer and log."""
    chainer = pytest.importorskip("chainer")
    packages = [chainer, catena] if direction == "from chainer" else [catena, chainer]
    trainers = []
    for package in packages:
        trainer = trainer_of(package, tmp_path, (5 if trainers == [] else 8, "iteration"))
        e = package.training.extensions
        trainer.extend(e.LogReport(trigger=(2, "iteration")))
        trainer.extend(e.StepShift("lr", 0.5, 2))
        trainers.append(trainer)
    first, second = trainers
    first.run()
    with open(tmp_path / "state", "wb") as file:
        packages[0].serializers.save_npz(file, first)
    packages[1].serializers.load_npz(str(tmp_path / "state"), second)
    assert second.updater.iteration == 5
    for name, array in params_of(first).items():
        numpy.testing.assert_array_equal(array, params_of(second)[name])
    second.run()
    log = second.get_extension("LogReport").log
    assert [entry["iteration"] for entry in log] == [2, 4, 6, 8]
    assert log[:2] == first.get_extension("LogReport").log


@pytest.fixture(params=["catena", "chainer"])
def package(request):
    return pytest.importorskip(request.param)


def files_of(folder):
    return sorted(name for name in os.listdir(folder) if name != "log")


def test_snapshot_files(package, tmp_path):
    e = package.training.extensions
    trainer = trainer_of(package, tmp_path, (3, "epoch"))
    target = trainer.updater.get_optimizer("main").target
    trainer.extend(e.snapshot())
    trainer.extend(e.snapshot_object(target, "model_{.updater.epoch}"), name="model")
    trainer.extend(e.snapshot_object(target, lambda trainer: "by_function"))
    wanted = iter([True, False, True])
    trainer.extend(e.snapshot(filename="sometimes_{.updater.iteration}",
                              condition=lambda: next(wanted)), name="sometimes")
    saved = []
    trainer.extend(e.snapshot(savefun=lambda path, target: saved.append(
        (type(target), open(path, "w").write("own"))), filename="own"), name="own")
    trainer.run()
    assert files_of(tmp_path) == [
        "by_function", "model_1", "model_2", "model_3", "own", "snapshot_iter_3", "snapshot_iter_5",
        "snapshot_iter_8", "sometimes_3", "sometimes_8"]
    assert saved == [(dict, 3)] * 3
    with numpy.load(tmp_path / "model_3") as file:
        assert sorted(file.files) == [
            "predictor/l1/W", "predictor/l1/b", "predictor/l2/W", "predictor/l2/b"]


def test_old_files_are_removed(package, tmp_path):
    e = package.training.extensions
    trainer = trainer_of(package, tmp_path, (7, "iteration"))
    trainer.extend(e.snapshot(filename="{.updater.iteration}.npz", n_retains=2),
                   trigger=(1, "iteration"))
    with pytest.warns(DeprecationWarning, match="`num_retain` is deprecated"):
        model = e.snapshot_object(
            trainer.updater.get_optimizer("main").target, "m{.updater.iteration}", num_retain=1)
    trainer.extend(model, trigger=(2, "iteration"))
    trainer.run()
    assert files_of(tmp_path) == ["6.npz", "7.npz", "m6"]


def test_snapshot_on_error(package, tmp_path):
    e = package.training.extensions
    trainer = trainer_of(package, tmp_path)
    trainer.extend(e.snapshot(snapshot_on_error=True), trigger=(100, "iteration"))
    trainer.extend(e.snapshot(filename="other"), trigger=(100, "iteration"))

    @trainer.extend
    def fail(trainer):
        if trainer.updater.iteration == 2:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        trainer.run(show_loop_exception_msg=False)
    assert files_of(tmp_path) == ["snapshot_iter_2"]


@pytest.mark.parametrize("name", ["SimpleWriter", "ThreadWriter", "ProcessWriter",
                                  "ThreadQueueWriter", "ProcessQueueWriter"])
def test_writers(tmp_path, name):
    writer = getattr(extensions.snapshot_writers, name)()
    trainer = trainer_of(catena, tmp_path, (4, "iteration"))
    trainer.extend(extensions.snapshot(
        writer=writer, filename="s{.updater.iteration}", n_retains=2), trigger=(1, "iteration"))
    trainer.extend(extensions.snapshot_object(
        trainer.updater.get_optimizer("main").target, "model"), trigger=(3, "iteration"))
    trainer.run()
    assert files_of(tmp_path) == ["model", "s3", "s4"]
    other = trainer_of(catena, tmp_path / "other", (4, "iteration"), seed=5)
    for _ in range(2):
        other.extend(lambda trainer: None, name="_Snapshot", trigger=(1, "iteration"))
    serializers.load_npz(tmp_path / "s3", other)
    with numpy.load(tmp_path / "model") as model:
        for name, array in params_of(other).items():
            numpy.testing.assert_array_equal(array, model[name[1:]])


def test_writers_copy(tmp_path):
    """A thread writes the values that arrays had when it was asked to."""
    go, array = threading.Event(), numpy.ones(3)

    def save(path, target):
        go.wait(10)
        serializers.save_npz(path, target)

    writer = extensions.snapshot_writers.ThreadWriter(savefun=save)
    writer("a", str(tmp_path), {"x": array})
    array[...] = 2
    go.set()
    writer.finalize()
    assert numpy.load(tmp_path / "a")["x"].tolist() == [1, 1, 1]


def test_wrong_arguments(package):
    e = package.training.extensions
    writer = e.snapshot_writers.SimpleWriter()
    with pytest.raises(TypeError, match="savefun and writer arguments cannot be"):
        e.snapshot(savefun=len, writer=writer)
    with pytest.raises(TypeError):
        e.snapshot(unknown=3)
    with pytest.raises(NotImplementedError):
        e.snapshot_writers.Writer()("a", "b", {})


def test_random_states():
    """A snapshot restores the numbers of NumPy, Python and all devices of the model."""
    from catena.utils import random_state
    states = {"numpy": random_state.of_numpy(numpy.random), "python": random_state.of_python(),
              "device": random_state.of_device("cpu:1")}

    def draw():
        with catena.using_device("cpu:1"):
            x = catena.Variable(numpy.ones(20, "float32")).array
            y = catena.functions.dropout(catena._core.as_array(x).to_device("cpu:1"), 0.5)
        return (numpy.random.normal(), random.random(), random.gauss(0, 1),
                numpy.asarray(y.array).tolist())

    numpy.random.normal()  # one more is kept for the next call
    random.gauss(0, 1)
    saved = serializers.DictionarySerializer()
    random_state.serialize(saved, "random", states)
    expected = draw()
    assert draw() != expected
    random_state.serialize(serializers.NpzDeserializer(saved.target), "random", states)
    assert draw() == expected
    random_state.serialize(serializers.NpzDeserializer({}), "random", states)  # stays
    file = io.BytesIO()
    serializers.save_npz(file, saved.target)
    file.seek(0)
    with numpy.load(file) as loaded:
        random_state.serialize(serializers.NpzDeserializer(loaded), "random", states)
    assert draw() == expected
