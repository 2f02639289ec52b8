"""Parameters: with and without an array, copies, copydata() and addgrad()."""
import copy
import pickle
import warnings

import catena
import numpy as np
import pytest
from catena import Parameter, Variable, initializers

FLOATS = ["float16", "float32", "float64"]


class Fill:
    """An initializer that is no subclass of catena's, without a dtype."""

    def __call__(self, array):
        array[...] = 3


def test_initializers():
    a = np.ones((2, 3), "float32")
    p = Parameter(a, name="p")
    assert p.array is a and p.name == "p" and p.grad is None and p.is_initialized
    assert isinstance(p, Variable) and p.update_rule is None
    for initializer, value in [(2, 2), (2.5, 2.5), (np.float32(2.5), 2.5), (np.int64(2), 2),
                               (Fill(), 3),
                               (initializers.Constant(4), 4), (a[0] * 5, 5), (np.array(6.0), 6)]:
        p = Parameter(initializer, (2, 3), name="p")
        assert p.shape == (2, 3) and p.dtype == "float32" and (p.array == value).all()
        assert np.isnan(p.grad).all() and p.grad.dtype == p.dtype and p.name == "p"
    assert np.isnan(Parameter(shape=(2,)).array).all() and np.isnan(Parameter(None, 3).array).all()
    assert Parameter(0, 3).shape == (3,) and Parameter(0, ()).shape == ()
    for dtype in FLOATS:
        assert Parameter(initializers.Constant(1, dtype), (2,)).dtype == dtype
        with catena.using_config("dtype", dtype):
            assert Parameter(1, (2,)).dtype == dtype
    for wrong in [[1.0], (1,), Variable(a)]:
        with pytest.raises(TypeError):
            Parameter(wrong)
    with pytest.raises(ValueError, match="layout: expected None"):
        Parameter(a, layout=3)


def test_without_array():
    for p in [Parameter(), Parameter(0.5), Parameter(Fill()),
              Parameter(initializers.One("float16"))]:
        assert p.array is None and not p.is_initialized and p.grad_var is None
        assert p.requires_grad and p.rank == 0 and p.creator is None and p.xp is np
        assert p.device == catena.Device(-1) and str(p) == "variable(None)"
        assert not hasattr(p, "shape") and not hasattr(p, "ndim") and not hasattr(p, "size")
        with pytest.raises(RuntimeError,
                           match=r"\[catena.Parameter\] grad: expected cleargrad\(\)"):
            p.grad
        with pytest.raises(RuntimeError):
            p.grad = np.zeros(2, "float32")
    assert Parameter(initializers.One("float16")).dtype == "float16"
    assert Parameter(0.5).dtype == "float32"
    with pytest.raises(RuntimeError,
                       match="dtype: expected an array or an initializer with a dtype"):
        Parameter(Fill()).dtype


def test_initialize():
    p = Parameter(0.5, name="p")
    p.mine = 1
    p.initialize((3, 2))
    assert p.is_initialized and (p.array == 0.5).all() and np.isnan(p.grad).all()
    assert p.name == "p" and p.mine == 1 and p.grad.shape == (3, 2)
    p.initialize((4,))
    assert p.shape == (4,)

    p = Parameter(0.5)
    p.name = "later"
    p.cleargrad()
    assert p.grad is None
    p.initialize(3)
    assert p.grad is None and p.shape == (3,) and p.name == "later"

    p = Parameter(initializers.One("float64"))
    p.zerograd()
    assert p.grad is None
    p.initialize((2, 2))
    assert (p.grad == 0).all() and p.grad.dtype == "float64" and p.grad.shape == (2, 2)

    p = Parameter(0.5)
    p.requires_grad = False
    p.initialize((2,))
    assert not p.requires_grad


def test_is_a_leaf_that_combines_with_volatile_variables():
    for p in [Parameter(np.ones(2, "float32")), Parameter(1, (2,)), Parameter(1)]:
        if not p.is_initialized:
            p.initialize((2,))
        x = Variable(np.ones(2, "float32"), volatile=True)
        assert (p * x).volatile
        assert (copy.copy(p) * x).volatile and (pickle.loads(pickle.dumps(p)) * x).volatile


def test_update():
    class Rule:
        calls = []

        def update(self, parameter):
            self.calls.append(parameter)
    p = Parameter(1, (2,))
    p.update()
    p.update_rule = Rule()
    p.update()
    assert len(Rule.calls) == 1 and Rule.calls[0] is p


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy,
                                  *(lambda x, p=p: pickle.loads(pickle.dumps(x, p))
                                    for p in range(2, 6))])
def test_copies(make):
    for p in [Parameter(np.ones(2, "float32"), name="p"), Parameter(1, (2,), name="p")]:
        p.update_rule = 5
        q = make(p)
        assert type(q) is Parameter and q.name == "p" and q.update_rule == 5
        assert (q.array == 1).all()
        assert (p.grad is None) == (q.grad is None)
        assert np.shares_memory(q.array, p.array) == (make is copy.copy)
        q.cleargrad()
        assert p.grad is None or np.isnan(p.grad).all()
    q = make(Parameter(0.5, name="q"))
    with pytest.raises(RuntimeError):
        q.grad
    q.initialize((3,))
    assert (q.array == 0.5).all() and np.isnan(q.grad).all() and q.name == "q"
    for clear, expected in [("cleargrad", None), ("zerograd", 0)]:
        p = Parameter(0.5)
        getattr(p, clear)()
        q = make(p)
        assert q.grad is None
        q.initialize((1,))
        assert q.grad == expected


# ---- copydata() and addgrad()

@pytest.mark.parametrize("dtype", FLOATS)
def test_copydata(dtype):
    x, y = Variable(np.zeros((2, 2), dtype)), Variable(np.full((2, 2), 7, "float32"))
    before = x.array
    x.copydata(y)
    assert (x.array == 7).all() and x.array is before and x.dtype == dtype
    with pytest.raises(ValueError, match=r"expected \(2, 2\) float.., got \(3,\) float.."):
        x.copydata(Variable(np.zeros(3, dtype)))
    with pytest.raises(TypeError,
                       match="copydata: expected a catena.Variable, got <class 'numpy.ndarray'>"):
        x.copydata(before)


def test_copydata_without_array():
    p, q = Parameter(0.5), Parameter(2, (3,))
    p.copydata(Parameter())
    assert not p.is_initialized
    p.copydata(q)
    assert p.shape == (3,) and (p.array == 2).all() and not np.shares_memory(p.array, q.array)
    assert np.isnan(p.grad).all()
    p = Parameter(0.5)
    q.copydata(p)  # initializes the source
    assert (q.array == 0.5).all() and (p.array == 0.5).all() and p.shape == (3,)
    p = Parameter(initializers.One("float16"))
    p.copydata(q)
    assert p.dtype == "float16" and (p.array == 0.5).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_addgrad(dtype):
    a = np.ones(3, dtype)
    x, y = Variable(a), Variable(a)
    x.addgrad(y)
    assert x.grad is None
    y.grad = a * 2
    x.addgrad(y)
    assert (x.grad == 2).all() and not np.shares_memory(x.grad, y.grad)
    x.addgrad(y)
    assert (x.grad == 4).all() and (y.grad == 2).all()
    with pytest.raises(TypeError, match="addgrad"):
        x.addgrad(a)
    with pytest.raises(ValueError):
        Variable(np.ones(4, dtype)).addgrad(y)


def test_addgrad_without_array():
    source = Variable(np.ones(3, "float32"), grad=np.full(3, 2, "float32"))
    p = Parameter(0.5)
    p.addgrad(Variable(np.ones(3, "float32")))
    assert not p.is_initialized
    p.cleargrad()
    p.addgrad(source)
    assert (p.grad == 2).all() and (p.array == 0.5).all()
    p = Parameter(0.5)
    p.addgrad(source)
    assert np.isnan(p.grad).all()  # was never cleared, as in Chainer


# ---- Chainer

def test_chainer():
    chainer = pytest.importorskip("chainer")
    warnings.simplefilter("ignore", DeprecationWarning)

    def outcome(module, call):
        try:
            result = call(module, np.arange(3, dtype="float32"))
        except Exception as error:  # noqa: BLE001
            known = [RuntimeError, AttributeError, TypeError, ValueError]
            return next(each for each in known if isinstance(error, each))
        return np.array(result).tolist() if isinstance(result, np.ndarray) else result

    def initialized(module, clear, *args):
        p = module.Parameter(*args)
        if clear:
            getattr(p, clear)()
        p.initialize((2,))
        return p

    calls = [
        lambda m, a: m.Parameter().grad, lambda m, a: m.Parameter().grad_var,
        lambda m, a: m.Parameter().shape, lambda m, a: m.Parameter().is_initialized,
        lambda m, a: m.Parameter(a).is_initialized, lambda m, a: m.Parameter(a).grad,
        lambda m, a: m.Parameter(3.0, (2,)).array, lambda m, a: m.Parameter(a, (2, 3)).array,
        lambda m, a: initialized(m, None, 1).array, lambda m, a: initialized(m, None, 1).name,
        lambda m, a: initialized(m, "cleargrad", 1).grad,
        lambda m, a: initialized(m, "zerograd", 1).grad,
        lambda m, a: str(m.Parameter(name="p")), lambda m, a: str(m.Parameter(a, name="p")),
        lambda m, a: m.Parameter(1, name="p").name, lambda m, a: m.Parameter(a, layout=None).name,
        lambda m, a: m.Variable(a, name="x").summary(), lambda m, a: m.Variable([1]),
        lambda m, a: m.Variable(None, name="x").name, lambda m, a: m.Variable(m.Variable(a)),
        lambda m, a: m.Variable(1.0), lambda m, a: setattr(m.Variable(a), "grad", [1]),
        lambda m, a: setattr(m.Variable(a), "grad", a[:1]),
        lambda m, a: setattr(m.Variable(a), "grad", a.astype("float64")),
        lambda m, a: setattr(m.Variable(a), "grad", m.Variable(a)),
        lambda m, a: setattr(m.Variable(a), "grad_var", m.Variable(a[:1])),
        lambda m, a: m.Variable(None).shape, lambda m, a: m.Variable(None).grad,
        lambda m, a: m.Variable(a).item(), lambda m, a: m.Variable(a[1:2]).item(),
        lambda m, a: m.Variable(a).to_device("foo"), lambda m, a: len(m.Variable(a)),
        lambda m, a: m.Variable(a).to_device("@foo"), lambda m, a: m.Variable(a).to_device(None),
        lambda m, a: len(m.Variable(a[0])), lambda m, a: m.Variable(a).grad_var,
        lambda m, a: m.as_variable(a).requires_grad, lambda m, a: m.as_array(m.Variable(a)),
        lambda m, a: m.as_variable([1]), lambda m, a: m.as_array("x"),
        lambda m, a: m.Variable(a).T.array,
    ]
    for i, call in enumerate(calls):
        expected, got = outcome(chainer, call), outcome(catena, call)
        assert str(got) == str(expected), i


@pytest.mark.parametrize("first", [0, 1, 2])
def test_copies_get_the_array_of_the_first_that_is_initialized(first):
    x = catena.Parameter(catena.initializers.Normal(), name="x")
    copies = [x, copy.copy(x)]
    copies.append(copy.copy(copies[1]))
    others = [copy.deepcopy(x), pickle.loads(pickle.dumps(x))]
    copies[2].cleargrad()
    copies[first].initialize((2, 3))
    assert all(each.array is copies[first].array for each in copies)
    assert [each.grad is None for each in copies] == [False, False, True]
    assert copies[0].grad is not copies[1].grad and np.isnan(copies[0].grad).all()
    assert all(each.array is None for each in others)
    others[0].initialize((2, 3))
    assert others[0].array is not x.array and others[1].array is None


def test_copies_of_links_share_arrays_that_come_later():
    first = catena.links.Linear(2)
    second, third = first.copy(), first.copy(mode="copy")
    del third.b
    x = np.ones((1, 3), "float32")
    assert (second(x).array == first(x).array).all() and second.W.array is first.W.array
    assert third.W.array is None
    gone = catena.links.Linear(2)
    kept = gone.copy()
    del gone
    assert kept(x).shape == (1, 2)
