"""link_hooks: the results of Chainer's."""
import io

import catena
import catena.links as L
import numpy as np
import pytest
from catena import link_hooks

LINKS = {"Linear": ((4, 3), (3, 5)), "Convolution2D": ((2, 3, 4, 4), (3, 5, 3)),
         "Deconvolution2D": ((2, 3, 4, 4), (3, 5, 3)), "ConvolutionND": ((2, 3, 4), (1, 3, 5, 3))}


def run(package, name, hook, kwargs, lazy=False, calls=2):
    x_shape, args = LINKS[name]
    random = np.random.RandomState(0)
    x = random.uniform(-1, 1, x_shape).astype("float32")
    if lazy:
        args = tuple(None if arg == 3 and i == len(args) - (2 if name == "Linear" else 3) else arg
                     for i, arg in enumerate(args))
    weights = random.uniform(-1, 1, getattr(package.links, name)(*LINKS[name][1]).W.shape)
    link = getattr(package.links, name)(*args, initialW=package.initializers.Constant(
        weights.astype("float32")))
    np.random.seed(1)
    link.add_hook(getattr(package.link_hooks, hook)(**kwargs))
    for _ in range(calls):
        link.cleargrads()
        y = link(package.Variable(x))
        package.functions.sum(y * y).backward()
    with package.using_config("train", False):
        last = link(package.Variable(x))
    assert isinstance(link.W, package.Parameter)
    found = {"last": last.array, "gW": link.W.grad}
    if hook == "SpectralNormalization":
        found["u"] = link.W_u
    if kwargs.get("use_gamma"):
        found.update(gamma=link.gamma.array, ggamma=link.gamma.grad)
    return found


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("hook, kwargs", [
    ("WeightStandardization", {}), ("WeightStandardization", {"eps": 0.1}),
    ("SpectralNormalization", {}), ("SpectralNormalization", {"n_power_iteration": 3}),
    ("SpectralNormalization", {"use_gamma": True, "factor": 2.0})])
@pytest.mark.parametrize("name", LINKS)
def test_against_chainer(name, hook, kwargs, lazy):
    chainer = pytest.importorskip("chainer")
    pytest.importorskip("chainer.link_hooks")
    ours, theirs = (run(package, name, hook, kwargs, lazy) for package in (catena, chainer))
    assert ours.keys() == theirs.keys()
    for key in theirs:
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-3, atol=1e-4, err_msg=key)


def test_spectral_normalization():
    hook = link_hooks.SpectralNormalization(n_power_iteration=50)
    link = L.Linear(3, 4).add_hook(hook)
    saved = {}
    catena.serializers.DictionarySerializer(saved).save(link)
    assert link.W_u.shape == (4,) and set(saved) == {"W", "b", "W_u"}
    W = np.linalg.svd(link.W.array, compute_uv=False)[0]
    x = np.eye(3, dtype="float32")
    assert np.linalg.norm(link(x).array, 2) == pytest.approx(1, rel=1e-4)
    assert np.linalg.svd(link.W.array, compute_uv=False)[0] == W  # the weights stay the same
    u = link.W_u.copy()
    with catena.using_config("train", False):
        link(x)
    assert (link.W_u == u).all()
    assert hook.v.shape == (3,) and abs(u @ link.W.array @ hook.v) == pytest.approx(W, rel=1e-4)
    link.delete_hook("SpectralNormalization")
    assert not hasattr(link, "W_u")
    with pytest.raises(ValueError, match="Weight 'V' does not exist!"):
        link.add_hook(link_hooks.SpectralNormalization(weight_name="V"))
    with pytest.raises(NotImplementedError, match="add_hook"):
        with link_hooks.WeightStandardization():
            pass


def test_spectral_normalization_that_repeats_a_call():
    """With in_recomputing, a call uses the vectors of the call before it."""
    hook = link_hooks.SpectralNormalization()
    link, x = L.Linear(3, 4).add_hook(hook), np.eye(3, dtype="float32")
    assert hook.v is None
    y = link(x).array
    u, v = link.W_u.copy(), hook.v
    with catena.using_config("in_recomputing", True):
        np.testing.assert_array_equal(link(x).array, y)
    assert hook.v is v and (link.W_u == u).all()
    link(x)
    assert hook.v is not v and (link.W_u != u).any()


def test_timer():
    model = catena.Sequential(L.Linear(3, 4), L.Linear(4, 2))
    x = np.zeros((2, 3), "float32")
    with link_hooks.TimerHook() as timer:
        model(x)
        model[0](x)
    assert [name for name, _ in timer.call_history] == ["Linear", "Linear", "Sequential", "Linear"]
    times = [seconds for _, seconds in timer.call_history]
    assert timer.total_time() == pytest.approx(times[2] + times[3]) and times[2] > times[0]
    summary = timer.summary()
    assert summary["Linear"]["occurrence"] == 3 and list(summary) == ["Linear", "Sequential"]
    for unit in ["auto", "auto_foreach", "sec", "ms", "us", "ns"]:
        out = io.StringIO()
        timer.print_report(unit, out)
        header, linear, _ = out.getvalue().splitlines()
        assert header.split() == ["LinkName", "ElapsedTime", "Occurrence"]
        assert linear.split()[0] == "Linear" and linear.split()[2] == "3"
        assert unit.startswith("auto") or linear.split()[1].endswith(unit)
    with pytest.raises(ValueError, match=r"unit: expected one of .*, got 'days'"):
        timer.print_report("days")
    empty = io.StringIO()
    link_hooks.TimerHook().print_report(file=empty)
    assert len(empty.getvalue().splitlines()) == 1
