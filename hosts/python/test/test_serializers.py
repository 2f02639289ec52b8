"""Files of state: Chainer's .npz in both directions, .safetensors, HDF5."""
import io
import json
import os
import pickle
import zipfile
import zlib

import numpy
import pytest

import catena
from catena import serializers

from test_optimizers import arrays_of, assert_same, link_of, train, values_of


class Everything:
    """An object with values of each kind."""

    def __init__(self, **values):
        self.values = values

    def serialize(self, serializer):
        for name, value in self.values.items():
            self.values[name] = serializer(name, value)


kinds = {
    "float16": numpy.array([[1.5, numpy.nan]], "float16"), "float32": numpy.ones((2, 0), "f"),
    "float64": numpy.array(2.5), "int32": numpy.arange(3, dtype="int32"),
    "int64": numpy.array(7), "uint8": numpy.array([200], "uint8"),
    "bool": numpy.array([True, False]), "number": 12, "real": 0.5, "flag": True, "text": "abc",
    "scalar": numpy.float32(0.25), "none": None}


def cleared(values):
    return {name: numpy.zeros_like(value) if isinstance(value, numpy.ndarray) else
            value if value is None else type(value)(0) for name, value in values.items()}


def assert_equal(got, expected):
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert type(got[name]) is type(value), name
        if isinstance(value, numpy.ndarray):
            assert got[name].dtype == value.dtype and got[name].shape == value.shape, name
        numpy.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("compression", [True, False])
def test_values_of_all_kinds(tmp_path, compression):
    file = tmp_path / "all.npz"
    serializers.save_npz(file, Everything(**kinds), compression)
    loaded = Everything(**cleared(kinds))
    arrays = {name: value for name, value in loaded.values.items()
              if isinstance(value, numpy.ndarray)}
    serializers.load_npz(file, loaded)
    assert_equal(loaded.values, kinds)
    assert all(loaded.values[name] is array for name, array in arrays.items())
    with zipfile.ZipFile(file) as opened:
        assert {each.compress_type for each in opened.infolist()} == {8 if compression else 0}


@pytest.mark.parametrize("saves", [0, 1])
def test_values_in_files_of_chainer(tmp_path, saves):
    chainer = pytest.importorskip("chainer")
    modules = [catena, chainer]
    file = str(tmp_path / "all.npz")
    modules[saves].serializers.save_npz(file, Everything(**kinds))
    loaded = Everything(**cleared(kinds))
    modules[1 - saves].serializers.load_npz(file, loaded)
    assert_equal(loaded.values, kinds)


@pytest.mark.parametrize("saves", [0, 1])
def test_training_goes_on_in_the_other_library(tmp_path, saves):
    chainer = pytest.importorskip("chainer")
    modules = [catena, chainer]
    ends = []
    for first, second in [(modules[saves],) * 2, (modules[saves], modules[1 - saves])]:
        link = link_of(first, values_of())
        optimizer = first.optimizers.Adam(alpha=0.1).setup(link)
        train(link, optimizer, 3)
        optimizer.new_epoch()
        for name, each in [("m.npz", link), ("o.npz", optimizer)]:
            first.serializers.save_npz(str(tmp_path / name), each)
        link = link_of(second, values_of(seed=5))
        optimizer = second.optimizers.Adam(alpha=0.1).setup(link)
        for name, each in [("m.npz", link), ("o.npz", optimizer)]:
            second.serializers.load_npz(str(tmp_path / name), each)
        assert optimizer.t == 3 and optimizer.epoch == 1
        assert link.inner.a.update_rule.t == 3
        train(link, optimizer, 3, seed=3)
        ends.append(arrays_of(link))
    assert_same(ends[0], ends[1], 1e-4)


def test_parts_names_and_strictness(tmp_path):
    file = str(tmp_path / "x.npz")
    link = link_of(catena, values_of())
    serializers.save_npz(file, {"deep/" + name: value
                                for name, value in serializers.serialize(link).items()
                                if name != "inner/c"})
    with pytest.raises(KeyError, match="inner/a"):
        serializers.load_npz(file, link)
    with pytest.raises(KeyError, match="deep/inner/c"):
        serializers.load_npz(file, link, "deep/")
    for ignore in ["deep/inner/a", lambda name: name.endswith("a"), ["x", "deep/inner/a"]]:
        other = link_of(catena, values_of(seed=3))
        serializers.load_npz(file, other, path="deep/", strict=False, ignore_names=ignore)
        assert (other.inner.b.array == link.inner.b.array).all()
        assert (other.inner.a.array != link.inner.a.array).all()
        assert other.inner.c.array != link.inner.c.array
    with pytest.raises(ValueError, match="ignore_names: expected a str"):
        serializers.load_npz(file, other, ignore_names=[3])
    with pytest.raises(FileNotFoundError):
        serializers.load_npz(str(tmp_path / "none.npz"), other)


def test_open_files_and_dicts():
    file = io.BytesIO()
    serializers.save_npz(file, {"a": numpy.arange(3.0)})
    file.seek(0)
    loaded = Everything(a=numpy.zeros(3))
    serializers.load_npz(file, loaded)
    assert loaded.values["a"].tolist() == [0, 1, 2]
    target = {}
    serializer = serializers.DictionarySerializer(target, "x/")
    assert serializer["/y/"]("/z", 3) == 3 and serializer.target is target
    assert target["x/y/z"] == 3
    assert serializers.NpzDeserializer(target)["x"]["y"]("z", 0) == 3


def test_numbers_that_do_not_fit():
    deserializer = serializers.NpzDeserializer({"a": numpy.array(0.5), "b": numpy.array(2 ** 40)})
    with pytest.raises(TypeError, match="int can represent, got an array of float64"):
        deserializer("a", 3)
    assert deserializer("b", 3) == 2 ** 40 and deserializer("a", 1.0) == 0.5


def test_parameters_without_arrays(tmp_path):
    chainer = pytest.importorskip("chainer")
    file = str(tmp_path / "x.npz")
    for saves, loads in [(catena, chainer), (chainer, catena), (catena, catena)]:
        made = saves.Chain(l=saves.links.Linear(None, 2))
        saves.serializers.save_npz(file, made)
        loaded = loads.Chain(l=loads.links.Linear(None, 2))
        loads.serializers.load_npz(file, loaded)
        assert loaded.l.W.array is None
        made.l(numpy.ones((1, 3), "f"))
        saves.serializers.save_npz(file, made)
        loads.serializers.load_npz(file, loaded)
        assert numpy.array_equal(loaded.l.W.array, made.l.W.array)


def object_npz(data, dtype="|O", shape=()):
    """A .npz file with a member "a" of Python objects, whose pickle is `data`."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("a.npy", b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + data)
    file.seek(0)
    return file


def load_member(file, value=None):
    loaded = Everything(a=value)
    serializers.load_npz(file, loaded)
    return loaded.values["a"]


# What NumPy 1.16 writes for None in Python 2, with protocols 0 and 2.
of_python_2 = [
    b"cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy\nndarray\np1\n(I0\ntp2\nS'b'\np3\ntp4\nRp5\n"
    b"(I1\n(tcnumpy\ndtype\np6\n(S'O8'\np7\nI0\nI1\ntp8\nRp9\n(I3\nS'|'\np10\nNNNI-1\nI-1\nI63\ntp11\n"
    b"bI00\n(lp12\nNatp13\nb.",
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq"
    b"\x03(K\x01)cnumpy\ndtype\nq\x04U\x02O8K\x00K\x01\x87Rq\x05(K\x03U\x01|NNNJ\xff\xff\xff\xffJ"
    b"\xff\xff\xff\xffK?tb\x89]q\x06Natb."]


def test_none_in_the_pickles_of_all_protocols():
    none = numpy.array(None, dtype=object)
    written = [pickle.dumps(none, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    other = [(b"numpy.core.", b"numpy._core."), (b"numpy._core.", b"numpy.core.")]
    for data in [*written, *of_python_2]:
        assert load_member(object_npz(data), 3) is None
        if data[:1] == b"\x80" and data[1] < 4 or data[:1] != b"\x80":  # names have no lengths
            for before, after in other:
                assert load_member(object_npz(data.replace(before, after)), 3) is None


class Evil:
    def __reduce__(self):
        return print, ("code ran",)


def dtype_with_state(state):
    """The pickle of an array whose dtype gets any state: it may take the bytes for pointers."""
    class Dtype:
        def __reduce__(self):
            return numpy.dtype, ("V16", False, True), state

    class Array:
        def __reduce__(self):
            return (numpy.core.multiarray._reconstruct if hasattr(numpy, "core") else
                    numpy._core.multiarray._reconstruct, (numpy.ndarray, (0,), b"b"),
                    (1, (1,), Dtype(), False, b"x" * 16))
    return pickle.dumps(Array())


def test_files_cannot_run_code(tmp_path, capsys):
    file = str(tmp_path / "x.npz")
    numpy.savez(file, a=numpy.array(Evil(), dtype=object), b=numpy.array(None, dtype=object))
    loaded = Everything(b=1)
    serializers.load_npz(file, loaded)
    assert loaded.values["b"] is None
    with pytest.raises(catena.DataError, match="x.npz: .* array a, got Python objects, which could"):
        serializers.load_npz(file, Everything(a=None))
    none = numpy.array(None, dtype=object)
    pointer = (3, "|", None, ("f0",), {"f0": (numpy.dtype("O"), 0)}, 16, 1, 0)
    hostile = [
        pickle.dumps(Evil()), dtype_with_state(pointer), pickle.dumps(numpy.array([None])),
        pickle.dumps(numpy.array([None, Evil()], dtype=object)), pickle.dumps(None),
        pickle.dumps(numpy.array("text", dtype=object)), pickle.dumps(none.dtype), b"", b".", b"N.",
        b"(" * 1000, b"0.", b"a.", b"s.", b"h\0.", b"]q\0h\0ah\0.", b"]q\0(h\0h\0e" * 50 + b".",
        b"ccatena\n_core\n.", b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        b"cos\nsystem\n(S'true'\ntR" + pickle.dumps(none, 0),  # the value of None lies on the stack
        pickle.dumps(none, 2)[:-1], pickle.dumps(none, 2) + b"more", pickle.dumps(none, 4) * 50, b"\x80\x04" + b"N0" * 5000 + b"N."]
    for data in hostile:
        with pytest.raises(catena.DataError, match="got Python objects, which could run code"):
            load_member(object_npz(data))
    for dtype, shape in [("|O", (1,)), ("O8", (0,)), ("|O", (1 << 62,))]:
        with pytest.raises(catena.DataError):
            load_member(object_npz(pickle.dumps(none), dtype, shape))
    assert capsys.readouterr().out == ""


def mutated(random, data):
    """The data with a few bytes changed, removed, or repeated."""
    data = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at, n = random.randint(len(data)), random.randint(1, 9)
        kind = random.randint(5)
        if kind == 0:
            data[at] = random.randint(256)
        elif kind == 1:
            data[at] ^= 1 << random.randint(8)
        elif kind == 2:
            del data[at:at + n]
        elif kind == 3:
            data[at:at] = data[at:at + n]
        else:
            data[at:at + n] = random.bytes(n)
        if not data:
            return bytes(data)
    return bytes(data)


def with_right_checksums(data):
    """The archive with the checksums of its members as they are: damage reaches the reader."""
    data = bytearray(data)
    at = data.find(b"PK\1\2")
    while at >= 0 and at + 46 <= len(data):
        method = int.from_bytes(data[at + 10:at + 12], "little")
        size = int.from_bytes(data[at + 20:at + 24], "little")
        local = int.from_bytes(data[at + 42:at + 46], "little")
        begin = local + 30 + sum(int.from_bytes(data[local + k:local + k + 2], "little")
                                 for k in (26, 28))
        if method == 0 and begin + size <= len(data):
            data[at + 16:at + 20] = zlib.crc32(data[begin:begin + size]).to_bytes(4, "little")
            data[local + 14:local + 18] = data[at + 16:at + 20]
        at = data.find(b"PK\1\2", at + 4)
    return bytes(data)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the parser, for damaged headers
def test_damaged_archives(capsys):
    """Thousands of damaged files: each is loaded or refused, and a refusal loads no other type."""
    values = {"none": None, "a": numpy.arange(6, dtype="f").reshape(2, 3), "t": "text", "n": 3,
              "bits": numpy.zeros(2, "V2")}
    seeds = []
    for compression in (False, True):
        file = io.BytesIO()
        serializers.save_npz(file, Everything(**values), compression)
        seeds.append(file.getvalue())
    seeds += [object_npz(data).getvalue() for data in of_python_2]
    random = numpy.random.RandomState(1)
    outcomes = {"loaded": 0, "refused": 0}
    for i in range(2500):
        data = mutated(random, seeds[i % len(seeds)])
        if random.randint(4):
            data = with_right_checksums(data)
        for name in ("none", "a", "t", "n", "bits"):
            loaded = Everything(**{name: None})
            try:
                serializers.load_npz(io.BytesIO(data), loaded, strict=False)
            except catena.DataError:
                outcomes["refused"] += 1
                assert loaded.values[name] is None
            else:
                outcomes["loaded"] += 1
                value = loaded.values[name]
                assert value is None or (type(value) is numpy.ndarray and not value.dtype.hasobject)
    assert min(outcomes.values()) > 1500, outcomes
    assert capsys.readouterr().out == ""


# ---- arrays that do not fit

def two_layers(n_in, n_out):
    return catena.Chain(l1=catena.links.Linear(n_in, n_out), l2=catena.links.Linear(n_out, 2))


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_shapes_that_differ_are_all_told_and_nothing_is_loaded(tmp_path, suffix):
    file = tmp_path / ("x." + suffix)
    save, load = (getattr(serializers, f"{what}_{suffix}") for what in ["save", "load"])
    save(file, two_layers(4, 1))
    link = two_layers(4, 3)
    before = arrays_of(link)
    with pytest.raises(catena.ShapeError) as error:
        load(file, link)
    text = str(error.value)
    assert text.splitlines() == [
        f"[load] {file}: expected the saved state of an object with the same structure, got:",
        "  l1/W: expected float32 (3, 4), got float32 (1, 4)",
        "  l1/b: expected float32 (3,), got float32 (1,)",
        "  l2/W: expected float32 (2, 3), got float32 (2, 1)"]
    assert_same(arrays_of(link), before, 0)
    with pytest.raises(ValueError, match=r"a: expected float64 \(3,\), got float64 \(1,\)"):
        save(file, {"a": numpy.ones(1)})
        load(file, Everything(a=numpy.zeros(3)))
    # The same of arrays on other devices, and of an optimizer's state.
    link = two_layers(4, 1)
    optimizer = catena.optimizers.Adam().setup(link)
    link.cleargrads()
    catena.functions.sum(link.l2(link.l1(numpy.ones((1, 4), "f")))).backward()
    optimizer.update()
    save(file, optimizer)
    other = catena.optimizers.Adam().setup(two_layers(4, 3))
    other.target.cleargrads()
    catena.functions.sum(other.target.l2(other.target.l1(numpy.ones((1, 4), "f")))).backward()
    other.update()
    with pytest.raises(catena.ShapeError, match=r"l1/W/m: expected float32 \(3, 4\), got"):
        load(file, other)


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_names_and_dtypes_that_differ(tmp_path, suffix):
    file = tmp_path / ("x." + suffix)
    save, load = (getattr(serializers, f"{what}_{suffix}") for what in ["save", "load"])
    link = two_layers(4, 3)
    values = dict(link.namedparams())
    save(file, {"net/fc1.weight": values["/l1/W"].array.astype("float64"),
                "net/fc1.bias": values["/l1/b"].array, "net/fc2.weight": values["/l2/W"].array,
                "net/fc2.bias": values["/l2/b"].array, "net/step": numpy.array(3)})
    names = {f"fc{i}.{there}": f"l{i}/{here}"
             for i in (1, 2) for there, here in [("weight", "W"), ("bias", "b")]}
    for rename in (names, lambda name: names.get(name, "")):
        other = two_layers(4, 3)
        load(file, other, path="net/", rename=rename)
        assert_same(arrays_of(other), arrays_of(link), 0)
    with pytest.raises(catena.InvalidError, match="expected a name for each array, got l1/W twice"):
        load(file, other, path="net/", rename=lambda name: "l1/W")
    with pytest.raises(catena.DtypeError, match=r"l1/W: expected float32 \(3, 4\), got float64"):
        load(file, other, path="net/", rename=names, convert=False)
    save(file, {"a": numpy.array([1, 2 ** 40])})
    with pytest.raises(OverflowError, match="a: expected integers that int32 can represent"):
        load(file, Everything(a=numpy.zeros(2, "int32")))
    with pytest.raises(OverflowError, match="a: expected integers that int32 can represent"):
        load(file, Everything(a=catena._core.as_array(numpy.zeros(2, "int32"))))
    with pytest.raises(TypeError, match=r"a: expected int64 \(2,\), got float32 \(2,\)"):
        save(file, {"a": numpy.ones(2, "f")})
        load(file, Everything(a=numpy.zeros(2, "int64")))


# ---- files of other programs

def test_files_of_other_programs(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02.")
    contents = {"model.pt": (packed.getvalue(), "a PyTorch file; in Python, safetensors"),
                "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x05", "an ONNX model"),
                "model.gguf": (b"GGUF\3\0\0\0", "a GGUF model of llama.cpp"),
                "a.txt": ("ä text".encode("latin-1"), "damaged or other data|a header of"),
                "b.txt": ("ä text".encode(), "a text"), "empty": (b"", "an empty file")}
    for name, (content, kind) in contents.items():
        file = tmp_path / name
        file.write_bytes(content)
        for load in (serializers.load_npz, serializers.load_safetensors):
            with pytest.raises(catena.DataError, match=f"{name}: expected a .*, got ({kind})"):
                load(file, Everything(a=numpy.zeros(2)))
    for load, name, kind in [
            (serializers.load_npz, "x.safetensors", r"a \.safetensors file; load_safetensors\(\)"),
            (serializers.load_safetensors, "x.npz", r"an \.npz archive; load_npz\(\)")]:
        file = tmp_path / name
        (serializers.save_safetensors if name.endswith("s") else serializers.save_npz)(
            str(file), {"a": numpy.ones(2)})
        with pytest.raises(catena.DataError, match=f"{name}: expected a .*, got {kind} reads it"):
            load(file, Everything(a=numpy.zeros(2)))
    for load in (serializers.load_npz, serializers.load_safetensors):
        with pytest.raises(FileNotFoundError, match="none.npz"):
            load(tmp_path / "none.npz", Everything())
        with pytest.raises(IsADirectoryError, match=tmp_path.name):
            load(tmp_path, Everything())
        with pytest.raises(catena.DataError, match="/dev/zero: expected .*, got a device"):
            load("/dev/zero", Everything())
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(catena.DataError, match="pipe: expected .*, got a pipe"):
            load(tmp_path / "pipe", Everything())
        os.unlink(tmp_path / "pipe")


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_bfloat16(tmp_path, suffix):
    file = str(tmp_path / ("x." + suffix))
    save, load = (getattr(serializers, f"{what}_{suffix}") for what in ["save", "load"])
    link = link_of(catena, values_of())
    for param in link.params():
        param.array = param._array.astype("bfloat16")
    save(file, link)
    for dtype in ["bfloat16", "float32"]:
        other = link_of(catena, values_of(seed=2))
        for param in other.params():
            param.array = param._array.astype(dtype)
        load(file, other)
        for name, param in link.namedparams():
            loaded = dict(other.namedparams())[name]
            assert str(loaded.dtype) == dtype
            assert numpy.array_equal(loaded._array.astype("float32"),
                                     param._array.astype("float32"))


def test_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    link = link_of(catena, values_of())
    optimizer = catena.optimizers.Adam(alpha=0.1).setup(link)
    train(link, optimizer, 3)
    serializers.save_safetensors(file, optimizer)
    other = catena.optimizers.Adam(alpha=0.1).setup(link_of(catena, values_of()))
    serializers.load_safetensors(file, other)
    assert other.t == 3 and other.target.inner.a.update_rule.t == 3
    for name in "mv":
        assert numpy.array_equal(other.target.inner.a.update_rule.state[name],
                                 link.inner.a.update_rule.state[name])
    arrays = {name: value for name, value in kinds.items() if isinstance(value, numpy.ndarray)}
    serializers.save_safetensors(file, arrays)
    length = int.from_bytes(file.read_bytes()[:8], "little")
    header = json.loads(file.read_bytes()[8:8 + length])
    assert header["int32"]["dtype"] == "I32" and header["float32"]["shape"] == [2, 0]
    loaded = Everything(**cleared(arrays))
    serializers.load_safetensors(file, loaded)
    assert_equal(loaded.values, arrays)
    serializers.load_safetensors(file, link, strict=False)
    with pytest.raises(KeyError, match="inner/a"):
        serializers.load_safetensors(file, link)


def test_wrong_safetensors(tmp_path):
    file = tmp_path / "x.safetensors"
    with pytest.raises(TypeError, match="deep/none: expected an array or a number, got None"):
        serializers.save_safetensors(file, catena.Sequential(Holder(None)))
    assert not file.exists()
    for content in [b"", b"\x02", b"\x02" + b"\0" * 7 + b"[]", b"\x20" + b"\0" * 7 + b"{}",
                    b"\x0b" + b"\0" * 7 + b'{"a": 3}   ', b"\xff" * 8 + b"{}"]:
        file.write_bytes(content)
        with pytest.raises(catena.DataError, match="safetensors"):
            serializers.load_safetensors(file, Everything(a=numpy.zeros(2)))


class Holder(catena.Link):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def serialize(self, serializer):
        serializer["deep"]("none", self.value)


def test_hdf5(tmp_path):
    file = str(tmp_path / "x.h5")
    try:
        import h5py  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="h5py"):
            serializers.save_hdf5(file, Everything())
        return
    values = {name: value for name, value in kinds.items() if name != "text"}
    serializers.save_hdf5(file, Everything(**values))
    loaded = Everything(**cleared(values))
    serializers.load_hdf5(file, loaded)
    assert_equal(loaded.values, values)
    link = link_of(catena, values_of())
    serializers.save_hdf5(file, link)
    other = link_of(catena, values_of(seed=3))
    serializers.load_hdf5(file, other)
    assert_same(arrays_of(other), arrays_of(link), 1e-9)
