"""The functions against Chainer's: values, gradients and second derivatives in all dtypes."""
import functools
import inspect

import pytest

import catena
import catena.functions as F
from catena import _core
from catena.functions._plugins import plugins
from differential import Differences, Input, compare, mapped, numbers, random_of, run, times, with_sizes
from function_cases import cases, differences, elsewhere, rare_differences

chainer = pytest.importorskip("chainer")
pytestmark = pytest.mark.filterwarnings("ignore")
packages = functools.partial(run, chainer), functools.partial(run, catena)


def functions_of(module):
    """The names of the functions of a module."""
    return {name for name in dir(module) if not name.startswith("_")
            and callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))}


both = functions_of(chainer.functions) & functions_of(F)


@pytest.mark.parametrize("case", cases, ids=repr)
def test_function(case):
    found = []
    for dtype in case.dtypes:
        assert compare(case, "numbers", dtype, random_of(case.name), *packages, found)
    assert not found


names = {case.name for case in cases}
known = Differences(differences, rare_differences, names)


@pytest.mark.parametrize("name", sorted(names))
def test_random_calls(name):
    """Other sizes, also 0 and 1; equal numbers; infinities, NaN and both zeros."""
    random, found, compared = random_of(name), [], 0
    mine = [case for case in cases if case.name == name]
    for i in range(times(60)):
        case = mine[random.randint(len(mine))]
        case = with_sizes(case, random) if i % 5 else case
        kind = ("random", "ties", "special")[i % 3]
        compared += compare(case, kind, random.choice(case.dtypes), random, *packages, found)
    assert compared >= times(60) // 5
    known.check(name, found)


def is_adapter(name):
    """Whether it is a function of Python, beside the function of a plugin with its name."""
    function = getattr(F, name)
    return (_core._plugin_function_name(function) is None and not hasattr(_core.forms, name)
            and "catena." + name in F.plugin_function_names()
            and name not in ("add", "mean"))  # the operator, and average()


@pytest.mark.parametrize("name", sorted(filter(is_adapter, names)))
def test_adapters_call_the_function_of_the_plugin(name, monkeypatch):
    called, function = [], getattr(plugins, name)
    monkeypatch.setitem(vars(plugins), name, lambda *args, **kwargs: (
        called.append(name) or function(*args, **kwargs)))
    for case in cases:
        if case.name == name:
            args = {}
            for value in (*case.args, *case.kwargs.values()):
                mapped(value, lambda x: isinstance(x, Input) and args.setdefault(
                    x, numbers(x, case.dtypes[0], "numbers", random_of(name))))
            packages[1](case, args, case.dtypes[0], False)
    assert called


def test_known_differences_exist():
    known.check_required()


def test_number_of_functions():
    assert len(names) >= 165
    assert both - names - elsewhere == set()


@pytest.mark.parametrize("name", sorted(both))
def test_signature(name):
    """Chainer's parameters come first, with its names and defaults."""
    expected = inspect.signature(getattr(chainer.functions, name)).parameters.values()
    got = inspect.signature(getattr(F, name)).parameters
    assert getattr(F, name).__doc__
    for given, parameter in zip(got.values(), expected):
        if parameter.kind is parameter.VAR_KEYWORD:
            break
        assert given.name == parameter.name
        assert given.kind in (parameter.kind, parameter.POSITIONAL_OR_KEYWORD)
        if parameter.name == "pooling":  # Chainer refuses its default
            assert parameter.default is None
        elif parameter.default is not parameter.empty:
            # None stands for the default of an attribute.
            assert given.default == parameter.default or parameter.default is None
    assert len(got) >= len(expected) - 1
