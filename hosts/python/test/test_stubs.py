"""Tests of the types that type checkers see."""
import ast
import importlib
import inspect
import pathlib

import pytest

import catena
from catena import _core, _members

PACKAGE = pathlib.Path(catena.__file__).parent


def declared(file):
    """The parameters of each function in a stub: names and defaults."""
    for function in ast.parse(file.read_text()).body:
        if isinstance(function, ast.FunctionDef):
            arguments, defaults = function.args.args, function.args.defaults
            without = [inspect.Parameter.empty] * (len(arguments) - len(defaults))
            yield function.name, [(a.arg, d) for a, d in zip(
                arguments, without + [ast.literal_eval(d) for d in defaults])]


def test_public_names_are_in_all():
    """Type checkers take the names in __all__ as public. The modules are imported besides."""
    found = {name for name, value in vars(catena).items()
             if not name.startswith("_") and not inspect.ismodule(value)}
    assert found - {"TYPE_CHECKING"} - set(catena.__all__) == set()
    assert [name for name in catena.__all__ if not hasattr(catena, name)] == []


def test_stubs_of_forms_are_their_signatures():
    stubs = dict(declared(PACKAGE / "functions/_forms.pyi"))
    real = {name: [(p.name, p.default) for p in inspect.signature(form).parameters.values()]
            for name, form in vars(_core.forms).items() if not name.startswith("_")}
    assert stubs == real


def test_functions_have_types():
    """What functions/__init__.pyi takes from the modules and other stubs is what dir() finds."""
    names = set()
    for each in ast.parse((PACKAGE / "functions/__init__.pyi").read_text()).body:
        stub = PACKAGE.parent / (each.module.replace(".", "/") + ".pyi")
        names |= ({each.names[0].name} if each.names[0].name != "*" else
                  {name for name, _ in declared(stub)} if stub.exists() else
                  set(importlib.import_module(each.module).__all__))
    functions = catena.functions
    assert set(dir(functions)) - names == set()
    assert [name for name in names if not hasattr(functions, name)] == []


def test_stubs_of_plugin_functions_are_their_signatures():
    """catena-inspect writes the stubs, and the extension module the signatures."""
    count = 0
    for name, parameters in declared(PACKAGE / "_plugin_functions.pyi"):
        signature = inspect.signature(_core.plugin_function("catena." + name))
        real = [(p.name, p.default) for p in signature.parameters.values()]
        assert real == parameters, name
        count += 1
    assert count > 40


def test_stubs_of_the_extension_module_name_what_it_has():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            assert hasattr(_core, each.name), each.name
        if not isinstance(each, ast.ClassDef) or each.name == "_SupportsDLPack":
            continue
        names = {name.id for member in each.body if isinstance(member, ast.Assign) for name in member.targets}
        names |= {member.name for member in each.body if isinstance(member, ast.FunctionDef)}
        names |= {member.target.id for member in each.body if isinstance(member, ast.AnnAssign)}
        for owner in ["Array", "Variable"] if each.name == "_Operators" else [each.name]:
            for name in names - {"__iter__"}:  # from __getitem__
                assert hasattr(getattr(_core, owner), name), f"{owner}.{name}"


@pytest.mark.parametrize("name", ["Array", "Device", "Variable", "VariableNode"])
def test_types_of_the_extension_module_have_the_members_written_in_python(name):
    real, written = getattr(_core, name), getattr(_members, name)
    found = [each for each in vars(written) if vars(real).get(each) is vars(written)[each]]
    assert len(found) > 2 and "__doc__" not in found and "__weakref__" not in found
