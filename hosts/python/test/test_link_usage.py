"""Links in use: states, noise, precision, copies, devices, attention, errors."""
import copy
import pickle

import numpy
import pytest

import catena
from catena import functions as F
from catena import links as L

RANDOM = numpy.random.RandomState(0)


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


X, IMAGE = floats(4, 3), floats(2, 4, 6, 5)


def both():
    return pytest.importorskip("chainer"), catena


class TestStates:
    def test_batches_that_shrink(self):
        results = []
        for m in both():
            numpy.random.seed(0)
            link = m.links.LSTM(3, 2)
            ys = [link(m.Variable(X[:n])) for n in (4, 2, 2, 0)]
            results.append([y.array for y in ys] + [link.c.array, link.h.array])
        for ours, theirs in zip(*results):
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
        with pytest.raises(TypeError, match="the size of the previous state h, got 4 and 2"):
            link.reset_state()
            link(X[:2])
            link(X)

    @pytest.mark.parametrize("make, n", [
        (lambda: L.LSTM(3, 2), 2), (lambda: L.StatefulGRU(3, 2), 1),
        (lambda: L.StatefulMGU(3, 2), 1), (lambda: L.StatefulPeepholeLSTM(3, 2), 2),
        (lambda: L.StatefulZoneoutLSTM(3, 2, 0, 0), 2)])
    def test_set_and_reset(self, make, n):
        link = make()
        assert link.h is None
        first, second = link(X), link(X)
        assert (first.array != second.array).any() and link.h is second
        states = [link.h] if n == 1 else [link.c, link.h]
        third = link(X)
        link.reset_state()
        assert link.h is None and (link(X).array == first.array).all()
        link.set_state(*states)
        numpy.testing.assert_array_equal(link(X).array, third.array)
        with pytest.raises(TypeError, match="got 3 arguments"):
            link.set_state(*states, *[X] * (3 - n))
        with pytest.raises(AssertionError, match="expected a Variable"):
            link.set_state(*[X] * n)
        other = link.copy("copy")
        assert other.h is not link.h and (other.h.array == link.h.array).all()

    def test_gru(self):
        with pytest.raises(ValueError, match="The length of GRU.forward must be 1. But 2 is given"):
            L.GRU(3, 2)(X, X)

    def test_n_step(self):
        link = L.NStepLSTM(2, 3, 5, 0.0)
        xs = [floats(n, 3) for n in (1, 3, 2)]
        hy, cy, ys = link(None, None, xs)
        assert hy.shape == cy.shape == (2, 3, 5) and [y.shape for y in ys] == [
            (1, 5), (3, 5), (2, 5)]
        for i, x in enumerate(xs):
            h, c, (y,) = link(None, None, [x])
            numpy.testing.assert_allclose(y.array, ys[i].array, rtol=1e-5, atol=1e-6)
            numpy.testing.assert_allclose(h.array[:, 0], hy.array[:, i], rtol=1e-5, atol=1e-6)
        assert link.copy().ws[0][0].array is link.ws[0][0].array
        with pytest.raises(TypeError, match="takes 2 states and the sequences, got 2 arg"):
            link(None, xs)
        with pytest.raises(AssertionError, match="expected a list"):
            link(None, None, X)

    def test_trees(self):
        with pytest.raises(ValueError, match=r"All inputs \(cs, hs, x\) are None"):
            L.ChildSumTreeLSTM(3, 2)(None, None, None)
        with pytest.raises(AssertionError, match="expected 2 c, 2 h and one x, got 1 and 1"):
            L.NaryTreeLSTM(3, 2)(None, None, X)


class TestNoise:
    def test_zoneout(self):
        link = L.StatefulZoneoutLSTM(3, 500, c_ratio=0.3, h_ratio=0.9)
        for p in link.params():
            p.array[...] = 0.1
        link(X)
        kept_c = (link.c.array == 0).mean()
        kept_h = (link.h.array == 0).mean()
        assert abs(kept_c - 0.3) < 0.05 and abs(kept_h - 0.9) < 0.05

    def test_dropout_between_layers(self):
        link = L.NStepGRU(2, 3, 5, 0.5)
        xs = [floats(4, 3)]
        assert (link(None, xs)[1][0].array != link(None, xs)[1][0].array).any()
        with catena.using_config("train", False):
            assert (link(None, xs)[1][0].array == link(None, xs)[1][0].array).all()

    def test_dropconnect(self):
        link = L.SimplifiedDropconnect(3, 2)
        mask = numpy.array([[1, 0, 1], [0, 1, 0]], "float32")
        y = link(X, mask=mask, use_batchwise_mask=False)
        expected = X @ (link.W.array * mask * 2).T
        numpy.testing.assert_allclose(y.array, expected, rtol=1e-5, atol=1e-6)
        assert "mask" in link._persistent and link.mask is mask

    def test_sampling_is_chainers(self):
        counts = [5, 1, 0, 3, 7, 2, 2]
        chainer = pytest.importorskip("chainer")
        from catena.utils.walker_alias import WalkerAlias
        for probabilities in [counts, [1], [0.1, 0.9], [1, 1, 1, 1]]:
            samples = []
            for sampler in (chainer.utils.WalkerAlias(probabilities), WalkerAlias(probabilities)):
                numpy.random.seed(0)
                samples.append(sampler.sample((100, 3)))
            numpy.testing.assert_array_equal(*samples)
            assert samples[1].dtype == "int32"
        results = []
        for m in (chainer, catena):
            link = m.links.NegativeSampling(3, counts, 4)
            link.W.array[...] = numpy.arange(21).reshape(7, 3)
            numpy.random.seed(1)
            loss, samples = link(X, numpy.array([0, 6, -1, 2], "int32"), return_samples=True)
            results.append((loss.array, samples[[0, 1, 3]]))
        numpy.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-5)
        numpy.testing.assert_array_equal(results[1][1], results[0][1])

    def test_black_out_draws(self):
        link = L.BlackOut(3, [1, 2, 3], 5)
        assert numpy.isnan(link.W.array).all()  # as in Chainer
        link.W.array[...] = 0
        loss = link(X, numpy.array([0, 1, 2, 0], "int32"))
        assert loss.shape == () and loss.array > 0


class TestNormalization:
    def test_finetuning_is_chainers(self):
        results = []
        for m in both():
            link = m.links.BatchNormalization(3)
            for i in range(3):
                link(X * (i + 1), finetune=True)
            results.append((link.N, link.avg_mean, link.avg_var))
            link.start_finetuning()
            assert link.N == 0
        assert results[0][0] == results[1][0] == 3
        numpy.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-5)
        numpy.testing.assert_allclose(results[1][2], results[0][2], rtol=1e-5)
        with pytest.raises(TypeError):
            link(X, test=True)
        with pytest.raises(RuntimeError, match="size or axis is required"):
            L.BatchNormalization()

    def test_mixed16(self):
        with catena.using_config("dtype", catena.mixed16):
            net = catena.Sequential(
                L.Convolution2D(4, 4, 3), L.BatchNormalization(4), L.GroupNormalization(2))
        y = net(IMAGE.astype("float16"))
        F.sum(y).backward()
        assert y.dtype == "float16"
        assert [p.dtype == "float32" for p in net[1].params()] == [True, True]
        assert net[0].W.dtype == "float16" and net[2].gamma.dtype == "float32"
        assert net[1].gamma.grad.dtype == net[1].avg_mean.dtype == "float32"

    def test_rms(self):
        link = L.RMSNormalization(3, initial_gamma=2)
        expected = 2 * X / numpy.sqrt((X ** 2).mean(axis=1, keepdims=True) + 1e-6)
        numpy.testing.assert_allclose(link(X).array, expected, rtol=1e-5)
        assert [n for n, _ in link.namedparams()] == ["/gamma"]

    def test_group(self):
        with pytest.raises(ValueError, match="Input dimension must be at least 2.*got 1"):
            L.GroupNormalization(1)(catena.Variable(X[0]))


def attended(link, x, allowed):
    """What MultiHeadAttention computes, in NumPy. allowed: (T, S), whether a token sees another."""
    n, t, units = x.shape
    q, k, v = (x @ layer.W.array.T + layer.b.array for layer in (link.q, link.k, link.v))
    size = units // link.heads
    q, k, v = (a.reshape(n, t, -1, size).transpose(0, 2, 1, 3) for a in (q, k, v))
    k, v = (numpy.repeat(a, link.heads // link.kv_heads, axis=1) for a in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / numpy.sqrt(size)
    scores = numpy.exp(numpy.where(allowed, scores, -numpy.inf))
    y = (scores / scores.sum(axis=-1, keepdims=True)) @ v
    return y.transpose(0, 2, 1, 3).reshape(n, t, units) @ link.out.W.array.T + link.out.b.array


class TestAttention:
    x = floats(2, 5, 8)
    earlier = numpy.tril(numpy.ones((5, 5), bool))

    @pytest.mark.parametrize("options, allowed", [
        ({}, numpy.ones((5, 5), bool)), ({"causal": True}, earlier), ({"kv_heads": 2}, None),
        ({"causal": True, "window": 2}, earlier & ~numpy.tril(earlier, -2))])
    def test_values(self, options, allowed):
        link = L.MultiHeadAttention(8, 4, **options)
        allowed = numpy.ones((5, 5), bool) if allowed is None else allowed
        y = link(self.x)
        expected = attended(link, self.x, allowed)
        numpy.testing.assert_allclose(y.array, expected, rtol=1e-4, atol=1e-5)
        link.cleargrads()
        F.sum(y * y).backward()
        assert all(numpy.isfinite(p.grad).all() for p in link.params())
        assert [n for n, _ in link.namedparams()] == [
            f"/{layer}/{p}" for layer in ("k", "out", "q", "v") for p in ("W", "b")]

    def test_masks(self):
        link = L.MultiHeadAttention(8, 2)
        expected = attended(link, self.x, self.earlier)
        for mask in [self.earlier, numpy.where(self.earlier, 0, -1e9).astype("float32")]:
            numpy.testing.assert_allclose(link(self.x, mask=mask).array, expected, rtol=1e-4,
                                          atol=1e-5)
        some = numpy.arange(5) < 3
        y = link(self.x, lengths=numpy.array([3, 3], "int64"))
        numpy.testing.assert_allclose(y.array, attended(link, self.x, some), rtol=1e-4, atol=1e-5)
        context = floats(2, 3, 8)
        assert link(self.x, context).shape == (2, 5, 8)
        without = L.MultiHeadAttention(8, 2, bias=False)
        assert without.q.b is None

    @pytest.mark.parametrize("rotary", [None, L.RotaryPositions(100.0)])
    def test_cache(self, rotary):
        link = L.MultiHeadAttention(8, 2, kv_heads=1, causal=True, rotary=rotary)
        expected = link(self.x).array
        cache = link.make_cache()
        parts = [link(self.x[:, a:b], cache=cache).array for a, b in [(0, 2), (2, 3), (3, 5)]]
        numpy.testing.assert_allclose(numpy.concatenate(parts, axis=1), expected, rtol=1e-4,
                                      atol=1e-5)
        assert cache["k"].shape == (2, 5, 1, 4)
        with pytest.raises(ValueError, match="cache: expected no context, got both"):
            link(self.x, self.x, cache=cache)

    def test_rotary_positions(self):
        rotary = L.RotaryPositions()
        x = floats(1, 6, 2, 4)
        whole = rotary(catena.Variable(x)).array
        numpy.testing.assert_allclose(whole[:, 0], x[:, 0], rtol=1e-6)
        part = rotary(catena.Variable(x[:, 4:]), offset=4).array
        numpy.testing.assert_allclose(part, whole[:, 4:], rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose((whole ** 2).sum(), (x ** 2).sum(), rtol=1e-5)

    def test_errors(self):
        for arguments in [(8, 3), (8, 4, 3), (0, 1), (8, 0)]:
            with pytest.raises(ValueError, match="heads that divide units and kv_heads that"):
                L.MultiHeadAttention(*arguments[:2], kv_heads=(arguments + (None,))[2])
        with pytest.raises(ValueError, match="expected an even number of units for each head"):
            L.MultiHeadAttention(6, 2, rotary=L.RotaryPositions())


class TestClassifier:
    t = numpy.array([0, 1, 1, 0], "int32")

    def test_results(self):
        model = L.Classifier(L.Linear(3, 2))
        reporter = catena.reporter.Reporter()
        reporter.add_observer("main", model)
        with reporter:
            loss = model(X, self.t)
        assert model.loss is loss and model.y.shape == (4, 2)
        assert reporter.observation["main/loss"].array == loss.array
        assert reporter.observation["main/accuracy"].array == model.accuracy.array
        model.compute_accuracy = False
        model(X, self.t)
        assert model.accuracy is None

    def test_label_keys(self):
        class Model(catena.Link):
            def forward(self, x, scale=1):
                return F.linear(x, numpy.ones((2, 3), "float32")) * scale

        assert L.Classifier(Model(), label_key=0)(self.t, X, 2).shape == ()
        assert L.Classifier(Model(), label_key=-2)(X, self.t, 2).shape == ()
        assert L.Classifier(Model(), label_key="t")(X, scale=3, t=self.t).shape == ()
        with pytest.raises(ValueError, match="Label key 2 is out of bounds"):
            L.Classifier(Model(), label_key=2)(X, self.t)
        with pytest.raises(ValueError, match='Label key "t" is not found'):
            L.Classifier(Model(), label_key="t")(X)
        with pytest.raises(TypeError, match="label_key must be int or str, but is <class 'float'>"):
            L.Classifier(Model(), label_key=0.5)


class TestHierarchicalSoftmax:
    def test_huffman_tree_is_chainers(self):
        for counts in [{0: 8, 1: 5, 2: 6, 3: 4}, {i: (i * 7) % 5 + 1 for i in range(20)}, {3: 1}]:
            expected, found = (m.links.BinaryHierarchicalSoftmax.create_huffman_tree(counts)
                               for m in both())
            assert found == expected
        with pytest.raises(ValueError, match="Empty vocabulary"):
            L.BinaryHierarchicalSoftmax.create_huffman_tree({})
        with pytest.raises(ValueError, match="must have two child nodes, got 3"):
            L.BinaryHierarchicalSoftmax(3, ((0, 1, 2), 3))

    def test_probabilities_add_up(self):
        link = L.BinaryHierarchicalSoftmax(3, ((0, 1), (2, (3, 4))))
        losses = [link(X[:1], numpy.array([t], "int32")).array for t in range(5)]
        assert abs(numpy.exp(-numpy.array(losses)).sum() - 1) < 1e-5


class TestCRF1d:
    def test_argmax_is_chainers(self):
        xs, results = [floats(n, 3) for n in (2, 4, 1)], []
        for m in both():
            numpy.random.seed(0)
            link = m.links.CRF1d(3, m.initializers.Normal(1))
            scores, path = link.argmax([m.Variable(x) for x in xs], transpose=True)
            results.append((scores.array, [numpy.asarray(p).tolist() for p in path]))
        scores = [numpy.sort(each[0]) for each in results]
        numpy.testing.assert_allclose(*scores, rtol=1e-5)
        assert results[1][1] == results[0][1]
        scores, path = link.argmax([X, X[:2]])
        assert scores.shape == (4,) and [p.shape for p in path] == [(4,), (2,)]


MAKERS = [
    (lambda: L.Linear(3, 2), (X,)), (lambda: L.Linear(2), (X,)), (lambda: L.LSTM(3, 2), (X,)),
    (lambda: L.Maxout(3, 2, 2), (X,)), (lambda: L.Highway(3), (X,)),
    (lambda: L.MLPConvolution2D(4, (3, 2), 3), (IMAGE,)),
    (lambda: L.BatchNormalization(4), (IMAGE,)),
    (lambda: L.Inception(4, 1, 2, 3, 2, 3, 2), (IMAGE,)), (lambda: L.Scale(1, (3,), True), (X,)),
    (lambda: L.NStepBiLSTM(1, 3, 2, 0.0), (None, None, [X])),
    (lambda: L.MultiHeadAttention(4, 2, rotary=L.RotaryPositions()), (floats(1, 3, 4),)),
    (lambda: L.NegativeSampling(3, [1, 2], 1), (X, numpy.array([0, 1, 1, 0], "int32"))),
    (lambda: L.Classifier(L.Linear(3, 2)), (X, numpy.array([0, 1, 1, 0], "int32"))),
    (lambda: L.BinaryHierarchicalSoftmax(3, (0, 1)), (X, numpy.array([0, 1, 1, 0], "int32")))]


def result(link, arguments):
    y = link(*arguments)
    return y[-1][0].array if isinstance(y, tuple) else y.array


@pytest.mark.parametrize("make, arguments", MAKERS)
def test_copies(make, arguments):
    link = make()
    for other in [copy.deepcopy(link), pickle.loads(pickle.dumps(link))]:
        assert str(other) == str(link)
        for (name, a), (other_name, b) in zip(other.namedparams(), link.namedparams()):
            assert name == other_name
            if a.array is not None:
                numpy.testing.assert_array_equal(a.array, b.array)
    if not any(p.array is None for p in link.params()):
        copies = link.copy("copy"), pickle.loads(pickle.dumps(link))
        numpy.random.seed(0)
        expected = result(link, arguments)
        for other in copies:
            numpy.random.seed(0)
            numpy.testing.assert_array_equal(result(other, arguments), expected)


@pytest.fixture
def logical_gpus():
    catena.cuda.set_backend("cpu")
    yield
    catena.cuda.set_backend("")


@pytest.mark.parametrize("make, arguments", MAKERS)
def test_devices(make, arguments, logical_gpus):
    def moved(value):
        if isinstance(value, list):
            return [moved(each) for each in value]
        return value if value is None else catena.Variable(value)._array.to_device(gpu)

    gpu = catena.Device("cpu:1")
    link = make()
    assert link.to_gpu(0) is link and link.device == gpu
    numpy.random.seed(0)
    y = link(*moved(list(arguments)))
    for parameter in link.params():
        assert parameter.device == gpu
    for _, part in link.namedlinks():
        assert part.device == gpu
    y = y[-1][0] if isinstance(y, tuple) else y
    assert y.device == gpu
    link.cleargrads()
    F.sum(y).backward()
    assert {p.grad_var.device.name for p in link.params() if p.grad_var is not None} == {"cpu:1"}
    other = link.copy("copy")
    assert other.device == gpu and all(p.device == gpu for p in other.params())
    link.to_cpu()
    assert all(isinstance(p.array, numpy.ndarray) for p in link.params())
    assert link.device == catena.Device(-1)


def test_stateful_link_moves_with_its_state(logical_gpus):
    link = L.LSTM(3, 2)
    expected = [link(X).array, link(X).array][1]
    link.reset_state()
    link(X)
    link.to_gpu(0)
    assert link.h.device == link.c.device == catena.Device("cpu:1")
    y = link(catena.Variable(X)._array.to_device("cpu:1"))
    y.to_cpu()
    numpy.testing.assert_allclose(y.array, expected, rtol=1e-5)
    link.set_state(catena.Variable(X[:, :2]), catena.Variable(X[:, :2]))
    assert link.h.device == catena.Device("cpu:1")
    normalization = L.BatchNormalization(3).to_gpu(0)
    normalization(catena.Variable(X)._array.to_device("cpu:1"))
    assert isinstance(normalization.avg_mean, catena.Array)
    normalization.to_cpu()
    assert isinstance(normalization.avg_mean, numpy.ndarray) and normalization.avg_mean.any()


@pytest.mark.parametrize("make, error, message", [
    (lambda: L.Convolution2D(4, 3, 3, groups=2), ValueError,
     "the number of output channels must be divisible by the number of groups, got 3 and 2"),
    (lambda: L.Convolution2D(3, 4, 3, groups=2), ValueError,
     "the number of input channels must be divisible by the number of groups, got 3 and 2"),
    (lambda: L.Deconvolution2D(3, 4, 3, groups=2), ValueError, "input channels must be divisible"),
    (lambda: L.Linear.from_params(X, X[0]), ValueError, "`out_size` does not match the size of"),
    (lambda: L.Convolution2D.from_params(IMAGE, X[0]), ValueError, "`out_channels` does not match"),
    (lambda: L.ConvolutionND(2, 4, 3, (1, 2, 3)), ValueError, "expected 2 numbers"),
    (lambda: L.Scale(bias_term=True), ValueError, "bias_shape should be given if W is not learnt"),
    (lambda: L.Bilinear(3, 2, 1, initial_bias=3), ValueError, "initial_bias must be tuple or None"),
    (lambda: L.Bilinear(3, 2, 1, initialW=X), AssertionError,
     r"expected \(3, 2, 1\), got \(4, 3\)"),
    (lambda: L.InceptionBN(4, 1, 2, 3, 2, 3, "sum", 2), NotImplementedError,
     'expected "max" or "avg"'),
    (lambda: L.Maxout(3, 2, 2, X), ValueError, "initialW.ndim should be 3"),
    (lambda: L.Maxout(3, 2, 2, None, X[0]), ValueError, "initial_bias.ndim should be 2"),
    (lambda: L.Linear(3, 2, initialW=[1]), TypeError, "invalid type of initializer"),
    (lambda: L.Linear(3, 2)(IMAGE), catena.ShapeError, r"x.shape\[1:\]: expected 3 elements"),
    (lambda: L.Linear(3, 2, initialW=X), ValueError, "broadcast"),
])
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_maxout_with_a_function():
    def fill(array):
        assert array.shape == (2, 4, 3)
        array[...] = numpy.arange(24).reshape(2, 4, 3)

    link = L.Maxout(3, 2, 4, fill)
    assert (link.linear.W.array == numpy.arange(24).reshape(8, 3)).all()


@pytest.mark.parametrize("make, x", [
    (lambda: L.Linear(3, 2), X), (lambda: L.Convolution2D(4, 3, 3), IMAGE),
    (lambda: L.BatchNormalization(4), IMAGE), (lambda: L.LayerNormalization(3), X),
    (lambda: L.GroupNormalization(2, 4), IMAGE), (lambda: L.LSTM(3, 2), X),
    (lambda: L.GRU(3, 2), X), (lambda: L.MultiHeadAttention(4, 2), floats(2, 3, 4))])
def test_bfloat16(make, x):
    with catena.using_config("dtype", "bfloat16"):
        link = make()
        y = link(catena.Variable(catena.Variable(x)._array.astype("bfloat16")))
        link.cleargrads()
        F.sum(F.cast(y, "float32")).backward()
        same = [link.copy("copy"), link.copy("init"), pickle.loads(pickle.dumps(link))]
    for each in [link, *same]:
        assert {str(p.dtype) for p in each.params()} == {"bfloat16"}
    assert str(y.dtype) == "bfloat16"
    assert {str(p.grad_var.dtype) for p in link.params() if p.grad_var is not None} == {"bfloat16"}
