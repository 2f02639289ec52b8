"""Tests of the types that type checkers see. `python test_stubs.py FOLDER` writes functions/_forms.pyi."""
import ast
import inspect
import pathlib
import sys

import catena
from catena import _core

HEADER = """# Types of the host SDK's functions. Written by test_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any

from catena import Variable
from catena._core import ArrayLike

"""
PACKAGE = pathlib.Path(catena.__file__).parent


def forms():
    return HEADER + _core.forms._stubs


def declared(file):
    """The parameters of each function in a stub: names and defaults."""
    for function in ast.parse(file.read_text()).body:
        if isinstance(function, ast.FunctionDef):
            arguments, defaults = function.args.args, function.args.defaults
            without = [inspect.Parameter.empty] * (len(arguments) - len(defaults))
            yield function.name, [(a.arg, d) for a, d in zip(
                arguments, without + [ast.literal_eval(d) for d in defaults])]


def test_forms_are_up_to_date():
    assert (PACKAGE / "functions/_forms.pyi").read_text() == forms()


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
        if not isinstance(each, ast.ClassDef) or each.name.startswith("_"):
            continue
        real = getattr(_core, each.name)
        for member in each.body:
            name = (member.name if isinstance(member, ast.FunctionDef) else
                    member.target.id if isinstance(member, ast.AnnAssign) else None)
            if name not in (None, "__iter__"):  # from __getitem__
                assert hasattr(real, name), f"{each.name}.{name}"


if __name__ == "__main__":
    (pathlib.Path(sys.argv[1]) / "functions/_forms.pyi").write_text(forms())
