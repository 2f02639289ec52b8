"""Triggers fire at the same iterations as Chainer's, also when the training was resumed."""
import types
import warnings

import numpy
import pytest

import catena
from catena import serializers
from catena.training import triggers


class Progress:
    """A trainer of which triggers see only the progress."""

    def __init__(self, per_epoch=4, start=0):
        self.per_epoch = per_epoch
        self.observation = {}
        self.updater = types.SimpleNamespace(
            iteration=start, epoch=0, epoch_detail=start / per_epoch, previous_epoch_detail=None)

    @property
    def elapsed_time(self):
        return 0.1 * self.updater.iteration

    def step(self, value=None):
        updater = self.updater
        updater.previous_epoch_detail = updater.epoch_detail
        updater.iteration += 1
        updater.epoch_detail = updater.iteration / self.per_epoch
        updater.epoch = int(updater.epoch_detail)
        self.observation = {} if value is None else {"x": value}


VALUES = [3.0, 2.0, None, 5.0, 4.0, 1.0, 1.0, 2.5, 0.5, 0.5, 0.5, 6.0, None, 7.0, 8.0, -1.0]

# make(module, training.triggers)
MAKERS = {
    "interval 1 epoch": lambda m: m.IntervalTrigger(1, "epoch"),
    "interval 0.3 epoch": lambda m: m.IntervalTrigger(0.3, "epoch"),
    "interval 3 iteration": lambda m: m.IntervalTrigger(3, "iteration"),
    "schedule iterations": lambda m: m.ManualScheduleTrigger([2, 7, 8], "iteration"),
    "schedule one": lambda m: m.ManualScheduleTrigger(5, "iteration"),
    "schedule epochs": lambda m: m.ManualScheduleTrigger([0.3, 1, 2.6], "epoch"),
    "once": lambda m: m.OnceTrigger(),
    "once, resumed": lambda m: m.OnceTrigger(call_on_resume=True),
    "time": lambda m: m.TimeTrigger(0.35),
    "max": lambda m: m.MaxValueTrigger("x", (2, "iteration")),
    "min": lambda m: m.MinValueTrigger("x", (2, "iteration")),
    "best": lambda m: m.BestValueTrigger("x", lambda best, new: new > best + 2, (1, "epoch")),
    "early stopping": lambda m: m.EarlyStoppingTrigger((1, "iteration"), "x", patience=2),
    "early stopping, max": lambda m: m.EarlyStoppingTrigger(
        (2, "iteration"), "x", mode="max", max_trigger=(3, "epoch")),
}


def fires(trigger, progress, n=None):
    found = []
    for value in VALUES[progress.updater.iteration:][:n]:
        progress.step(value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append((bool(trigger(progress)), getattr(trigger, "finished", None)))
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_same_as_chainer(name):
    chainer = pytest.importorskip("chainer")
    found = [fires(MAKERS[name](module), Progress())
             for module in (triggers, chainer.training.triggers)]
    assert found[0] == found[1]
    assert any(fired for fired, _ in found[0])


@pytest.mark.parametrize("steps", range(0, 16, 3))
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "once, resumed"])
def test_resume(tmp_path, name, steps):
    progress = Progress()
    trigger = MAKERS[name](triggers)
    fires(trigger, progress, steps)
    serializers.save_npz(tmp_path / "state", trigger)
    expected = fires(trigger, progress)
    other = MAKERS[name](triggers)
    progress = Progress(start=steps)
    serializers.load_npz(tmp_path / "state", other)
    assert fires(other, progress) == expected


@pytest.mark.parametrize("resumed", [False, True])
def test_once_on_resume(tmp_path, resumed):
    trigger = triggers.OnceTrigger(call_on_resume=resumed)
    fires(trigger, Progress(), 2)
    serializers.save_npz(tmp_path / "state", trigger)
    other = triggers.OnceTrigger(call_on_resume=resumed)
    serializers.load_npz(tmp_path / "state", other)
    assert [fired for fired, _ in fires(other, Progress(start=2), 2)] == [resumed, False]


@pytest.mark.parametrize("name", [name for name in MAKERS if "early" not in name])
def test_snapshots_for_chainer(tmp_path, name):
    chainer = pytest.importorskip("chainer")
    ours = MAKERS[name](triggers)
    progress = Progress()
    fires(ours, progress, 6)
    with open(tmp_path / "state", "wb") as file:
        serializers.save_npz(file, ours)
    expected = fires(ours, progress)
    theirs = MAKERS[name](chainer.training.triggers)
    chainer.serializers.load_npz(str(tmp_path / "state"), theirs)
    if name != "once, resumed":
        assert fires(theirs, Progress(start=6)) == expected


@pytest.mark.parametrize("name", [name for name in MAKERS if "early" not in name])
def test_snapshots_of_chainer(tmp_path, name):
    chainer = pytest.importorskip("chainer")
    theirs = MAKERS[name](chainer.training.triggers)
    progress = Progress()
    fires(theirs, progress, 6)
    chainer.serializers.save_npz(str(tmp_path / "state"), theirs)
    expected = fires(theirs, progress)
    ours = MAKERS[name](triggers)
    serializers.load_npz(tmp_path / "state", ours)
    if name != "once, resumed":
        assert fires(ours, Progress(start=6)) == expected


@pytest.mark.parametrize("name", ["interval 3 iteration", "interval 1 epoch", "schedule epochs",
                                  "schedule iterations", "once"])
def test_missing_state(name):
    """Without a state, triggers guess it from the updater's."""
    expected = fires(MAKERS[name](triggers), Progress())
    trigger, progress = MAKERS[name](triggers), Progress()
    for value in VALUES[:4]:
        progress.step(value)
    with pytest.warns(UserWarning, match="is not saved"):
        serializers.NpzDeserializer({}).load(trigger)
    assert fires(trigger, progress) == expected[4:]


@pytest.mark.filterwarnings("ignore:.*not saved")
def test_early_stopping_loads_none():
    trigger = triggers.EarlyStoppingTrigger()
    with pytest.warns(UserWarning, match="EarlyStoppingTrigger is not saved"):
        serializers.NpzDeserializer({}).load(trigger)
    assert trigger.count == 0 and trigger.best == float("inf")


def test_early_stopping(capsys):
    trigger = triggers.EarlyStoppingTrigger(
        (1, "iteration"), "x", patients=1, verbose=True, max_trigger=(5, "epoch"))
    assert trigger.patience == 1 and trigger.get_training_length() == (5, "epoch")
    fires(trigger, Progress(), 4)
    assert capsys.readouterr().out == (
        "early stopping: operator is less\nEpoch 1: early stopping\n")
    assert triggers.EarlyStoppingTrigger().patience == 3
    assert triggers.EarlyStoppingTrigger(monitor="main/accuracy").best == float("-inf")
    with pytest.raises(TypeError, match="Both 'patience' and 'patients'"):
        triggers.EarlyStoppingTrigger(patience=1, patients=2)
    progress = Progress()
    progress.step()
    with pytest.warns(UserWarning, match="x is not in observation"):
        assert not trigger(progress)


def test_get_trigger():
    get_trigger = catena.training.get_trigger
    assert get_trigger(None)(None) is False
    assert get_trigger(len) is len
    trigger = get_trigger((2, "epoch"))
    assert isinstance(trigger, catena.training.IntervalTrigger)
    assert str(trigger) == "IntervalTrigger(2, 'epoch')"
    assert trigger.get_training_length() == (2, "epoch")
    for kind in (triggers.IntervalTrigger, triggers.ManualScheduleTrigger):
        with pytest.raises(ValueError, match="must be either 'epoch' or 'iteration'"):
            kind(1, "second")


def test_values_may_be_variables():
    trigger = triggers.MaxValueTrigger("x", (1, "iteration"))
    progress = Progress()
    found = []
    for value in (1.0, 3.0, 2.0):
        progress.step(catena.Variable(numpy.array(value, "float32")))
        found.append(trigger(progress))
    assert found == [True, True, False]
