"""Optimizers: steps and state as Chainer's, hyperparameters, hooks, own rules."""
import copy
import pickle
import warnings

import numpy
import pytest

import catena
from catena import optimizers


def link_of(module, values, **kwargs):
    """A link of Chainer or catena with parameters a, b, ... in a child."""
    inner = module.Chain()
    with inner.init_scope():
        for name, value in values.items():
            setattr(inner, name, module.Parameter(value.copy(), **kwargs))
    return module.Chain(inner=inner)


def values_of(dtype="float32", seed=0):
    rng = numpy.random.RandomState(seed)
    return {"a": rng.normal(size=(3, 2)).astype(dtype), "b": rng.normal(size=5).astype(dtype),
            "c": numpy.array(rng.normal(), dtype), "d": numpy.zeros((2, 0), dtype)}


def train(link, optimizer, steps=5, seed=1, before=None):
    """Runs steps with the same pseudorandom gradients for each library."""
    rng = numpy.random.RandomState(seed)
    for step in range(steps):
        if before is not None:
            before(step, optimizer, link)
        for _, param in sorted(link.namedparams()):
            grad = rng.normal(size=param.shape).astype(str(param.dtype))
            on_gpu = isinstance(param.array, catena.Array)
            param.grad = catena.cuda.to_gpu(grad) if on_gpu else grad
        optimizer.update()


def arrays_of(link):
    return {name: numpy.array(param.array) for name, param in link.namedparams()}


def assert_same(ours, theirs, rtol):
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        numpy.testing.assert_allclose(ours[name], array, rtol=rtol, atol=rtol / 10, err_msg=name)


def in_both(chainer):
    """The optimizers that both libraries have."""
    return sorted(name for name in dir(optimizers)
                  if isinstance(getattr(chainer.optimizers, name, None), type)
                  and issubclass(getattr(chainer.optimizers, name), chainer.Optimizer))


cases = {
    "AMSBound": [{}, {"alpha": 0.1, "final_lr": 0.05, "gamma": 0.1, "eta": 0.5}],
    "AMSGrad": [{}, {"alpha": 0.1, "beta1": 0.5, "beta2": 0.7, "eps": 1e-2, "eta": 0.5}],
    "AdaBound": [{}, {"alpha": 0.1, "beta1": 0.5, "final_lr": 0.05, "gamma": 0.1, "eps": 1e-3}],
    "AdaDelta": [{}, {"rho": 0.7, "eps": 1e-3}],
    "AdaGrad": [{}, {"lr": 0.1, "eps": 0.01}],
    "Adam": [{}, {"alpha": 0.1, "beta1": 0.5, "beta2": 0.7, "eps": 1e-2},
             {"alpha": 0.1, "eta": 0.5, "weight_decay_rate": 0.2},
             {"alpha": 0.0, "weight_decay_rate": 0.2},
             {"alpha": 0.1, "amsgrad": True, "weight_decay_rate": 0.1},
             {"alpha": 0.2, "adabound": True, "final_lr": 0.02, "gamma": 0.5, "eta": 0.7,
              "weight_decay_rate": 0.1}],
    "AdamW": [{}, {"alpha": 0.1, "eta": 0.5, "weight_decay_rate": 0.2}],
    "CorrectedMomentumSGD": [{}, {"lr": 0.2, "momentum": 0.5}],
    "MSVAG": [{}, {"lr": 0.3, "beta": 0.7, "eta": 0.5, "weight_decay_rate": 0.1}],
    "MomentumSGD": [{}, {"lr": 0.2, "momentum": 0.5}],
    "NesterovAG": [{}, {"lr": 0.2, "momentum": 0.5}],
    "RMSprop": [{}, {"lr": 0.1, "alpha": 0.7, "eps": 0.01},
                {"lr": 0.1, "alpha": 0.7, "eps": 0.01, "eps_inside_sqrt": True}],
    "RMSpropGraves": [{}, {"lr": 0.1, "alpha": 0.7, "momentum": 0.5, "eps": 0.01}],
    "SGD": [{}, {"lr": 0.5}],
    "SMORMS3": [{}, {"lr": 0.1, "eps": 1e-8}],
}


def test_each_optimizer_of_both_has_cases():
    chainer = pytest.importorskip("chainer")
    assert in_both(chainer) == sorted(cases)
    missing = [name for name in dir(chainer.optimizers) if not name.startswith("_")
               and isinstance(getattr(chainer.optimizers, name), type)
               and not hasattr(optimizers, name)]
    assert missing == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(cases))
def test_steps_and_state_are_chainers(name, dtype):
    chainer = pytest.importorskip("chainer")
    for arguments in cases[name]:
        links, made = [], []
        for module in [catena, chainer]:
            link = link_of(module, values_of(dtype))
            optimizer = getattr(module.optimizers, name)(**arguments)
            assert optimizer.setup(link) is optimizer
            train(link, optimizer)
            assert optimizer.t == 5
            links.append(link)
            made.append(optimizer)
        rtol = 2e-4 if dtype == "float32" else 1e-9
        assert_same(arrays_of(links[0]), arrays_of(links[1]), rtol)
        states = []
        for module, optimizer in zip([catena, chainer], made):
            states.append(module.serializers.npz.serialize(optimizer) if module is chainer
                          else catena.serializers.serialize(optimizer))
        assert_same(states[0], states[1], rtol)
        assert states[0]["inner/a/t"] == 5 and states[0]["t"] == 5 and states[0]["epoch"] == 0
        for key, value in states[1].items():  # NumPy makes Chainer's 0-d state float64
            assert key.startswith("inner/c/") or states[0][key].dtype == value.dtype, key


@pytest.mark.parametrize("name", sorted(cases))
def test_arguments_are_chainers(name):
    chainer = pytest.importorskip("chainer")
    import inspect
    ours, theirs = (
        [(each.name, each.default) for each in
         inspect.signature(getattr(module.optimizers, name).__init__).parameters.values()]
        for module in [catena, chainer])
    assert ours == theirs
    ours, theirs = getattr(optimizers, name)(), getattr(chainer.optimizers, name)()
    assert ours.hyperparam.get_dict() == theirs.hyperparam.get_dict()
    for key, value in theirs.hyperparam.get_dict().items():
        assert getattr(ours, key) == value
        setattr(ours, key, 0.25)
        assert getattr(ours.hyperparam, key) == 0.25
    assert repr(theirs.hyperparam) == repr(getattr(optimizers, name)().hyperparam)


def both(arguments, before=None, optimizer="Adam", **options):
    """The parameters after the same training in Chainer and catena."""
    chainer = pytest.importorskip("chainer")
    results = []
    for module in [catena, chainer]:
        link = link_of(module, values_of())
        made = getattr(module.optimizers, optimizer)(**arguments).setup(link)
        train(link, made, before=before, **options)
        results.append(arrays_of(link))
    assert_same(results[0], results[1], 2e-4)
    return results[0]


def test_hyperparameters_change_between_steps():
    def before(step, optimizer, link):
        optimizer.alpha = 0.1 / (step + 1)
    both({}, before)
    both({"adabound": True}, before)


def test_own_hyperparameters_of_parameters():
    def before(step, optimizer, link):
        if step == 2:
            link.inner.a.update_rule.hyperparam.alpha = 0.5
            assert link.inner.a.update_rule.hyperparam.parent is optimizer.hyperparam
            assert link.inner.a.update_rule.hyperparam.beta1 == 0.9
    both({}, before)


def test_disabled_rules_stay_and_count_no_step():
    def before(step, optimizer, link):
        link.inner.a.update_rule.enabled = step not in (1, 2)
        if step == 3:
            assert link.inner.a.update_rule.t == 1 and link.inner.b.update_rule.t == 3
            link.inner.b.array[...] = 2
        if step == 4:
            link.inner.disable_update()
    both({"alpha": 0.3}, before)


def test_missing_gradients_count_as_zeros():
    def before(step, optimizer, link):
        if step == 2:
            for param in link.params():
                param.grad = numpy.ones_like(param.array)
            link.cleargrads()
            optimizer.update()
            assert (link.inner.a.grad == 0).all()
    both({"lr": 0.1}, before, "MomentumSGD")


def test_state_can_be_read_and_replaced():
    link = link_of(catena, values_of())
    optimizer = optimizers.MomentumSGD(lr=1, momentum=0.5).setup(link)
    rule = link.inner.b.update_rule
    assert rule.state is None and isinstance(rule, optimizers.MomentumSGDRule)
    train(link, optimizer, 1)
    assert list(rule.state) == ["v"] and isinstance(rule.state["v"], numpy.ndarray)
    assert rule.state["v"].dtype == numpy.float32
    rule.state["v"][...] = 4
    before = link.inner.b.array.copy()
    optimizer.zero_grads()
    optimizer.update()
    numpy.testing.assert_allclose(link.inner.b.array, before + 2)
    rule.state["v"] = numpy.full(5, 8, "float64")
    optimizer.update()
    numpy.testing.assert_allclose(link.inner.b.array, before + 6)
    assert (rule.state["v"] == 4).all() and rule.state["v"].dtype == numpy.float32


def test_arrays_can_be_replaced():
    def before(step, optimizer, link):
        if step == 2:
            link.inner.a.array = link.inner.a.array * 2
    both({"alpha": 0.3}, before)


def test_parameters_initialized_after_setup():
    link = catena.Chain()
    with link.init_scope():
        link.a = catena.Parameter(numpy.ones(2, "f"))
        link.w = catena.Parameter(1.0)
    optimizer = optimizers.Adam(alpha=0.1).setup(link)
    for step in range(4):
        if step == 2:
            link.w.initialize((3,))
            link.w.grad = numpy.ones(3, "f")
        link.a.grad = numpy.ones(2, "f")
        optimizer.update()
    assert link.w.update_rule.t == 4 and set(link.w.update_rule.state) == {"m", "v"}
    numpy.testing.assert_allclose(link.a.array, 0.6, rtol=1e-5)
    # its first step is the third: bias correction counts t as Chainer does
    assert (link.w.array < 0.95).all()


def test_a_shared_parameter_is_updated_once():
    shared = catena.Parameter(numpy.ones(2, "f"))
    link = catena.Chain(a=catena.Link(), b=catena.Link())
    for child in [link.a, link.b]:
        with child.init_scope():
            child.w = shared
    optimizer = optimizers.SGD(lr=0.5).setup(link)
    shared.grad = numpy.ones(2, "f")
    optimizer.update()
    numpy.testing.assert_allclose(shared.array, 0.5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", sorted(cases) + ["Lamb", "Lion"])
def test_half_precision_has_state_in_float32(name, dtype):
    arrays = {}
    for each in ["float32", dtype]:
        link = link_of(catena, values_of())
        for param in link.params():
            param.array = param._array.astype(each)
        optimizer = getattr(optimizers, name)().setup(link)
        rng = numpy.random.RandomState(0)
        for _ in range(3):
            for param in link.params():
                grad = rng.normal(size=param.shape).astype("float16").astype("f")
                param.grad = catena._core.as_array(grad).astype(each)
            optimizer.update()
        states = link.inner.a.update_rule.state.values()
        assert all(state.dtype == numpy.float32 for state in states)
        assert str(link.inner.a.dtype) == each
        arrays[each] = {n: numpy.asarray(p._array.astype("float32")) for n, p in link.namedparams()}
    for key, value in arrays["float32"].items():
        numpy.testing.assert_allclose(arrays[dtype][key], value, rtol=0.05, atol=0.02)


def test_fp32_update_keeps_small_steps():
    link = link_of(catena, {"a": numpy.ones(3, "float16")})
    optimizer = optimizers.SGD(lr=1e-4)
    optimizer.use_fp32_update()
    optimizer.setup(link)
    for _ in range(20):
        link.inner.a.grad = numpy.ones(3, "float16")
        optimizer.update()
    assert link.inner.a.dtype == numpy.float16
    numpy.testing.assert_allclose(link.inner.a.array, 0.998, rtol=1e-3)


def test_lamb_and_lion_have_the_documented_steps():
    p, g = numpy.array([3.0, 4.0]), numpy.array([1.0, -2.0])
    for name, arguments, expected in [
            ("Lion", {"lr": 0.1, "weight_decay_rate": 0.5}, p - 0.1 * (numpy.sign(g) + 0.5 * p)),
            ("Lamb", {"lr": 0.1, "weight_decay_rate": 0, "eps": 0},
             p - 0.1 * 5 / numpy.sqrt(2) * numpy.sign(g))]:
        link = link_of(catena, {"a": p})
        optimizer = getattr(optimizers, name)(**arguments).setup(link)
        link.inner.a.grad = g
        optimizer.update()
        numpy.testing.assert_allclose(link.inner.a.array, expected, rtol=1e-12)
        link.inner.a.grad = g
        optimizer.update()
        assert link.inner.a.update_rule.t == 2


def test_update_with_a_loss():
    link = link_of(catena, {"a": numpy.array([1.0, 2.0], "f")})
    optimizer = optimizers.SGD(lr=0.1).setup(link)

    def loss(x, scale=1):
        return catena.functions.sum(link.inner.a * link.inner.a * x) * scale

    for use in [True, False]:
        before = link.inner.a.array.copy()
        with pytest.warns(DeprecationWarning):
            optimizer.use_cleargrads(use)
            optimizer.update(loss, numpy.ones(2, "f"), scale=2)
        numpy.testing.assert_allclose(link.inner.a.array, before * (1 - 0.1 * 4), rtol=1e-6)
    assert optimizer.t == 2


def test_epochs():
    optimizer = optimizers.SGD().setup(catena.Chain())
    optimizer.new_epoch()
    assert optimizer.epoch == 1
    with pytest.raises(RuntimeError, match="use_auto_new_epoch"):
        optimizer.new_epoch(auto=True)
    optimizer.use_auto_new_epoch = True
    optimizer.new_epoch(auto=True)
    assert optimizer.epoch == 2
    with pytest.raises(RuntimeError, match="auto_new_epoch=False"):
        optimizer.new_epoch()


def test_wrong_use():
    with pytest.raises(TypeError, match=r"\[setup\] link: expected a Link, got int"):
        optimizers.SGD().setup(3)
    with pytest.raises(RuntimeError, match="not set up"):
        optimizers.SGD().add_hook(print)
    link = link_of(catena, values_of())
    optimizer = optimizers.SGD(lr=-1).setup(link)
    with pytest.raises(ValueError, match="lr"):
        train(link, optimizer, 1)
    with pytest.raises(TypeError):
        optimizers.SGD(rate=1)
    with pytest.raises(AttributeError, match="momentum"):
        optimizers.SGD().hyperparam.momentum


def test_copies_and_pickles_train_on():
    link = link_of(catena, values_of())
    optimizer = optimizers.Adam(alpha=0.1).setup(link)
    train(link, optimizer, 2)
    others = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    train(link, optimizer, 2, seed=9)
    for other in others:
        assert other.target is not link and other.t == 2
        assert other.target.inner.a.update_rule.hyperparam.parent is other.hyperparam
        train(other.target, other, 2, seed=9)
        assert_same(arrays_of(other.target), arrays_of(link), 1e-6)
    assert copy.deepcopy(link).inner.a.update_rule.t == 4


# ---- hooks

def _hooks_of(module):
    hooks = module.optimizer_hooks
    return {"WeightDecay": hooks.WeightDecay(0.3), "Lasso": hooks.Lasso(0.3),
            "GradientClipping": hooks.GradientClipping(0.5),
            "GradientClipping far": hooks.GradientClipping(500),
            "GradientHardClipping": hooks.GradientHardClipping(-0.2, 0.7),
            "GradientLARS": hooks.GradientLARS(0.5, 0.1), "GradientLARS()": hooks.GradientLARS(),
            "GradientNoise": hooks.GradientNoise(
                0.3, lambda xp, shape, dtype, hook, rule: xp.full(shape, rule.t * hook.eta, dtype))}


@pytest.mark.parametrize("name", sorted(_hooks_of(catena)))
@pytest.mark.parametrize("of_rule", [False, True])
def test_hooks_are_chainers(name, of_rule):
    chainer = pytest.importorskip("chainer")
    if of_rule and name.startswith("GradientClipping"):
        pytest.skip("it takes an optimizer")
    results = []
    for module in [catena, chainer]:
        values = values_of()
        del values["d"]  # Chainer divides by its norm
        link = link_of(module, values)
        optimizer = module.optimizers.MomentumSGD(lr=0.1).setup(link)
        hook = _hooks_of(module)[name]
        if of_rule:
            for param in link.params():
                param.update_rule.add_hook(hook)
        else:
            optimizer.add_hook(hook)
        train(link, optimizer)
        results.append(arrays_of(link))
    assert_same(results[0], results[1], 1e-4)


def test_gradient_noise_has_the_annealed_variance():
    link = link_of(catena, {"a": numpy.zeros(20000, "f")})
    optimizer = optimizers.SGD(lr=1).setup(link)
    optimizer.add_hook(catena.optimizer_hooks.GradientNoise(0.3))
    numpy.random.seed(0)
    optimizer.update()
    assert abs(link.inner.a.array.std() - 0.3 ** 0.5) < 0.02


def test_order_and_timing_of_hooks():
    calls = []

    def hook(name, **attributes):
        def call(*args):
            calls.append((name, len(args)))
        vars(call).update(attributes)
        return call

    link = link_of(catena, {"a": numpy.zeros(2, "f"), "b": numpy.zeros(2, "f")})
    optimizer = optimizers.SGD().setup(link)
    optimizer.add_hook(hook("second", timing="post"), "second")
    optimizer.add_hook(hook("first"), "first")
    optimizer.add_hook(hook("third"), "third", timing="post")
    optimizer.add_hook(hook("each", call_for_each_param=True), "each")
    link.inner.a.update_rule.add_hook(hook("rule"), "rule")
    link.inner.a.update_rule.add_hook(hook("after", timing="post"), "after")
    optimizer.update()
    assert calls == [("first", 1), ("each", 2), ("each", 2), ("rule", 2), ("after", 2),
                     ("second", 1), ("third", 1)]
    for name in ["first", "second"]:
        optimizer.remove_hook(name)
    link.inner.a.update_rule.remove_hook("rule")
    del calls[:]
    optimizer.update()
    assert [name for name, _ in calls] == ["each", "each", "after", "third"]
    with pytest.raises(KeyError, match="third"):
        optimizer.add_hook(print, "third")
    with pytest.raises(KeyError):
        optimizer.remove_hook("first")
    with pytest.raises(ValueError, match="timing"):
        optimizer.add_hook(print, "x", timing="now")
    with pytest.raises(TypeError, match="callable"):
        optimizer.add_hook(3, "x")
    with pytest.raises(ValueError, match="name"):
        optimizer.add_hook(catena.Sequential())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        optimizer.add_hook(hook("odd", timing="now"), "odd")
    assert len(seen) == 1


# ---- loss scaling

@pytest.mark.parametrize("dynamic", [False, True])
def test_loss_scaling_is_chainers(dynamic):
    chainer = pytest.importorskip("chainer")
    results, scales = [], []
    for module in [catena, chainer]:
        link = link_of(module, values_of())
        optimizer = module.optimizers.MomentumSGD(lr=0.1).setup(link)
        optimizer.add_hook(module.optimizer_hooks.WeightDecay(0.1))
        optimizer.loss_scaling(interval=2) if dynamic else optimizer.set_loss_scale(128.0)
        for step in range(4):
            factor = numpy.float32(numpy.inf if dynamic and step == 2 else step)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                optimizer.update(lambda: sum(
                    module.functions.sum(p * p * factor) for p in link.params()))
            if dynamic:
                assert [w for w in seen if "inite" in str(w.message)] if step == 2 else not seen
            scales.append(optimizer._loss_scale)
        results.append(arrays_of(link))
    assert scales[:4] == scales[4:]
    assert_same(results[0], results[1], 1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "MomentumSGD", "CorrectedMomentumSGD"])
@pytest.mark.parametrize("through", ["plain", "hook", "forget", "fp32"])
def test_loss_scale_of_backward(name, through):
    """update() divides by the factor of the backward() that computed the gradients."""
    F = catena.functions
    results = []
    for scale in (None, 4):
        dtype = "float16" if through == "fp32" else "float32"
        link = catena.links.Linear(2, 2, initialW=numpy.ones((2, 2), dtype), initial_bias=0)
        link.b.to_device("@numpy")
        link.b.array = link.b.array.astype(dtype)
        optimizer = getattr(optimizers, name)()
        if through == "fp32":
            optimizer.use_fp32_update()
        optimizer.setup(link)
        if through == "hook":
            for param in link.params():
                param.update_rule.add_hook(lambda rule, param: None, "nothing")
        x = numpy.array([[1, 2], [3, 5]], dtype)
        for _ in range(3):
            y = F.forget(link, x) if through == "forget" else link(x)
            link.cleargrads()
            F.sum(y * y).backward(loss_scale=scale)
            assert link.W.loss_scale == scale
            optimizer.update()
        results.append(link.W.array)
    numpy.testing.assert_allclose(results[0], results[1], rtol=1e-2 if through == "fp32" else 1e-5)


def test_loss_scale_is_of_the_last_backward():
    """An optimizer's factor alone divides nothing, as in Chainer."""
    link = catena.links.Linear(1, 1, initialW=numpy.ones((1, 1), "float32"), nobias=True)
    optimizer = optimizers.SGD(lr=1).setup(link)
    optimizer.set_loss_scale(4)
    for scale, expected in [(4, 0), (None, -1)]:
        link.cleargrads()
        catena.functions.sum(link(numpy.ones((1, 1), "float32"))).backward(loss_scale=scale)
        optimizer.update()
        assert link.W.array == expected


def test_wrong_loss_scales():
    optimizer = optimizers.SGD().setup(catena.Chain())
    with pytest.raises(ValueError, match="scale"):
        optimizer.set_loss_scale(0)
    with pytest.raises(ValueError, match="interval"):
        optimizer.loss_scaling(interval=0)


# ---- updates between a call and its backward pass, as in programs for GANs

@pytest.mark.parametrize("name", ["SGD", "Adam", "NesterovAG"])
def test_update_before_backward_of_another_loss(name):
    """The gradients are those with the new parameters, without and with a graph of their own."""
    F = catena.functions
    link = catena.links.Linear(2, 2)
    optimizer = getattr(optimizers, name)().setup(link)
    x = catena.Variable(numpy.ones((3, 2), "float32"))
    y = F.tanh(link(x))
    before = link.W.array.copy()
    optimizer.update(lambda: F.sum(y * y))
    assert not numpy.array_equal(link.W.array, before)
    x.cleargrad()
    F.sum(y).backward()
    slope = 1 - y.array ** 2
    numpy.testing.assert_allclose(x.grad, slope @ link.W.array, rtol=1e-5)
    gx, = catena.grad([F.sum(y)], [x], enable_double_backprop=True)
    optimizer.update()
    numpy.testing.assert_allclose(gx.array, x.grad, rtol=1e-5)
    link.cleargrads()
    F.sum(gx).backward()
    assert link.W.grad.shape == (2, 2)


def test_gan_is_chainers():
    chainer = pytest.importorskip("chainer")

    def losses(package):
        F, L = package.functions, package.links
        numpy.random.seed(0)
        make = package.Sequential(L.Linear(3, 8), F.tanh, L.Linear(8, 6))
        judge = package.Sequential(L.Linear(6, 8), F.leaky_relu, L.Linear(8, 1))
        update_make, update_judge = (package.optimizers.Adam(0.01).setup(net)
                                     for net in (make, judge))
        found = []
        for _ in range(4):
            fake = make(numpy.random.rand(5, 3).astype("float32"))
            of_fake, of_real = judge(fake), judge(numpy.random.rand(5, 6).astype("float32"))
            loss = F.sum(F.softplus(-of_real)) + F.sum(F.softplus(of_fake))
            update_judge.update(lambda: loss)
            update_make.update(lambda: F.sum(F.softplus(-of_fake)))
            found.append(float(loss.array))
        return found + [float(numpy.abs(each.array).sum()) for each in make.params()]
    numpy.testing.assert_allclose(losses(catena), losses(chainer), rtol=1e-4)
