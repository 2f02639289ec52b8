"""Each link against Chainer's: initial values, results, gradients, saved names, texts."""
import numpy
import pytest

import catena

RANDOM = numpy.random.RandomState(0)


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def ids(n, *shape):
    return RANDOM.randint(0, n, shape).astype("int32")


X, Y, IMAGE, SMALL = floats(4, 3), floats(4, 5), floats(2, 4, 6, 5), floats(2, 4, 5)
VOLUME = floats(2, 2, 4, 3, 5)
SEQUENCES = [floats(n, 3) for n in (2, 4, 1)]
TREE = ((0, 1), ((2, 3), 4))
COUNTS = [4, 1, 3, 2, 5]


class Case:
    """A link, made by `make(module.links, module)`, and the arguments of calls."""

    def __init__(self, make, *inputs, calls=1, train=True, text=True, dtypes=True):
        self.make = make
        self.inputs = inputs
        self.calls = calls
        self.train = train
        self.text = text
        self.dtypes = ["float32", "float16", "float64"] if dtypes else ["float32"]


CASES = {
    "Linear": [
        Case(lambda L, m: L.Linear(3, 2), X), Case(lambda L, m: L.Linear(7), X),
        Case(lambda L, m: L.Linear(None, 2, nobias=True), IMAGE),
        Case(lambda L, m: L.Linear(3, 2, True, 0.5), X),
        Case(lambda L, m: L.Linear(3, 2, initialW=m.initializers.HeNormal(), initial_bias=3), X),
        Case(lambda L, m: L.Linear.from_params(Y[:, :3], Y[0, :4]), X)],
    "Convolution2D": [
        Case(lambda L, m: L.Convolution2D(4, 3, 3), IMAGE),
        Case(lambda L, m: L.Convolution2D(3, (3, 2), stride=2, pad=(1, 2)), IMAGE),
        Case(lambda L, m: L.Convolution2D(None, 6, 3, 2, (1, 0), True, dilate=2, groups=2), IMAGE),
        Case(lambda L, m: L.Convolution2D.from_params(IMAGE[:, :2, :3, :2], X[0, :2], groups=2),
             IMAGE)],
    "Convolution1D": [
        Case(lambda L, m: L.Convolution1D(4, 3, 3, 2, 1), SMALL),
        Case(lambda L, m: L.Convolution1D(None, 2, 2, dilate=2, cover_all=True), SMALL)],
    "Convolution3D": [Case(lambda L, m: L.Convolution3D(2, 3, (2, 1, 3), 1, 1), VOLUME)],
    "ConvolutionND": [
        Case(lambda L, m: L.ConvolutionND(2, 4, 2, 3), IMAGE),
        Case(lambda L, m: L.ConvolutionND(2, 2, 3), IMAGE),
        Case(lambda L, m: L.ConvolutionND(1, 4, 2, 3, groups=2, nobias=True), SMALL),
        Case(lambda L, m: L.ConvolutionND.from_params(SMALL[:, :, :3]), SMALL)],
    "DilatedConvolution2D": [
        Case(lambda L, m: L.DilatedConvolution2D(4, 3, 3, 1, 1, 2), IMAGE),
        Case(lambda L, m: L.DilatedConvolution2D(3, 2), IMAGE)],
    "DepthwiseConvolution2D": [
        Case(lambda L, m: L.DepthwiseConvolution2D(4, 2, 3, 2, 1), IMAGE),
        Case(lambda L, m: L.DepthwiseConvolution2D(None, 1, (2, 3), nobias=True), IMAGE)],
    "LocalConvolution2D": [
        Case(lambda L, m: L.LocalConvolution2D(4, 3, (6, 5), 3), IMAGE),
        Case(lambda L, m: L.LocalConvolution2D(None, 2, None, (2, 3), nobias=True), IMAGE)],
    "DeformableConvolution2D": [
        Case(lambda L, m: L.DeformableConvolution2D(4, 3, 3, 2, 1, deform_initialW=0.5), IMAGE,
             dtypes=False)],
    "Deconvolution2D": [
        Case(lambda L, m: L.Deconvolution2D(4, 3, 3, 2, 1), IMAGE),
        Case(lambda L, m: L.Deconvolution2D(4, 4, 3, 2, 1, outsize=(12, 10), groups=2), IMAGE),
        Case(lambda L, m: L.Deconvolution2D(2, (3, 2), nobias=True), IMAGE)],
    "Deconvolution1D": [Case(lambda L, m: L.Deconvolution1D(4, 3, 3, 2, 1), SMALL)],
    "Deconvolution3D": [Case(lambda L, m: L.Deconvolution3D(2, 3, 2, (2, 1, 1)), VOLUME)],
    "DeconvolutionND": [
        Case(lambda L, m: L.DeconvolutionND(2, 4, 3, 3, 2, 1, outsize=(12, 10)), IMAGE),
        Case(lambda L, m: L.DeconvolutionND(1, 2, 3, groups=2), SMALL)],
    "EmbedID": [
        Case(lambda L, m: L.EmbedID(5, 3), ids(5, 2, 3)),
        Case(lambda L, m: L.EmbedID(5, 3, ignore_label=2), ids(5, 6)),
        Case(lambda L, m: L.EmbedID.from_params(Y, ignore_label=-1),
             numpy.array([0, -1, 3], "int32"))],
    "Bias": [
        Case(lambda L, m: L.Bias(1, (4,)), IMAGE), Case(lambda L, m: L.Bias(2), IMAGE, floats(6)),
        Case(lambda L, m: L.Bias(shape=(4, 6, 5)), IMAGE)],
    "Scale": [
        Case(lambda L, m: L.Scale(1, (4, 6)), IMAGE), Case(lambda L, m: L.Scale(0), X, floats(4)),
        Case(lambda L, m: L.Scale(1, (4,), bias_term=True), IMAGE),
        Case(lambda L, m: L.Scale(1, bias_term=True, bias_shape=(3,)), X, floats(3))],
    "Bilinear": [
        Case(lambda L, m: L.Bilinear(3, 5, 2), X, Y, dtypes=False),
        Case(lambda L, m: L.Bilinear(3, 5, 2, True), X, Y, dtypes=False),
        Case(lambda L, m: L.Bilinear(3, 5, 2, initial_bias=(1, m.initializers.Normal(), 2)), X, Y,
             dtypes=False)],
    "Parameter": [Case(lambda L, m: L.Parameter(X))],
    "Highway": [Case(lambda L, m: L.Highway(3), X),
                Case(lambda L, m: L.Highway(3, activate=m.functions.tanh), X)],
    "Inception": [Case(lambda L, m: L.Inception(4, 1, 2, 3, 2, 3, 2), IMAGE),
                  Case(lambda L, m: L.Inception(None, 1, 2, 3, 2, 3, 2, bias_init=1), IMAGE)],
    "InceptionBN": [
        Case(lambda L, m: L.InceptionBN(4, 1, 2, 3, 2, 3, "avg", 2), IMAGE, dtypes=False),
        Case(lambda L, m: L.InceptionBN(4, 0, 2, 3, 2, 3, "max", None, 2), IMAGE, dtypes=False)],
    "MLPConvolution2D": [
        Case(lambda L, m: L.MLPConvolution2D(4, (3, 2), 3, 1, 1), IMAGE),
        Case(lambda L, m: L.MLPConvolution2D((3,), 2, activation=m.functions.sigmoid), IMAGE)],
    "BatchNormalization": [
        Case(lambda L, m: L.BatchNormalization(4), IMAGE, calls=2),
        Case(lambda L, m: L.BatchNormalization(3), X, train=False),
        Case(lambda L, m: L.BatchNormalization((4, 6, 5)), IMAGE),
        Case(lambda L, m: L.BatchNormalization(4, use_gamma=False, use_beta=False), IMAGE,
             text=False),
        Case(lambda L, m: L.BatchNormalization(axis=(0, 2, 3)), IMAGE, text=False),
        Case(lambda L, m: L.BatchNormalization(
            3, decay=0.5, eps=0.1, initial_gamma=2, initial_beta=m.initializers.Normal(),
            initial_avg_mean=1, initial_avg_var=3), X)],
    "BatchRenormalization": [
        Case(lambda L, m: L.BatchRenormalization(4, 2, 1), IMAGE, calls=2),
        Case(lambda L, m: L.BatchRenormalization(3, use_gamma=False), X, train=False, text=False)],
    "LayerNormalization": [
        Case(lambda L, m: L.LayerNormalization(3), X),
        Case(lambda L, m: L.LayerNormalization(eps=0.1, initial_gamma=2, initial_beta=1), X)],
    "GroupNormalization": [
        Case(lambda L, m: L.GroupNormalization(2, 4), IMAGE),
        Case(lambda L, m: L.GroupNormalization(4, initial_gamma=2), SMALL)],
    "Maxout": [
        Case(lambda L, m: L.Maxout(3, 2, 4), X),
        Case(lambda L, m: L.Maxout(None, 2, 2, initial_bias=None), X),
        Case(lambda L, m: L.Maxout(3, 2, 2, numpy.arange(12).reshape(2, 2, 3),
                                   numpy.array([[1, 2], [3, 4]])), X)],
    "PReLU": [Case(lambda L, m: L.PReLU(), X), Case(lambda L, m: L.PReLU((4,), 0.5), IMAGE)],
    "Swish": [Case(lambda L, m: L.Swish(None), X), Case(lambda L, m: L.Swish((), 2), X)],
    "SimplifiedDropconnect": [
        Case(lambda L, m: L.SimplifiedDropconnect(3, 2, 0), X, text=False),
        Case(lambda L, m: L.SimplifiedDropconnect(None, 2, nobias=True), X, False, text=False)],
    "LSTM": [Case(lambda L, m: L.LSTM(3, 2), X, calls=3), Case(lambda L, m: L.LSTM(2), X, calls=2),
             Case(lambda L, m: L.LSTM(3, 2, 1, m.initializers.Normal(), 2, 3), X, calls=2)],
    "StatelessLSTM": [
        Case(lambda L, m: L.StatelessLSTM(3, 5), Y, Y, X),
        Case(lambda L, m: L.StatelessLSTM(2), None, None, X)],
    "GRU": [Case(lambda L, m: L.GRU(3, 2), X, calls=3)],
    "StatefulGRU": [
        Case(lambda L, m: L.StatefulGRU(3, 2, 1, m.initializers.Normal(), 2), X, calls=2)],
    "StatelessGRU": [Case(lambda L, m: L.StatelessGRU(3, 5), Y, X)],
    "StatefulMGU": [Case(lambda L, m: L.StatefulMGU(3, 2), X, calls=3)],
    "StatelessMGU": [Case(lambda L, m: L.StatelessMGU(3, 5), Y, X)],
    "StatefulPeepholeLSTM": [Case(lambda L, m: L.StatefulPeepholeLSTM(3, 2), X, calls=3)],
    "StatefulZoneoutLSTM": [Case(lambda L, m: L.StatefulZoneoutLSTM(3, 2), X, calls=3, train=False),
                            Case(lambda L, m: L.StatefulZoneoutLSTM(3, 2, 0, 0), X, calls=2)],
    "ChildSumTreeLSTM": [
        Case(lambda L, m: L.ChildSumTreeLSTM(3, 5), Y, Y, Y, Y, X),
        Case(lambda L, m: L.ChildSumTreeLSTM(3, 5), Y, None, None, Y, None),
        Case(lambda L, m: L.ChildSumTreeLSTM(3, 5), X)],
    "NaryTreeLSTM": [
        Case(lambda L, m: L.NaryTreeLSTM(3, 5), Y, Y, Y, Y, X),
        Case(lambda L, m: L.NaryTreeLSTM(3, 5, 3), None, Y, None, Y, None, None, X)],
    "Classifier": [
        Case(lambda L, m: L.Classifier(L.Linear(3, 2)), X, ids(2, 4)),
        Case(lambda L, m: L.Classifier(L.Linear(5), m.functions.mean_squared_error,
                                       m.functions.mean_absolute_error, label_key=0), Y, X)],
    "BinaryHierarchicalSoftmax": [
        Case(lambda L, m: L.BinaryHierarchicalSoftmax(3, TREE), X, ids(5, 4))],
    "BlackOut": [Case(lambda L, m: _given(L.BlackOut(3, COUNTS, 3)), X, ids(5, 4))],
    "NegativeSampling": [
        Case(lambda L, m: _given(L.NegativeSampling(3, COUNTS, 2)), X, ids(5, 4)),
        Case(lambda L, m: _given(L.NegativeSampling(3, COUNTS, 2)), X, ids(5, 4), "no")],
    "CRF1d": [
        Case(lambda L, m: L.CRF1d(3, m.initializers.Normal()), SEQUENCES,
             [ids(3, len(x)) for x in SEQUENCES], "mean", True),
        Case(lambda L, m: L.CRF1d(3), [X, X[:2]], [ids(3, 4), ids(3, 2)], "no")],
}
for _name, _states in [("LSTM", 2), ("GRU", 1), ("RNNTanh", 1), ("RNNReLU", 1)]:
    for _both in ("", "Bi"):
        CASES[f"NStep{_both}{_name}"] = [
            Case(lambda L, m, name=f"NStep{_both}{_name}": getattr(L, name)(2, 3, 5, 0.0),
                 *[None] * _states, SEQUENCES),
            Case(lambda L, m, name=f"NStep{_both}{_name}": getattr(L, name)(1, 3, 5, 0.5),
                 *[floats(len(_both) or 1, 3, 5)] * _states, SEQUENCES)]


def _given(link):
    """The loss link with the initial weights that tests need."""
    numpy.random.seed(3)
    link.W.array[...] = numpy.random.uniform(-1, 1, link.W.shape)
    return link


def variables(value, module, dtype):
    """The argument with its floating-point arrays as variables."""
    if isinstance(value, list):
        return [variables(each, module, dtype) for each in value]
    if isinstance(value, numpy.ndarray) and value.dtype == "float32":
        return module.Variable(value.astype(dtype))
    return value


def flat(value):
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return [value]


def run(module, case, dtype):
    """Everything that a link computes, by name."""
    found = {}
    with module.using_config("dtype", numpy.dtype(dtype)), module.using_config("train", case.train):
        numpy.random.seed(0)
        link = case.make(module.links, module)
        text = str(link) if case.text else None
        inputs = [variables(each, module, dtype) for each in case.inputs]
        outputs = []
        for _ in range(case.calls):
            outputs += flat(link(*inputs))
        for path, parameter in link.namedparams():
            found["initial " + path] = parameter.array.copy()
        link.cleargrads()
        weights = numpy.random.RandomState(1)
        total = 0
        for y in outputs:
            weight = weights.uniform(-1, 1, y.shape).astype(y.dtype)
            total += module.functions.sum(y * weight)
        total.backward()
    for i, y in enumerate(outputs):
        found[f"output {i}"] = y.array
    for i, x in enumerate(flat(inputs)):
        if isinstance(x, module.Variable):
            found[f"gradient of input {i}"] = x.grad
    for path, parameter in link.namedparams():
        found["gradient of " + path] = parameter.grad
    for path, part in link.namedlinks():
        for name in sorted(part._persistent):
            found[f"{path} {name}"] = getattr(part, name)
    return link, text, found


def saved(link):
    import chainer
    serializer = chainer.serializers.DictionarySerializer()
    link.serialize(serializer)
    return {name: (numpy.shape(value), getattr(value, "dtype", None))
            for name, value in serializer.target.items()}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_link_is_chainers(name, dtype):
    chainer = pytest.importorskip("chainer")
    for case in CASES[name]:
        if dtype not in case.dtypes:
            continue
        theirs, their_text, expected = run(chainer, case, dtype)
        ours, text, found = run(catena, case, dtype)
        assert text == their_text
        assert saved(ours) == saved(theirs)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            if value is None or found[key] is None:
                # Chainer has gradients of zeros where catena may have none.
                assert value is None or not numpy.any(value), key
                assert found[key] is None or not numpy.any(found[key]), key
                continue
            if key.startswith("initial"):
                numpy.testing.assert_array_equal(found[key], value, key)
            tolerance = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10}[dtype]
            numpy.testing.assert_allclose(
                found[key], value, rtol=tolerance, atol=tolerance * max(1, numpy.abs(value).max()),
                err_msg=key)
            assert numpy.asarray(found[key]).dtype == numpy.asarray(value).dtype, key


def links_of(module):
    return {name for name, value in vars(module.links).items()
            if isinstance(value, type) and issubclass(value, module.Link)}


def test_all_links_are_compared():
    chainer = pytest.importorskip("chainer")
    assert set(CASES) == links_of(chainer) & links_of(catena)
    absent = links_of(chainer) - links_of(catena)
    assert absent == {
        "DecorrelatedBatchNormalization", "GoogLeNet", "ResNet101Layers", "ResNet152Layers",
        "ResNet50Layers", "TheanoFunction", "VGG16Layers", "VGG19Layers"}
    assert links_of(catena) - links_of(chainer) == {"MultiHeadAttention", "RMSNormalization"}


def test_signatures_are_chainers():
    chainer = pytest.importorskip("chainer")
    import inspect
    for name in CASES:
        theirs, ours = (inspect.signature(getattr(m.links, name).__init__).parameters.values()
                        for m in (chainer, catena))
        expected = [(p.name, p.default) for p in theirs if p.kind in (0, 1)]
        found = [(p.name, p.default) for p in ours if p.kind in (0, 1)]
        plain = [(p, d if isinstance(d, (int, float, str, tuple, type(None))) else "other")
                 for p, d in expected]
        assert [p for p, _ in found] == [p for p, _ in plain], name
        for (parameter, default), (_, theirs) in zip(found, plain):
            assert default == theirs or (theirs == "other" and not isinstance(default, str)), (
                name, parameter)
