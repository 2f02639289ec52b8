"""Devices: names, scopes, arrays on GPUs. Logical CPU devices stand for GPUs."""
import pickle
import threading

import catena
import numpy as np
import pytest
from catena import Array, Device, FunctionNode, Parameter, Variable, backend, backends, cuda
from catena import functions as F
from catena._core import current_device


@pytest.fixture
def gpus():
    before = current_device()
    cuda.set_backend("cpu")
    yield
    before.use()
    cuda.set_backend("")


def array(shape=(2, 3), dtype="float32"):
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


# ---- devices

def test_names():
    host = Device(-1)
    for name in ["cpu:0", "@numpy", "cpu", "-1", np.int64(-3)]:
        assert Device(name) == host
    assert host.name == "cpu:0" and repr(host) == "catena.Device('cpu:0')"
    assert str(host) == "@numpy" and str(Device("cpu:1")) == "cpu:1" and int(host) == -1
    assert host.backend == "cpu" and host.ordinal == 0 and host.host_accessible and not host.is_gpu
    assert hash(host) == hash(Device("cpu:0")) and host != Device("cpu:1") and host != "cpu:0"
    assert len({host, Device("cpu:0"), Device("cpu:1")}) == 2
    assert catena.get_device(host) is host and catena.get_device("cpu:1").ordinal == 1
    assert pickle.loads(pickle.dumps(host)) == host
    with pytest.raises(TypeError):
        host < host


def test_classes_of_devices(gpus):
    host, gpu = Device(-1), Device(0)
    for device, kind in ((host, backend.CpuDevice), (gpu, backend.GpuDevice)):
        assert isinstance(device, backend.Device) and isinstance(device, kind)
        assert issubclass(kind, backend.Device)
    for kind in (backend.ChainerxDevice, backend.Intel64Device):
        assert issubclass(kind, backend.Device) and kind.from_array(array()) is None
        assert not isinstance(host, kind) and not isinstance(gpu, kind)
        with pytest.raises(RuntimeError, match=rf"\[{kind.__name__}\] .* is not available"):
            kind()
    assert backend.Device("cpu:1") == gpu and cuda.DummyDeviceType() == cuda.DummyDevice == host
    assert cuda.get_device_from_id(None) is cuda.DummyDevice
    x, a = cuda.to_gpu(array()), array()
    assert gpu.is_array_supported(x) and host.is_array_supported(a)
    assert not (gpu.is_array_supported(a) or host.is_array_supported(x) or host.is_array_supported(1))
    assert catena.is_arrays_compatible([a, None, a]) and catena.is_arrays_compatible([x])
    assert not (catena.is_arrays_compatible([a, x]) or catena.is_arrays_compatible([a, 1]))
    assert backend.from_chx([a, None])[0] is a
    for wrong in (lambda: backend.to_chx(a), lambda: backend.ChainerxDevice.from_fallback_device(host)):
        with pytest.raises(RuntimeError, match="ChainerX is not available"):
            wrong()
    with pytest.raises(TypeError, match="from_chx"):
        backend.from_chx(1)


def test_variables_are_no_arrays():
    assert Device(-1).send_array(array()).dtype == np.float32
    for send in (Device(-1).send, cuda.to_cpu):
        with pytest.raises(TypeError, match="expected an array, got a variable"):
            send([Variable(array())])


def test_numbers_on_the_host():
    for number in (np.int8(3), np.uint64(3), np.complex128(1j), True, 2.5):
        found = Device(-1).send(number)
        assert isinstance(found, np.ndarray) and found.shape == () and found == number


def test_deprecated_calls(gpus):
    with pytest.warns(DeprecationWarning, match="get_device is deprecated"):
        assert cuda.get_device(1) == Device(1)
    with pytest.warns(DeprecationWarning, match="stream option is deprecated"):
        assert cuda.to_gpu(array(), stream=cuda.Stream.null).device == Device(0)


def test_streams_and_cudnn(gpus):
    """Programs that use them run, with the same results."""
    stream, event = cuda.Stream(non_blocking=True), cuda.Event()
    with stream:
        x = cuda.to_gpu(array())
    event.record(stream)
    event.synchronize()
    stream.synchronize()
    cuda.Stream.null.synchronize()
    np.testing.assert_array_equal(cuda.to_cpu(x), array())
    assert not catena.should_use_cudnn("==always") and not cuda.cudnn_enabled
    with pytest.raises(ValueError, match="level: expected '==always' or '>=auto', got '=auto'"):
        catena.should_use_cudnn("=auto")
    assert not catena.should_use_cudnn_tensor_core(np.float16)
    with catena.using_config("use_cudnn_tensor_core", "always"):
        assert catena.should_use_cudnn_tensor_core(np.float16)
    with catena.using_config("use_cudnn_tensor_core", 1), pytest.raises(ValueError, match="got 1"):
        catena.should_use_cudnn_tensor_core(np.float16)

    @cuda.fuse
    def double(x):
        return x + x

    assert double(2) == 4 == cuda.fuse(kernel_name="double")(double)(2)
    assert catena.get_compute_mode() is None
    assert backends.intel64.should_use_ideep(">=auto") is False
    with pytest.raises(RuntimeError, match="iDeep is not available"):
        backends.intel64.check_ideep_available()


def test_wrong_names():
    for wrong, error, message in [
            ("foo", catena.DeviceError, "foo"),
            ("cpu:99", catena.DeviceError, "expected an ordinal below"),
            ("@foo", ValueError, "expected '@numpy' or '@cupy:NUMBER', got '@foo'"),
            ("@cupy:", ValueError, "@cupy:"),
            (None, TypeError, "expected a catena.Device, a name such as"),
            (1.5, TypeError, "got float"), ([0], TypeError, "got list"), ("", Exception, "")]:
        with pytest.raises(error) as caught:
            Device(wrong)
        assert message in str(caught.value)
    for gpu in [0, 10 ** 30, "0", "@cupy:0", "cuda:0"]:
        if cuda.available:
            break
        with pytest.raises((catena.DeviceError, OverflowError)):
            Device(gpu)
    with pytest.raises(TypeError):
        Device()


def test_threads_and_memory():
    host = Device(-1)
    before = host.threads
    host.threads = 1
    assert host.threads == 1
    host.threads = before
    memory = host.memory()
    assert set(memory) == {"in_use", "peak", "cached",
                           "system_calls"} and memory["peak"] >= memory["in_use"]
    host.synchronize()
    with pytest.raises(TypeError):
        host.threads = "many"


def test_scopes():
    first, second = Device("cpu:0"), Device("cpu:1")
    assert current_device() == first
    with second as device:
        assert device is second and current_device() == second
        with first:
            assert current_device() == first
            with pytest.raises(KeyError):
                with second:
                    raise KeyError
            assert current_device() == first
        assert current_device() == second
        seen = []
        thread = threading.Thread(target=lambda: seen.append(current_device()))
        thread.start()
        thread.join()
        assert seen == [first]
    with catena.using_device("cpu:1"), backend.using_device(second):
        assert current_device() == second
    assert current_device() == first
    with pytest.raises(RuntimeError, match="__exit__: without __enter__"):
        first.__exit__(None, None, None)


def test_kinds(gpus):
    host, gpu = Device(-1), cuda.get_device_from_id(0)
    assert gpu == Device(0) == Device("0") == Device("@cupy:0") == Device("cpu:1") and gpu.is_gpu
    assert isinstance(host, backend.CpuDevice) and not isinstance(host, backend.GpuDevice)
    assert isinstance(gpu, backend.GpuDevice) and backend.CpuDevice() == host
    assert backend.GpuDevice.from_device_id(1) == Device(1)
    assert host.xp is np and gpu.xp is cuda.cupy
    assert str(gpu) == "@cupy:0" and gpu.name == "cpu:1" and catena.get_device(str(gpu)) == gpu
    x, a = cuda.to_gpu(array()), array()
    assert backend.get_device_from_array(a, x) == gpu and backend.get_device_from_array(a) == host
    assert backend.get_array_module(a, Variable()) is np
    assert backend.get_array_module(Variable(x)) is backend.get_array_module(a, x) is cuda.cupy
    assert host.send(a) is a and type(gpu.send(a)) is Array and gpu.send([a, None])[1] is None
    assert np.array_equal(host.send((x, 2.5))[0], a) and host.send(2.5).shape == ()


# ---- the module cuda

def test_without_gpus():
    if cuda.available:
        pytest.skip("there is a GPU")
    for call in [cuda.check_cuda_available, cuda.init, lambda: cuda.to_gpu(array()),
                 lambda: cuda.get_device_from_id(0), lambda: cuda.empty((2,)),
                 lambda: Variable(array()).to_gpu()]:
        with pytest.raises(catena.DeviceError, match="expected a GPU, got none|cuda"):
            call()
    assert cuda.get_device(array()) == Device(-1) and cuda.get_device_from_id(None) == Device(-1)
    with cuda.using_device(array()):
        assert current_device() == Device(-1)
    with pytest.raises(AttributeError):
        cuda.missing


def test_cuda(gpus):
    assert cuda.available
    cuda.check_cuda_available()
    cuda.init(1)
    assert cuda.empty((2, 3)).device == Device(1)
    cuda.shutdown()
    a = array()
    x = cuda.to_gpu(a)
    assert type(x) is Array and isinstance(x, cuda.ndarray) and x.device == Device(0)
    assert cuda.to_gpu(x) is not None and cuda.to_gpu(a, 1).device == Device(1)
    assert np.array_equal(cuda.to_cpu(x), a) and cuda.to_cpu(a) is a
    assert [type(each) for each in cuda.to_gpu([a, a])] == [Array, Array]
    with cuda.get_device_from_id(1):
        assert cuda.zeros(3).device == Device(1) and cuda.to_gpu(a).device == Device(1)
    for use in [1, Device(1), cuda.to_gpu(a, 1), Variable(cuda.to_gpu(a, 1))]:
        with cuda.using_device(use):
            assert current_device() == Device(1)
        assert cuda.get_device(use) == Device(1)
    cuda.use_device(1)
    assert current_device() == Device(1)
    cuda.use_device(0)
    y = cuda.copy(x)
    assert y is not x and y.device == x.device
    assert cuda.copy(x, out_device=1).device == Device(1) and cuda.copy(a) is not a
    assert cuda.copy(a, out=y) is y and np.array_equal(cuda.to_cpu(y), a)
    for make, value in [(cuda.ones, 1), (cuda.zeros, 0)]:
        assert make((2, 2)).dtype == "float32" and (make((2, 2)).get() == value).all()
    assert cuda.full((2,), 3, "int32").get().tolist() == [3, 3]
    assert cuda.empty(3, "float16").shape == (3,)
    assert cuda.full_like(x, 2.5).get().max() == 2.5 and cuda.zeros_like(x).device == x.device


def test_copyto(gpus):
    a = np.zeros((2, 3), "float32")
    for source in [array(), array(dtype="float16"), array((3,)), 7, cuda.to_gpu(array()),
                   array((2, 3)).T.T]:
        for target in [a, cuda.to_gpu(a), np.zeros((3, 2), "float32").T]:
            if isinstance(source, int) and isinstance(target, Array):
                target[...] = source
            else:
                backend.copyto(target, source)
            expected = cuda.to_cpu(source) if isinstance(source, Array) else source
            assert np.array_equal(cuda.to_cpu(target), np.broadcast_to(expected, (2, 3)))
    with pytest.raises(ValueError):
        backend.copyto(a, array((4,)))
    with pytest.raises(TypeError, match="copyto"):
        backend.copyto([1], a)


# ---- variables on GPUs

def test_variables(gpus):
    a = array()
    x = Variable(cuda.to_gpu(a))
    assert x.device == Device(0) and type(x.array) is Array and x.array is x.array
    y = F.sum(x * 2 + x)
    y.backward()
    assert y.device == Device(0) and type(x.grad) is Array and (cuda.to_cpu(x.grad) == 3).all()
    assert repr(x) == repr(Variable(a)) and "device: @cupy:0" in x.debug_print()
    x.to_cpu()
    assert x.device == Device(-1) and np.array_equal(x.array, a) and (x.grad == 3).all()
    x.to_gpu(1)
    assert x.device == Device(1) and x.grad.device == Device(1)
    x.to_device("@numpy")
    assert type(x.array) is np.ndarray
    z = Variable(cuda.to_gpu(a))
    with pytest.raises(catena.DeviceError):
        z + Variable(a)
    with pytest.raises(catena.DeviceError):
        z.grad = a
    z.grad = cuda.to_gpu(a)
    copied = pickle.loads(pickle.dumps(z))
    assert copied.device == Device(0) and np.array_equal(cuda.to_cpu(copied.grad), a)
    assert z.xp is cuda.cupy


def test_current_gpu_and_arrays_of_the_host(gpus):
    with cuda.get_device_from_id(0):
        x = Variable(array())
        assert x.device == Device(-1) and (x * 2).device == Device(-1)
        p = Parameter(1, (2,))
        assert p.device == Device(-1)


def test_parameters(gpus):
    p = Parameter(0.5)
    p.to_gpu(1)
    assert p.device == Device(1) and not p.is_initialized
    p.initialize((2, 2))
    assert p.device == p.array.device == p.grad.device == Device(1) and (p.array.get() == 0.5).all()
    q = pickle.loads(pickle.dumps(Parameter(0.5)))
    q.copydata(p)
    assert q.device == Device(-1) and (q.array == 0.5).all()
    q.cleargrad()
    p.grad = cuda.full_like(p.array, 2)
    q.addgrad(p)
    assert (q.grad == 2).all() and type(q.grad) is np.ndarray
    r = Parameter(0.5)
    r.to_gpu(1)
    r = pickle.loads(pickle.dumps(r))
    r.initialize(2)
    assert r.device == Device(1)


def test_function_nodes(gpus):
    class Node(FunctionNode):
        def forward_cpu(self, inputs):
            raise AssertionError

        def forward_gpu(self, inputs):
            xp = backend.get_array_module(*inputs)
            assert type(inputs[0]) is Array and current_device() == Device(1)
            self.retain_inputs((0,))
            return xp.exp(inputs[0]) * xp.sum(inputs[0]),

        def backward(self, indexes, grads):
            assert current_device() == Device(1)
            x, = self.get_retained_inputs()
            e = F.exp(x)
            return grads[0] * e * F.broadcast_to(F.sum(x), x.shape) + F.broadcast_to(
                F.sum(grads[0] * e), x.shape)
    a = array() / 9
    x = Variable(cuda.to_gpu(a, 1))
    F.sum(Node().apply((x,))[0]).backward()
    assert np.allclose(cuda.to_cpu(x.grad), np.exp(a) * a.sum() + np.exp(a).sum(), 1e-5)

    class Function(catena.Function):
        def forward_gpu(self, inputs):
            return inputs[0] * 2

        def backward_gpu(self, inputs, grads):
            assert type(grads[0]) is Array
            return grads[0] * 2
    F.sum(Function()(x)).backward()
    assert np.allclose(cuda.to_cpu(x.grad), np.exp(a) * a.sum() + np.exp(a).sum() + 2, 1e-5)


# ---- functions on arrays

def test_cupy(gpus):
    xp = cuda.cupy
    a, b = array() / 7, array((3,))
    x, y = xp.asarray(a), xp.array(b)
    assert xp.asarray(x) is x and xp.array(x) is not x and xp.asarray([1.0, 2.0]).dtype == "float64"
    for name, args in [("exp", "x"), ("tanh", "x"), ("add", "xy"), ("multiply", "xy"),
                       ("subtract", "xy"),
                       ("divide", "xy"), ("maximum", "xy"), ("sum", "x"), ("dot", "xy"),
                       ("negative", "x"),
                       ("transpose", "x"), ("sqrt", "x"), ("argmax", "x"), ("ravel", "x"),
                       ("amax", "x")]:
        result = getattr(xp, name)(*(x if each == "x" else y for each in args))
        expected = getattr(np, name)(*(a if each == "x" else b for each in args))
        assert type(result) is Array and result.device == x.device
        assert np.allclose(xp.asnumpy(result), expected, 1e-5), name
    for name, args in [("sum", (0,)), ("mean", ()), ("max", (1,)), ("T", None),
                       ("transpose", (1, 0)),
                       ("ravel", ()), ("dot", None), ("std", (0,)), ("clip", (0.2, 0.5)),
                       ("any", ())]:
        if name == "T":
            result, expected = x.T, a.T
        elif name == "dot":
            result, expected = x.dot(y), a.dot(b)
        else:
            result, expected = getattr(x, name)(*args), getattr(a, name)(*args)
        assert type(result) is Array and np.allclose(result.get(), expected, 1e-5), name
    assert np.array_equal(xp.concatenate([x, x]).get(), np.concatenate([a, a]))
    assert np.array_equal(xp.concatenate((x, x), axis=1).get(), np.concatenate([a, a], 1))
    assert xp.where(x > 0.3, x, x * 0).get().min() == 0
    assert xp.float32 is np.float32 and xp.newaxis is None and xp.pi == np.pi
    assert xp.ndarray is Array and xp.float16 is np.float16
    np.random.seed(0)
    drawn = xp.random.rand(2, 2)
    np.random.seed(0)
    assert np.array_equal(drawn.get(), np.random.rand(2, 2)) and drawn.device.is_gpu
    for wrong in ["relu", "fft", "loadtxt", "__wrapped__"]:
        with pytest.raises(AttributeError, match="catena"):
            getattr(xp, wrong)
