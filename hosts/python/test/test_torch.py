"""catena.torch.wrap(): what PyTorch's users expect of a function, besides right gradients."""
import gc
import pickle
import threading
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import catena
import catena.torch
from catena import functions as F

wrap = catena.torch.wrap
exp, mul, add, tanh = (wrap(f"catena.{name}") for name in ["exp", "mul", "add", "tanh"])
CHANGED = "modified by an inplace operation"


def leaf(*shape, dtype=torch.float32):
    return torch.rand(shape, dtype=dtype).add(0.5).requires_grad_()


def grad_of(function, *tensors):
    for x in tensors:
        x.grad = None
    function(*tensors).sum().backward()
    return [x.grad for x in tensors]


class Scale(catena.FunctionNode):
    """y = factor x, as a class of Python that knows its calls."""

    calls = []

    def __init__(self, factor):
        self.factor = factor
        Scale.calls.append(weakref.ref(self))

    def forward(self, inputs):
        return inputs[0] * self.factor,

    def backward(self, indexes, grads):
        return grads[0] * self.factor,


def scale(x, factor=3.0):
    return Scale(factor).apply((x,))[0]


# ---- arguments and results


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtypes(dtype):
    x = leaf(3, 2, dtype=dtype)
    y = exp(x)
    assert y.dtype == dtype and y.shape == (3, 2)
    y.sum().backward()
    assert x.grad.dtype == dtype
    tolerance = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-6
    torch.testing.assert_close(x.grad, x.detach().exp(), rtol=tolerance, atol=0)


def test_memory_is_shared():
    seen = []

    def look(x):
        y = F.exp(x)
        seen.extend([x.array, y.array])
        return y
    x = torch.rand(5)
    y = wrap(look)(x)
    assert [a.ctypes.data for a in seen] == [x.data_ptr(), y.data_ptr()]


@pytest.mark.parametrize("make", [
    lambda x: x.t(), lambda x: x[::2], lambda x: x[:, 1:2], lambda x: x[1].expand(3, 4),
    lambda x: x[:0], lambda x: x[0, 0], lambda x: x[:1, :1]])
def test_layouts(make):
    x = torch.arange(12.).reshape(3, 4).div(10).requires_grad_()
    torch.testing.assert_close(exp(make(x)), make(x).exp())
    weights = make(torch.arange(12.).reshape(3, 4) + 1)
    ours, = torch.autograd.grad(exp(make(x)), x, weights)
    theirs, = torch.autograd.grad(make(x).exp(), x, weights)
    torch.testing.assert_close(ours, theirs)


def test_negated_views_are_resolved():
    x = torch.complex(torch.rand(3), torch.rand(3)).conj().imag
    assert x.is_neg()
    torch.testing.assert_close(exp(x), x.exp())


def test_without_functions_for_c(monkeypatch):  # as with older versions, and on GPUs
    monkeypatch.setattr(torch.Tensor, "__dlpack_c_exchange_api__", None, raising=False)
    x, w = leaf(2, 3, dtype=torch.float64), leaf(3, 2, dtype=torch.float64)
    f = wrap(lambda x, w: F.tanh(F.matmul(x, w)))
    assert torch.autograd.gradcheck(f, [x, w.t().contiguous().t()])
    assert torch.autograd.gradgradcheck(f, [x, w])


def test_attributes_and_optional_inputs():
    linear = wrap("catena.linear")
    x, W, b = leaf(2, 3, 4), leaf(5, 4), leaf(5)
    for ours, theirs in [
            (linear(x, W, b, n_batch_axes=2), torch.nn.functional.linear(x, W, b)),
            (linear(W=W, x=x, n_batch_axes=2, b=None), torch.nn.functional.linear(x, W)),
            (linear(x[0], W), torch.nn.functional.linear(x[0], W))]:
        torch.testing.assert_close(ours, theirs)


def test_keyword_tensors_get_gradients():
    linear = wrap("catena.linear")
    x, W = leaf(2, 4), leaf(5, 4)
    ours = torch.autograd.grad(linear(x, W=W).sum(), [x, W])
    theirs = torch.autograd.grad(torch.nn.functional.linear(x, W).sum(), [x, W])
    torch.testing.assert_close(ours, theirs)


def test_lists_of_tensors():
    xs = [leaf(2, n) for n in (1, 3, 2)]
    y = wrap(F.concat)(xs, axis=1)
    torch.testing.assert_close(y, torch.cat(xs, 1))
    weights = torch.rand(2, 6)
    grads = torch.autograd.grad(y, xs, weights)
    torch.testing.assert_close(list(grads), list(weights.split([1, 3, 2], 1)))


def test_several_results():
    topk = wrap("catena.topk")
    x = torch.tensor([3., 1., 2.], requires_grad=True)
    values, indices = topk(x, 2)
    assert isinstance(topk(x, 2), tuple)
    assert values.tolist() == [3, 2] and indices.tolist() == [0, 2]
    assert values.requires_grad and not indices.requires_grad
    assert indices.dtype == torch.int64
    values.backward(torch.tensor([5., 7.]))
    assert x.grad.tolist() == [5, 0, 7]


def test_results_without_gradient():
    lstm = wrap("catena.lstm")
    c, x = leaf(2, 3, dtype=torch.float64), leaf(2, 12, dtype=torch.float64)
    for chosen in (0, 1):
        ours = torch.autograd.grad(lstm(c, x)[chosen].sum(), [c, x])
        assert all(g.shape == v.shape for g, v in zip(ours, [c, x]))
    both = torch.autograd.grad([y.sum() for y in lstm(c, x)], [c, x])
    one = [torch.autograd.grad(lstm(c, x)[i].sum(), [c, x]) for i in (0, 1)]
    for k in (0, 1):
        torch.testing.assert_close(both[k], one[0][k] + one[1][k])


def test_integers_have_no_gradient():
    x, t = leaf(4, 5), torch.tensor([0, 4, 2, -1])
    loss = wrap("catena.softmax_cross_entropy")(x, t)
    loss.backward()
    expected = leaf(4, 5)
    with torch.no_grad():
        expected.copy_(x)
    torch.nn.functional.cross_entropy(expected, t, ignore_index=-1).backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_functions_of_python():
    x = leaf(3, dtype=torch.float64)
    f = wrap(scale)
    torch.testing.assert_close(f(x, factor=2.0), 2 * x)
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
    link = catena.links.Linear(3, 2)
    link.cleargrads()
    a = leaf(1, 3)
    torch.testing.assert_close(grad_of(wrap(link), a)[0].numpy(),
                               link.W.array.sum(axis=0, keepdims=True))
    assert link.W.grad is None


def test_an_input_as_result():
    x = leaf(3, dtype=torch.float64)
    f = wrap(lambda x: (x, x * 2, x))
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
    with torch.no_grad():
        y = f(x)[0]
    assert not y.requires_grad and x.requires_grad
    assert torch.equal(y, x)


def test_one_result_twice():
    x = leaf(3, dtype=torch.float64)

    def both(x):
        y = F.exp(x)
        return y, y
    a, b = wrap(both)(x)
    assert a.data_ptr() != b.data_ptr()
    assert torch.autograd.gradcheck(wrap(both), x)


class View(catena.FunctionNode):
    def forward(self, inputs):
        return inputs[0].reshape(-1),

    def backward(self, indexes, grads):
        return F.reshape(grads[0], (2, 3)),


@pytest.mark.parametrize("flat", [lambda x: F.reshape(x, (6,)), lambda x: View().apply((x,))[0]])
def test_views_become_copies(flat):
    x = leaf(2, 3)
    before = x.detach().clone()
    y = wrap(flat)(x)
    y.add_(1)
    assert torch.equal(x, before)
    torch.testing.assert_close(y, before.reshape(-1) + 1)


def test_gradients_do_not_share_memory():
    a, b, g = leaf(3), leaf(3), torch.ones(3)
    add(a, b).backward(g)
    a.grad.zero_()
    assert b.grad.tolist() == [1, 1, 1] and g.tolist() == [1, 1, 1]

    class Loss(catena.FunctionNode):
        def forward(self, inputs):
            self.retain_inputs((0, 1))
            return inputs[0] * inputs[1],

        def backward(self, indexes, grads):  # right where the gradient of the result is 1
            a, b = self.get_retained_inputs()
            return b, a
    a, b = leaf(3), leaf(3)
    before = b.detach().clone()
    wrap(lambda a, b: Loss().apply((a, b))[0])(a, b).backward(torch.ones(3))
    assert torch.equal(a.grad, before)
    a.grad.zero_()
    assert torch.equal(b, before)


# ---- the graph


def test_subsets_of_inputs():
    a, b, c = leaf(3), torch.rand(3), leaf(3)
    y = add(mul(a, b), c)
    ga, = torch.autograd.grad(y.sum(), [a], retain_graph=True)
    gc_, = torch.autograd.grad(y.sum(), [c])
    torch.testing.assert_close(ga, b)
    assert gc_.tolist() == [1, 1, 1]
    assert not mul(b, b).requires_grad


def test_higher_order():
    x = leaf(4, dtype=torch.float64)
    ours, theirs = tanh(x), torch.tanh(x)
    for _ in range(4):
        ours, = torch.autograd.grad(ours.sum(), x, create_graph=True)
        theirs, = torch.autograd.grad(theirs.sum(), x, create_graph=True)
        torch.testing.assert_close(ours, theirs)


def test_gradient_penalty():
    x, w = leaf(2, 3, dtype=torch.float64), leaf(4, 3, dtype=torch.float64)
    results = []
    for linear, act in [(wrap("catena.linear"), tanh), (torch.nn.functional.linear, torch.tanh)]:
        y = act(linear(x, w))
        gx, = torch.autograd.grad(y.sum(), x, create_graph=True)
        results.append(torch.autograd.grad((gx ** 2).sum() + y.sum(), [x, w]))
    torch.testing.assert_close(*results)


def test_retain_graph():
    x = leaf(3)
    y = exp(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_no_grad_and_inference_mode():
    x = leaf(3)
    with torch.no_grad():
        assert not exp(x).requires_grad
    with torch.inference_mode():
        y = exp(x)
        assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        mul(x, y)
    with catena.no_backprop_mode():  # catena's own switch has no effect on tensors
        torch.testing.assert_close(grad_of(exp, x), [x.detach().exp()])
    assert catena.config.enable_backprop


def test_changes_in_place():
    x = leaf(3)
    y = exp(x)  # its gradient needs the result
    y.add_(1)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()
    y = mul(x, x)  # its gradient does not
    y.add_(1).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    a = x * 1
    y = mul(a, a)
    a.add_(1)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()
    c = torch.ones(3)
    y = mul(x, c)
    c.add_(1)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()
    y = add(x, c)  # does not need c
    c.add_(1)
    y.sum().backward()


def test_hooks_and_checkpoints():
    from torch.utils.checkpoint import checkpoint
    x = leaf(3)
    y = exp(x)
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())
    ours = grad_of(lambda x: checkpoint(lambda x: exp(mul(x, x)), x, use_reentrant=False), x)
    torch.testing.assert_close(ours, grad_of(lambda x: torch.exp(x * x), x))


def test_backward_in_another_thread():
    x = leaf(3)
    y = exp(x).sum()
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_compile():
    def f(x, w):
        h = torch.sin(x @ w)
        return torch.cos(mul(h, exp(h))).sum()
    x, w = torch.rand(4, 3), leaf(3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(f, backend="eager")
        for _ in range(2):
            torch.testing.assert_close(grad_of(lambda w: compiled(x, w), w),
                                       grad_of(lambda w: f(x, w), w))


# ---- lifetimes


def in_use():
    return catena.Device("cpu:0").memory()["in_use"]


def test_memory_is_freed_with_the_graph():
    x = leaf(100_000)
    before = in_use()
    y = exp(mul(x, x))
    assert in_use() >= before + 2 * x.nbytes
    del y
    assert in_use() == before
    loss = exp(x).sum()
    loss.backward()  # frees what the gradient needed, although the loss is still there
    x.grad = None
    assert in_use() == before
    loss = exp(x).sum()
    g, = torch.autograd.grad(loss, x, create_graph=True)
    gg, = torch.autograd.grad(g.sum(), x)
    del loss, g, gg
    assert in_use() == before


def test_results_not_needed_are_freed():
    x = leaf(100_000)
    before = in_use()
    y = mul(x, x)
    z = y.sum()
    del y  # the gradient needs x alone
    assert in_use() == before
    z.backward()


def test_calls_are_freed():
    x = leaf(3)
    y = wrap(scale)(x).sum()
    call = Scale.calls[-1]
    assert call() is not None
    y.backward()
    assert call() is None
    y = wrap(scale)(x)
    call = Scale.calls[-1]
    del y
    assert call() is None


def test_tensors_and_results_outlive_each_other():
    x = torch.full((1000,), 2.0)
    w = leaf(1000)
    y = mul(x, w)
    del x
    noise = [torch.full((1000,), -1.0) for _ in range(10)]
    y.sum().backward()
    assert w.grad.tolist() == [2.0] * 1000
    z = exp(torch.zeros(1000))
    gc.collect()
    noise += [exp(torch.ones(1000)) for _ in range(10)]
    assert z.tolist() == [1.0] * 1000


# ---- errors


class OldStyle(catena.Function):
    def forward(self, inputs):
        return inputs[0] ** 2,

    def backward(self, inputs, grads):
        return 2 * inputs[0] * grads[0],


class Broken(catena.FunctionNode):
    def forward(self, inputs):
        return inputs[0].copy(),

    def backward(self, indexes, grads):
        raise KeyError("broken backward")


def test_errors():
    x = leaf(2)
    with pytest.raises(catena.PluginError, match="no plugin has the function org.example.none"):
        wrap("org.example.none")
    with pytest.raises(TypeError, match="expected a name or a callable object, got int"):
        wrap(3)
    with pytest.raises(TypeError, match=r"tensor: expected float16, .* got dtype\(code 0, 8 bits"):
        exp(torch.ones(2, dtype=torch.int8))
    with pytest.raises(catena.DtypeError, match="expected float32 as x0, got float64"):
        mul(x, torch.ones(2, dtype=torch.float64))
    with pytest.raises(catena.ShapeError):
        wrap("catena.matmul")(leaf(2, 3), leaf(2, 3))
    with pytest.raises(TypeError, match="the function's result: expected .* got int"):
        wrap(lambda x: 5)(x)
    with pytest.raises(TypeError, match="unexpected argument 'gamma'"):
        exp(x, gamma=1)
    with pytest.raises(KeyError, match="broken backward"):
        wrap(lambda x: Broken().apply((x,))[0])(x).sum().backward()


def test_gradients_of_first_order_only():
    square = wrap(lambda x: OldStyle()(x))
    x = leaf(3)
    torch.testing.assert_close(grad_of(square, x), [2 * x.detach()])
    g, = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    with pytest.raises(catena.NotDifferentiableError, match="no gradient of higher order"):
        g.sum().backward()


def test_transforms_are_refused():
    x = torch.ones(2, 2)
    for transform in [torch.func.vmap(exp), torch.func.grad(lambda x: exp(x).sum())]:
        with pytest.raises(RuntimeError, match="transforms of torch.func"):
            transform(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            with pytest.raises(NotImplementedError, match="jvp"):
                exp(dual)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace")
def test_tracers_are_refused():
    from torch.fx.experimental.proxy_tensor import make_fx

    class Model(torch.nn.Module):
        def forward(self, x):
            return exp(x) * 2

    x = torch.rand(3)
    for trace in (lambda: torch.jit.trace(Model(), (x,), check_trace=False),
                  lambda: torch.jit.trace(Model(), (leaf(3),), check_trace=False),
                  lambda: torch.jit.trace(lambda x: mul(x, x), (x,), check_trace=False),
                  lambda: make_fx(Model())(x), lambda: make_fx(Model(), tracing_mode="fake")(x),
                  lambda: torch.export.export(Model(), (x,), strict=False)):
        with pytest.raises(RuntimeError, match="outside of torch.jit.trace.*as a constant"):
            trace()
        torch.testing.assert_close(Model()(x), x.exp() * 2)


def test_wrapped_functions_are_described_and_pickled():
    import inspect
    linear = wrap("catena.linear")
    assert linear.__name__ == "linear" and "x W^T" in linear.__doc__
    assert list(inspect.signature(linear).parameters) == ["x", "W", "b", "n_batch_axes"]
    assert repr(wrap(scale)).startswith("catena.torch.wrap(<function scale")
    copy = pickle.loads(pickle.dumps(linear))
    assert copy(torch.ones(1, 2), torch.ones(1, 2)).tolist() == [[2]]
