"""Extensions of trainers, compared with Chainer's."""
import importlib
import io
import json
import os
import re
import sys
import types

import numpy
import pytest

import catena
from catena import serializers
from catena.training import extensions
from training_helpers import evaluator_of, trainer_of


@pytest.fixture(params=["catena", "chainer"])
def package(request):
    return pytest.importorskip(request.param)


class FakeTrainer:
    """A trainer without a model, whose optimizer has an attribute lr."""

    def __init__(self, lr=1.0):
        self.optimizer = types.SimpleNamespace(lr=lr, other=0)
        self.updater = types.SimpleNamespace(
            iteration=0, get_optimizer=lambda name: self.optimizer)


SHIFTS = {
    "exponential": lambda m: m.ExponentialShift("lr", 0.5),
    "exponential, init": lambda m: m.ExponentialShift("lr", 0.5, init=8, target=1),
    "exponential, rising": lambda m: m.ExponentialShift("lr", 2, init=-3, target=-12),
    "step": lambda m: m.StepShift("lr", 0.1, 2),
    "step, target": lambda m: m.StepShift("lr", 2.0, 3, init=0.5, target=1.5),
    "inverse": lambda m: m.InverseShift("lr", 0.3, 2),
    "inverse, target": lambda m: m.InverseShift("lr", 0.3, -1, init=2.0, target=3),
    "polynomial": lambda m: m.PolynomialShift("lr", 0.7, 5),
    "polynomial, target": lambda m: m.PolynomialShift("lr", 1, 50, init=2.0, target=1.9),
    "linear": lambda m: m.LinearShift("lr", (3.0, 1.0), (2, 6)),
    "multistep": lambda m: m.MultistepShift("lr", 0.1, [2, 3, 6], 4.0),
    "multistep, no init": lambda m: m.MultistepShift("lr", 0.1, [2], None),
    "warmup": lambda m: m.WarmupShift("lr", 0.1, 4, 2.0),
    "warmup, no start": lambda m: m.WarmupShift("lr", None, 4, 2.0),
}


def values_of(shift, trainer, n):
    shift.initialize(trainer)
    found = [float(trainer.optimizer.lr)]
    for _ in range(n):
        shift(trainer)
        found.append(float(trainer.optimizer.lr))
    return found


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts(name):
    chainer = pytest.importorskip("chainer")
    found = [values_of(SHIFTS[name](module), FakeTrainer(), 8)
             for module in (extensions, chainer.training.extensions)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert len(set(found[0])) > 1


@pytest.mark.parametrize("steps", [0, 1, 3, 7])
@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_resume(name, steps):
    shift, trainer = SHIFTS[name](extensions), FakeTrainer()
    values_of(shift, trainer, steps)
    state = serializers.serialize(shift)
    expected = [float(trainer.optimizer.lr)]
    for _ in range(3):
        shift(trainer)
        expected.append(float(trainer.optimizer.lr))
    other = SHIFTS[name](extensions)
    serializers.NpzDeserializer(state).load(other)
    assert values_of(other, FakeTrainer(), 3) == expected


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_for_chainer(name):
    chainer = pytest.importorskip("chainer")
    ours, trainer = SHIFTS[name](extensions), FakeTrainer()
    values_of(ours, trainer, 3)
    theirs = SHIFTS[name](chainer.training.extensions)
    chainer.serializers.NpzDeserializer(serializers.serialize(ours)).load(theirs)
    theirs.initialize(FakeTrainer())
    theirs(trainer)
    found = trainer.optimizer.lr
    ours(trainer)
    assert found == pytest.approx(trainer.optimizer.lr, rel=1e-12)


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_from_chainer(name):
    chainer = pytest.importorskip("chainer")
    theirs, trainer = SHIFTS[name](chainer.training.extensions), FakeTrainer()
    expected = values_of(theirs, trainer, 3)
    serializer = chainer.serializers.DictionarySerializer()
    theirs.serialize(serializer)
    ours = SHIFTS[name](extensions)
    serializers.NpzDeserializer(serializer.target).load(ours)
    found = values_of(ours, FakeTrainer(), 1)
    theirs(trainer)
    assert found == pytest.approx([expected[-1], float(trainer.optimizer.lr)], rel=1e-12)


def test_shifts_of_other_attributes():
    optimizer = types.SimpleNamespace(beta=3.0)
    shift = extensions.ExponentialShift("beta", 2, optimizer=optimizer)
    shift.initialize(FakeTrainer())
    shift(FakeTrainer())
    assert optimizer.beta == 6
    with pytest.raises(ValueError, match="does not support negative rate"):
        extensions.ExponentialShift("lr", -1)
    with pytest.raises(ValueError, match="does not support negative gamma"):
        extensions.InverseShift("lr", -1, 1)


def test_warmup_leaves_the_attribute_to_others():
    trainer = FakeTrainer()
    shift = extensions.WarmupShift("lr", 0.1, 2, 1.0)
    values_of(shift, trainer, 2)
    trainer.optimizer.lr = 7
    shift(trainer)
    assert trainer.optimizer.lr == 7


def reported(package, folder, **kwargs):
    """What a training with all usual extensions prints and writes."""
    e = package.training.extensions
    out = io.StringIO()
    trainer = trainer_of(package, folder / package.__name__)
    trainer.extend(evaluator_of(package, trainer))
    trainer.extend(e.observe_lr())
    trainer.extend(e.observe_value("twice", lambda trainer: 2 * trainer.updater.iteration))
    trainer.extend(e.ExponentialShift("lr", 0.5), trigger=(1, "epoch"))
    for name, factor in (("correct", 1), ("total", 3)):
        trainer.extend(e.observe_value(name, lambda trainer, factor=factor: (
            factor * trainer.updater.iteration)), trigger=(1, "iteration"))
    trainer.extend(e.MicroAverage("correct", "total", "micro", (2, "iteration")))
    trainer.extend(e.LogReport(**kwargs))
    trainer.extend(e.PrintReport(["epoch", "main/loss", "validation/main/accuracy", "lr", "none"],
                                 out=out))
    trainer.extend(e.FailOnNonNumber())
    trainer.run()
    return trainer.get_extension("LogReport").log, out.getvalue(), trainer


def rounded(text):
    return re.sub(r"\d+\.\d+ *", lambda found: f"{float(found[0]):.3g}".ljust(len(found[0])), text)


@pytest.mark.parametrize("kwargs", [
    {}, {"trigger": (2, "iteration")}, {"keys": ["main/loss", "none"]}, {"log_name": "a{epoch}"},
    {"filename": None}, {"filename": "b", "log_name": "c"},
    {"postprocess": lambda entry: entry.update(more=entry["epoch"] + 1)}], ids=str)
def test_reports(tmp_path, kwargs):
    chainer = pytest.importorskip("chainer")
    ours, our_text, _ = reported(catena, tmp_path, **kwargs)
    theirs, their_text, _ = reported(chainer, tmp_path, **kwargs)
    assert len(ours) == len(theirs) > 1
    for mine, other in zip(ours, theirs):
        assert list(mine) == list(other)
        for name in set(mine) - {"elapsed_time"}:
            assert mine[name] == pytest.approx(other[name], rel=1e-4), name
    assert rounded(our_text) == rounded(their_text)
    files = sorted(os.listdir(tmp_path / "catena"))
    assert files == sorted(os.listdir(tmp_path / "chainer")) and files != []
    for name in files:
        entries = json.loads((tmp_path / "catena" / name).read_text())
        assert entries == ours[:len(entries)]
        # The files differ only in numbers.
        lines = [(tmp_path / p / name).read_text().splitlines() for p in ("catena", "chainer")]
        keys = [[line.split(":")[0] for line in each] for each in lines]
        assert keys[0] == keys[1]


def test_no_file(tmp_path):
    trainer = trainer_of(catena, tmp_path)
    trainer.extend(extensions.LogReport(filename=None, log_name=None))
    trainer.run()
    assert os.listdir(tmp_path) == []


def test_print_report_without_a_log(tmp_path, capsys):
    trainer = trainer_of(catena, tmp_path, (1, "epoch"))
    trainer.extend(extensions.PrintReport(["epoch", "iteration"], extensions.LogReport()))
    trainer.run()
    assert capsys.readouterr().out == (
        "epoch       iteration \n\033[J1           3           \n")
    trainer = trainer_of(catena, tmp_path)
    trainer.extend(extensions.PrintReport(["epoch"], 3))
    with pytest.raises(TypeError, match="log report has a wrong type <class 'int'>"):
        trainer.run(show_loop_exception_msg=False)


def test_before_training(tmp_path):
    trainer = trainer_of(catena, tmp_path, (1, "epoch"))
    trainer.extend(evaluator_of(catena, trainer), call_before_training=True)
    trainer.extend(extensions.LogReport(), call_before_training=True)
    trainer.run()
    first, second = trainer.get_extension("LogReport").log
    assert (first["epoch"], first["iteration"], second["iteration"]) == (0, 0, 3)
    assert "main/loss" not in first and first["validation/main/loss"] > 0


@pytest.mark.parametrize("stop", [(2, "epoch"), (5, "iteration")])
def test_progress_bar(tmp_path, stop):
    out = io.StringIO()
    trainer = trainer_of(catena, tmp_path, stop)
    trainer.extend(extensions.ProgressBar(update_interval=2, bar_length=10, out=out))
    trainer.run()
    shown = out.getvalue().split("\033[J")
    assert shown[0] == "" and shown[-1] == "" and len(shown) == 4
    lines = shown[2].split("\n")
    assert lines[0] == "     total [########..] 80.00%"
    assert lines[1] == "this epoch [######....] 60.00%"
    assert lines[2] == f"         4 iter, 1 epoch / {stop[0]} {stop[1]}s"
    assert "iters/sec. Estimated time to finish: 0:00:0" in lines[3]
    assert lines[4] == "\033[4A"


def test_progress_bar_with_a_length(tmp_path):
    out = io.StringIO()
    trainer = trainer_of(catena, tmp_path, stop=lambda trainer: trainer.updater.iteration == 1)
    trainer.extend(extensions.ProgressBar((4, "iteration"), update_interval=1, out=out))
    trainer.run()
    assert "25.00%" in out.getvalue()
    line = out.getvalue().split("\n")[3]
    speed = float(line.split(" iters/sec")[0])  # since the training began
    assert 0 < speed < float("inf") and "unknown" not in line


def test_the_speed_of_a_progress_bar_is_finite(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 5.0)  # a clock that has not advanced
    bar = extensions.util.ProgressBar(out=io.StringIO())
    speed = bar.update_speed(1, 0.5)[0]
    assert bar.speed(speed, float("inf")) == "   unknown iters/sec. Estimated time to finish: unknown.\n"


def test_evaluator(package, tmp_path, capsys):
    trainer = trainer_of(package, tmp_path)
    hooked = []
    evaluator = evaluator_of(package, trainer, eval_hook=hooked.append, progress_bar=True)
    evaluator.name = "test"
    with package.Reporter() as nothing:
        result = evaluator()
    assert nothing is None and hooked == [evaluator]
    assert set(result) == {"test/main/loss", "test/main/accuracy"}
    assert result["test/main/loss"] > 0 and 0 <= result["test/main/accuracy"] <= 1
    assert evaluator() == result  # the iterator starts again
    assert f"validation [{21 * '#'}{29 * '.'}]" in capsys.readouterr().out
    assert list(evaluator.get_all_iterators()) == list(evaluator.get_all_targets()) == ["main"]
    assert evaluator.get_iterator("main") is evaluator.get_all_iterators()["main"]
    assert evaluator.get_target("main") is trainer.updater.get_optimizer("main").target


def test_evaluator_mode(package, tmp_path):
    trainer = trainer_of(package, tmp_path)
    seen = []

    def evaluate(x, t):
        seen.append((len(x), package.config.train, package.config.enable_backprop))
        package.report({"x": len(x)})

    evaluator = evaluator_of(package, trainer, eval_func=evaluate)
    assert evaluator() == {"x": pytest.approx(7 / 3)}
    assert seen == [(3, False, False), (3, False, False), (1, False, False)]
    assert package.config.train


def test_evaluator_warns(tmp_path):
    trainer = trainer_of(catena, tmp_path)
    target = trainer.updater.get_optimizer("main").target
    with pytest.warns(UserWarning, match="The `repeat` property of the iterator main"):
        extensions.Evaluator(catena.iterators.SerialIterator([1], 1), target)


def test_evaluator_of_iterators_without_attributes(tmp_path):
    class Plain(catena.dataset.Iterator):
        n = 0

        def __next__(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration
            return [numpy.float32(self.n)]

    trainer = trainer_of(catena, tmp_path)
    target = trainer.updater.get_optimizer("main").target
    evaluator = extensions.Evaluator(
        Plain(), {"main": target}, eval_func=lambda x: catena.report({"x": x}))
    with pytest.warns(DeprecationWarning, match="does not have the reset method"):
        assert evaluator() == evaluator() == {}  # arrays that are no scalars
    with pytest.raises(TypeError, match="Iterator must have the following attributes"):
        extensions.Evaluator(Plain(), target, progress_bar=True)()


def test_fail_on_non_number(package, tmp_path):
    trainer = trainer_of(package, tmp_path)
    trainer.extend(package.training.extensions.FailOnNonNumber())
    target = trainer.updater.get_optimizer("main").target

    @trainer.extend
    def spoil(trainer):
        if trainer.updater.iteration == 2:
            target.predictor.l2.b.array[1] = numpy.inf

    with pytest.raises(RuntimeError, match="Kill the process since parameters in optimizer 'main'"):
        trainer.run(show_loop_exception_msg=False)
    assert trainer.updater.iteration == 3


@pytest.mark.parametrize("kwargs", [
    {}, {"report_grads": False, "prefix": "p"}, {"statistics": None},
    {"statistics": {"sum": lambda x: x.sum()}, "report_params": False,
     "trigger": (3, "iteration")}])
def test_parameter_statistics(tmp_path, kwargs):
    chainer = pytest.importorskip("chainer")
    found = []
    for package in (catena, chainer):
        trainer = trainer_of(package, tmp_path)
        target = trainer.updater.get_optimizer("main").target
        e = package.training.extensions
        statistics = e.ParameterStatistics(target.predictor, **kwargs)
        statistics.register_statistics("first", lambda x: x[0])
        trainer.extend(statistics)
        trainer.extend(e.LogReport())
        trainer.run()
        found.append(trainer.get_extension("LogReport").log)
    assert any("first" in name for entry in found[0] for name in entry)
    for ours, theirs in zip(*found):
        assert list(ours) == list(theirs)
        for name in set(ours) - {"elapsed_time"}:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-5), name


def test_parameter_statistics_with_nan(tmp_path):
    trainer = trainer_of(catena, tmp_path, (1, "iteration"))
    target = trainer.updater.get_optimizer("main").target
    trainer.extend(extensions.ParameterStatistics(
        [target.predictor.l1], {"mean": lambda x: x.mean() + 1}, report_grads=False,
        trigger=(1, "iteration"), skip_nan_params=True))

    @catena.training.make_extension(priority=1000)
    def spoil(trainer):
        target.predictor.l1.b.array[0] = numpy.nan

    trainer.extend(spoil)
    trainer.run()
    assert numpy.isnan(trainer.observation["l1/b/data/mean"])
    assert trainer.observation["l1/W/data/mean"] > 0


def test_unchain_variables(package, tmp_path):
    trainer = trainer_of(package, tmp_path, (2, "iteration"))
    trainer.extend(package.training.extensions.unchain_variables())
    with package.using_config("keep_graph_on_report", True):
        trainer.run()
    assert trainer.observation["main/loss"].creator is None
    with package.using_config("keep_graph_on_report", True):
        trainer = trainer_of(package, tmp_path, (2, "iteration"))
        trainer.run()
        assert trainer.observation["main/loss"].creator is not None


def test_dump_graph(tmp_path):
    trainer = trainer_of(catena, tmp_path, (2, "iteration"))
    trainer.extend(extensions.dump_graph("main/loss"))
    trainer.run()
    text = (tmp_path / "cg.dot").read_text()
    assert text.startswith("digraph") and "octagon" in text and "#6495ED" in text
    assert not catena.config.keep_graph_on_report
    trainer = trainer_of(catena, tmp_path)
    trainer.extend(extensions.DumpGraph("lr", filename="b.dot"))
    trainer.extend(extensions.observe_value("lr", lambda trainer: 3), trigger=(1, "iteration"))
    with pytest.raises(TypeError, match="root value is not a Variable"):
        trainer.run(show_loop_exception_msg=False)
    trainer = trainer_of(catena, tmp_path)
    trainer.extend(extensions.DumpGraph("main/loss"), priority=1)
    trainer.extend(lambda trainer: 1 / 0, name="fails", trigger=(1, "iteration"))
    with pytest.raises(ZeroDivisionError):
        trainer.run(show_loop_exception_msg=False)
    # The thread has no entry of its own afterwards.
    catena.global_config.keep_graph_on_report = True
    try:
        assert catena.config.keep_graph_on_report
    finally:
        catena.global_config.keep_graph_on_report = False


def test_plot_report(tmp_path):
    pytest.importorskip("matplotlib")
    trainer = trainer_of(catena, tmp_path)
    seen = []
    trainer.extend(extensions.PlotReport(
        ["main/loss", "none"], "epoch", file_name="a.png",
        postprocess=lambda figure, axes, summary: seen.append(axes.get_xlabel())))
    trainer.extend(extensions.PlotReport("main/loss", trigger=(2, "iteration")))
    trainer.run()
    assert seen == ["epoch"] * 3
    for name in ("a.png", "plot.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_plot_report_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it fails
    trainer = trainer_of(catena, tmp_path)
    with pytest.warns(UserWarning, match="matplotlib is not installed"):
        plot = extensions.PlotReport("main/loss")
        assert not plot.available()
        trainer.extend(plot)
        trainer.run()
    state = serializers.serialize(plot)
    assert len(json.loads(str(state["_plot_plot.png"]))["main/loss"]) == 3


def test_output_of_another_stream(tmp_path, monkeypatch):
    out = io.StringIO()
    report = extensions.PrintReport(["epoch"], extensions.LogReport())
    monkeypatch.setattr(sys, "stdout", out)
    trainer = trainer_of(catena, tmp_path, (1, "epoch"))
    trainer.extend(report)
    trainer.run()
    assert out.getvalue().startswith("epoch")


@pytest.mark.parametrize("options", [
    {}, {"plot_mean": False}, {"plot_std": False, "report_grad": False}, {"percentile_sigmas": ()},
    {"percentile_sigmas": 50, "report_data": False}, {"percentile_sigmas": (10, 90), "grid": False}])
def test_statistics_plot(tmp_path, options):
    pytest.importorskip("matplotlib").use("agg")
    trainer = trainer_of(catena, tmp_path, (4, "iteration"))
    model = trainer.updater.get_optimizer("main").target
    plot = extensions.VariableStatisticsPlot(
        model, max_sample_size=3, trigger=(2, "iteration"), filename="plot.png", **options)
    trainer.extend(plot, trigger=(1, "iteration"))
    trainer.run()
    assert (tmp_path / "plot.png").stat().st_size > 5000
    idxs, data = plot._samples.get_data()
    assert len(idxs) == 3 and set(idxs) <= {1, 2, 3, 4} and list(idxs) == sorted(idxs)
    if not options and idxs[-1] == 4:
        values = numpy.concatenate([each.array.ravel() for each in model.params()])
        numpy.testing.assert_allclose(data[-1, 0, :3], [values.mean(), values.std(), values.min()],
                                      rtol=1e-4, atol=1e-6)


def test_reservoir():
    """All numbers have the same probability, and each keeps its array."""
    module = extensions.variable_statistics_plot
    counts = numpy.zeros(12)
    numpy.random.seed(0)
    for _ in range(2000):
        reservoir = module.Reservoir(3, (2,))
        for i in range(12):
            reservoir.add(numpy.full(2, i), i)
        idxs, data = reservoir.get_data()
        numpy.testing.assert_array_equal(data[:, 0], idxs)
        counts[idxs] += 1
    assert abs(counts - 500).max() < 100  # five standard deviations; the seed is fixed
    few = module.Reservoir(3, ())
    few.add(1.5)
    assert [list(each) for each in few.get_data()] == [[0], [1.5]]


def test_statistics():
    statistician = extensions.variable_statistics_plot.Statistician(True, True, (0, 50, 100))
    x = numpy.random.uniform(-1, 1, (2, 7, 3))
    found = statistician(x, axis=None)
    numpy.testing.assert_allclose(found["mean"], x.mean())
    numpy.testing.assert_allclose(found["std"], x.std())
    numpy.testing.assert_allclose(found["percentile"], [x.min(), numpy.median(x), x.max()])


def test_wrong_statistics_plots():
    variable = catena.Variable(numpy.zeros(2, "float32"))
    for arguments, options, error, message in [
            ([], {}, ValueError, "at least one variable"), (3, {}, TypeError, "got <class 'int'>"),
            (variable, {"plot_mean": False, "plot_std": False, "percentile_sigmas": ()}, ValueError,
             "neither plot_mean"),
            (variable, {"report_data": False, "report_grad": False}, ValueError, "got neither")]:
        with pytest.raises(error, match=message):
            extensions.VariableStatisticsPlot(arguments, **options)


def test_removed_arguments(package):
    with pytest.raises(ValueError, match="invoke_before_training"):
        package.training.make_extension(invoke_before_training=True)
    trainer = trainer_of(package, "result")
    with pytest.raises(ValueError, match="invoke_before_training"):
        trainer.extend(lambda trainer: None, name="f", invoke_before_training=True)
    with pytest.raises(TypeError, match="got unexpected keyword argument.*foo"):
        package.training.make_extension(foo=1)


def test_matplotlib_that_cannot_be_imported(monkeypatch):
    """available() says what an import says, for example without one of matplotlib's own packages."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.warns(UserWarning, match="matplotlib is not installed"):
        assert not extensions.PlotReport.available()


def test_snapshot_files(tmp_path, package):
    """Helpers that Chainer's documents use to find snapshots."""
    module = importlib.import_module(f"{package.__name__}.training.extensions._snapshot")
    for i in range(4):
        file = tmp_path / f"snap_{i}.npz"
        file.touch()
        os.utime(file, (100 - i, 100 - i))
    (tmp_path / "other").touch()
    arguments = "snap_{.updater.iteration}.npz", str(tmp_path)
    assert module._find_latest_snapshot(*arguments) == "snap_0.npz"
    assert module._find_latest_snapshot("none_{}", str(tmp_path)) is None
    assert list(module._find_stale_snapshots(*arguments, 1)) == ["snap_3.npz", "snap_2.npz", "snap_1.npz"]
    assert list(module._find_stale_snapshots(*arguments, 9)) == []
