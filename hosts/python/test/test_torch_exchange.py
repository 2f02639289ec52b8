"""Arrays and PyTorch's tensors that share memory."""
import ctypes
import gc

import pytest

torch = pytest.importorskip("torch")

import catena
import numpy
from test_dlpack import Versioned, api_of

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64,
          torch.uint8, torch.bool]


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_directions(dtype):
    x = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    array = catena.from_dlpack(x)
    assert str(array.dtype) == str(dtype).split(".")[1] and array.shape == (2, 3)
    y = torch.from_dlpack(array)
    assert y.dtype == dtype and y.data_ptr() == x.data_ptr() and torch.equal(x, y)
    variable = catena.Variable(x)
    assert torch.equal(torch.from_dlpack(variable._array), x)
    with torch.no_grad():
        x[0, 0] = 1
    assert y[0, 0] == 1


@pytest.mark.parametrize("make", [
    lambda x: x.t(), lambda x: x[:, ::2], lambda x: x.flip(0), lambda x: x[0, 0],
    lambda x: x[:0], lambda x: x[0].expand(3, 4), lambda x: x[1:]])
def test_layouts(make):
    x = make(torch.arange(12, dtype=torch.float64).reshape(3, 4))
    array = catena.from_dlpack(x)
    assert array.shape == tuple(x.shape)
    assert torch.equal(torch.from_dlpack(array), x)


def test_lifetimes():
    in_use = catena.Device("cpu:0").memory()["in_use"]
    x = torch.full((1000,), 5.0)
    array = catena.from_dlpack(x)
    del x
    noise = [torch.zeros(1000) for _ in range(20)]
    assert numpy.asarray(array).tolist() == [5] * 1000
    y = torch.from_dlpack(catena.functions.exp(catena.Variable(torch.zeros(100_000)))._array)
    noise += [catena.Variable(torch.zeros(100_000)) + 1 for _ in range(5)]
    assert y.eq(1).all() and len(noise) == 25
    del array, y, noise
    gc.collect()
    assert catena.Device("cpu:0").memory()["in_use"] == in_use


def test_tensors_that_require_a_gradient_are_refused():
    x = torch.ones(3, requires_grad=True)
    for use in (catena.from_dlpack, catena.Variable, catena.functions.exp):
        with pytest.raises(BufferError, match="require gradient"):
            use(x)
    assert catena.functions.exp(x.detach()).shape == (3,)


def test_other_tensors_are_refused():
    with pytest.raises(TypeError, match="expected float16, .* got"):
        catena.from_dlpack(torch.ones(3, dtype=torch.int16))
    with pytest.raises(BufferError, match="layout"):
        catena.from_dlpack(torch.ones(3, 3).to_sparse())


def test_capsules():
    x = torch.arange(3)
    capsule = torch.utils.dlpack.to_dlpack(x)  # before version 1
    assert torch.from_dlpack(catena.from_dlpack(capsule)).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="nobody has used"):
        catena.from_dlpack(capsule)
    array = catena.Array(numpy.arange(3))
    capsule = array.__dlpack__()
    assert torch.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="only be consumed once|consumed"):
        torch.from_dlpack(capsule)


def test_exchange_api_is_used(monkeypatch):
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no functions for C")

    def fail(self, **keywords):
        raise AssertionError("called")
    x = torch.arange(3.)
    monkeypatch.setattr(torch.Tensor, "__dlpack__", fail)
    array = catena.from_dlpack(x)
    assert numpy.asarray(array).ctypes.data == x.data_ptr()
    with pytest.raises(AssertionError, match="called"):
        catena.from_dlpack(x.requires_grad_())


def test_exchange_api_with_pytorch():
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no functions for C")
    ours, theirs = api_of(catena.Array), api_of(torch.Tensor)
    array = catena.Array(numpy.arange(6.).reshape(2, 3))
    managed = ctypes.POINTER(Versioned)()
    made = ctypes.py_object()
    assert ours.from_object(array, ctypes.byref(managed)) == 0
    assert theirs.to_object(managed, ctypes.byref(made)) == 0
    x = made.value
    ctypes.pythonapi.Py_DecRef(made)
    assert type(x) is torch.Tensor and x.data_ptr() == numpy.asarray(array).ctypes.data
    assert theirs.from_object(x[:, 1:], ctypes.byref(managed)) == 0
    assert ours.to_object(managed, ctypes.byref(made)) == 0
    back = made.value
    ctypes.pythonapi.Py_DecRef(made)
    assert numpy.asarray(back).tolist() == [[1, 2], [4, 5]]
