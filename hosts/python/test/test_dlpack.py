"""Exchange of arrays with other libraries by DLPack: the protocol of Python, and that for C."""
import ctypes
import gc
import sys

import catena
import numpy
import pytest
from catena import from_dlpack

FLOATS = ["float16", "float32", "float64"]
DTYPES = FLOATS + ["int32", "int64", "uint8", "bool"]
CPU = (1, 0)


def address(array):
    return numpy.asarray(array).ctypes.data


def sample(dtype, shape=(2, 3)):
    return (numpy.arange(numpy.prod(shape, dtype=int)) % 5).reshape(shape).astype(dtype)


# ---- DLPack's structures


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", Deleter), ("flags", ctypes.c_uint64),
                ("tensor", Tensor)]


NAMES = {Managed: b"dltensor", Versioned: b"dltensor_versioned"}
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype = ctypes.c_char_p
name_of.argtypes = [ctypes.py_object]


def contents(capsule):
    kind = Versioned if name_of(capsule).endswith(b"versioned") else Managed
    return kind.from_address(pointer_of(capsule, name_of(capsule)))


class Producer:
    """Another library's array, which counts how often its memory is freed."""

    alive = []  # the structures are part of the object, so it must outlive its users

    def __init__(self, array, kind=Versioned, strides=True, **fields):
        self.array, self.kind = array, kind
        self.freed, self.asked = [], []
        self.alive.append(self)
        ndim, item = array.ndim, array.itemsize
        self.shape = (ctypes.c_int64 * ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * ndim)(*[s // item for s in array.strides])
        self.managed = managed = kind()
        if kind is Versioned:
            managed.major, managed.minor = 1, 0
        tensor = managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data, CPU[0], ndim
        tensor.code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[array.dtype.kind]
        tensor.bits, tensor.lanes = item * 8, 1
        tensor.shape = self.shape
        if strides:
            tensor.strides = self.strides
        managed.deleter = Deleter(self.freed.append)
        for name, value in fields.items():
            setattr(managed if hasattr(managed, name) else tensor, name, value)

    def __dlpack_device__(self):
        return self.managed.tensor.device_type, self.managed.tensor.device_id

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        return new_capsule(ctypes.addressof(self.managed), NAMES[self.kind], None)


# ---- import


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [Managed, Versioned])
def test_import_shares_memory(dtype, kind):
    source = sample(dtype)
    producer = Producer(source, kind)
    array = from_dlpack(producer)
    assert isinstance(array, catena.Array)
    assert array.dtype == dtype and array.shape == (2, 3)
    assert address(array) == source.ctypes.data
    numpy.testing.assert_array_equal(numpy.asarray(array), source)
    assert producer.asked == [{"max_version": (1, 3)}]
    view = array.reshape(3, 2)
    del array
    assert not producer.freed
    del view
    assert producer.freed == [ctypes.addressof(producer.managed)]


def test_import_of_bfloat16():
    producer = Producer(numpy.array([0x3f80, 0xc000], "uint16"), code=4)
    array = from_dlpack(producer)
    assert str(array.dtype) == "bfloat16"
    assert numpy.asarray(array.astype("float32")).tolist() == [1, -2]


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x[::-1, ::-2],
    lambda x: numpy.broadcast_to(x[0], (3, 4)), lambda x: x[:, :1]])
def test_import_copies_what_is_not_dense(view):
    source = view(sample("float64", (3, 4)))
    producer = Producer(source)
    array = from_dlpack(producer)
    assert len(producer.freed) == 1 and address(array) != source.ctypes.data
    numpy.testing.assert_array_equal(numpy.asarray(array), source)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0, 3), (1, 1, 2), (2,) * 16])
@pytest.mark.parametrize("strides", [True, False])
def test_import_of_shapes(shape, strides):
    source = sample("float32", shape)
    producer = Producer(source, strides=strides)
    array = from_dlpack(producer)
    assert array.shape == shape
    numpy.testing.assert_array_equal(numpy.asarray(array), source)
    del array
    assert len(producer.freed) == 1


def test_import_of_one_element_with_odd_strides():
    producer = Producer(sample("float32", (1, 3)))
    producer.strides[0] = 77
    assert address(from_dlpack(producer)) == producer.array.ctypes.data


def test_import_of_read_only_memory_copies():
    producer = Producer(sample("float32"), flags=1)
    array = from_dlpack(producer)
    array.fill(7)
    numpy.testing.assert_array_equal(producer.array, sample("float32"))
    assert len(producer.freed) == 1


def test_import_with_offset():
    source = sample("int32", (6,))
    array = from_dlpack(Producer(source[:2], byte_offset=8))
    assert numpy.asarray(array).tolist() == source[2:4].tolist()
    assert address(array) == source.ctypes.data + 8


@pytest.mark.parametrize("fields, error, text", [
    ({"bits": 8, "code": 0}, TypeError, r"expected float16, .* or bool, got dtype\(code 0, 8 b"),
    ({"lanes": 2}, TypeError, "expected float16, .* 2 lanes"),
    ({"code": 5, "bits": 64}, TypeError, r"expected float16, .* got dtype\(code 5"),
    ({"byte_offset": 2}, ValueError, "expected aligned elements, got .* no multiple of 4 bytes"),
    ({"major": 2}, BufferError, "expected DLPack 1, got version 2"),
    ({"device_type": 17}, catena.DeviceError, "expected one of catena's devices, got DLPack"),
    ({"device_id": 99}, catena.DeviceError, "type 1, number 99"),
])
def test_import_errors(fields, error, text):
    producer = Producer(sample("float32"), **fields)
    with pytest.raises(error, match=text):
        from_dlpack(producer)
    assert len(producer.freed) == (0 if producer.asked == [] else 1)


def test_import_of_what_has_no_memory():
    with pytest.raises(AttributeError, match="__dlpack__"):
        from_dlpack([1, 2])

    class Failing(Producer):
        def __dlpack__(self, **keywords):
            raise BufferError("not today")
    with pytest.raises(BufferError, match="not today"):
        from_dlpack(Failing(sample("float32")))

    class Odd(Producer):
        def __dlpack__(self, **keywords):
            return 5
    with pytest.raises(BufferError, match="expected a DLPack capsule that nobody has used, got 5"):
        from_dlpack(Odd(sample("float32")))


def test_import_from_libraries_before_version_1():
    class Old(Producer):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()
    producer = Old(sample("float32"), Managed)
    assert address(from_dlpack(producer)) == producer.array.ctypes.data


def test_capsules_are_used_once():
    producer = Producer(sample("float32"))
    capsule = producer.__dlpack__()
    array = from_dlpack(capsule)
    with pytest.raises(BufferError, match="nobody has used, got .*used_dltensor_versioned"):
        from_dlpack(capsule)
    del array, capsule
    assert len(producer.freed) == 1


def test_variables_and_functions_take_producers():
    producer = Producer(sample("float32"))
    x = catena.Variable(producer)
    assert address(x.array) == producer.array.ctypes.data
    numpy.testing.assert_allclose(catena.functions.exp(Producer(sample("float32"))).array,
                                  numpy.exp(sample("float32")), rtol=1e-6)
    y = catena.functions.exp(x)
    del x
    numpy.testing.assert_allclose(y.array, numpy.exp(producer.array), rtol=1e-6)


# ---- export


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version, kind", [(None, Managed), ((0, 8), Managed), ((1, 0), Versioned),
                                           ((2, 5), Versioned)])
def test_export(dtype, version, kind):
    array = catena.Array(sample(dtype))
    assert array.__dlpack_device__() == CPU
    capsule = array.__dlpack__(max_version=version)
    managed = contents(capsule)
    assert isinstance(managed, kind) and name_of(capsule) == NAMES[kind]
    tensor = managed.tensor
    assert tensor.data + tensor.byte_offset == address(array)
    assert (tensor.device_type, tensor.device_id) == CPU
    assert tensor.shape[:tensor.ndim] == [2, 3] and tensor.strides[:tensor.ndim] == [3, 1]
    assert (tensor.code, tensor.bits, tensor.lanes) == (
        {"f": 2, "i": 0, "u": 1, "b": 6}[dtype[0]], numpy.dtype(dtype).itemsize * 8, 1)
    if kind is Versioned:
        assert managed.major == 1 and managed.flags == 0
    assert address(from_dlpack(capsule)) == address(array)


def test_export_of_copies():
    array = catena.Array(sample("float32"))
    copy = contents(capsule := array.__dlpack__(max_version=(1, 0), copy=True))
    assert copy.flags == 2 and copy.tensor.data != address(array)
    same = contents(kept := array.__dlpack__(max_version=(1, 0), copy=False, dl_device=CPU))
    assert same.flags == 0 and same.tensor.data == address(array)
    numpy.testing.assert_array_equal(numpy.asarray(from_dlpack(capsule)), sample("float32"))
    del kept


def test_export_errors():
    array = catena.Array(sample("float32"))
    with pytest.raises(BufferError, match="dl_device: expected the array's device, or the host"):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="dl_device: expected two numbers"):
        array.__dlpack__(dl_device=(1,))
    with pytest.raises(TypeError):
        array.__dlpack__(max_version=1)
    with pytest.raises(TypeError):
        array.__dlpack__(1)


def in_use():
    return catena.Device("cpu:0").memory()["in_use"]


def test_exported_memory_outlives_the_array():
    before = in_use()
    x = catena.Variable(catena.Array(numpy.full(50_000, 3.0)))
    capsule = x.__dlpack__(max_version=(1, 0))
    del x
    assert in_use() >= before + 400_000
    view = from_dlpack(capsule)
    assert numpy.asarray(view)[[0, -1]].tolist() == [3, 3]
    del view, capsule
    assert in_use() == before


def test_capsules_that_nobody_uses_are_freed():
    before = in_use()
    array = catena.Array(numpy.zeros(50_000))
    for version in (None, (1, 0)):
        capsule = array.__dlpack__(max_version=version)
        del capsule
    del array
    assert in_use() == before


def test_numpy_arrays_outlive_the_variable():
    x = catena.Variable(numpy.full(10_000, 2.0))
    y = catena.functions.square(x)
    array = y.array
    del x, y
    more = [catena.functions.square(catena.Variable(numpy.zeros(10_000))) for _ in range(5)]
    assert (array == 4).all() and len(more) == 5


# ---- NumPy


@pytest.mark.skipif(not hasattr(numpy, "from_dlpack"), reason="NumPy before 1.23")
def test_numpy():
    array = catena.Array(sample("float32"))
    assert numpy.from_dlpack(array).ctypes.data == address(array)
    source = sample("int64")
    assert address(from_dlpack(source)) == source.ctypes.data
    references = sys.getrefcount(source)
    taken = from_dlpack(source)
    assert sys.getrefcount(source) > references
    del taken
    gc.collect()
    assert sys.getrefcount(source) == references


# ---- the functions for C


class ExchangeApi(ctypes.Structure):
    Allocate = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.POINTER(Versioned)),
        ctypes.py_object,
        ctypes.CFUNCTYPE(None, ctypes.py_object, ctypes.c_char_p, ctypes.c_char_p))
    FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                                   ctypes.POINTER(ctypes.POINTER(Versioned)))
    ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Versioned),
                                 ctypes.POINTER(ctypes.py_object))
    LookAt = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
    Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32,
                               ctypes.POINTER(ctypes.c_void_p))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("older", ctypes.c_void_p), ("allocate", Allocate), ("from_object", FromObject),
                ("to_object", ToObject), ("look_at", LookAt), ("current_stream", Stream)]


def api_of(type_):
    return ExchangeApi.from_address(
        pointer_of(type_.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def test_exchange_api_between_libraries():
    api = api_of(catena.Array)
    assert (api.major, api.minor, api.older) == (1, 3, None)
    before = in_use()
    array = catena.Array(sample("float32", (100, 100)))
    seen = Tensor()
    assert api.look_at(array, ctypes.byref(seen)) == 0
    assert seen.data == address(array) and seen.shape[:2] == [100, 100]
    managed = ctypes.POINTER(Versioned)()
    assert api.from_object(array, ctypes.byref(managed)) == 0
    assert managed.contents.tensor.data == address(array)
    other = ctypes.py_object()
    assert api.to_object(managed, ctypes.byref(other)) == 0
    assert type(other.value) is catena.Array and address(other.value) == address(array)
    ctypes.pythonapi.Py_DecRef(other)  # the reference of ctypes' own object
    del array, other
    assert in_use() == before
    stream = ctypes.c_void_p(1)
    assert api.current_stream(*CPU, ctypes.byref(stream)) == 0 and stream.value is None


def test_exchange_api_allocates():
    api = api_of(catena.Array)
    errors = []

    @ExchangeApi.Allocate._argtypes_[3]
    def fail(context, kind, message):
        errors.append((context, kind, message))
    like = Producer(sample("float64")).managed.tensor
    made = ctypes.POINTER(Versioned)()
    before = in_use()
    assert api.allocate(ctypes.byref(like), ctypes.byref(made), "context", fail) == 0
    tensor = made.contents.tensor
    assert tensor.shape[:2] == [2, 3] and (tensor.code, tensor.bits) == (2, 64)
    assert tensor.data != like.data and in_use() > before
    made.contents.deleter(ctypes.cast(made, ctypes.c_void_p))
    assert in_use() == before
    like.bits = 8
    assert api.allocate(ctypes.byref(like), ctypes.byref(made), "context", fail) == -1
    (context, kind, message), = errors
    assert context == "context" and kind == b"BufferError"
    assert b"expected one of catena's" in message


def test_exchange_api_errors():
    api = api_of(catena.Array)
    managed = ctypes.POINTER(Versioned)()
    with pytest.raises(TypeError, match="expected a catena.Array, got int"):
        api.from_object(3, ctypes.byref(managed))
    with pytest.raises(catena.DeviceError):
        api.current_stream(17, 3, ctypes.byref(ctypes.c_void_p()))
    producer = Producer(sample("int16"))
    with pytest.raises(TypeError, match="expected float16"):
        api.to_object(ctypes.pointer(producer.managed), ctypes.byref(ctypes.py_object()))
    assert len(producer.freed) == 1
