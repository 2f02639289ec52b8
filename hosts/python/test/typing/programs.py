"""Programs as users write them. mypy and pyright check the types; nothing runs."""
import pathlib
from typing import Any

import numpy as np
from typing_extensions import assert_type

import catena
import catena as chainer
import catena.functions as F
import catena.links as L
from catena import Chain, Parameter, Variable, iterators, optimizers, serializers, training
from catena.datasets import TupleDataset
from catena.optimizer_hooks import WeightDecay
from catena.training import extensions, triggers


def operators(x: Variable, y: Variable, a: np.ndarray[Any, Any]) -> None:
    assert_type(x + 1, Variable)
    assert_type(1 - x, Variable)
    assert_type(2.5 * x / 3, Variable)
    assert_type(x @ y, Variable)
    assert_type(x ** 2, Variable)
    assert_type(-x, Variable)
    assert_type(x + a, Variable)
    assert_type(x > 0, Variable)
    assert_type(x == y, Variable)
    assert_type(x[0], Variable)
    assert_type(x[:, None, ..., 1:2], Variable)
    assert_type(x[[0, 1]], Variable)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.reshape(2, -1).transpose(), Variable)
    assert_type(x.sum(axis=0), Variable)
    assert_type(len(x), int)
    assert_type(float(x), float)
    for row in x:
        assert_type(row, Variable)
    x += 1
    assert_type(x, Variable)
    names = {x: "x"}
    print(names[x])


def functions(x: Variable, a: np.ndarray[Any, Any], t: np.ndarray[Any, Any]) -> None:
    assert_type(F.relu(x), Variable)
    assert_type(F.relu(a), Variable)
    assert_type(F.softmax(x, axis=-1), Variable)
    assert_type(F.leaky_relu(x, slope=0.1), Variable)
    assert_type(F.concat([x, x], axis=0), Variable)
    assert_type(F.sum(x, axis=(0, 1), keepdims=True), Variable)
    assert_type(F.maximum(x, 0), Variable)
    assert_type(F.separate(x), tuple[Variable, ...])
    assert_type(F.where(x > 0, x, 0.0), Variable)
    print(F.max_pooling_2d(x, 2, stride=2), F.dropout(x, ratio=0.5), F.accuracy(x, t).array)
    loss = F.softmax_cross_entropy(x, t, ignore_label=0)
    loss.backward()
    h, = F.split_axis(x, 1, axis=0)
    print(h.array, chainer.grad([loss], [x])[0].array, catena.from_dlpack(x).device.name)


def wrong_calls(x: Variable) -> None:
    F.softmax("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    F.softmax(x, axis="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    F.softmax(x, axes=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    F.relu()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    F.relu(x, 1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    F.concat(xs=[x], dim=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    F.max_pooling_2d(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    F.reluu(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    L.Linear(2, 3, activation=F.relu)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.bakward()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    x + "1"  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]
    catena.Varable(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


class MulAdd(catena.FunctionNode):
    def forward(self, inputs: Any) -> Any:
        x, y, z = inputs
        self.retain_inputs((0, 1))
        return x * y + z

    def backward(self, target_input_indexes: Any, grad_outputs: Any) -> Any:
        x, y = self.get_retained_inputs()
        gw, = grad_outputs
        return y * gw, x * gw, gw


def muladd(x: Variable, y: Variable, z: Variable) -> Variable:
    w, = MulAdd().apply((x, y, z))
    assert_type(w, Variable)
    return w


class Scale(catena.Link):
    def __init__(self, size: int) -> None:
        super().__init__()
        with self.init_scope():
            self.gamma = Parameter(catena.initializers.One(), (size,))

    def forward(self, x: Variable) -> Variable:
        return x * self.gamma


class Network(Chain):
    def __init__(self, units: int, classes: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, units, ksize=3, pad=1)
            self.norm = L.BatchNormalization(units)
            self.out = L.Linear(None, classes, initialW=catena.initializers.HeNormal())
        self.blocks = catena.ChainList(Scale(units), Scale(units)).to_device("cpu:0")

    def forward(self, x: Variable) -> Variable:
        h = F.relu(self.norm(self.conv(x)))
        y: Variable = self.out(F.max_pooling_2d(h, 2))
        return y


def parameters(model: Network) -> None:
    print(model.conv.W.array.shape, model.out.W.grad)
    model.out.W.update_rule.hyperparam.lr = 0.1
    model.out.disable_update()
    for name, parameter in model.namedparams():
        print(name.strip("/"), parameter.array.mean(), parameter.name)
    model.cleargrads()
    copied = model.copy("init")
    print(copied.count_params(), len(catena.Sequential(L.Linear(3), F.relu)))


def train(folder: pathlib.Path, x: np.ndarray[Any, Any], t: np.ndarray[Any, Any]) -> None:
    model = L.Classifier(Network(16, 10), lossfun=F.softmax_cross_entropy)
    optimizer = optimizers.MomentumSGD(lr=0.01, momentum=0.9).setup(model)
    optimizer.add_hook(WeightDecay(1e-4))
    optimizer.lr *= 0.5
    optimizer.update(model, x, t)
    print(float(model.accuracy), model.loss.array)

    iterator = iterators.SerialIterator(TupleDataset(x, t), 32)
    updater = training.StandardUpdater(iterator, optimizer, device=-1)
    trainer = training.Trainer(updater, (20, "epoch"), out=str(folder))
    test = iterators.MultithreadIterator(TupleDataset(x, t), 32, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(test, model), trigger=(1, "epoch"))
    trainer.extend(extensions.LogReport(trigger=(10, "iteration")))
    trainer.extend(extensions.ExponentialShift("lr", 0.1), trigger=triggers.ManualScheduleTrigger(
        [5, 10], "epoch"))
    trainer.extend(extensions.snapshot_object(model, "model_{.updater.epoch}.npz"))
    trainer.extend(extensions.PrintReport(["epoch", "main/loss"]))

    @training.make_extension(trigger=(1, "epoch"))
    def remember(trainer: Any) -> None:
        print(trainer.updater.iteration)

    trainer.extend(remember)
    trainer.run()
    serializers.save_npz(folder / "model.npz", model)
    serializers.load_npz(str(folder / "model.npz"), model, strict=False)
    for batch in iterator:
        inputs, labels = catena.dataset.concat_examples(batch, device=-1)
        print(inputs.shape, labels.dtype, iterator.epoch)


def predict(model: Network, x: np.ndarray[Any, Any]) -> int:
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        y = model(x)
    if chainer.config.train:
        chainer.config.dtype = np.dtype("float16")
        chainer.global_config.autotune = True
    with chainer.using_device("cpu:0"):
        print(chainer.get_device(-1).name, chainer.backend.get_array_module(x))
    return int(y.array.argmax())


def others(x: Variable) -> None:
    swish = catena.plugin_function("org.example.swish")
    print(swish(x, beta=2.0), catena.torch.wrap(swish), catena.torch.wrap("catena.gelu")(x))
    kernel = catena.ElementwiseKernel("T x", "T y", "y = x * x", "square")
    print(kernel(x.array))
    try:
        F.reshape(x, (2, -1))
    except (catena.ShapeError, catena.DtypeError) as error:
        print(error)
