"""Files with the state of objects: .npz as Chainer writes them, .safetensors and HDF5."""
import pickle

import numpy

from catena import _core
from catena.serializer import Deserializer, Serializer

__all__ = ["DictionarySerializer", "HDF5Deserializer", "HDF5Serializer", "NpzDeserializer",
           "load_hdf5", "load_npz", "load_safetensors", "save_hdf5", "save_npz", "save_safetensors"]


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


def _restored(dataset, value):
    """What an object that has `value` keeps of a value in a file. Arrays are written in place."""
    if dataset.dtype == object and dataset[()] is None:
        return None
    dataset = _loaded(dataset)
    if value is None:
        return dataset
    if isinstance(value, numpy.ndarray):
        is_known = value.dtype.kind != "V"
        numpy.copyto(value, dataset if is_known else dataset.astype(value.dtype))
        return value
    if isinstance(value, _core.Array):
        value.copy_from(_core.as_array(dataset).astype(str(value.dtype)))
        return value
    kind = type(value)
    integers = issubclass(dataset.dtype.type, numpy.integer) and issubclass(kind, int)
    if (issubclass(dataset.dtype.type, numpy.number) and not integers
            and not numpy.can_cast(dataset.dtype, kind, casting="safe")):
        raise TypeError(f"[load] value: expected one that {kind.__name__} can represent, got an "
                        f"array of {dataset.dtype}")
    return kind(dataset)


class DictionarySerializer(Serializer):
    """Stores values in a dict, under their paths: "l1/W".

    Attributes:
        target: the dict.
    """

    def __init__(self, target=None, path=""):
        self.target = {} if target is None else target
        self.path = path

    def __getitem__(self, key):
        return DictionarySerializer(self.target, self.path + key.strip("/") + "/")

    def __call__(self, key, value):
        self.target[self.path + key.lstrip("/")] = _saved(value)
        return value


def serialize(obj):
    """The state of an object as a dict of arrays."""
    serializer = DictionarySerializer()
    serializer.save(obj)
    return serializer.target


def save_npz(file, obj, compression=True):
    """Saves an object, or a dict of arrays.

    Args:
        file: a path, or a file that is open for writing bytes.
        obj: an object with a method serialize(), or a dict.
        compression: whether to compress the file.
    """
    values = obj if isinstance(obj, dict) else serialize(obj)
    save = numpy.savez_compressed if compression else numpy.savez
    if hasattr(file, "write"):
        save(file, **values)
        return
    with open(file, "wb") as opened:
        save(opened, **values)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads None, which NumPy stores as a pickle, and refuses all that could run other code."""

    _allowed = {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode"),
                ("numpy.core.multiarray", "_reconstruct"),
                ("numpy._core.multiarray", "_reconstruct")}

    def find_class(self, module, name):
        if (module, name) not in self._allowed:
            raise pickle.UnpicklingError(f"expected an array, number, text or None, got {module}."
                                         f"{name}")
        return super().find_class(module, name)


def _read(npz, key):
    if key not in getattr(npz, "files", npz):  # old versions of NumPy read the array for `in npz`
        raise KeyError(f"{key} is not a name in the file")
    try:
        return npz[key]
    except ValueError:  # an array of objects
        if not hasattr(npz, "zip"):
            raise
    from numpy.lib import format
    with npz.zip.open(key if key in npz.zip.namelist() else key + ".npy") as file:
        read_header = (format.read_array_header_1_0 if format.read_magic(file) == (1, 0)
                       else format.read_array_header_2_0)
        read_header(file)
        return _ArrayUnpickler(file).load()


class NpzDeserializer(Deserializer):
    """Loads values from an open .npz file, or a dict of arrays.

    Args:
        npz: the file or dict.
        path: the prefix of all names.
        strict: whether a name that the file lacks is an error; otherwise its value stays.
        ignore_names: names whose values stay: a str, a function of a name that returns whether to
            ignore it, or a list of these.
    """

    def __init__(self, npz, path="", strict=True, ignore_names=None):
        self.npz = npz
        self.path = path
        self.strict = strict
        self.ignore_names = [] if ignore_names is None else ignore_names

    def __getitem__(self, key):
        path = self.path + key.strip("/") + "/"
        return type(self)(self.npz, path, self.strict, self.ignore_names)

    def _ignores(self, key):
        names = self.ignore_names
        for name in names if isinstance(names, (list, tuple)) else [names]:
            if not isinstance(name, str) and not callable(name):
                raise ValueError("[load_npz] ignore_names: expected a str, a callable or a list of "
                                 f"them, got {type(name).__name__}")
            if name == key if isinstance(name, str) else name(key):
                return True
        return False

    def __call__(self, key, value):
        key = self.path + key.lstrip("/")
        is_missing = not self.strict and key not in getattr(self.npz, "files", self.npz)
        if is_missing or self._ignores(key):
            return value
        return _restored(_read(self.npz, key), value)


def load_npz(file, obj, path="", strict=True, ignore_names=None):
    """Loads the state of an object from a file that save_npz() of catena or Chainer wrote.

    Args:
        file: a path, or a file that is open for reading bytes.
        obj: the object.
        path: the prefix of the names to load, such as "updater/model:main/".
        strict, ignore_names: see NpzDeserializer.
    """
    with numpy.load(file, allow_pickle=False) as npz:
        NpzDeserializer(npz, path, strict, ignore_names).load(obj)


def save_safetensors(file, obj):
    """Saves an object, or a dict of arrays, as .safetensors, which many other programs read.

    The file has no place for None and texts.
    """
    values = obj if isinstance(obj, dict) else _Tensors.of(obj)
    _core.save_safetensors(str(file), values)


class _Tensors(DictionarySerializer):
    @classmethod
    def of(cls, obj):
        serializer = cls()
        serializer.save(obj)
        return serializer.target

    def __getitem__(self, key):
        return _Tensors(self.target, self.path + key.strip("/") + "/")

    def __call__(self, key, value):
        name = self.path + key.lstrip("/")
        if value is None or isinstance(value, str):
            raise TypeError(f"[save_safetensors] {name}: expected an array or a number, got "
                            f"{value!r}; save_npz() stores it")
        self.target[name] = value if isinstance(value, _core.Array) else numpy.asarray(value)
        return value


def load_safetensors(file, obj, path="", strict=True, ignore_names=None):
    """Loads the state of an object. The arguments are those of load_npz()."""
    arrays = _core.load_safetensors(str(file), _tensors_in(file))
    values = {name: _loaded(_saved(array)) for name, array in arrays.items()}
    NpzDeserializer(values, path, strict, ignore_names).load(obj)


_tensor_dtypes = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
                  "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}


def _tensors_in(file):
    """The dtypes and shapes of the arrays in the file. The rest of the format is checked by C++."""
    import json
    with open(file, "rb") as opened:
        try:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
            return {name: (_tensor_dtypes[entry["dtype"]], entry["shape"])
                    for name, entry in header.items()
                    if name != "__metadata__" and entry["dtype"] in _tensor_dtypes}
        except (AttributeError, LookupError, MemoryError, OverflowError, TypeError,
                ValueError) as error:
            raise _core.DataError(f"[safetensors] {file}: expected a header that describes "
                                  f"tensors, got {error!r}") from None


def _h5py():
    try:
        import h5py
    except ImportError:
        raise RuntimeError("[hdf5] h5py: expected the package h5py, got none: pip install h5py"
                           ) from None
    return h5py


class HDF5Serializer(Serializer):
    """Stores values in a group of an HDF5 file."""

    def __init__(self, group, compression=4):
        self._h5py = _h5py()
        self.group = group
        self.compression = compression

    def __getitem__(self, key):
        return HDF5Serializer(self.group.require_group(self.group.name + "/" + key),
                              self.compression)

    def __call__(self, key, value):
        data = self._h5py.Empty("f") if value is None else _saved(value)
        compression = self.compression if value is not None and data.size > 1 else None
        self.group.create_dataset(key, data=data, compression=compression)
        return value


class HDF5Deserializer(Deserializer):
    """Loads values from a group of an HDF5 file; None is the group of a name that it lacks."""

    def __init__(self, group, strict=True):
        _h5py()
        self.group = group
        self.strict = strict

    def __getitem__(self, key):
        group = None if self.group is None else self.group.get(key.strip("/"))
        return HDF5Deserializer(group, self.strict)

    def __call__(self, key, value):
        if self.group is None and self.strict:
            raise ValueError("Inexistent group is specified")
        if not self.strict and (self.group is None or key not in self.group):
            return value
        dataset = self.group[key]
        return None if dataset.shape is None else _restored(numpy.asarray(dataset), value)


def save_hdf5(filename, obj, compression=4):
    """Saves an object, or a dict of arrays, as HDF5. Needs the package h5py."""
    with _h5py().File(filename, "w") as file:
        serializer = HDF5Serializer(file, compression)
        if isinstance(obj, dict):
            for key, value in obj.items():
                serializer("/" + key.lstrip("/"), value)
        else:
            serializer.save(obj)


def load_hdf5(filename, obj):
    """Loads the state of an object. Needs the package h5py."""
    with _h5py().File(filename, "r") as file:
        HDF5Deserializer(file).load(obj)
