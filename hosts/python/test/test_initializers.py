"""Initializers: the same values as Chainer's from the same seed, dtypes, errors."""
import numpy
import pytest

import catena
from catena import initializers

CASES = [
    ("Constant", (2.5,), {}), ("Zero", (), {}), ("One", (), {}), ("NaN", (), {}),
    ("Identity", (), {}), ("Identity", (3.0,), {}), ("Normal", (), {}), ("Normal", (2.0,), {}),
    ("LeCunNormal", (), {}), ("LeCunNormal", (0.5,), {}), ("GlorotNormal", (), {}),
    ("HeNormal", (), {}), ("HeNormal", (2.0,), {"fan_option": "fan_out"}), ("Uniform", (), {}),
    ("Uniform", (3.0,), {}), ("LeCunUniform", (), {}), ("GlorotUniform", (), {}),
    ("HeUniform", (2.0,), {}), ("Orthogonal", (), {}),
    ("Orthogonal", (2.0,), {"mode": "embedding"}), ("UpsamplingDeconvFilter", (), {}),
    ("DownsamplingConvFilter", (), {})]


def shapes_of(name):
    if name == "Identity":
        return [(3, 3), (1, 1), (0, 0)]
    if name.endswith("Filter"):
        return [(2, 2, 3, 3), (3, 1, 4, 4), (1, 1, 5), (2, 2, 1, 1)]
    if name == "Orthogonal":
        return [(4, 3), (4, 2, 2), (3, 3), ()]
    if name in ("Constant", "Zero", "One", "NaN", "Normal", "Uniform"):
        return [(), (1,), (0, 3), (2, 3), (2, 3, 4, 5)]
    return [(2, 3), (1, 1), (2, 3, 4, 5), (0, 3)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name, args, kwargs", CASES)
def test_values_are_chainers(name, args, kwargs, dtype):
    chainer = pytest.importorskip("chainer")
    for shape in shapes_of(name):
        if "fan_option" in kwargs and 0 in shape:
            continue  # there is no fan_out
        expected, found = [], []
        for module, results in [(chainer.initializers, expected), (initializers, found)]:
            initializer = getattr(module, name)(*args, dtype=dtype, **kwargs)
            array = numpy.empty(shape, dtype)
            numpy.random.seed(0)
            for _ in range(2):
                initializer(array)
                results.append(array.copy())
        numpy.testing.assert_array_equal(found, expected)
        assert found[0].dtype == dtype


@pytest.mark.parametrize("name", ["Normal", "HeNormal", "Uniform", "LeCunUniform", "Orthogonal"])
def test_own_generator(name):
    chainer = pytest.importorskip("chainer")
    arrays = [numpy.empty((4, 3), "float32") for _ in range(2)]
    for module, array in zip([chainer.initializers, initializers], arrays):
        getattr(module, name)(rng=numpy.random.RandomState(3))(array)
    numpy.testing.assert_array_equal(*arrays)


def test_wide_matrix_has_orthonormal_rows():
    array = numpy.empty((2, 3, 2))
    initializers.Orthogonal(2.0, mode="projection")(array)
    matrix = array.reshape(2, 6)
    numpy.testing.assert_allclose(matrix @ matrix.T, 4 * numpy.identity(2), atol=1e-12)


def test_every_name_of_chainer():
    chainer = pytest.importorskip("chainer")
    names = {name for name, value in vars(chainer.initializers).items()
             if isinstance(value, type) and issubclass(value, chainer.Initializer)}
    assert names == {case[0] for case in CASES}
    assert names < set(initializers.__all__)


def test_generate_array():
    zeros = initializers.generate_array(initializers.Zero(), (2, 3), numpy)
    assert isinstance(zeros, numpy.ndarray) and zeros.dtype == "float32" and not zeros.any()
    assert initializers.generate_array(initializers.One("float16"), 3).dtype == "float16"
    assert initializers.generate_array(initializers.One(), (), dtype="float64").dtype == "float64"
    with catena.using_config("dtype", "float16"):
        assert initializers.generate_array(initializers.One(), (2,)).dtype == "float16"
        assert catena.links.Linear(2, 3).W.dtype == "float16"
    with catena.using_config("dtype", catena.mixed16):
        assert initializers.generate_array(initializers.One(), (2,)).dtype == "float16"
    filled = initializers.generate_array(lambda array: array.fill(4), (2,))
    assert filled.tolist() == [4, 4]
    with pytest.raises(ValueError, match="dtype mismatch: float64 != float16"):
        initializers.generate_array(initializers.One("float16"), (2,), numpy, dtype="float64")


def test_get_dtype():
    assert catena.get_dtype() == "float32"
    assert catena.get_dtype("float64") == numpy.float64
    assert catena.get_dtype(catena.mixed16) == "float16"
    assert catena.get_dtype(catena.mixed16, map_mixed16="float32") == "float32"
    assert catena.get_dtype("float16", map_mixed16="float32") == "float16"
    assert repr(catena.mixed16) == "dtype('mixed16')"


def test_bfloat16():
    array = initializers.generate_array(initializers.Constant(1.5, dtype="bfloat16"), (2, 3))
    parameter = catena.Parameter(initializers.Normal(dtype="bfloat16"), (4,))
    assert str(array.dtype) == str(parameter.dtype) == "bfloat16"
    assert catena.Variable(array).array.shape == (2, 3)
    with catena.using_config("dtype", "bfloat16"):
        layer = catena.links.LSTM(3, 2)
    assert {str(p.dtype) for p in layer.params()} == {"bfloat16"}
    sums = catena.functions.sum(catena.functions.cast(layer.upward.b, "float32"))
    assert float(sums.array) == 2


def test_arrays_of_catena():
    array = catena.Variable(numpy.zeros((2, 3), "float32"))._array
    initializers.Constant(numpy.arange(3.0))(array)
    assert numpy.asarray(array).tolist() == [[0, 1, 2], [0, 1, 2]]
    initializers.Constant(catena.Variable(numpy.ones(3, "float32"))._array)(array)
    assert numpy.asarray(array).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_initializer_from_values():
    get = initializers._get_initializer
    assert isinstance(get(None), initializers.LeCunNormal)
    assert get(3).fill_value == 3 and get(numpy.float32(2)).fill_value == 2
    array = numpy.ones(3)
    assert get(array).fill_value is array
    zero = initializers.Zero()
    assert get(zero) is zero and get(len) is len
    with pytest.raises(TypeError, match="invalid type of initializer: <class 'list'>"):
        get([1, 2])


def test_own_initializer():
    class Fans(catena.initializer.Initializer):
        def __call__(self, array):
            array[...] = catena.initializer.get_fans(array.shape)[0]

    assert layer(Fans()).W.array.tolist() == [[3, 3, 3]] * 2
    assert layer(Fans("float64")).W.dtype == "float64"


def layer(initializer):
    return catena.links.Linear(3, 2, initialW=initializer)


def test_get_fans():
    assert initializers.get_fans((5, 3)) == (3, 5)
    assert initializers.get_fans((5, 3, 2, 4)) == (24, 40)
    with pytest.raises(ValueError, match="shape must be tuple"):
        initializers.get_fans([2, 3])
    with pytest.raises(ValueError, match="shape must be of length >= 2"):
        initializers.get_fans((2,))


@pytest.mark.parametrize("initializer, shape, error, message", [
    (initializers.Identity(), (2, 3), ValueError, "2D squared"),
    (initializers.HeNormal(fan_option="both"), (2, 3), ValueError, "'fan_in' or 'fan_out'"),
    (initializers.LeCunNormal(), (3,), ValueError, "length >= 2"),
    (initializers.Orthogonal(), (0, 3), ValueError, "must be non-empty"),
    (initializers.Orthogonal(mode="embedding"), (2, 3), ValueError, "3-dim input and 2-dim output"),
    (initializers.Orthogonal(mode="projection"), (3, 2), ValueError, "orthogonal projection"),
    (initializers.Orthogonal(mode="basis"), (3, 2), ValueError, "orthogonal basis"),
    (initializers.UpsamplingDeconvFilter(), (2, 2, 3, 4), ValueError, "ksize must be all same"),
    (initializers.UpsamplingDeconvFilter(), (2, 3, 3, 3), AssertionError, "2 or 1 output channels"),
    (initializers.Normal(dtype="float64"), (2,), AssertionError, "float32 != float64"),
    (initializers.Initializer(), (2,), NotImplementedError, None),
])
def test_wrong_arrays(initializer, shape, error, message):
    with pytest.raises(error, match=message):
        initializer(numpy.empty(shape, "float32"))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Invalid mode: 'x'. Choose from 'auto', 'projection'"):
        initializers.Orthogonal(mode="x")
    with pytest.raises(ValueError, match="Unsupported interpolation method: cubic"):
        initializers.UpsamplingDeconvFilter("cubic")
    with pytest.raises(ValueError, match="fill_value must be either scalar"):
        initializers.Constant([1, 2])
    with pytest.raises(TypeError):
        initializers.Normal(0.1, unknown=1)
