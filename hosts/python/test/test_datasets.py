"""Datasets and converters, compared with Chainer's."""
import copy
import gzip
import pathlib
import pickle
import struct
import sys
import tarfile
import zipfile

import numpy
import pytest

import catena
from catena import dataset, datasets
from catena.dataset import concat_examples


def both(function):
    """The result of a function of the package, which must be the same with Chainer."""
    chainer = pytest.importorskip("chainer")
    found = [function(catena), function(chainer)]
    assert_equal(*found)
    return found[0]


def assert_equal(x, y):
    assert type(x) is type(y)
    if isinstance(x, (tuple, list)):
        assert len(x) == len(y)
        for a, b in zip(x, y):
            assert_equal(a, b)
    elif isinstance(x, dict):
        assert list(x) == list(y)
        for key in x:
            assert_equal(x[key], y[key])
    elif isinstance(x, numpy.ndarray):
        assert x.dtype == y.dtype
        numpy.testing.assert_array_equal(x, y)
    else:
        assert x == y


def arrays(*shapes, dtype="float32"):
    return [numpy.arange(numpy.prod(shape), dtype=dtype).reshape(shape) for shape in shapes]


@pytest.mark.parametrize("batch", [
    [1, 2, 3], [1.5], [[1, 2], [3, 4]], [(1, 2.5), (3, 4.5)], [{"x": 1, "y": [2]}] * 2,
    arrays((2, 3), (2, 3)), arrays((2,), (2,), dtype="float16"), [numpy.int32(3)] * 2,
    [(x, 3) for x in arrays((0, 2), (0, 2))], [(x,) for x in arrays((), ())]],
    ids=lambda batch: str(batch)[:20])
def test_concat(batch):
    both(lambda package: package.dataset.concat_examples(batch))


@pytest.mark.parametrize("padding", [7, 0, -1.0])
def test_padding(padding):
    both(lambda p: p.dataset.concat_examples(arrays((2, 1), (1, 3), (0, 0)), padding=padding))
    pairs = list(zip(arrays((2,), (3,)), arrays((1,), (2,))))
    both(lambda p: p.dataset.concat_examples(pairs, padding=(padding, 1)))
    dicts = [{"a": x, "b": y} for x, y in pairs]
    both(lambda p: p.dataset.concat_examples(dicts, padding={"a": padding, "b": 2}))


def test_wrong_batches():
    with pytest.raises(ValueError, match="batch is empty"):
        concat_examples([])
    with pytest.raises(ValueError):
        concat_examples(arrays((2,), (3,)))


def test_devices():
    x, t = concat_examples([(numpy.ones(2, "float32"), 1)] * 3, -1)
    assert isinstance(x, numpy.ndarray) and isinstance(t, numpy.ndarray)
    x, t = concat_examples([(numpy.ones(2, "float32"), 1)] * 3, device="cpu:1")
    assert isinstance(x, catena.Array) and str(x.device) == str(t.device) == "cpu:1"
    numpy.testing.assert_array_equal(dataset.to_device(-1, x), numpy.ones((3, 2)))
    made = concat_examples([x, x])
    assert isinstance(made, catena.Array) and str(made.device) == "cpu:1"
    assert made.shape == (2, 3, 2)
    host = numpy.ones(2)
    assert dataset.to_device(None, host) is host
    assert dataset.to_device(-1, host) is host


def test_converters():
    seen = []

    @dataset.converter()
    def new_style(batch, device):
        seen.append(device)
        return batch

    class Own(dataset.Converter):
        def __call__(self, batch, device):
            return new_style(batch, device)

    assert new_style([1], -1) == [1]
    assert Own()([2], device=None) == [2]
    assert new_style([3], device="cpu:0") == [3]
    assert seen == [catena.Device(-1), None, catena.Device("cpu:0")]
    with pytest.raises(NotImplementedError, match="Concrete class must implement __call__"):
        dataset.Converter()([1], None)
    with pytest.raises(TypeError, match="Can only wrap a callable"):
        dataset.converter()(3)


def test_old_converters_get_numbers():
    from catena.dataset.convert import _call_converter
    assert _call_converter(lambda batch, device: device, [], catena.Device(-1)) == -1
    assert _call_converter(lambda batch, device: device, [], None) is None


class Squares(dataset.DatasetMixin):
    def __len__(self):
        return 5

    def get_example(self, i):
        if i >= 5:
            raise IndexError
        return i * i


def test_mixin():
    squares = Squares()
    assert squares[2] == 4 and squares[-1] == 1
    assert squares[1:4] == [1, 4, 9] and squares[::-2] == [16, 4, 0]
    assert squares[[3, 0]] == [9, 0] and squares[numpy.array([1, 1])] == [1, 1]
    assert list(squares) == [0, 1, 4, 9, 16]
    with pytest.raises(NotImplementedError):
        len(dataset.DatasetMixin())


def test_tuples_and_dictionaries():
    def check(package):
        pairs = package.datasets.TupleDataset(numpy.arange(4), [5, 6, 7, 8])
        named = package.datasets.DictDataset(a=numpy.arange(4), b=[5, 6, 7, 8])
        transformed = package.datasets.TransformDataset(pairs, lambda pair: pair[0] + pair[1])
        joined = package.datasets.ConcatenatedDataset([1, 2], [], [3])
        return [len(pairs), pairs[1], pairs[1:3], pairs[:0], len(named), named[2], named[2:],
                len(transformed), transformed[3], transformed[1:3], len(joined), joined[2],
                joined[:]]

    both(check)
    for kind, arguments, keywords, message in [
            (datasets.TupleDataset, (), {}, "no datasets are given"),
            (datasets.TupleDataset, ([1], [2, 3]), {}, "dataset of the index 1 has a wrong length"),
            (datasets.DictDataset, (), {}, "no datasets are given"),
            (datasets.DictDataset, (), {"a": [1], "b": []}, 'dataset length conflicts at "b"')]:
        with pytest.raises(ValueError, match=message):
            kind(*arguments, **keywords)
    with pytest.raises(IndexError):
        datasets.ConcatenatedDataset([1])[1]


def test_parts():
    data = [10 * i for i in range(7)]

    def check(package):
        d = package.datasets
        parts = [d.SubDataset(data, 1, 4), d.SubDataset(data, 0, 2, order=[6, 5, 4, 3, 2, 1, 0])]
        parts += d.split_dataset(data, 3) + d.split_dataset(data, 0) + d.split_dataset(data, 7)
        parts += d.split_dataset_random(data, 3, seed=1)
        parts += d.split_dataset_n(data, 3) + d.split_dataset_n_random(data, 2, seed=1)
        for pair in (d.get_cross_validation_datasets(data, 3)
                     + d.get_cross_validation_datasets(data, 2, order=[6, 5, 4, 3, 2, 1, 0])
                     + d.get_cross_validation_datasets_random(data, 3, seed=2)):
            parts += pair
        return [part[:] for part in parts] + [parts[0][-1], parts[0][-3], len(parts[0])]

    both(check)
    part = datasets.SubDataset(data, 1, 4)
    for index in (3, -4):
        with pytest.raises(IndexError, match="dataset index out of range"):
            part[index]
    with pytest.raises(ValueError, match="subset overruns the base dataset"):
        datasets.SubDataset(data, 0, 8)
    with pytest.raises(ValueError, match=r"len\(order\) = 1 while len\(dataset\) = 7"):
        datasets.SubDataset(data, 0, 1, order=[0])
    with pytest.raises(TypeError, match="split_at must be int"):
        datasets.split_dataset(data, 1.5)
    with pytest.raises(ValueError, match="must be non-negative"):
        datasets.split_dataset(data, -1)
    with pytest.raises(ValueError, match="split_at exceeds the dataset size"):
        datasets.split_dataset(data, 8)


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    colors = numpy.arange(2 * 3 * 3, dtype=numpy.uint8).reshape(2, 3, 3)
    image.fromarray(colors).save(tmp_path / "a.png")
    image.fromarray(colors[..., 0]).save(tmp_path / "b.png")
    (tmp_path / "list").write_text("a.png 3\nb.png 1\n")
    (tmp_path / "names").write_text("a.png\nb.png\n")

    root = str(tmp_path)
    plain = datasets.ImageDataset(["a.png", "b.png"], root=root)
    named = datasets.ImageDataset(str(tmp_path / "names"), root=root, dtype="uint8")
    labeled = datasets.LabeledImageDataset(str(tmp_path / "list"), root=root)
    assert len(plain) == len(named) == len(labeled) == 2
    assert plain[0].dtype == "float32" and named[0].dtype == "uint8"
    for images in (plain[:], named[:], [x for x, _ in labeled[:]]):
        numpy.testing.assert_array_equal(images[0], colors.transpose(2, 0, 1))
        numpy.testing.assert_array_equal(images[1], colors[None, ..., 0])
    label = labeled[0][1]
    assert label == 3 and label.shape == () and label.dtype == "int32"
    assert datasets.LabeledImageDataset([("a.png", 5)], root, label_dtype="int64")[0][1] == 5
    (tmp_path / "list").write_text("a.png\n")
    with pytest.raises(ValueError, match="invalid format at line 0 in file"):
        datasets.LabeledImageDataset(str(tmp_path / "list"))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("CATENA_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    before = dataset.get_dataset_root()
    dataset.set_dataset_root(str(tmp_path))
    yield tmp_path
    dataset.set_dataset_root(before)


def write_idx(path, array, compress):
    data = struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()
    if compress:
        (path.parent / (path.name + ".gz")).write_bytes(gzip.compress(data))
    else:
        path.write_bytes(data)


def write_mnist(folder, compress=True):
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.RandomState(0)
    for part, n in (("train", 5), ("t10k", 3)):
        write_idx(folder / f"{part}-images-idx3-ubyte",
                  random.randint(0, 256, (n, 28, 28)).astype(numpy.uint8), compress)
        write_idx(folder / f"{part}-labels-idx1-ubyte",
                  random.randint(0, 10, n).astype(numpy.uint8), not compress)


@pytest.mark.parametrize("place", ["pfnet/chainer/mnist", "mnist", "."])
def test_mnist_from_files(root, place):
    write_mnist(root / place, compress=place == "mnist")
    train, test = datasets.get_mnist()
    assert len(train) == 5 and len(test) == 3
    image, label = train[0]
    assert image.shape == (784,) and image.dtype == "float32" and label.dtype == "int32"
    assert 0.9 < train[:][0][0].max() <= 1
    images, _ = datasets.get_mnist(withlabel=False, ndim=3, scale=255, dtype="float16",
                                   rgb_format=True)
    assert images.shape == (5, 3, 28, 28) and images.dtype == "float16" and images.max() == 255
    assert datasets.get_mnist(ndim=2, label_dtype="int64")[1][0][0].shape == (28, 28)
    with pytest.raises(ValueError, match="invalid ndim for MNIST dataset"):
        datasets.get_mnist(ndim=4)


def test_mnist_in_catenas_folder(tmp_path, root, monkeypatch):
    write_mnist(tmp_path / "data" / "fashion-mnist")
    monkeypatch.setenv("CATENA_DATA", str(tmp_path / "data"))
    assert len(datasets.get_fashion_mnist()[0]) == 5
    assert len(datasets.get_fashion_mnist_labels()) == 10


def test_files_of_chainer(root, monkeypatch):
    """What Chainer has downloaded is used, and gives the same arrays."""
    chainer = pytest.importorskip("chainer")
    write_mnist(root / "mnist")
    expected = [datasets.get_mnist(ndim=n, scale=2.0)[0][:] for n in (1, 2, 3)]
    raw = datasets.get_mnist(scale=255)
    folder = root / "pfnet" / "chainer" / "mnist"
    folder.mkdir(parents=True)
    for name, part in zip(("train", "test"), raw):
        numpy.savez(folder / name, x=numpy.stack([x for x, _ in part[:]]).astype(numpy.uint8),
                    y=numpy.array([t for _, t in part[:]], numpy.uint8))
    monkeypatch.setattr(chainer.dataset.download, "_dataset_root", str(root))
    for n, given in zip((1, 2, 3), expected):
        found = both(lambda p: p.datasets.get_mnist(ndim=n, scale=2.0)[0][:])
        assert_equal(found, given)


def test_digits(root, monkeypatch):
    train, test = datasets.get_digits()
    assert len(train) == 10000 and len(test) == 2000 and train[0][0].shape == (784,)
    assert sorted(set(int(t) for _, t in test)) == list(range(10))
    assert datasets.get_digits(withlabel=False, ndim=3)[1].shape == (2000, 1, 28, 28)
    monkeypatch.setattr(catena, "__path__", [str(root)])
    with pytest.raises(FileNotFoundError, match="expected the file train-images-idx3-ubyte.gz"):
        datasets.get_digits()


def test_downloads(root, tmp_path):
    file = tmp_path / "source"
    file.write_text("content")
    path = dataset.cached_download(file.as_uri())
    file.write_text("other")
    assert dataset.cached_download(file.as_uri()) == path
    assert open(path).read() == "content"
    with pytest.raises(OSError, match="cached_download.*none: expected to download"):
        dataset.cached_download((tmp_path / "none").as_uri())


def test_cache_or_load(root):
    path = str(root / "folder" / "file")

    def create(temporary):
        with open(temporary, "w") as file:
            file.write("made")
        return 1

    assert dataset.cache_or_load_file(path, create, None) == 1
    assert dataset.cache_or_load_file(path, None, lambda path: open(path).read()) == "made"
    with pytest.raises(RuntimeError, match="creator: expected a function that writes"):
        dataset.cache_or_load_file(path + "2", lambda path: None, None)
    folder = dataset.get_dataset_directory("a/b", create_directory=False)
    assert folder == str(root / "a" / "b") and not (root / "a").exists()
    assert dataset.get_dataset_directory("a/b") == folder and (root / "a" / "b").is_dir()


def test_cifar(root):
    rng = numpy.random.RandomState(0)

    def batch(n, labels):
        return {"data": rng.randint(0, 256, (n, 3072)).astype(numpy.uint8), labels: [1] * n}

    for name, parts, labels in [
            ("cifar-10", [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"], "labels"),
            ("cifar-100", ["train", "test"], "fine_labels")]:
        (root / "cifar").mkdir(exist_ok=True)
        with tarfile.open(root / "cifar" / f"{name}-python.tar.gz", "w:gz") as archive:
            for part in parts:
                (root / part).write_bytes(pickle.dumps(batch(2, labels)))
                archive.add(root / part, f"folder/{part}")
    train, test = datasets.get_cifar10()
    assert len(train) == 10 and len(test) == 2 and train[0][0].shape == (3, 32, 32)
    assert train[0][1] == 1 and train[0][0].dtype == "float32" and train[0][0].max() <= 1
    assert datasets.get_cifar100(withlabel=False, ndim=1)[1].shape == (2, 3072)
    with pytest.raises(ValueError, match="invalid ndim for CIFAR dataset"):
        datasets.get_cifar10(ndim=2)


def test_ptb(root):
    (root / "ptb").mkdir()
    (root / "ptb" / "ptb.train.txt").write_text(" a b a \n c\n")
    (root / "ptb" / "ptb.valid.txt.gz").write_bytes(gzip.compress(b"c a\n"))
    (root / "ptb" / "ptb.test.txt").write_text("")
    assert datasets.get_ptb_words_vocabulary() == {"a": 0, "b": 1, "<eos>": 2, "c": 3}
    train, valid, test = datasets.get_ptb_words()
    assert train.tolist() == [0, 1, 0, 2, 3, 2] and train.dtype == "int32"
    assert valid.tolist() == [3, 0, 2] and test.tolist() == []


def test_text(tmp_path):
    (tmp_path / "a.txt").write_bytes("hello\nté\n\nlast".encode())
    (tmp_path / "b.txt").write_bytes(b"1\r\n2\r\n3\r\n4")
    a, b = (str(tmp_path / name) for name in ("a.txt", "b.txt"))

    def read(package):
        made = [package.datasets.TextDataset(a, "utf-8"),
                package.datasets.TextDataset([a, b], ["utf-8", None], newline=["", ""]),
                package.datasets.TextDataset(a, "ascii", "ignore", filter_func=lambda x: x != "\n")]
        return [(len(each), each[:]) for each in made]
    assert both(read)[0] == (4, ["hello\n", "té\n", "\n", "last"])
    both_files = datasets.TextDataset([tmp_path / "a.txt", b], "utf-8")
    assert both_files[1] == ("té\n", "2\n")
    copied = pickle.loads(pickle.dumps(both_files))
    assert copied[3] == both_files[3] == ("last", "4") and len(copied) == 4
    both_files.close()
    with pytest.raises(ValueError):
        both_files[0]
    for i in (-1, 4):
        with pytest.raises(IndexError):
            copied[i]
    (tmp_path / "c.txt").write_text("1\n")
    with pytest.raises(ValueError, match="equal numbers of lines.*c.txt"):
        datasets.TextDataset([a, str(tmp_path / "c.txt")], "utf-8")
    with pytest.raises(ValueError, match="encoding: expected a value for each of 1 files"):
        datasets.TextDataset([a], ["utf-8", "ascii"])
    with pytest.raises(ValueError, match="at least one"):
        datasets.TextDataset([])


def test_pickles(tmp_path):
    path = str(tmp_path / "data.pickle")
    examples = [1, "two", (numpy.arange(3), None), 2.5]
    with datasets.open_pickle_dataset_writer(path) as writer:
        for example in examples[:3]:
            writer.write(example)
        writer.flush()
        writer.write(examples[3])
    with datasets.open_pickle_dataset(path) as opened:
        assert len(opened) == 4 and opened[1] == "two" and opened[[3, 0]] == [2.5, 1]
        assert_equal(opened[2], examples[2])
        copied = pickle.loads(pickle.dumps(opened))
        iterator = catena.iterators.MultiprocessIterator(opened, 2, shuffle=False, n_processes=2)
        for _ in range(4):  # processes do not share the place in the file
            assert iterator.next()[0] == 1 and iterator.next()[1] == 2.5
        iterator.finalize()
    assert copied[0] == 1
    with pytest.raises(ValueError):
        opened[0]
    chainer = pytest.importorskip("chainer")
    with chainer.datasets.open_pickle_dataset(path) as theirs:
        assert_equal(theirs[2], examples[2])

    class Pipe:
        def seekable(self):
            return False
    with pytest.raises(ValueError, match="random access"):
        datasets.PickleDataset(Pipe())


def test_zipped_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for part, names in enumerate([["a.png", "b.png"], [], ["c.png"]]):
        with zipfile.ZipFile(tmp_path / f"{part}.zip", "w") as file:
            file.writestr("folder/", "")
            for name in names:
                pixels = numpy.full((2, 3, 3), ord(name[0]), "uint8")
                image.fromarray(pixels).save(tmp_path / name)
                file.write(tmp_path / name, name)
    (tmp_path / "labels.txt").write_text("b.png 7\na.png 8\n")
    files = [str(tmp_path / f"{i}.zip") for i in range(3)]

    def read(package):
        d = package.datasets
        made = [d.ZippedImageDataset(files[0]), d.MultiZippedImageDataset(files, "uint8"),
                d.LabeledZippedImageDataset(files[0], str(tmp_path / "labels.txt"), "float16")]
        made += [pickle.loads(pickle.dumps(made[1]))]
        return [each[:] for each in made]
    single, several, labeled, _ = both(read)
    assert single[0].shape == (3, 2, 3) and single[0].dtype == numpy.float32
    assert [x[0, 0, 0] for x in several] == [97, 98, 99]
    assert [(x[0, 0, 0], int(t)) for x, t in labeled] == [(98, 7), (97, 8)]
    for i in (3, -4):
        with pytest.raises(IndexError):
            datasets.MultiZippedImageDataset(files)[i]
    iterator = catena.iterators.MultiprocessIterator(
        datasets.MultiZippedImageDataset(files), 3, shuffle=False, n_processes=2)
    assert [x[0, 0, 0] for x in iterator.next()] == [97, 98, 99]
    iterator.finalize()


def test_svhn(root):
    io = pytest.importorskip("scipy.io")
    folder = root / "svhn"
    folder.mkdir(parents=True)
    for part in ("train", "test", "extra"):
        io.savemat(folder / f"{part}_32x32.mat", {
            "X": numpy.full((32, 32, 3, 2), len(part), "uint8"), "y": numpy.array([[10], [3]], "uint8")})
    train, test, extra = datasets.get_svhn(add_extra=True)
    assert len(datasets.get_svhn()) == 2 and train[0][0].shape == (3, 32, 32)
    assert [int(t) for _, t in extra] == [0, 3]
    numpy.testing.assert_allclose(datasets.get_svhn(withlabel=False)[1], 4 / 255, rtol=1e-6)


def test_labels():
    assert both(lambda p: p.datasets.get_kuzushiji_mnist_labels())[3] == ("tsu", "つ")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_converters(duplicate):
    assert duplicate(concat_examples) is concat_examples

    def local(batch, device):
        return batch

    if duplicate is not copy.deepcopy and duplicate is not copy.copy:
        with pytest.raises(Exception, match="local"):
            duplicate(dataset.converter()(local))
    else:
        assert duplicate(dataset.converter()(local))([1], None) == [1]


def test_async_transfer():
    convert = dataset.ConcatWithAsyncTransfer()
    pairs = [(x, 1) for x in arrays((2,), (2,))]
    assert_equal(convert(pairs, -1), concat_examples(pairs, -1))
    assert_equal(convert(arrays((2,), (1,)), -1, padding=0), concat_examples(arrays((2,), (1,)), -1, 0))
    with pytest.raises(ValueError, match="device: expected that of the first call"):
        convert(pairs, "cpu:1")
    with pytest.raises(ValueError, match="batch is empty"):
        convert([])


def test_other_devices():
    """A device that a program defines is the destination of arrays only."""
    class Copies(catena.backend.Device):
        def send_array(self, array):
            return array + 1

    seen = []

    @dataset.converter()
    def convert(batch, device):
        seen.append(device)
        return concat_examples(batch, device)

    device = Copies()
    assert isinstance(device, catena.backend.Device) and not isinstance(device, catena.backend.CpuDevice)
    numpy.testing.assert_array_equal(convert([1, 2], device), [2, 3])
    assert seen == [device]
    with pytest.raises(NotImplementedError, match="send_array"):
        catena.backend.Device.send(type("Other", (catena.backend.Device,), {})(), [1])


def test_text_files_are_closed_although_one_fails(tmp_path):
    paths = [str(tmp_path / name) for name in "abc"]
    for path in paths:
        pathlib.Path(path).write_text("line\n")
    dataset = datasets.TextDataset(paths)
    files = list(dataset._fps)
    dataset._fps[1] = None
    with pytest.raises(AttributeError):
        dataset.close()
    assert [file.closed for file in files] == [True, False, True]


def test_readers_of_pickles_open_their_files_again(tmp_path, monkeypatch):
    path = tmp_path / "data.pickle"
    path.write_bytes(pickle.dumps(1))
    module = sys.modules["catena.datasets.pickle_dataset"]
    files = []
    monkeypatch.setattr(module, "open", lambda *given: files.append(open(*given)) or files[-1], raising=False)
    reader = module._FileReader(str(path))
    reader.after_fork()
    assert [file.closed for file in files] == [True, False]
    copied = pickle.loads(pickle.dumps(reader))
    assert len(files) == 3 and pickle.load(copied) == 1
