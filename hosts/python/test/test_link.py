"""Link, Chain, ChainList and hooks: names, order, copies, gradients, saving, texts."""
import copy
import pickle

import numpy
import pytest

import catena
from catena import functions as F
from catena import links as L


def small(module):
    """A class of models in the usual style of Chainer."""

    class Small(module.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l2 = module.links.Linear(3, 2)
                self.l1 = module.links.Linear(None, 3)
                self.scale = module.Parameter(numpy.ones(2, "float32"))
            self.add_persistent("count", numpy.zeros(2, "float32"))
            self.other = 5

        def forward(self, x):
            return self.l2(F.relu(self.l1(x))) * F.broadcast_to(self.scale, (x.shape[0], 2))

    return Small


Small = small(catena)
Small.__qualname__ = "Small"


def make():
    model = Small()
    model(numpy.zeros((1, 4), "float32"))
    return model


def arrays(model):
    return {path: parameter.array.copy() for path, parameter in model.namedparams()}


def assert_same(a, b):
    assert a.keys() == b.keys()
    for path in a:
        numpy.testing.assert_array_equal(a[path], b[path])


def test_structure_is_chainers():
    theirs, ours = small(pytest.importorskip("chainer"))(), Small()
    assert [n for n, _ in ours.namedparams()] == [n for n, _ in theirs.namedparams()]
    assert [n for n, _ in ours.namedparams(False)] == [n for n, _ in theirs.namedparams(False)]
    assert [n for n, _ in ours.namedlinks()] == [n for n, _ in theirs.namedlinks()]
    assert [n for n, _ in ours.namedlinks(True)] == ["/l1", "/l2"]
    assert [p.name for p in ours.params()] == [p.name for p in theirs.params()]
    assert [link.name for link in ours.links()] == [link.name for link in theirs.links()]
    assert [link.name for link in ours.children()] == ["l1", "l2"]
    assert [link.name for link in ours.links(skipself=True)] == ["l1", "l2"]
    assert str(ours) == str(theirs)
    assert list(ours.params(include_uninit=False)) == [
        ours.scale, ours.l1.b, ours.l2.W, ours.l2.b]
    assert ours["l1"] is ours.l1


def test_saved_names_are_chainers():
    chainer = pytest.importorskip("chainer")
    theirs, ours = small(pytest.importorskip("chainer"))(), Small()
    saved = chainer.serializers.DictionarySerializer()
    theirs.serialize(saved)
    written = chainer.serializers.DictionarySerializer()
    ours.serialize(written)
    assert {k: getattr(v, "shape", None) for k, v in written.target.items()} == {
        k: getattr(v, "shape", None) for k, v in saved.target.items()}


def test_load_gives_shapes():
    chainer = pytest.importorskip("chainer")
    source = make()
    source.count[:] = 7
    written = chainer.serializers.DictionarySerializer()
    source.serialize(written)
    target = Small()
    assert target.l1.W.array is None
    chainer.serializers.NpzDeserializer(written.target).load(target)
    assert_same(arrays(target), arrays(source))
    assert target.count.tolist() == [7, 7]
    theirs = small(chainer)()
    chainer.serializers.NpzDeserializer(written.target).load(theirs)
    assert_same(arrays(theirs), arrays(source))


def test_registration():
    link = catena.Link()
    assert not link.within_init_scope and link.name is None
    with link.init_scope():
        assert link.within_init_scope
        link.w = catena.Parameter(0, (2,))
        link.v = catena.Variable(numpy.zeros(2))
    link.outside = catena.Parameter(0, (2,))
    link.add_param("p", (2, 3))
    link.add_param("q", (2,), dtype="float64")
    link.add_param("r", initializer=3)
    link.add_param("s", 4, initializer=2)
    assert [n for n, _ in link.namedparams()] == ["/p", "/q", "/r", "/s", "/w"]
    assert numpy.isnan(link.p.array).all() and link.q.dtype == "float64" and link.r.array is None
    assert link.s.array.tolist() == [2] * 4
    link.r.initialize((1,))
    assert link.r.array.tolist() == [3]
    del link.w
    assert [n for n, _ in link.namedparams()] == ["/p", "/q", "/r", "/s"]
    for method, what in [(link.add_param, "parameter"), (link.add_persistent, "persistent value")]:
        with pytest.raises(AttributeError, match=f"register a new {what} p: attribute exists"):
            method("p", (1,))
    with pytest.raises(AttributeError, match="non-existent attribute no"):
        link.register_persistent("no")
    link.plain = 3
    link.register_persistent("plain")
    link.register_persistent("s")
    assert [n for n, _ in link.namedparams()] == ["/p", "/q", "/r"]
    link = catena.Link(a=(2, 3), b=4, c=None, d=((2,), "float16"))
    assert [p.array is None for p in link.params()] == [False, False, True, False]
    assert link.a.shape == (2, 3) and link.b.shape == (4,) and link.d.dtype == "float16"


def test_without_super_init():
    class Wrong(catena.Chain):
        def __init__(self):
            with self.init_scope():
                self.l1 = L.Linear(2)

    with pytest.raises(RuntimeError, match=r"Link.__init__\(\) has not been called"):
        Wrong()

    class Empty(catena.Link):
        def __init__(self):
            pass

        def forward(self):
            return 3

    with pytest.raises(RuntimeError, match=r"Link.__init__\(\) has not been called"):
        Empty()()


def test_chain_errors():
    chain = catena.Chain(a=L.Linear(2), b=L.Linear(3))
    assert chain.a.name == "a" and chain["b"] is chain.b
    with pytest.raises(AttributeError, match="cannot register a new link a: attribute exists"):
        chain.add_link("a", L.Linear(2))
    with pytest.raises(AttributeError, match="cannot register a new link a: attribute exists"):
        with chain.init_scope():
            chain.a = L.Linear(2)
    with pytest.raises(TypeError, match="cannot register a non-link object as a child, got int"):
        chain.add_link("c", 3)
    del chain.a
    assert [link.name for link in chain.children()] == ["b"]
    with pytest.raises(AttributeError):
        chain.a


@pytest.mark.parametrize("duplicate", [
    copy.deepcopy, lambda model: model.copy("copy"),
    lambda model: pickle.loads(pickle.dumps(model))])
def test_deep_copies(duplicate):
    model = make()
    x = numpy.random.randn(3, 4).astype("float32")
    F.sum(model(x)).backward()
    other = duplicate(model)
    assert_same(arrays(other), arrays(model))
    numpy.testing.assert_array_equal(other.l1.W.grad, model.l1.W.grad)
    numpy.testing.assert_array_equal(other(x).array, model(x).array)
    other.l1.W.array[:] = 0
    other.count += 1
    assert model.l1.W.array.any() and not model.count.any()
    assert other.l1.name == "l1" and other.l1.W.name == "W"
    unknown = duplicate(Small())
    assert unknown.l1.W.array is None and unknown.l1.W.initializer is not None
    unknown(x)


def test_copy_shares_arrays():
    model = make()
    model.name = "model"
    model.cleargrads()
    F.sum(model(numpy.ones((1, 4), "float32"))).backward()
    other = model.copy()
    assert other.name is None and other.l1 is not model.l1 and other.l1.name == "l1"
    assert other.l1.W is not model.l1.W and other.l1.W.array is model.l1.W.array
    assert other.l1.W.grad is None and model.l1.W.grad is not None
    assert all(p.grad is None for p in other.params())
    before = model.l1.W.grad.copy()
    for _ in range(2):
        F.sum(other(numpy.ones((1, 4), "float32"))).backward()
    numpy.testing.assert_array_equal(model.l1.W.grad, before)
    numpy.testing.assert_allclose(other.l1.W.grad, 2 * before)
    with other.init_scope():
        other.more = L.Linear(1)
    assert len(list(model.children())) == 2
    with pytest.raises(ValueError, match="either 'init','copy', or 'share'. But x was given"):
        model.copy("x")


def test_copy_with_new_values():
    model = make()
    with pytest.raises(TypeError, match="an initializer of /scale, got a parameter that was"):
        model.copy("init")
    del model.scale
    other = model.copy("init")
    assert other.l1.W.shape == (3, 4) and (other.l1.W.array != model.l1.W.array).any()
    assert not other.l1.b.array.any()


def test_repeat():
    layers = L.Linear(3, 3).repeat(3)
    assert isinstance(layers, catena.Sequential) and len(layers) == 3
    assert (layers[0].W.array != layers[1].W.array).any()
    shared = layers[0].repeat(2, "share")
    assert shared[0].W.array is shared[1].W.array is layers[0].W.array
    copied = layers[0].repeat(2, mode="copy")
    assert (copied[0].W.array == layers[0].W.array).all() and copied[0].W is not copied[1].W
    assert len(layers.repeat(0)) == 0
    with pytest.raises(ValueError, match="But x was given"):
        layers[0].repeat(2, "x")


def test_copyparams():
    source, target = make(), Small()
    source.count[:] = 3
    target.copyparams(source)
    assert_same(arrays(target), arrays(source))
    assert target.count.tolist() == [3, 3] and target.l1.W.array is not source.l1.W.array
    source.count[:] = 4
    target.copyparams(source, copy_persistent=False)
    assert target.count.tolist() == [3, 3]
    source.text, target.text = {"a": [1]}, None
    for link in (source, target):
        link.register_persistent("text")
    target.copyparams(source)
    assert target.text == {"a": [1]} and target.text is not source.text
    lists = [catena.ChainList(L.Linear(2, 3), L.Linear(3, 2)) for _ in range(2)]
    lists[0].copyparams(lists[1])
    assert_same(arrays(lists[0]), arrays(lists[1]))


def test_gradients():
    model, other = make(), make()
    x = numpy.ones((2, 4), "float32")
    for link in (model, other):
        link.cleargrads()
        F.sum(link(x)).backward()
    expected = model.l2.b.grad + other.l2.b.grad
    model.addgrads(other)
    numpy.testing.assert_array_equal(model.l2.b.grad, expected)
    model.cleargrads()
    assert all(p.grad is None for p in model.params())
    with pytest.warns(DeprecationWarning, match="Use Link.cleargrads"):
        model.zerograds()
    assert not any(p.grad.any() for p in model.params())


def test_count_params():
    with pytest.warns(UserWarning, match="'/l1/W' has not been initialized"):
        assert Small().count_params() == 2 + 3 + 6 + 2
    assert make().count_params() == 2 + 3 + 6 + 2 + 12


def test_update_enabled():
    class Rule:
        enabled = True

    model = make()
    assert not model.update_enabled
    for parameter in model.params():
        parameter.update_rule = Rule()
    assert model.update_enabled
    model.l1.disable_update()
    assert model.update_enabled and not model.l1.update_enabled and model.l2.update_enabled
    model.disable_update()
    assert not model.update_enabled
    model.enable_update()
    assert model.l1.update_enabled


def test_devices():
    calls = []

    class Old(catena.Chain):
        def __init__(self, **links):
            super().__init__(**links)

        def to_cpu(self):
            calls.append(self.name)
            return super().to_cpu()

    model = Old(inner=Old(), layer=L.Linear(2))
    assert model.to_cpu() is model and calls == [None, "inner"]
    assert model.to_device("@numpy") is model and calls == [
        None, "inner", None, "inner", "inner"]  # as in Chainer
    assert model.device == catena.Device(-1) == model.layer.W.device and model.xp is numpy
    assert copy.deepcopy(model).device == model.device
    assert pickle.loads(pickle.dumps(model.layer)).device == model.device


def test_device_residents():
    """Arrays that device_resident_accept() names move with a link, also deep in it."""
    class Table(catena.DeviceResident):
        def __init__(self):
            self.array = numpy.ones(2, "float32")

        def device_resident_accept(self, visitor):
            super().device_resident_accept(visitor)
            self.array = visitor.visit_array(self.array)

    class Model(catena.Chain):
        def __init__(self, **links):
            super().__init__(**links)
            self.table = numpy.zeros(3, "float32")
            self.add_persistent("kept", Table())

        def device_resident_accept(self, visitor):
            super().device_resident_accept(visitor)
            self.table = visitor.visit_array(self.table)

    catena.cuda.set_backend("cpu")
    try:
        model = Model(inner=Model(), layer=L.Linear(2, 3))
        gpu = catena.get_device("@cupy:1")
        assert model.to_device(gpu) is model and model.kept.xp is catena.cuda.cupy
        assert {model.device, model.inner.device, model.layer.W.device, model.table.device,
                model.inner.table.device, model.inner.kept.array.device, model.kept.device} == {gpu}
        model.to_device("@numpy")
        assert isinstance(model.inner.table, numpy.ndarray) and model.kept.device == catena.Device(-1)
        with pytest.warns(DeprecationWarning, match=r"to_gpu is deprecated. Please use to_device\('@cupy:N'\)"):
            assert model.to_gpu(1).inner.table.device == gpu
        with pytest.warns(DeprecationWarning, match="to_cpu is deprecated"):
            assert model.to_cpu().xp is numpy
        sampler = catena.utils.WalkerAlias([1, 2]).to_device(gpu)
        assert sampler.use_gpu and sampler.sample((3,)).device == gpu
        assert not sampler.to_device("@numpy").use_gpu and sampler.sample((3,)).dtype == numpy.int32
    finally:
        catena.cuda.set_backend("")

    class Count(catena.device_resident.DeviceResidentsVisitor):
        def __init__(self):
            self.seen = []

        def visit_device_resident(self, resident):
            self.seen.append(type(resident).__name__)

        def visit_array(self, array):
            self.seen.append(array.shape)
            return array + 1

        def visit_variable(self, variable):
            self.seen.append(variable.name)

    visitor = Count()
    model.device_resident_accept(visitor)
    assert sorted(map(str, visitor.seen)) == sorted(map(str, [
        "Model", "Table", (2,), "Model", "Table", (2,), (3,), "Linear", "W", "b", (3,)]))
    assert (model.table == 1).all() and (model.inner.kept.array == 2).all()


def test_methods_of_devices_that_classes_may_not_override():
    for name in ("to_device", "to_chx", "from_chx"):
        with pytest.raises(TypeError, match=f"'{name}' is final"):
            type("Wrong", (catena.Link,), {name: None})
    for name in ("to_cpu", "to_gpu", "to_intel64"):
        with pytest.warns(DeprecationWarning, match=f"Overriding method '{name}'"):
            type("Old", (catena.Chain,), {name: None})
    link = catena.Link()
    assert link.from_chx() is link
    for method in (link.to_chx, link.to_intel64):
        with pytest.raises(RuntimeError, match="is not available"):
            method()


def test_mixed_in_call():
    class Mixin:
        def __call__(self, x):
            return x + 1

    class Model(catena.Chain, Mixin):
        pass

    assert Model()(3) == 4


def test_from_params():
    with pytest.raises(NotImplementedError, match="Link does not implement from_params"):
        catena.Link.from_params()


class TestChainList:
    def test_list(self):
        a, b, c, d = (L.Linear(1, i) for i in range(1, 5))
        links = catena.ChainList(a, b)
        links.append(c)
        links.add_link(d)
        assert len(links) == 4 and links[1] is b and links[-1] is d and links[1:3] == [b, c]
        assert [link.name for link in links] == ["0", "1", "2", "3"]
        assert [n for n, _ in links.namedparams()][:3] == ["/0/W", "/0/b", "/1/W"]
        assert [n for n, _ in links.namedlinks()] == ["/", "/0", "/1", "/2", "/3"]
        assert links.index(c) == 2 and links.count(a) == 1 and b in links
        links.reverse()
        assert list(links) == [d, c, b, a] and a.name == "3"
        assert links.pop(0) is d and links.pop() is a and c.name == "0"
        links.insert(1, a)
        links.extend([d])
        links.remove(b)
        assert list(links.children()) == [c, a, d] and d.name == "2"
        links[0] = b
        links[1:] = [c]
        assert list(links) == [b, c] and c.name == "1"
        del links[0]
        assert c.name == "0" and [n for n, _ in links.namedparams()] == ["/0/W", "/0/b"]
        with pytest.raises(TypeError, match="indices must be integers or slices, not str"):
            links["a"] = a

    def test_init_scope(self):
        links = catena.ChainList()
        with links.init_scope():
            links.p = catena.Parameter(0, (2,))
            with pytest.raises(TypeError, match="cannot register a new link within a"):
                links.l = L.Linear(2)
        assert [n for n, _ in links.namedparams()] == ["/p"]

    def test_text(self):
        chainer = pytest.importorskip("chainer")
        texts = [str(m.ChainList(m.links.Linear(2, 3), m.Chain(a=m.links.Linear(1)), m.Chain()))
                 for m in (chainer, catena)]
        assert texts[0] == texts[1]

    def test_copies(self):
        links = catena.ChainList(L.Linear(2, 3), L.Linear(3, 1))
        shared = links.copy()
        assert shared[0].W.array is links[0].W.array and shared[0] is not links[0]
        assert shared[1].name == "1"
        assert (links.copy("init")[0].W.array != links[0].W.array).any()


class Recorder(catena.LinkHook):
    name = "Recorder"

    def __init__(self):
        self.seen = []

    def added(self, link):
        self.seen.append(("added", link))

    def deleted(self, link):
        self.seen.append(("deleted", link))

    def forward_preprocess(self, args):
        self.seen.append(("pre", args.link, args.forward_name, args.args, args.kwargs))

    def forward_postprocess(self, args):
        self.seen.append(("post", args.link, args.out))


class TestHooks:
    def test_of_all_links(self):
        model, hook = make(), Recorder()
        x = numpy.zeros((1, 4), "float32")
        with hook as entered:
            assert entered is hook
            y = model(x)
            with pytest.raises(KeyError, match="hook Recorder already exists"):
                with hook:
                    pass
        model(x)
        assert [(s[0], s[1]) for s in hook.seen] == [
            ("added", None), ("pre", model), ("pre", model.l1), ("post", model.l1),
            ("pre", model.l2), ("post", model.l2), ("post", model), ("deleted", None)]
        assert hook.seen[1][2:] == ("forward", (x,), {}) and hook.seen[-2][2] is y

    def test_of_one_link(self):
        model, hook = make(), Recorder()
        assert model.l1.add_hook(hook) is model.l1
        model(numpy.zeros((1, 4), "float32"))
        with pytest.raises(KeyError, match="Hook Recorder already exists"):
            model.l1.add_hook(hook)
        assert list(model.l1.local_link_hooks) == ["Recorder"]
        model.l1.delete_hook("Recorder")
        model(numpy.zeros((1, 4), "float32"))
        assert [(s[0], s[1]) for s in hook.seen] == [
            (what, model.l1) for what in ["added", "pre", "post", "deleted"]]
        with pytest.raises(KeyError, match="Hook Recorder does not exist"):
            model.l1.delete_hook("Recorder")
        with pytest.raises(TypeError, match="Hook must be of type LinkHook, got <class 'int'>"):
            model.add_hook(3)
        model.add_hook(hook, name="other")
        assert "other" in model.local_link_hooks
