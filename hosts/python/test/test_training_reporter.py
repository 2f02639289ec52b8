"""Reporter and summaries."""
import threading

import numpy
import pytest

import catena
from catena import serializers

PACKAGES = ["catena", "chainer"]


@pytest.fixture(params=PACKAGES)
def package(request):
    return pytest.importorskip(request.param)


def test_observers(package):
    reporter, a, b = package.Reporter(), object(), object()
    reporter.add_observer("a", a)
    reporter.add_observers("a/", [("b", b)])
    observation = {}
    with reporter.scope(observation):
        assert package.get_current_reporter() is reporter
        package.report({"x": 1})
        package.report({"x": 2, "y": 3}, a)
        package.report({"x": 4}, b)
        with package.report_scope({}) as nothing:
            package.report({"x": 5})
        assert nothing is None
        with pytest.raises(KeyError, match="Given observer is not registered"):
            package.report({"x": 6}, object())
    assert observation == {"x": 1, "a/x": 2, "a/y": 3, "a/b/x": 4}
    assert reporter.observation == {}
    package.report({"x": 7})  # nobody listens
    with pytest.raises(IndexError):
        package.get_current_reporter()


def test_scopes_end_with_exceptions():
    reporter = catena.Reporter()
    with pytest.raises(RuntimeError):
        with reporter:
            try:
                with catena.report_scope({}):
                    raise ValueError
            except ValueError:
                catena.report({"x": 1})
                raise RuntimeError from None
    assert reporter.observation == {"x": 1}
    with pytest.raises(IndexError):
        catena.get_current_reporter()


def test_reporters_of_threads():
    found = []
    with catena.Reporter():
        thread = threading.Thread(target=lambda: found.append(catena.report({"x": 1})))
        thread.start()
        thread.join()
        assert catena.get_current_reporter().observation == {}
    assert found == [None]


def test_graphs(package):
    x = package.Variable(numpy.ones(3, "float32"), name="x")
    reporter = package.Reporter()
    with reporter:
        y = x + 1
        package.report({"x": x, "y": y})
        with package.using_config("keep_graph_on_report", True):
            package.report({"kept": y})
    assert reporter.observation["y"].creator is None
    assert reporter.observation["x"].name == "x"
    assert reporter.observation["x"].array is not None
    assert reporter.observation["kept"] is y


VALUES = [
    [1.5, 2, 4], [numpy.float32(0.1)] * 3, [numpy.array(x, "float16") for x in (1, 2, 5)],
    [numpy.array(0.1, "float64"), 3], [True, 2.0]]


@pytest.mark.parametrize("values", VALUES, ids=str)
@pytest.mark.parametrize("weights", [None, [1, 2, 3], [0.5, numpy.array(0.25, "float32"), 1]])
def test_summary(values, weights):
    chainer = pytest.importorskip("chainer")
    ours, theirs = catena.reporter.Summary(), chainer.reporter.Summary()
    for i, value in enumerate(values):
        keywords = {} if weights is None else {"weight": weights[i]}
        ours.add(value, **keywords)
        theirs.add(value, **keywords)
    # Chainer multiplies numbers of float32 in float32.
    assert ours.compute_mean() == pytest.approx(float(theirs.compute_mean()), rel=1e-7)
    mean, std = ours.make_statistics()
    assert mean == ours.compute_mean()
    expected = float(numpy.sqrt(max(theirs._x2 / theirs._n - (theirs._x / theirs._n) ** 2, 0)))
    assert std == pytest.approx(expected, rel=1e-6, abs=1e-5)


def test_summary_copies_values():
    value = numpy.array(1.0)
    summary = catena.reporter.Summary()
    summary.add(value)
    value[...] = 5
    summary.add(value)
    assert summary.compute_mean() == 3


def test_long_summary():
    summary = catena.reporter.Summary()
    for i in range(3000):
        summary.add(i)
    assert summary.compute_mean() == 1499.5


def test_dictionary(package):
    summary = package.DictSummary()
    variable = package.Variable(numpy.array(2.0, "float32"))
    summary.add({"a": 1, "b": numpy.array(3.0), "text": [1], "c": (1.0, 3), "v": variable})
    summary.add({"a": 2, "b": numpy.array([1, 2]), "c": (5.0, numpy.array(1.0)), "none": None})
    summary.add({"c": (1, package.Variable(numpy.array(0.0)))})
    means = summary.compute_mean()
    assert {key: float(value) for key, value in means.items()} == {
        "a": 1.5, "b": 3.0, "c": 2.0, "v": 2.0}
    statistics = summary.make_statistics()
    assert set(statistics) == {"a", "a.std", "b", "b.std", "c", "c.std", "v", "v.std"}
    assert statistics["a.std"] == 0.5
    with pytest.raises(ValueError, match="Given weight to a was not scalar"):
        summary.add({"a": (1, [2])})


def test_serialize(tmp_path):
    summary = catena.DictSummary()
    values = numpy.random.RandomState(0).uniform(size=20).astype("float32")
    for value in values[:7]:
        summary.add({"a": value, "name/with slash": (2 * value, 0.3)})
    serializers.save_npz(tmp_path / "state", summary)
    other = catena.DictSummary()
    other.add({"old": 3})
    serializers.load_npz(tmp_path / "state", other)
    assert other.compute_mean() == summary.compute_mean()
    for value in values[7:]:
        for each in (summary, other):
            each.add({"a": value})
    assert other.make_statistics() == summary.make_statistics()


def test_snapshots_of_chainer(tmp_path):
    chainer = pytest.importorskip("chainer")
    theirs, ours = chainer.DictSummary(), catena.DictSummary()
    theirs.add({"a": 2.5, "b": (1.0, 4)})
    theirs.add({"a": 1.0})
    chainer.serializers.save_npz(str(tmp_path / "state"), theirs)
    serializers.load_npz(tmp_path / "state", ours)
    assert ours.compute_mean() == theirs.compute_mean()


def test_missing_state():
    with pytest.warns(UserWarning, match="The names of statistics are not saved"):
        serializers.NpzDeserializer({}).load(catena.DictSummary())
    with pytest.warns(UserWarning, match="The previous statistics are not saved"):
        serializers.NpzDeserializer({}).load(catena.reporter.Summary())
