"""Test classes that are made from one class and many parameters."""
import functools
import itertools
import sys
import types
from typing import Any


def from_pytest_parameterize(names, values) -> Any:
    """``("a,b", [(1, 2)])`` as ``[{"a": 1, "b": 2}]``."""
    names = names.split(",")
    return [dict(zip(names, [each] if len(names) == 1 else each)) for each in values]


def product(parameter) -> Any:
    """All combinations: of ``{"a": [1, 2], "b,c": [(3, 4)]}``, or of the dicts in several lists."""
    if isinstance(parameter, dict):
        return product_dict(*itertools.starmap(from_pytest_parameterize, sorted(parameter.items())))
    if not isinstance(parameter, list):
        raise TypeError(f"[product] parameter: expected a dict or a list, got {type(parameter)}")
    if not all(isinstance(each, list) and all(isinstance(one, dict) for one in each)
               for each in parameter):
        raise TypeError("[product] parameter: expected lists of dicts")
    return product_dict(*parameter)


def product_dict(*parameters) -> Any:
    """All combinations of a dict from each list."""
    return [{key: value for each in found for key, value in each.items()}
            for found in itertools.product(*parameters)]


_product_dict_orig = product_dict  # Chainer's conftest.py replaces the other name


class _Bundle:
    """The test classes that parameterize() made from one, in the module's place of that one."""

    def __init__(self, cases) -> None:
        self.cases = cases


def each_class(decorator) -> Any:
    """Lets a decorator of classes take the result of parameterize()."""
    @functools.wraps(decorator)
    def decorate(target):
        if not isinstance(target, _Bundle):
            return decorator(target)
        for cls in target.cases:
            setattr(sys.modules[cls.__module__], cls.__name__, decorator(cls))
        return target
    return decorate


def parameterize(*params) -> Any:
    """A decorator that makes a test class for each dict of attributes."""
    def decorate(target):
        made = []
        for cls in target.cases if isinstance(target, _Bundle) else [target]:
            module = sys.modules[cls.__module__]
            for i, values in enumerate(params):
                name = f"{cls.__name__}_param_{i}"
                attributes = {
                    key: staticmethod(value) if isinstance(value, types.FunctionType) else value
                    for key, value in values.items()}
                made.append(type(name, (cls,), {**attributes, "__module__": cls.__module__,
                                                "__doc__": f"{values}"}))
                setattr(module, name, made[-1])
            vars(module).pop(cls.__name__, None)
        return _Bundle(made)
    return decorate


def parameterize_pytest(names, values) -> Any:
    """parameterize() with the arguments of ``pytest.mark.parametrize()``."""
    return parameterize(*from_pytest_parameterize(names, values))
