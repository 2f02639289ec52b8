"""Absurd numbers as attributes of all functions: an error or a result, never a hang or a crash.

The calls are made in a process with little memory, whose limit of CPU time ends endless loops.
"""
import inspect
import os
import resource
import subprocess
import sys

import catena
import catena.functions as F
import numpy as np
import pytest

import function_cases

extremes = [0, -1, 2**31, 2**32, 2**62, 2**63 - 1, -2**63, 2**64, float("nan"), float("inf"),
            -float("inf"), 1e308]
memory = 4 << 30
cpu_seconds = 1200  # all calls need less than 60
# Classes of errors that say what is wrong. MemoryError is not among them: OutOfMemoryError is.
clear = (catena.Error, IndexError, KeyError, NotImplementedError, OverflowError, TypeError,
         ValueError)


def is_attribute(value):
    return value is None or isinstance(value, (int, float)) or (
        isinstance(value, tuple) and all(isinstance(each, int) for each in value))


def variants(value):
    """Extreme numbers in place of a value, or of one or all elements of a tuple."""
    for extreme in extremes:
        yield extreme
        if isinstance(value, tuple) and value:
            for i in range(len(value)):
                yield value[:i] + (extreme,) + value[i + 1:]
            yield (extreme,) * len(value)


def cases_by_name():
    found = {}
    for cases in vars(function_cases).values():
        for case in cases if isinstance(cases, list) else []:
            if isinstance(case, function_cases.Case):
                found.setdefault(case.name, []).append(case)
    return found


def made(value, random=np.random.RandomState(0)):
    if isinstance(value, function_cases.Input):
        return value.make("float32", random)
    if isinstance(value, (list, tuple)):
        return type(value)(map(made, value))
    return value


def arguments_of(function, signature, cases):
    """Arguments of calls that succeed: those of the cases, else arrays and 3."""
    for case in cases[:3]:
        arguments = {key: made(value) for key, value in case.kwargs.items()}
        yield dict(signature.bind(*map(made, case.args), **arguments).arguments)
    if cases:
        return
    required = [each.name for each in signature.parameters.values()
                if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL,
                                                                    each.VAR_KEYWORD)]
    for shape in [(2, 3), (2, 2, 4), (1, 2, 4, 4)]:
        for mask in range(2**min(len(required), 4)):
            arguments = {name: 3 if mask >> i & 1 else np.ones(shape, "f")
                         for i, name in enumerate(required)}
            try:
                function(**arguments)
            except Exception:  # the function takes others
                continue
            yield arguments


def all_calls():
    """(name of the function, name of the attribute, its value, the call)"""
    cases = cases_by_name()
    for name in dir(F):
        function = getattr(F, name)
        if inspect.isclass(function) or name.startswith("plugin_"):
            continue
        try:
            signature = inspect.signature(function)
        except ValueError:
            continue
        for arguments in arguments_of(function, signature, cases.get(name, [])):
            for parameter in signature.parameters.values():
                value = arguments.get(parameter.name, parameter.default)
                if (parameter.kind == parameter.VAR_KEYWORD or not is_attribute(value)
                        or parameter.name.startswith("running_")):  # arrays
                    continue
                for variant in variants(value):
                    bound = signature.bind_partial()
                    bound.arguments.update({**arguments, parameter.name: variant})
                    ordered = [each for each in signature.parameters if each in bound.arguments]
                    bound.arguments = {each: bound.arguments[each] for each in ordered}
                    yield name, parameter.name, variant, lambda: by_name(function, bound)


def by_name(function, bound):
    positional, named = [], {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind == inspect.Parameter.VAR_POSITIONAL:
            positional += value
        elif kind == inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        elif kind == inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[name] = value
    return function(*positional, **named)


def make_all_calls():
    catena.Device("cpu:0").threads = 2  # the limit holds for their stacks as well
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    functions, n = set(), 0
    for name, attribute, value, call in all_calls():
        print(f"{name}({attribute}={value!r})", flush=True)
        functions.add(name)
        n += 1
        try:
            call()
        except clear:
            pass
        except Exception as error:
            if str(error).startswith(f"[{name}] ") or "batch_normalization] axis" in str(error):
                continue
            print(f"unclear: {name}({attribute}={value!r}): {type(error).__name__}: {error}",
                  file=sys.stderr)
    print(f"{n} calls of {len(functions)} functions")


@pytest.mark.skipif("san.so" in os.environ.get("LD_PRELOAD", ""),
                    reason="sanitizers reserve more address space than the limit")
def test_absurd_attributes_of_all_functions():
    # OpenBLAS reserves address space for each of its threads.
    done = subprocess.run([sys.executable, "-W", "ignore", __file__], text=True, capture_output=True,
                          env={**os.environ, "OMP_NUM_THREADS": "2"})
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"ended by {done.returncode} in {last}: {done.stderr[-3000:]}"
    calls, functions = (int(word) for word in last[0].split() if word.isdigit())
    assert calls > 10000 and functions > 120, last
    assert done.stderr == ""


@pytest.mark.parametrize("call, message", [
    (lambda x: F.alibi(2**63 - 1, 3, 3), r"\[catena.alibi\] attribute 'heads': expected 1 to 1048576"),
    (lambda x: F.rotary_tables(8, 2**32), r"\[catena.rotary_tables\] attribute 'size': expected 2 to 1048576"),
    (lambda x: F.spatial_pyramid_pooling_2d(x, 2**62, "max"), "pyramid_height': expected 1 to 16"),
    (lambda x: F.bias(x, x, axis=2**30), r"\[catena.bias\] axis: expected one of x"),
    (lambda x: F.scale(x, x, axis=-1), r"\[catena.scale\] axis: expected one of x"),
    (lambda x: F.pad(x, 2**63 - 1, "edge"), "pad_width: expected extents below"),
    (lambda x: F.im2col(x, 1, 0), "stride': expected 1 to .*, got .0"),
    (lambda x: F.unpooling_2d(x, 0), "ksize': expected 1 to .*, got .0"),
    (lambda x: F.depth2space(x, 0), "r': expected 1 to .*, got 0"),
    (lambda x: F.resize_images(x, (0, 3)), "output_shape': expected 1 to .*, got .0, 3")])
def test_messages_for_absurd_attributes(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((1, 1, 4, 4), "f"))


if __name__ == "__main__":
    make_all_calls()
