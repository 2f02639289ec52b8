"""Files of state: Chainer's .npz in both directions, .safetensors, HDF5."""
import io
import json
import pickle
import zipfile

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


def test_files_cannot_run_code(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("code ran",)
    file = str(tmp_path / "x.npz")
    numpy.savez(file, a=numpy.array(Evil(), dtype=object), b=numpy.array(None, dtype=object))
    loaded = Everything(b=1)
    serializers.load_npz(file, loaded)
    assert loaded.values["b"] is None
    with pytest.raises(pickle.UnpicklingError, match="print"):
        serializers.load_npz(file, Everything(a=None))


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
