"""The graph of variables and calls, compared with Chainer's."""
import numpy
import pytest

import catena
from catena.computational_graph import build_computational_graph


def outputs_of(package):
    F = package.functions
    x = package.Variable(numpy.ones((2, 3), "float32"), name="x")
    y = package.Variable(numpy.ones((2, 3), "float32"))
    z = F.tanh(x + y)
    return z * x, F.sum(z)


@pytest.fixture(params=["catena", "chainer"])
def package(request):
    package = pytest.importorskip(request.param)
    if request.param == "chainer":
        pytest.importorskip("chainer.computational_graph")
    return package


@pytest.mark.parametrize("n, nodes, edges, variables", [(1, 8, 8, 5), (2, 10, 10, 6)])
def test_same_as_chainer(package, n, nodes, edges, variables):
    build = package.computational_graph.build_computational_graph
    graph = build(list(outputs_of(package)[:n]))
    assert (len(graph.nodes), len(graph.edges)) == (nodes, edges)
    text = graph.dump()
    assert text.startswith("digraph graphname{rankdir=TB;") and text.endswith(";}")
    assert text.count("->") == edges and text.count("octagon") == variables
    assert 'label="x: (2, 3), float32"' in text
    # Edges between functions only.
    text = build(list(outputs_of(package)[:n]), remove_variable=True, rankdir="LR").dump()
    assert "rankdir=LR" in text and "float32" not in text


def test_styles():
    graph = build_computational_graph(
        outputs_of(catena)[0], variable_style={"shape": "star"}, function_style=None,
        show_name=False)
    text = graph.dump()
    assert 'shape="star"' in text and 'shape="box"' in text and "x:" not in text
    assert build_computational_graph(outputs_of(catena)[0], remove_variable=True).dump().count(
        "->") == 2
    x = catena.Variable(numpy.ones(1, "float32"), name='say "x"')
    assert r"say \"x\"" in build_computational_graph(x + 1).dump()
    y = x * 2
    assert len(build_computational_graph([y.node, y.creator]).nodes) == 3


def test_wrong_arguments(package):
    build = package.computational_graph.build_computational_graph
    with pytest.raises(TypeError, match="element of outputs must be either"):
        build([3])
    with pytest.raises(ValueError, match="rankdir must be in"):
        build(outputs_of(package)[0], rankdir="UP")
    with pytest.raises(ValueError, match="remove_split=False is not supported"):
        build(outputs_of(package)[0], remove_split=False)
    with pytest.raises(NotImplementedError, match="only dot format is supported"):
        build(outputs_of(package)[0]).dump("svg")
