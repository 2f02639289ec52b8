"""Files with the state of objects: .npz as Chainer writes them, .safetensors and HDF5."""
import contextlib
import importlib.util
import math
import os
import stat
import zipfile
from typing import Any

import numpy
from numpy.lib import format as npy

from catena import _core
from catena._none_pickle import MOST, is_none
from catena.link import _is_array
from catena.serializer import Deserializer, Serializer

_available = importlib.util.find_spec("h5py") is not None  # chainer.serializers.hdf5._available


def _saved(value):
    """The value as a numpy.ndarray on the host; bfloat16 as its bytes, because NumPy lacks it."""
    if isinstance(value, _core.Array):
        value = value.to_device(-1)
        if str(value.dtype) == "bfloat16":
            bits = numpy.asarray(value.astype("float32")).view(numpy.uint32)
            return numpy.asarray(bits // 65536, numpy.uint16).view("V2")
    array = numpy.asarray(value)
    return array.view("V2") if array.dtype.name == "bfloat16" else array


def _loaded(array):
    """The array, with bfloat16 as float32."""
    if array.dtype.kind != "V" or array.dtype.itemsize != 2:
        return array
    return numpy.asarray(array.view(numpy.uint16) * numpy.uint32(65536)).view(numpy.float32)


def _kind_of(dtype):
    """The kind of an array's dtype; bfloat16 is a float."""
    name = str(dtype)
    return "f" if name in ("bfloat16", "|V2") else numpy.dtype(name).kind


def _misfit(dtype, shape, value, convert):
    """Why an array of a file does not fit the array `value`; "" if it does."""
    def text(dtype, shape):
        name = "bfloat16" if str(dtype) == "|V2" else str(dtype)
        return f"{name} {tuple(shape)}"
    fits = tuple(shape) == tuple(value.shape)
    if fits and str(dtype) != str(value.dtype):
        there, here = _kind_of(dtype), _kind_of(value.dtype)
        fits = convert and (there == here or (there, here) in (("u", "i"), ("i", "u"))
                            or (there in "biu" and here == "f") or there == "b")
    return "" if fits else f"expected {text(value.dtype, value.shape)}, got {text(dtype, shape)}"


def _error_of(same_shapes):
    """The class of the error for arrays that do not fit, whether their shapes do."""
    return _core.DtypeError if all(same_shapes) else _core.ShapeError


def _restored(dataset, value, name="value", convert=True):
    """Returns the new value for an object that has `value`. Arrays are written in place."""
    if dataset.dtype == object and dataset[()] is None:
        return None
    if _is_array(value):
        misfit = _misfit(dataset.dtype, dataset.shape, value, convert)
        if misfit:
            raise _error_of([dataset.shape == value.shape])(f"[load] {name}: {misfit}")
    dataset = _loaded(dataset)
    if value is None:
        return dataset
    if _is_array(value) and dataset.dtype.kind in "iu" and _kind_of(value.dtype) in "iu" \
            and (dataset.astype(str(value.dtype)) != dataset).any():
        raise OverflowError(f"[load] {name}: expected integers that {value.dtype} can represent, "
                            f"got others of {dataset.dtype}")
    if isinstance(value, numpy.ndarray):
        value[...] = dataset.astype(value.dtype, copy=False)
        return value
    if isinstance(value, _core.Array):
        value.copy_from(_core.as_array(dataset).astype(str(value.dtype)))
        return value
    kind = type(value)
    integers = issubclass(dataset.dtype.type, numpy.integer) and issubclass(kind, int)
    if (issubclass(dataset.dtype.type, numpy.number) and not integers
            and not numpy.can_cast(dataset.dtype, kind, casting="safe")):
        raise TypeError(f"[load] {name}: expected one that {kind.__name__} can represent, got an "
                        f"array of {dataset.dtype}")
    return kind(dataset)


class DictionarySerializer(Serializer):
    """Stores values in the dict ``target``, under their paths: "l1/W"."""

    def __init__(self, target=None, path="") -> None:
        self.target = {} if target is None else target
        self.path = path

    def __getitem__(self, key) -> Any:
        return type(self)(self.target, self.path + key.strip("/") + "/")

    def __call__(self, key, value) -> Any:
        self._store(self.path + key.lstrip("/"), value)
        return value

    def _store(self, name, value):
        self.target[name] = _saved(value)


def serialize(obj) -> Any:
    """The state of an object as a dict of arrays."""
    return _saved_by(DictionarySerializer(), obj)


def _saved_by(serializer, obj):
    serializer.save(obj)
    return serializer.target


def save_npz(file, obj, compression=True) -> None:
    """Saves an object that has a method serialize(), or a dict of arrays.

    ``file`` is a path, or a file that is open for writing bytes.
    """
    values = obj if isinstance(obj, dict) else serialize(obj)
    save = numpy.savez_compressed if compression else numpy.savez
    with contextlib.nullcontext(file) if hasattr(file, "write") else open(file, "wb") as opened:
        save(opened, **values)


# ---- members of .npz files

def _read_header(file):
    """The shape, whether the order is column-major, and the dtype."""
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in read:
        raise ValueError(f"version {version} of the .npy format")
    header = read[version](file)
    if any(type(extent) is not int or extent < 0 for extent in header[0]):
        raise ValueError(f"the shape {header[0]}")
    return header


def _read_array(file, info):
    shape, is_column_major, dtype = _read_header(file)
    if dtype.hasobject:
        if dtype != object or shape != () or not is_none(file.read(MOST + 1)):
            raise ValueError("Python objects, which could run code; arrays, numbers, texts and "
                             "None can be loaded")
        return numpy.array(None, dtype=object)
    count = math.prod(shape)
    most = 1032  # deflate's highest compression ratio
    size = min(info.file_size, info.compress_size * most)
    if max(count * dtype.itemsize, count - 1) > size:  # elements may have no bytes
        raise ValueError(f"{size} bytes for an array {shape} of {dtype}")
    array = numpy.empty(count, dtype)
    with memoryview(array.view(numpy.uint8).data if count * dtype.itemsize else b"") as bytes_:
        done = 0
        while done < len(bytes_):
            read = file.readinto(bytes_[done:done + (1 << 20)])
            if not read:
                raise ValueError("an end of the data before that of the array")
            done += read
    if file.read(1):  # also compares the checksum
        raise ValueError(f"more data than an array {shape} of {dtype} has")
    return array.reshape(shape, order="F" if is_column_major else "C")


@contextlib.contextmanager
def _telling(name, what):
    """Exceptions of readers for damaged or hostile data as DataErrors that name the file."""
    try:
        yield
    except _core.DataError:
        raise
    except Exception as error:  # of zipfile, zlib, NumPy, and the parser of Python that it uses
        text = str(error) or type(error).__name__
        raise _core.DataError(f"[load_npz] {name}: expected {what}, got {text}") from None


@contextlib.contextmanager
def _member(npz, key):
    """The open member with an array, and its entry in the archive."""
    name = getattr(npz.zip, "filename", None) or "file"
    with _telling(name, f"a readable array {key}"):
        try:
            info = npz.zip.getinfo(key + ".npy")
        except KeyError:
            info = npz.zip.getinfo(key)
        with npz.zip.open(info) as file:
            yield file, info


def _names_in(npz):
    return getattr(npz, "files", npz)  # old versions of NumPy read the array for `in npz`


def _read(npz, key):
    if not hasattr(npz, "zip"):
        return npz[key]
    with _member(npz, key) as (file, info):
        return _read_array(file, info)


def _header(npz, key):
    """The dtype and the shape of an array."""
    if not hasattr(npz, "zip"):
        return npz[key].dtype, npz[key].shape
    with _member(npz, key) as (file, _):
        shape, _, dtype = _read_header(file)
        return dtype, shape


class NpzDeserializer(Deserializer):
    """Loads values from an open .npz file, or a dict of arrays.

    Args:
        npz: the file or dict.
        path: the prefix of all names.
        strict: whether a name that the file lacks is an error; otherwise its value stays.
        ignore_names: names whose values stay: a str, a function of a name that returns whether to
            ignore it, or a list of these.
        convert: whether arrays of other dtypes of the same kind are converted. Integers must fit.
    """

    def __init__(self, npz, path="", strict=True, ignore_names=None, *, convert=True) -> None:
        self.npz = npz
        self.path = path
        self.strict = strict
        self.ignore_names = [] if ignore_names is None else ignore_names
        self.convert = convert
        self._names = None  # those of the file, by those of the object; None: the same

    def __getitem__(self, key) -> Any:
        path = self.path + key.strip("/") + "/"
        part = type(self)(self.npz, path, self.strict, self.ignore_names)
        part.convert, part._names = self.convert, self._names
        return part

    def _ignores(self, key):
        names = self.ignore_names
        for name in names if isinstance(names, (list, tuple)) else [names]:
            if not isinstance(name, str) and not callable(name):
                raise ValueError("[load_npz] ignore_names: expected a str, a callable or a list of "
                                 f"them, got {type(name).__name__}")
            if name == key if isinstance(name, str) else name(key):
                return True
        return False

    def _name_of(self, key):
        """The name in the file of a value of the object, or None."""
        if self._names is not None:
            return self._names.get(key)
        return key if key in _names_in(self.npz) else None

    def __call__(self, key, value) -> Any:
        key = self.path + key.lstrip("/")
        name = self._name_of(key)
        if (name is None and not self.strict) or self._ignores(key):
            return value
        if name is None:
            raise KeyError(f"{key} is not a name in the file")
        return _restored(_read(self.npz, name), value, key, self.convert)

    def _require_fitting(self, what, obj):
        """Raises an error that lists all arrays of an object of catena that do not fit."""
        if not any(each.__module__.split(".")[0] == "catena" for each in type(obj).__mro__):
            return  # saving another class's object might change it
        try:
            arrays = _saved_by(_Arrays(path=self.path), obj)
        except Exception:  # an object that can only be loaded is checked array by array
            return
        misfits, same_shapes = {}, []
        for key, value in arrays.items():
            name = self._name_of(key)
            if name is None or self._ignores(key):
                continue
            dtype, shape = _header(self.npz, name)
            text = "" if dtype == object else _misfit(dtype, shape, value, self.convert)
            if text:
                misfits[key] = text
                same_shapes.append(tuple(shape) == tuple(value.shape))
        if misfits:
            raise _error_of(same_shapes)(
                f"[load] {what}: expected the saved state of an object with the same structure, got:"
                + "".join(f"\n  {key}: {text}" for key, text in misfits.items()))


class _Arrays(DictionarySerializer):
    """Collects the arrays of an object."""

    def _store(self, name, value):
        if _is_array(value):
            self.target[name] = value


def _names_by(rename, npz, path, what):
    """The names of a file, by the names that they have after renaming."""
    if rename is None:
        return None
    names = {}
    for name in _names_in(npz):
        if not name.startswith(path):
            continue
        inner = name[len(path):]
        new = rename(inner) if callable(rename) else rename.get(inner, inner)
        if new and path + new in names:
            raise _core.InvalidError(
                f"[load] {what}: rename: expected a name for each array, got {new} twice, for "
                f"{names[path + new]} and {name}")
        if new:
            names[path + new] = name
    return names


def _load(npz, what, obj, path, strict, ignore_names, rename, convert):
    deserializer = NpzDeserializer(npz, path, strict, ignore_names, convert=convert)
    deserializer._names = _names_by(rename, npz, path, what)
    deserializer._require_fitting(what, obj)
    deserializer.load(obj)


@contextlib.contextmanager
def _opened(file, expected):
    """An open file for reading bytes. Names what a path is if it is no regular file."""
    if hasattr(file, "read"):
        yield file
        return
    if not stat.S_ISREG(os.stat(file).st_mode) and not os.path.isdir(file):
        raise _core.DataError(f"[load] {file}: expected {expected}, got {_core.file_kind(file)}")
    with open(file, "rb") as opened:
        yield opened


@contextlib.contextmanager
def _opened_npz(file):
    with _opened(file, "a .npz archive") as opened:
        kind = "" if hasattr(file, "read") else _core.file_kind(file)
        if kind.startswith("a PyTorch") or not zipfile.is_zipfile(opened):
            kind = kind if kind and not kind.startswith("an .npz") else "damaged or other data"
            raise _core.DataError(f"[load_npz] {file}: expected a .npz archive, got {kind}")
        opened.seek(0)
        with _telling(file, "a .npz archive"):
            npz = numpy.load(opened, allow_pickle=False)
        with npz:
            yield npz


def load_npz(file, obj, path="", strict=True, ignore_names=None, *, rename=None, convert=True) -> None:
    """Loads the state of an object from a file that save_npz() of catena or Chainer wrote.

    An array of another shape is an error. For the links, optimizers and trainers of catena, the error
    lists all such arrays, and nothing is loaded.

    Args:
        file: a path, or a file that is open for reading bytes.
        obj: the object.
        path: the prefix of the names to load, such as "updater/model:main/".
        strict, ignore_names, convert: see NpzDeserializer.
        rename: a dict, or a function, of a name in the file without the path, that returns the name in
            the object; "" for an array that is not loaded. Other names do not change.
    """
    with _opened_npz(file) as npz:
        _load(npz, file, obj, path, strict, ignore_names, rename, convert)


def save_safetensors(file, obj) -> None:
    """Saves an object, or a dict of arrays, as .safetensors, which has no place for None and texts."""
    values = obj if isinstance(obj, dict) else _saved_by(_Tensors(), obj)
    _core.save_safetensors(str(file), values)


class _Tensors(DictionarySerializer):
    def _store(self, name, value):
        if value is None or isinstance(value, str):
            raise TypeError(f"[save_safetensors] {name}: expected an array or a number, got "
                            f"{value!r}; save_npz() stores it")
        self.target[name] = value if isinstance(value, _core.Array) else numpy.asarray(value)


def load_safetensors(file, obj, path="", strict=True, ignore_names=None, *, rename=None,
                     convert=True) -> None:
    """Loads the state of an object. The arguments are those of load_npz()."""
    arrays = _core.load_safetensors(str(file), _tensors_in(file))
    values = {name: _saved(array) for name, array in arrays.items()}
    _load(values, file, obj, path, strict, ignore_names, rename, convert)


_tensor_dtypes = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
                  "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}


def _tensors_in(file):
    """The dtypes and shapes of the arrays in the file. The rest of the format is checked by C++."""
    import json

    def fail(got):
        raise _core.DataError(f"[load_safetensors] {file}: expected a .safetensors file, got {got}")
    with _opened(file, "a .safetensors file") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > os.fstat(opened.fileno()).st_size - 8:
            fail(_core.file_kind(file) or f"a header of {length} bytes, which the file lacks")
        try:
            header = json.loads(opened.read(length))
            return {name: (_tensor_dtypes[entry["dtype"]], entry["shape"])
                    for name, entry in header.items()
                    if name != "__metadata__" and entry["dtype"] in _tensor_dtypes}
        except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError):
            fail("a header that does not describe tensors")


def _h5py():
    try:
        import h5py
    except ImportError:
        raise RuntimeError("[hdf5] h5py: expected the package h5py, got none: pip install h5py"
                           ) from None
    return h5py


class HDF5Serializer(Serializer):
    """Stores values in a group of an HDF5 file."""

    def __init__(self, group, compression=4) -> None:
        self._h5py = _h5py()
        self.group = group
        self.compression = compression

    def __getitem__(self, key) -> Any:
        return HDF5Serializer(self.group.require_group(self.group.name + "/" + key),
                              self.compression)

    def __call__(self, key, value) -> Any:
        data = self._h5py.Empty("f") if value is None else _saved(value)
        compression = self.compression if value is not None and data.size > 1 else None
        self.group.create_dataset(key, data=data, compression=compression)
        return value


class HDF5Deserializer(Deserializer):
    """Loads values from a group of an HDF5 file; None is the group of a name that it lacks."""

    def __init__(self, group, strict=True) -> None:
        _h5py()
        self.group = group
        self.strict = strict

    def __getitem__(self, key) -> Any:
        group = None if self.group is None else self.group.get(key.strip("/"))
        return HDF5Deserializer(group, self.strict)

    def __call__(self, key, value) -> Any:
        if self.group is None and self.strict:
            raise ValueError("Inexistent group is specified")
        if not self.strict and (self.group is None or key not in self.group):
            return value
        dataset = self.group[key]
        return None if dataset.shape is None else _restored(
            numpy.asarray(dataset), value, f"{self.group.name}/{key}")


def save_hdf5(filename, obj, compression=4) -> None:
    """Saves an object, or a dict of arrays, as HDF5. Needs the package h5py."""
    with _h5py().File(filename, "w") as file:
        serializer = HDF5Serializer(file, compression)
        if isinstance(obj, dict):
            for key, value in obj.items():
                serializer("/" + key.lstrip("/"), value)
        else:
            serializer.save(obj)


def load_hdf5(filename, obj) -> None:
    """Loads the state of an object. Needs the package h5py."""
    h5py = _h5py()
    with _opened(filename, "an HDF5 file"):
        pass
    if not h5py.is_hdf5(filename):
        raise _core.DataError(f"[load_hdf5] {filename}: expected an HDF5 file, got "
                              f"{_core.file_kind(filename) or 'other data'}")
    with h5py.File(filename, "r") as file:
        HDF5Deserializer(file).load(obj)
