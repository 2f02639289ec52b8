"""The configuration of threads, its scopes, and random seeds."""
import contextlib
import io
import threading

import catena
import numpy as np
import pytest
from catena import Variable, config, global_config, using_config
from catena import _core

FLAGS = ["train", "enable_backprop", "deterministic", "debug"]


@pytest.fixture(autouse=True)
def unchanged():
    """A test leaves the configuration as it found it."""
    shown = [io.StringIO(), io.StringIO()]
    config.show(shown[0])
    yield
    config.show(shown[1])
    assert shown[0].getvalue() == shown[1].getvalue() and not config._local.__dict__


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_defaults():
    assert config.train is True and config.enable_backprop is True and config.debug is False
    assert config.deterministic is False and config.cudnn_deterministic is False
    assert config.dtype == np.dtype("float32") and isinstance(config.dtype, np.dtype)
    assert config.use_cudnn == "auto" and config.products == "float32"
    assert config.keep_graph_on_report is False and config.autotune is False
    assert config.use_ideep == "never" and config.use_cudnn_tensor_core == "auto"
    assert config.cudnn_fast_batch_normalization is False
    for each in [config, global_config]:
        with pytest.raises(AttributeError, match="the configuration has no entry 'missing'"):
            each.missing
        assert not hasattr(each, "missing")


@pytest.mark.parametrize("name", FLAGS + ["cudnn_deterministic"])
def test_flags_reach_the_core(name):
    core = "deterministic" if name.startswith("cudnn") else name
    before = getattr(config, name)
    with using_config(name, not before):
        assert getattr(config, name) is not before and _core.get_flag(core, False) is not before
        assert getattr(global_config, name) is before
        assert in_thread(lambda: getattr(config, name)) is before
        with using_config(name, before):
            assert getattr(config, name) is before
        assert getattr(config, name) is not before
    assert getattr(config, name) is before and _core.get_flag(core, False) is before
    with using_config(name, 0 if before else 1):
        assert getattr(config, name) is not before


def test_scopes_end_with_exceptions():
    with pytest.raises(KeyError):
        with using_config("train", False):
            raise KeyError
    assert config.train
    scope = using_config("train", False)
    for _ in range(2):
        with scope:
            assert not config.train


def test_global_values_are_defaults():
    """As in Chainer: entries that the thread has not set are those of global_config."""
    try:
        global_config.train = False
        assert not config.train and not _core.get_flag("train", False)
        assert in_thread(lambda: config.train) is False
        with using_config("train", True):
            assert config.train
            global_config.train = False
            assert config.train and not in_thread(lambda: config.train)
        assert not config.train
        global_config.dtype = np.dtype("float16")
        assert config.dtype == "float16" and in_thread(lambda: config.dtype) == "float16"
        global_config.mine = [1]
        assert config.mine == [1]
        config.mine = 2
        assert config.mine == 2 and global_config.mine == [1]
        assert in_thread(lambda: config.mine) == [1]
        del config.mine
        assert config.mine == [1]
    finally:
        global_config.train = True
        global_config.dtype = np.dtype("float32")
        del global_config.__dict__["mine"]


def test_own_entries():
    config.mine = "text"
    assert config.mine == "text" and not hasattr(global_config, "mine")
    assert in_thread(lambda: hasattr(config, "mine")) is False
    with using_config("mine", 5):
        assert config.mine == 5 and _core.get_flag("mine", False) == 5  # for plugins
        assert in_thread(lambda: _core.get_flag("mine", False)) is None
    assert _core.get_flag("mine", False) is None
    with using_config("other", True):
        assert config.other is True
    assert not hasattr(config, "other")
    del config.mine
    with pytest.raises(AttributeError,
                       match="the configuration of this thread has no entry 'mine'"):
        del config.mine
    with pytest.raises(AttributeError):
        del config.train
    with using_config("huge", 2 ** 100):
        assert config.huge == 2 ** 100


def test_settings_of_plugins():
    for value, number in [("always", 1), ("auto", 1), ("never", 0), (False, 0), (True, 1)]:
        with using_config("use_cudnn", value):
            assert config.use_cudnn == value and _core.get_flag("use_cudnn", False) == number
    for value in ["float32", "bfloat16", "float16"]:
        with using_config("products", value):
            assert config.products == value
    for name in ["use_cudnn", "products"]:
        with pytest.raises(ValueError,
                           match=rf"\[config\] {name}: expected one of .*, got 'wrong'"):
            setattr(config, name, "wrong")


def test_scopes_in_threads():
    def function():
        with using_config("train", False):
            inside.wait()
            return config.train
    inside = threading.Barrier(2)
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    assert config.train
    inside.wait()
    thread.join()
    assert config.train and result == [False]


# ---- modes

def test_backprop_modes():
    x = Variable(np.ones(2, "float32"))
    for mode, graph in [(catena.no_backprop_mode, False), (catena.force_backprop_mode, True)]:
        with mode():
            y = x * 2
            assert (y.creator is not None) == y.requires_grad == graph == config.enable_backprop
            with catena.force_backprop_mode():
                assert (x * 2).creator is not None
            assert config.enable_backprop == graph
        assert config.enable_backprop


def test_modes_are_decorators():
    x = Variable(np.ones(2, "float32"))

    @catena.no_backprop_mode()
    def function(n):
        """A text."""
        return function(n - 1) if n else x * 2

    @using_config("train", False)
    def evaluated(n=3):
        return evaluated(n - 1) if n else config.train
    assert function(3).creator is None and config.enable_backprop
    assert function.__doc__ == "A text." and function.__name__ == "function"
    assert evaluated() is False and config.train
    assert in_thread(lambda: function(2)).creator is None


def test_debug():
    x = Variable(np.array([1.0, np.nan], "float32"))
    assert not catena.is_debug()
    x * 2
    with pytest.warns(DeprecationWarning, match="using_config"), catena.DebugMode(True):
        assert catena.is_debug()
        with pytest.raises(catena.NanError, match="mul_constant"):
            x * 2
    with pytest.raises(RuntimeError):  # as in Chainer
        with using_config("debug", True):
            x * 2
    catena.set_debug(True)
    assert catena.is_debug()
    catena.set_debug(False)
    del config.debug


def test_get_dtype():
    assert catena.get_dtype() == np.dtype("float32")
    assert catena.get_dtype("float16") == np.dtype("float16")
    assert catena.get_dtype(np.float64) == np.dtype("float64")
    with using_config("dtype", np.float16):
        assert catena.get_dtype() == np.dtype("float16")
        assert catena.get_dtype(None, "float32") == np.dtype("float16")
    with using_config("dtype", catena.mixed16):
        assert catena.get_dtype() == np.dtype("float16")
        assert catena.get_dtype(map_mixed16="float32") == np.dtype("float32")
    assert repr(catena.mixed16) == "dtype('mixed16')" and np.dtype(catena.mixed16) == np.float16
    assert str(catena.get_dtype("bfloat16")) == "bfloat16"
    with pytest.raises(TypeError):
        catena.get_dtype("unknown")


def test_show():
    text = io.StringIO()
    with using_config("mine", "value"):
        config.show(text)
    lines = [line.split() for line in text.getvalue().splitlines()]
    for line in [["train", "True"], ["dtype", "float32"], ["mine", "value"]]:
        assert line in lines
    assert lines == sorted(lines)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        global_config.show()
    assert "enable_backprop" in out.getvalue() and "mine" not in out.getvalue()


def test_seed():
    x = Variable(np.ones(1000, "float32"))

    def draw(seed):
        catena.seed(seed)
        return catena.functions.dropout(x).array
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))
    assert np.array_equal(draw(np.int64(1)), draw(1))
    draw(2 ** 64 - 1)
    for wrong, error in [(-1, OverflowError), (2 ** 64, OverflowError), (1.5, TypeError),
                         ("a", TypeError)]:
        with pytest.raises(error):
            catena.seed(wrong)
    catena.seed(0)


def test_chainer():
    chainer = pytest.importorskip("chainer")

    def run(module):
        result = []
        log = lambda *values: result.append(tuple(map(str, values)))  # noqa: E731
        config, every = module.config, module.global_config
        log(config.train, config.enable_backprop, config.dtype, config.debug, config.use_cudnn)
        with module.using_config("train", False):
            log(config.train, every.train)
            with module.using_config("train", True):
                log(config.train)
            log(config.train)
        every.train = False
        log(config.train, in_thread(lambda: config.train))
        config.train = True
        log(config.train, every.train, in_thread(lambda: config.train))
        del config.train
        log(config.train)
        every.train = True
        with module.using_config("mine", 1):
            log(config.mine, hasattr(every, "mine"))
        log(hasattr(config, "mine"))
        with module.no_backprop_mode():
            log(config.enable_backprop)
            with module.force_backprop_mode():
                log(config.enable_backprop)
        log(module.is_debug(), module.get_dtype(), module.get_dtype(None, "float64"))
        for call in [lambda: config.missing, lambda: delattr(config, "missing")]:
            try:
                call()
            except AttributeError:
                log("AttributeError")
        return result
    assert run(catena) == run(chainer)
