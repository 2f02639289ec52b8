"""Trainer and updaters, compared with Chainer's."""
import numpy
import pytest

import catena
from catena import training
from catena.training import extensions
from training_helpers import data_of, evaluator_of, model_of, params_of, trainer_of


@pytest.fixture(params=["catena", "chainer"])
def package(request):
    return pytest.importorskip(request.param)


@pytest.mark.parametrize("stop", [(3, "epoch"), (5, "iteration"), None])
@pytest.mark.parametrize("kind", ["SerialIterator", "MultithreadIterator"])
def test_same_training(tmp_path, stop, kind):
    """The observations and the parameters are Chainer's up to rounding."""
    chainer = pytest.importorskip("chainer")
    found = []
    for package in (catena, chainer):
        trainer = trainer_of(package, tmp_path, stop, kind=kind)
        seen = []

        def look(trainer):
            updater = trainer.updater
            seen.append((updater.iteration, updater.epoch, updater.epoch_detail,
                         updater.previous_epoch_detail, updater.is_new_epoch,
                         sorted(trainer.observation),
                         float(trainer.observation["main/loss"].array)))
            if stop is None and updater.iteration == 4:
                raise StopIteration

        trainer.extend(look)
        if stop is None:
            with pytest.raises(StopIteration):
                trainer.run(show_loop_exception_msg=False)
        else:
            trainer.run()
        found.append((seen, params_of(trainer)))
    (ours, our_params), (theirs, their_params) = found
    assert [entry[:-1] for entry in ours] == [entry[:-1] for entry in theirs]
    numpy.testing.assert_allclose([e[-1] for e in ours], [e[-1] for e in theirs], rtol=1e-5)
    for name, array in our_params.items():
        numpy.testing.assert_allclose(array, their_params[name], rtol=1e-4, atol=1e-6)


def test_order_of_extensions(package, tmp_path):
    trainer = trainer_of(package, tmp_path, (2, "iteration"))
    calls = []

    def extension(name, **attributes):
        def call(trainer):
            calls.append(name)
        for key, value in attributes.items():
            setattr(call, key, value)
        return call

    t = package.training
    trainer.extend(extension("reader"), name="a")
    trainer.extend(extension("writer"), name="a", priority=t.PRIORITY_WRITER)
    trainer.extend(extension("editor", priority=t.PRIORITY_EDITOR), name="b")
    trainer.extend(extension("second"), name="a", trigger=(2, "iteration"))
    trainer.extend(
        extension("own", trigger=lambda trainer: trainer.updater.iteration == 1), name="c")
    trainer.extend(extension("before"), name="d", call_before_training=True, priority=250)
    assert trainer.get_extension("a_1").name == "a_1"
    trainer.run()
    assert calls == ["before", "writer", "before", "editor", "reader", "own",
                     "writer", "before", "editor", "reader", "second"]
    with pytest.raises(ValueError, match="extension e not found"):
        trainer.get_extension("e")


def test_names(package, tmp_path):
    class Named(package.training.Extension):
        default_name = "default"

        def __call__(self, trainer):
            pass

    class Nameless:
        def __call__(self, trainer):
            pass

    trainer = trainer_of(package, tmp_path)
    named = Named()
    trainer.extend(named)
    assert trainer.get_extension("default") is named
    trainer.extend(package.training.Extension())
    assert trainer.get_extension("Extension").trigger == (1, "iteration")
    with pytest.raises(TypeError, match="name is not given for the extension"):
        trainer.extend(Nameless())
    with pytest.raises(ValueError, match='the name "training" is prohibited'):
        trainer.extend(named, name="training")
    with pytest.raises(NotImplementedError, match="must override __call__"):
        package.training.Extension()(trainer)
    with pytest.raises((TypeError, ValueError), match="invoke_before_training"):
        trainer.extend(Nameless(), invoke_before_training=True)


def test_make_extension(package, tmp_path):
    calls = []

    @package.training.make_extension(
        trigger=(2, "iteration"), default_name="made", priority=5,
        initializer=lambda trainer: calls.append("initialize"),
        finalizer=lambda: calls.append("finalize"))
    def extension(trainer):
        calls.append(trainer.updater.iteration)

    @package.training.make_extension()
    def plain(trainer):
        pass

    assert (extension.trigger, extension.default_name, extension.priority) == (
        (2, "iteration"), "made", 5)
    assert (plain.trigger, plain.default_name, plain.priority) == ((1, "iteration"), "plain", 100)
    trainer = trainer_of(package, tmp_path, (4, "iteration"))
    trainer.extend(extension)
    trainer.extend(plain)
    trainer.run()
    assert calls == ["initialize", 2, 4, "finalize"]
    assert trainer.get_extension("made") is extension


def test_runs_once(package, tmp_path):
    trainer = trainer_of(package, tmp_path / "new" / "folder", (1, "iteration"))
    with pytest.raises(RuntimeError, match="training has not been started yet"):
        trainer.elapsed_time
    assert trainer.is_before_training
    trainer.run()
    assert not trainer.is_before_training and (tmp_path / "new" / "folder").is_dir()
    assert trainer.elapsed_time == trainer.elapsed_time > 0
    with pytest.raises(RuntimeError, match="cannot run training loop multiple times"):
        trainer.run()


@pytest.mark.parametrize("show", [True, False])
def test_exceptions(package, tmp_path, capsys, show):
    trainer = trainer_of(package, tmp_path)
    calls = []

    class Handler(package.training.Extension):
        def __init__(self, name):
            self.name = name

        def __call__(self, trainer):
            if self.name == "second":
                raise ValueError("reason")

        def on_error(self, trainer, exc, tb):
            calls.append((self.name, str(exc), tb is not None))
            if self.name == "first" and show:
                raise RuntimeError("handler fails")

        def finalize(self):
            calls.append(self.name)

    trainer.extend(Handler("first"))
    trainer.extend(Handler("second"))
    with pytest.raises(ValueError, match="reason"):
        trainer.run(show_loop_exception_msg=show)
    assert calls == [("first", "reason", True), ("second", "reason", True), "first", "second"]
    text = capsys.readouterr().err
    assert ("Exception in main training loop: reason\nTraceback (most recent" in text) == show
    assert ("Exception in error handler: handler fails" in text) == show
    assert ("Will finalize trainer extensions and updater before reraising" in text) == show


def test_extensions_as_argument(package, tmp_path):
    updater = trainer_of(package, tmp_path).updater
    trainer = package.training.Trainer(
        updater, (1, "iteration"), out=str(tmp_path),
        extensions=[package.training.extensions.LogReport(trigger=(1, "iteration"))])
    trainer.run()
    assert len(trainer.get_extension("LogReport").log) == 1


def test_observers(package, tmp_path):
    trainer = trainer_of(package, tmp_path, (1, "iteration"))
    target = trainer.updater.get_optimizer("main").target

    class Look(package.LinkHook):
        def forward_postprocess(self, args):
            if type(args.link).__name__ == "Linear":
                package.report({"rows": len(args.args[0])}, args.link)

    with Look():
        trainer.run()
    assert trainer.observation["main/predictor/l1/rows"] == 4
    assert trainer.observation["main/predictor/l2/rows"] == 4
    assert target.predictor.l1 is not None


class Recorder:
    """An optimizer that records calls."""

    def __init__(self, target):
        self.target = target
        self.calls = []

    def update(self, function, *args, **kwargs):
        self.calls.append((function, args, kwargs))

    def new_epoch(self, auto=False):
        self.calls.append(("new_epoch", auto))

    def set_loss_scale(self, scale):
        self.calls.append(("loss_scale", scale))

    def serialize(self, serializer):
        pass


def test_standard_updater(package):
    model = model_of(package)
    data = [{"x": numpy.float32(i), "y": numpy.float32(2 * i)} for i in range(3)]
    optimizer = Recorder(model)
    iterator = package.iterators.SerialIterator(data, 2, shuffle=False)
    updater = package.training.updaters.StandardUpdater(iterator, optimizer, loss_scale=8)
    assert optimizer.use_auto_new_epoch and updater.get_iterator("main") is iterator
    assert updater.get_all_optimizers() == {"main": optimizer}
    assert updater.device is None and updater.input_device is None
    updater.update()
    updater.update()
    assert updater.iteration == 2
    assert optimizer.calls[0] == ("loss_scale", 8)
    function, args, kwargs = optimizer.calls[1]
    assert function is model and args == ()
    assert kwargs["x"].tolist() == [0, 1] and kwargs["y"].tolist() == [0, 2]
    assert optimizer.calls[3:] == [("new_epoch", True)]


@pytest.mark.parametrize("batch, expected", [((1, 2), (1, 2)), ([1, 2], ([1, 2],))])
def test_converters_and_losses(package, batch, expected):
    loss = object()
    optimizer = Recorder(model_of(package))
    updater = package.training.StandardUpdater(
        {"main": package.iterators.SerialIterator([0], 1)}, {"main": optimizer},
        converter=lambda batch_, device: batch, loss_func=loss, auto_new_epoch=False)
    updater.update()
    assert optimizer.calls == [(loss, expected, {})]


def test_devices():
    optimizer = Recorder(model_of(catena))
    updater = training.StandardUpdater(
        catena.iterators.SerialIterator(data_of(), 2), optimizer, device="cpu:1", input_device=-1)
    assert str(updater.device) == "cpu:1" and updater.input_device == catena.Device(-1)
    assert str(optimizer.target.device) == "cpu:1"
    updater.update()
    assert isinstance(optimizer.calls[0][1][0], numpy.ndarray)


@pytest.mark.parametrize("device", ["cpu:1", "cpu:0"])
def test_training_on_a_device(tmp_path, device):
    found = []
    for where in (None, device):
        trainer = trainer_of(catena, tmp_path, (3, "iteration"), device=where)
        trainer.extend(evaluator_of(catena, trainer, device=where), trigger=(3, "iteration"))
        trainer.run()
        found.append((trainer.observation["validation/main/loss"],
                      {k: v.tolist() for k, v in params_of(trainer).items()}))
    assert found[0] == found[1]


@pytest.mark.parametrize("devices", [{"main": -1, "second": -1}, {"a": "cpu:1", "main": "cpu:0"}])
def test_parallel_updater(tmp_path, devices):
    """Two models with half of a minibatch each do the same as one with a sum of losses."""
    numpy.random.seed(0)
    optimizer = catena.optimizers.SGD(0.1).setup(model_of(catena))
    iterator = catena.iterators.SerialIterator(data_of(), 4)
    updater = training.updaters.ParallelUpdater(iterator, optimizer, devices=devices)
    trainer = training.Trainer(updater, (4, "iteration"), out=str(tmp_path))
    trainer.run()
    other = "second" if "second" in devices else "a"
    assert {"main/loss", other + "/loss"} <= set(trainer.observation)

    numpy.random.seed(0)
    single = catena.optimizers.SGD(0.1).setup(model_of(catena))
    iterator = catena.iterators.SerialIterator(data_of(), 4)
    for _ in range(4):
        batch = iterator.next()
        halves = [catena.dataset.concat_examples(batch[i::2]) for i in range(2)]
        single.update(lambda: single.target(*halves[0]) + single.target(*halves[1]))
    for name, array in params_of(trainer).items():
        expected = dict(single.target.namedparams())[name].array
        numpy.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("devices", [["cpu:0", "cpu:1"], {"b": "cpu:0", "main": "cpu:1"}])
def test_updater_with_an_iterator_for_each_device(tmp_path, devices):
    """It does the same as one model with the mean of the losses of both minibatches."""
    def iterators():
        return [catena.iterators.SerialIterator(data_of(seed=seed), 3, shuffle=False) for seed in (1, 2)]

    optimizer = catena.optimizers.SGD(0.2).setup(model_of(catena))
    with pytest.warns(UserWarning, match="optimizer.lr is changed to 0.1"):
        updater = training.updaters.MultiprocessParallelUpdater(iterators(), optimizer, devices=devices)
    assert updater.available() and optimizer.lr == 0.1
    trainer = training.Trainer(updater, (4, "iteration"), out=str(tmp_path))
    trainer.run()
    assert trainer.updater.epoch == 1 and "main/loss" in trainer.observation
    assert optimizer.target.device == catena.get_device(dict(devices)["main"] if isinstance(
        devices, dict) else devices[0])

    single = catena.optimizers.SGD(0.2).setup(model_of(catena))
    pairs = iterators()
    for _ in range(4):
        halves = [catena.dataset.concat_examples(each.next()) for each in pairs]
        single.update(lambda: (single.target(*halves[0]) + single.target(*halves[1])) / 2)
    expected = dict(single.target.namedparams())
    for name, array in params_of(trainer).items():
        numpy.testing.assert_allclose(array, expected[name].array, rtol=1e-5, atol=1e-6)

    path = str(tmp_path / "state.npz")
    catena.serializers.save_npz(path, updater)
    with pytest.warns(UserWarning):
        other = training.updaters.MultiprocessParallelUpdater(
            iterators(), catena.optimizers.SGD(0.2).setup(model_of(catena)), devices=devices)
    catena.serializers.load_npz(path, other)
    assert [each.current_position for each in other._all_iterators] == [2, 2]


@pytest.mark.parametrize("name, change", [("Adam", 2), ("RMSpropGraves", 4), ("MomentumSGD", 0.5)])
def test_hyperparameters_for_sums_of_gradients(name, change):
    chainer = pytest.importorskip("chainer")
    made = getattr(catena.optimizers, name)().setup(model_of(catena))
    hyperparameter = "lr" if change < 1 else "eps"
    before = getattr(made, hyperparameter)
    iterators = [catena.iterators.SerialIterator(data_of(), 3) for _ in range(2)]
    with pytest.warns(UserWarning, match=hyperparameter):
        training.updaters.MultiprocessParallelUpdater(iterators, made, devices=[-1, "cpu:1"])
    assert getattr(made, hyperparameter) == before * change
    assert hasattr(getattr(chainer.optimizers, name)(), hyperparameter)


@pytest.mark.parametrize("n, devices, error, message", [
    (2, [-1], ValueError, "iterators: expected one for each of 1 devices, got 2"),
    (2, [-1, -1], ValueError, "expected different devices, got .*@numpy"),
    (2, [-1, None], ValueError, "got None"), (2, None, ValueError, "got None"),
    (1, {"a": -1}, KeyError, "expected an entry 'main'"), (1, [], ValueError, r"got \[\]"),
    (1, ["cuda:99"], catena.DeviceError, "cuda:99")])
def test_wrong_devices_of_updaters(n, devices, error, message):
    iterators = [catena.iterators.SerialIterator(data_of(), 3) for _ in range(n)]
    optimizer = catena.optimizers.SGD(0.2).setup(model_of(catena))
    with pytest.raises(error, match=message):
        training.updaters.MultiprocessParallelUpdater(iterators, optimizer, devices=devices)
    assert optimizer.lr == 0.2
    lengths = [catena.iterators.SerialIterator(data_of(k), 3) for k in (4, 5)]
    with pytest.raises(ValueError, match=r"datasets of equal lengths, got \[4, 5\]"):
        training.updaters.MultiprocessParallelUpdater(lengths, optimizer, devices=[-1, "cpu:1"])


def test_parallel_updater_same_as_chainer(tmp_path):
    chainer = pytest.importorskip("chainer")
    found = []
    for package in (catena, chainer):
        numpy.random.seed(0)
        optimizer = package.optimizers.SGD(0.1).setup(model_of(package))
        updater = package.training.ParallelUpdater(
            package.iterators.SerialIterator(data_of(), 4), optimizer,
            devices={"main": -1, "second": -1})
        trainer = package.training.Trainer(updater, (4, "iteration"), out=str(tmp_path))
        trainer.run()
        found.append(params_of(trainer))
    for name, array in found[0].items():
        numpy.testing.assert_allclose(array, found[1][name], rtol=1e-5, atol=1e-6)


def test_parallel_updater_errors(package):
    optimizer = package.optimizers.SGD().setup(model_of(package))
    iterator = package.iterators.SerialIterator(data_of(), 4)
    with pytest.raises(ValueError, match="either models or devices must be specified"):
        package.training.ParallelUpdater(iterator, optimizer)
    with pytest.raises(KeyError, match="must contain a 'main' key"):
        package.training.ParallelUpdater(iterator, optimizer, devices={"a": -1})


def test_base_updater(package):
    updater = package.training.Updater()
    updater.connect_trainer(None)
    for call in (updater.finalize, updater.update, updater.get_all_optimizers,
                 lambda: updater.get_optimizer("main"), lambda: updater.serialize(None)):
        with pytest.raises(NotImplementedError):
            call()


def test_names_of_modules():
    assert training.trigger.get_trigger is training.util.get_trigger is training.get_trigger
    assert training.updater.StandardUpdater is training.updaters.StandardUpdater
    assert training.extension.Extension is training.Extension
    assert extensions.dump_graph is extensions.DumpGraph
