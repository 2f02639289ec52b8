"""A small model and a trainer for tests, with catena or Chainer."""
import numpy


def model_of(package, dropout=0.0, seed=0):
    """A classifier of 3 numbers into 2 classes. Both packages get the same parameters."""
    L, F = package.links, package.functions
    random = numpy.random.RandomState(seed)

    def weights(*shape):
        return random.normal(size=shape).astype("float32")

    class Net(package.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l1 = L.Linear(3, 5, initialW=weights(5, 3))
                self.l2 = L.Linear(5, 2, initialW=weights(2, 5))

        def __call__(self, x):
            h = F.relu(self.l1(x))
            # Chainer's dropout draws numbers from NumPy also if it drops nothing.
            return self.l2(F.dropout(h, dropout) if dropout else h)

    return L.Classifier(Net())


def data_of(n=10, seed=1):
    random = numpy.random.RandomState(seed)
    xs = random.normal(size=(n, 3)).astype("float32")
    return [(x, numpy.int32(x[0] > 0)) for x in xs]


def trainer_of(package, out, stop=(3, "epoch"), dropout=0.0, batch=4, seed=3, kind="SerialIterator",
               optimizer=None, **kwargs):
    """A trainer without extensions. The global random state is seeded first."""
    numpy.random.seed(seed)
    iterator = getattr(package.iterators, kind)(data_of(), batch)
    optimizer = optimizer or package.optimizers.MomentumSGD(lr=0.1)
    optimizer.setup(model_of(package, dropout))
    updater = package.training.StandardUpdater(iterator, optimizer, **kwargs)
    return package.training.Trainer(updater, stop, out=str(out))


def evaluator_of(package, trainer, **kwargs):
    iterator = package.iterators.SerialIterator(data_of(7, seed=2), 3, repeat=False, shuffle=False)
    return package.training.extensions.Evaluator(
        iterator, trainer.updater.get_optimizer("main").target, **kwargs)


def params_of(trainer):
    target = trainer.updater.get_optimizer("main").target
    return {name: numpy.array(param.array) for name, param in sorted(target.namedparams())}
