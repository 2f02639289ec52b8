"""The names and signatures of the manual of Chainer 1.0.1; see reference/README.md."""
import inspect
import pathlib
import sys

import numpy as np
import pytest

import catena

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "reference"))
import names  # noqa: E402
from blocks import BLOCKS  # noqa: E402
from checks import gpus, uniform  # noqa: E402, F401


@pytest.mark.parametrize("owner", names.NAMES)
def test_names_of_the_manual(owner):
    for name in names.NAMES[owner].split():
        absent = f"{owner}.{name}" in names.ABSENT
        assert hasattr(getattr(catena, owner), name) != absent, name


def test_manual_2_2_1_random_numbers(gpus):
    cuda, F = catena.cuda, catena.functions
    x = catena.Variable(cuda.ones(100))

    def dropped(seed):
        cuda.seed(seed)
        return cuda.to_cpu(F.dropout(x).data)
    np.testing.assert_array_equal(dropped(1), dropped(1))
    for other in [2, None, None]:
        assert (dropped(1) != dropped(other)).any()


def test_manual_2_2_1_arrays(gpus):
    cuda = catena.cuda
    x = cuda.to_gpu_async(uniform(2, 3))
    assert isinstance(x, cuda.GPUArray) and x.device == cuda.get_device(x) == cuda.Device(0)
    there = cuda.copy_async(x, out_device=1)
    assert there.device == cuda.get_device(1)
    for array in [there, cuda.copy(x), cuda.copy(x, out=cuda.empty_like(x))]:
        np.testing.assert_array_equal(cuda.to_cpu_async(array), cuda.to_cpu(x))
    for name, value in [("zeros", 0), ("ones", 1)]:
        for array in [getattr(cuda, name)((2, 3)), getattr(cuda, name + "_like")(x)]:
            assert array.dtype == np.float32 and array.device == x.device
            np.testing.assert_array_equal(cuda.to_cpu(array), np.full((2, 3), value))
    np.testing.assert_array_equal(cuda.to_cpu(cuda.full_like(x, 3)), cuda.to_cpu(cuda.full((2, 3), 3)))
    for shape, dtype in [((0, 2), "int32"), ((), "float64")]:
        array = cuda.empty(shape, dtype)
        assert array.shape == shape and array.dtype == dtype


@pytest.mark.parametrize("number", [66, 67, 68, 69, 70])
def test_signatures(number):
    """The printed signatures accept the same calls; arguments that Chainer 7 removed are refused."""
    printed = BLOCKS["manual"][number].code.strip().removeprefix("class ")
    name, arguments = printed.rstrip(")").split("(", 1)
    if number == 70:
        name = "chainer.functions.BatchNormalization.forward"  # which __call__() calls
    found = catena
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    found = inspect.signature(found).parameters
    for argument in " ".join(arguments.split()).split(", "):
        argument, _, default = argument.partition("=")
        if argument == "use_cudnn":  # Chainer 7 has another option with this number
            continue
        assert argument in found
        if default:
            assert found[argument].default == eval(default)
