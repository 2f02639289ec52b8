"""Update rules and optimizers that users write, also as in Chainer 1."""
import gc
import weakref

import numpy
import pytest

import catena
from catena import optimizers

from test_optimizers import arrays_of, assert_same, link_of, train, values_of


def own_classes(module):
    """A rule with state and one without, with Chainer's interface."""
    class MomentumRule(module.UpdateRule):
        def init_state(self, param):
            self.state["v"] = numpy.zeros_like(param.array)

        def update_core_cpu(self, param):
            if param.grad is None:
                return
            v = self.state["v"]
            v *= self.hyperparam.momentum
            v -= self.hyperparam.lr * param.grad
            param.array += v

    class Momentum(module.GradientMethod):
        def __init__(self, lr=0.1, momentum=0.5):
            super().__init__()
            self.hyperparam.lr = lr
            self.hyperparam.momentum = momentum

        lr = module.optimizer.HyperparameterProxy("lr")

        def create_update_rule(self):
            return MomentumRule(self.hyperparam)

    class SignRule(module.UpdateRule):
        def update_core(self, param):
            if param.grad is not None:
                param.array -= self.hyperparam.lr * numpy.sign(param.grad)

    return Momentum, SignRule


def test_own_rules_train_as_in_chainer():
    chainer = pytest.importorskip("chainer")
    results, states = [], []
    for module in [catena, chainer]:
        momentum, sign = own_classes(module)
        link = link_of(module, values_of())
        optimizer = momentum(lr=0.2).setup(link)
        link.inner.b.update_rule = sign(optimizer.hyperparam)
        link.inner.c.update_rule = None
        train(link, optimizer, before=lambda step, o, l: setattr(o, "lr", 0.2 / (1 + step)))
        results.append(arrays_of(link))
        states.append(module.serializers.npz.serialize(optimizer) if module is chainer
                      else catena.serializers.serialize(optimizer))
    assert_same(results[0], results[1], 1e-6)
    assert_same(states[0], states[1], 1e-6)
    assert "inner/a/v" in states[0] and "inner/c/t" not in states[0]


def test_own_rules_in_float16_with_a_float32_copy():
    chainer = pytest.importorskip("chainer")
    results = []
    for module in [catena, chainer]:
        momentum, _ = own_classes(module)
        link = link_of(module, values_of("float16"))
        optimizer = momentum(lr=1e-3)
        optimizer.use_fp32_update()
        optimizer.setup(link)
        train(link, optimizer, 10)
        assert link.inner.a.update_rule.state["v"].dtype == numpy.float32
        results.append(arrays_of(link))
    assert_same(results[0], results[1], 1e-3)


def test_a_rule_that_extends_one_of_catena():
    class Half(optimizers.SGDRule):
        def update_core(self, param):
            param.grad = param.grad / 2
            super().update_core(param)

    class HalfSGD(optimizers.SGD):
        def create_update_rule(self):
            return Half(self.hyperparam)

    link = link_of(catena, {"a": numpy.ones(2, "f")})
    optimizer = HalfSGD(lr=1).setup(link)
    link.inner.a.grad = numpy.ones(2, "f")
    optimizer.update()
    assert (link.inner.a.array == 0.5).all() and link.inner.a.update_rule.t == 1


def test_rules_without_an_optimizer():
    param = catena.Parameter(numpy.ones(3, "f"))
    param.update_rule = rule = optimizers.AdamRule(alpha=0.25)
    for step in range(1, 4):
        param.grad = numpy.ones(3, "f")
        param.update()
        numpy.testing.assert_allclose(param.array, 1 - 0.25 * step, rtol=1e-5)
    assert rule.t == 3 and rule.hyperparam.beta1 == 0.9
    assert abs(rule.alpha_t - 0.25 * (1 - 0.999 ** 3) ** 0.5 / (1 - 0.9 ** 3)) < 1e-12
    assert optimizers.SGDRule(None, 0.5).hyperparam.lr == 0.5
    with pytest.raises(TypeError, match="unexpected argument 'rate'"):
        optimizers.SGDRule(rate=1)
    with pytest.raises(RuntimeError, match="not been started"):
        optimizers.AdamRule().alpha_t
    with pytest.raises(RuntimeError, match="bounds of AdaBound"):
        optimizers.AdamRule(adabound=True).bounds


def test_bounds_are_chainers():
    chainer = pytest.importorskip("chainer")
    seen = []
    for module in [catena, chainer]:
        link = link_of(module, {"a": numpy.ones(2, "f")})
        optimizer = module.optimizers.AdaBound(gamma=0.5).setup(link)
        train(link, optimizer, 3)
        optimizer.alpha *= 0.5
        seen.append(link.inner.a.update_rule.bounds + (optimizer.alpha_t,))
    numpy.testing.assert_allclose(seen[0], seen[1], rtol=1e-12)


def test_rules_that_implement_nothing():
    param = catena.Parameter(numpy.ones(3, "f"))
    param.update_rule = catena.UpdateRule()
    with pytest.raises(NotImplementedError):
        param.update()
    with pytest.raises(NotImplementedError):
        catena.GradientMethod().setup(link_of(catena, values_of()))
    with pytest.raises(NotImplementedError):
        catena.Optimizer().setup(link_of(catena, values_of())).update()


def test_functions_of_plugins_as_optimizers():
    link = link_of(catena, {"a": numpy.ones(2, "f")})
    optimizer = optimizers.PluginOptimizer("catena.adam_update", state=["m", "v"], counts=True,
                                           alpha=0.1, beta1=0.9, beta2=0.999, lam=1.0, eps=1e-8)
    optimizer.setup(link)
    for step in range(1, 3):
        link.inner.a.grad = numpy.ones(2, "f")
        optimizer.update()
        numpy.testing.assert_allclose(link.inner.a.array, 1 - 0.1 * step, rtol=1e-5)
    optimizer.hyperparam.alpha = 1
    optimizer.update()
    numpy.testing.assert_allclose(link.inner.a.array, -0.2, atol=1e-5)
    with pytest.raises(catena.PluginError, match="catena.no_such_update"):
        train(link, optimizers.PluginOptimizer("catena.no_such_update").setup(link), 1)


# ---- Chainer 1

class OldMomentum(catena.Optimizer):
    """As in Chainer 1's manual: state is the return value of init_state()."""

    def init_state_cpu(self, param, grad):
        return numpy.zeros_like(param)

    def update_one_cpu(self, param, grad, v):
        v *= 0.5
        v -= 0.1 * grad / self.t
        param += v


def test_optimizers_of_chainer_1():
    link = link_of(catena, {"a": numpy.ones(2, "f")})
    optimizer = OldMomentum()
    optimizer.setup(link)
    v, expected = 0.0, 1.0
    for t in range(1, 4):
        link.inner.a.grad = numpy.ones(2, "f")
        optimizer.update()
        v = 0.5 * v - 0.1 / t
        expected += v
        numpy.testing.assert_allclose(link.inner.a.array, expected, rtol=1e-6)

    class Whole(catena.Optimizer):
        def init_state(self, param, grad):
            return None

        def update_one(self, param, grad, state):
            param -= grad

    optimizer = Whole()
    optimizer.setup(link)
    optimizer.update(lambda: catena.functions.sum(link.inner.a))
    numpy.testing.assert_allclose(link.inner.a.array, expected - 1, rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: optimizers.MomentumSGD(0.1, 0.5), OldMomentum])
def test_setup_with_arrays(make):
    param, grad = numpy.ones(2, "f"), numpy.full(2, 3, "f")
    optimizer = make()
    optimizer.setup(((param,), (grad,)))
    optimizer.zero_grads()
    assert (grad == 0).all()
    grad += 1
    optimizer.update()
    numpy.testing.assert_allclose(param, 0.9, rtol=1e-6)
    assert (grad == 1).all()
    optimizer.accumulate_grads([numpy.full(2, 2, "f")])
    assert (grad == 3).all()
    optimizer.clip_grads(1)
    numpy.testing.assert_allclose(grad, 0.5 ** 0.5, rtol=1e-6)


def test_gradients_together():
    values = values_of()
    link = link_of(catena, values)
    optimizer = optimizers.SGD().setup(link)
    grads = {}
    for i, (name, param) in enumerate(sorted(link.namedparams())):
        grads[name] = param.grad = numpy.full(param.shape, i + 1, "f")
    norm = sum((g.astype(float) ** 2).sum() for g in grads.values()) ** 0.5
    assert abs(optimizer.compute_grads_norm() - norm) < 1e-5
    optimizer.weight_decay(0.5)
    for name, param in link.namedparams():
        numpy.testing.assert_allclose(param.grad, grads[name] + 0.5 * param.array, rtol=1e-6)
    optimizer.clip_grads(0.125)
    assert abs(optimizer.compute_grads_norm() - 0.125) < 1e-6
    optimizer.clip_grads(100)
    assert abs(optimizer.compute_grads_norm() - 0.125) < 1e-6
    with pytest.raises(ValueError, match="maxnorm"):
        optimizer.clip_grads(-1)
    optimizer.zero_grads()
    assert optimizer.compute_grads_norm() == 0
    link.cleargrads()
    optimizer.accumulate_grads([grads[name] if name.endswith("b") else None
                                for name, _ in link.namedparams()])
    assert (link.inner.b.grad == 2).all() and link.inner.a.grad is None


def test_function_set():
    model = catena.FunctionSet(l1=catena.links.Linear(3, 4), l2=catena.links.Linear(4, 2))
    optimizer = optimizers.SGD(lr=0.001)
    optimizer.setup(model.collect_parameters())
    x = numpy.ones((5, 3), "f")
    losses = []
    for _ in range(5):
        optimizer.zero_grads()
        y = model.l2(model.l1(x))
        loss = catena.functions.sum(y * y)
        loss.backward()
        optimizer.clip_grads(1)
        optimizer.update()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_optimizers_are_collected():
    link = link_of(catena, values_of())
    optimizer = optimizers.Adam().setup(link)
    link.inner.a.update_rule.hyperparam.alpha = 0.1
    train(link, optimizer, 2)
    seen = [weakref.ref(each) for each in [link, optimizer, link.inner.a, link.inner.a.update_rule]]
    del link, optimizer
    gc.collect()
    assert [ref() for ref in seen] == [None] * 4


# ---- devices

@pytest.fixture
def gpu():
    """A GPU, or the second logical CPU device in its place."""
    if not catena.cuda.available:
        catena.cuda.set_backend("cpu")
    if not catena.cuda.available:
        catena.cuda.set_backend("")
        pytest.skip("one logical CPU device")
    yield catena.cuda.get_device_from_id(0)
    catena.cuda.set_backend("")


@pytest.mark.parametrize("name", ["Adam", "AMSGrad", "SMORMS3", "MSVAG", "Lamb", "NesterovAG"])
def test_state_follows_parameters_to_a_device(name, gpu, tmp_path):
    file = str(tmp_path / "state.npz")
    ends = []
    for moves in [False, True]:
        link = link_of(catena, values_of())
        optimizer = getattr(optimizers, name)().setup(link)
        for hook in [catena.optimizer_hooks.WeightDecay(0.1), catena.optimizer_hooks.Lasso(0.1),
                     catena.optimizer_hooks.GradientHardClipping(-1, 1),
                     catena.optimizer_hooks.GradientClipping(1.5),
                     catena.optimizer_hooks.GradientNoise(0.0)]:
            optimizer.add_hook(hook)

        def before(step, optimizer, link):
            rule = link.inner.b.update_rule
            if moves and step == 2:
                link.to_device(gpu)
            if moves and step == 3:
                assert all(state.device == gpu for state in rule.state.values())
                rule.hyperparam.eta = optimizer.hyperparam.get_dict().get("eta", 1)
            if moves and step == 4:
                catena.serializers.save_npz(file, optimizer)
                other = getattr(optimizers, name)().setup(link_of(catena, values_of()))
                catena.serializers.load_npz(file, other)
                for key, state in other.target.inner.b.update_rule.state.items():
                    numpy.testing.assert_array_equal(state, numpy.asarray(rule.state[key]))
                catena.serializers.load_npz(file, optimizer)
                link.to_cpu()

        train(link, optimizer, 6, before=before)
        if moves:
            assert isinstance(next(iter(link.inner.b.update_rule.state.values())), numpy.ndarray)
        ends.append(arrays_of(link))
    assert_same(ends[0], ends[1], 1e-5)


def test_own_rules_on_a_device(gpu):
    class Rule(catena.UpdateRule):
        def init_state(self, param):
            self.state["seen"] = numpy.zeros(2, "f")

        def update_core_gpu(self, param):
            assert self.state["seen"].device == param.device
            param.data -= param.grad
            self.state["seen"] += param.grad

    param = catena.Parameter(numpy.ones(2, "f"))
    param.update_rule = Rule()
    param.to_device(gpu)
    param.grad = catena.cuda.to_gpu(numpy.ones(2, "f"))
    param.update()
    assert numpy.asarray(param.array).tolist() == [0, 0]
    assert numpy.asarray(param.update_rule.state["seen"]).tolist() == [1, 1]
