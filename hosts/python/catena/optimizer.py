"""Optimizers: the parts that all have in common. The classes are in catena.optimizers."""
import math
import warnings
from typing import Any

from catena import _core, optimizer_hooks
from catena.configuration import using_device
from catena.link import Link
from catena.optimizer_hooks import GradientLARS
from catena.update_rule import Hooks, Hyperparameter, HyperparameterProxy, Rule, Steps, UpdateRule
from catena.variable import Parameter, Variable

__all__ = ["GradientClipping", "GradientHardClipping", "GradientLARS", "GradientMethod",
           "GradientNoise", "Hyperparameter", "HyperparameterProxy", "Lasso", "Optimizer", "Rule",
           "UpdateRule", "WeightDecay"]


def _deprecated(hook) -> Any:
    """A hook under the name that it had in Chainer 1 to 4."""
    def __init__(self, *args, **kwds):
        warnings.warn(f"catena.optimizer.{hook.__name__} is deprecated. Use "
                      f"catena.optimizer_hooks.{hook.__name__} instead.", DeprecationWarning,
                      stacklevel=2)
        hook.__init__(self, *args, **kwds)
    own = {"__init__": __init__, "__doc__": hook.__doc__, "__module__": __name__}
    if "call_for_all" in vars(hook):
        own["call_for_all"] = hook.call_for_all
    return type(hook.__name__, (hook,), own)


GradientClipping = _deprecated(optimizer_hooks.GradientClipping)
GradientHardClipping = _deprecated(optimizer_hooks.GradientHardClipping)
GradientNoise = _deprecated(optimizer_hooks.GradientNoise)
Lasso = _deprecated(optimizer_hooks.Lasso)
WeightDecay = _deprecated(optimizer_hooks.WeightDecay)


class _Parameters(Link):
    """The target of Chainer 1's setup(): lists of parameters and of their gradients."""

    def __init__(self, params, grads) -> None:
        super().__init__()
        self._all = []
        for param, grad in zip(params, grads):
            if not isinstance(param, Variable):
                param = Parameter(param)
                param.grad = grad
                _core.keep_gradients([param])
            self._all.append(param)

    def params(self, include_uninit=True) -> Any:
        return iter(self._all)

    def namedparams(self, include_uninit=True) -> Any:
        return ((f"/{i}", param) for i, param in enumerate(self._all))


class Optimizer:
    """The base class of all optimizers.

    A subclass overrides ``update()``; or, as in Chainer 1, ``update_one(param, grad, state)`` and
    ``init_state(param, grad)``, which returns arrays for ``state``, or both with the suffixes
    ``_cpu`` and ``_gpu``. See also GradientMethod.

    Attributes:
        target: the link that setup() was called with.
        t: the number of updates.
        epoch: the number of new_epoch() calls.
        use_auto_new_epoch: whether an updater calls new_epoch().
    """

    target: Any = None
    t = 0
    epoch = 0
    use_auto_new_epoch = False
    _hooks = None
    _loss_scale = None
    _loss_scale_max = 65504  # the largest number in float16
    _loss_scaling_is_dynamic = False
    _loss_scaling_isnan = False

    def setup(self, link) -> Any:
        """Starts with the parameters of a link. Returns the optimizer.

        A pair of lists, of parameters and gradients, is also a target, as in Chainer 1.
        """
        if isinstance(link, (tuple, list)) and len(link) == 2:
            link = _Parameters(*link)
        elif not hasattr(link, "namedparams"):
            raise TypeError(f"[setup] link: expected a Link, got {type(link).__name__}")
        self.target = link
        self.t = 0
        self.epoch = 0
        self._hooks = Hooks()
        self._one_states = {}
        return self

    def update(self, lossfun=None, *args, **kwds) -> None:
        """Updates the parameters from the gradients of lossfun(*args, **kwds), by default from theirs."""
        if all(getattr(type(self), name) is getattr(Optimizer, name)
               for name in ["update_one", "update_one_cpu", "update_one_gpu"]):
            raise NotImplementedError
        if lossfun is not None:
            self._backward(lossfun, args, kwds)
        self.call_hooks("pre")
        self.t += 1
        for param in self.target.params():
            if param.array is None or param.grad is None:
                continue
            with using_device(param.device):
                if id(param) not in self._one_states:
                    self._one_states[id(param)] = self.init_state(param.array, param.grad)
                self.update_one(param.array, param.grad, self._one_states[id(param)])
        self.call_hooks("post")

    def _backward(self, lossfun, args, kwds):
        loss = lossfun(*args, **kwds)
        if getattr(self, "_use_cleargrads", True):
            self.target.cleargrads()
        else:
            self.target.zerograds()
        loss.backward(loss_scale=self._loss_scale)

    def _of_device(self, name, param, *args):
        on_gpu = isinstance(param, _core.Array) and param.device.is_gpu
        return getattr(self, name + ("_gpu" if on_gpu else "_cpu"))(param, *args)

    def init_state(self, param, grad) -> Any:
        """The state of a parameter in Chainer 1."""
        return self._of_device("init_state", param, grad)

    def init_state_cpu(self, param, grad) -> Any:
        return None

    init_state_gpu = init_state_cpu

    def update_one(self, param, grad, state) -> None:
        """Updates the array of a parameter in place, as in Chainer 1."""
        self._of_device("update_one", param, grad, state)

    def update_one_cpu(self, param, grad, state) -> Any:
        raise NotImplementedError

    update_one_gpu = update_one_cpu

    def new_epoch(self, auto=False) -> None:
        """Counts an epoch. ``auto`` must be True in updaters that set ``use_auto_new_epoch``."""
        if auto and not self.use_auto_new_epoch:
            raise RuntimeError("[new_epoch] auto: expected False, because use_auto_new_epoch is "
                               "not set, got True")
        if not auto and self.use_auto_new_epoch:
            raise RuntimeError("[new_epoch] auto: expected no call, because the updater makes it, "
                               "got one: pass auto_new_epoch=False to the updater")
        self.epoch += 1

    def _check_set_up(self):
        if self._hooks is None:
            raise RuntimeError("Optimizer is not set up. Call `setup` method.")

    def add_hook(self, hook, name=None, timing="auto") -> None:
        """Adds a function that update() calls with the optimizer before or after the step.

        If ``hook.call_for_each_param`` is true, it is called with each update rule and parameter.
        """
        self._check_set_up()
        self._hooks.add(hook, name, timing)

    def remove_hook(self, name) -> None:
        self._check_set_up()
        self._hooks.remove(name)

    def call_hooks(self, timing="pre") -> None:
        """Calls the hooks in the order in which they were added."""
        self._check_set_up()
        for hook in self._hooks.at(timing):
            self.call_hook(hook)

    def call_hook(self, hook) -> None:
        if "call_for_all" in vars(type(hook)):
            hook.call_for_all(self)
        elif getattr(hook, "call_for_each_param", False):
            for param in self.target.params():
                hook(param.update_rule, param)
        else:
            hook(self)

    def serialize(self, serializer) -> None:
        """Saves or loads t, epoch and the state of all rules, not the parameters."""
        self.t = serializer("t", self.t)
        self.epoch = serializer("epoch", self.epoch)
        for name, param in self.target.namedparams():
            rule = getattr(param, "update_rule", None)
            if rule is not None:
                rule.serialize(serializer[name])

    # ---- all gradients together, as in Chainer 1

    def _with_grads(self):
        unique = {id(param): param for param in self.target.params(False) if param.grad is not None}
        return list(unique.values())

    def zero_grads(self) -> None:
        """Sets all gradients to zeros."""
        for param in self.target.params():
            param.zerograd()

    def compute_grads_norm(self) -> Any:
        """The L2 norm of all gradients together, as a float."""
        return _core.gradients_norm(self._with_grads())

    def clip_grads(self, maxnorm) -> None:
        """Scales the gradients so that the norm of all together is at most ``maxnorm``."""
        _core.clip_gradients(self._with_grads(), maxnorm)

    def weight_decay(self, decay) -> None:
        """Adds ``decay`` times the parameter to each gradient."""
        _core.decay_weights(self._with_grads(), decay)

    def accumulate_grads(self, grads) -> None:
        """Adds other gradients, in the order of the parameters; they may be on other devices."""
        for param, grad in zip(self.target.params(), grads):
            if grad is None:
                continue
            grad = _core.as_array(grad).to_device(param.device)
            if param.grad is None:
                param.grad = grad.copy()
            else:
                mine = param.grad_var._array
                mine += grad

    # ---- loss scaling, which keeps gradients in float16 from vanishing

    def loss_scaling(self, interval=1000, scale=None) -> None:
        """Multiplies losses by a factor, and divides gradients by it.

        It is the constant ``scale``, or is doubled after ``interval`` updates without overflow.
        """
        if scale is not None:
            if scale <= 0:
                raise ValueError(f"[loss_scaling] scale: expected a positive number, got {scale}")
            self._loss_scale = scale
            return
        if interval < 1:
            raise ValueError(f"[loss_scaling] interval: expected at least 1, got {interval}")
        self._loss_scaling_is_dynamic = True
        self._loss_scale = 1.0
        self._loss_scaling_multiplier = math.pow(2.0, 1.0 / interval)
        self._loss_scaling_isnan_ever = False

    def set_loss_scale(self, loss_scale) -> None:
        """A constant factor of losses.

        ``update()`` divides a gradient by the factor of the last ``backward()`` that added to it, as
        in Chainer: call ``cleargrads()`` before a ``backward()`` with another factor.
        """
        self.loss_scaling(scale=loss_scale)

    def check_nan_in_grads(self) -> None:
        """With a factor that changes: finds gradients that are not finite."""
        self._loss_scaling_isnan = False
        if not self._loss_scaling_is_dynamic or math.isfinite(self.compute_grads_norm()):
            return
        self._loss_scaling_isnan = self._loss_scaling_isnan_ever = True
        bad = [name for name, param in self.target.namedparams(False)
               if not math.isfinite(_core.gradients_norm([param]))]
        warnings.warn(f"gradients of {', '.join(bad)} are not finite (iteration {self.t}, "
                      f"loss_scale {self._loss_scale})")

    def is_safe_to_update(self) -> Any:
        return not self._loss_scaling_isnan

    def update_loss_scale(self) -> None:
        if not self._loss_scaling_is_dynamic:
            return
        factor = 2.0
        if self._loss_scaling_isnan:
            factor = 0.5
        elif self._loss_scaling_isnan_ever:
            factor = self._loss_scaling_multiplier
        self._loss_scale = max(1, min(self._loss_scale_max, self._loss_scale * factor))


class GradientMethod(Optimizer):
    """The base class of optimizers that have an update rule for each parameter.

    A subclass overrides ``create_update_rule()``, sets its hyperparameters in the constructor, and
    may have a HyperparameterProxy for each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hyperparam = Hyperparameter()
        self._use_fp32_update = False
        self._steps = {}
        self._params = None  # of the target, during update()

    def setup(self, link) -> Any:
        super().setup(link)
        self._steps = {}
        for param in self.target.params():
            param.update_rule = self.create_update_rule()
            if self._use_fp32_update:
                param.update_rule.use_fp32_update()
        return self

    def create_update_rule(self) -> Any:
        """A new update rule for a parameter."""
        raise NotImplementedError

    def use_cleargrads(self, use=True) -> None:
        warnings.warn("GradientMethod.use_cleargrads is deprecated.", DeprecationWarning,
                      stacklevel=2)
        self._use_cleargrads = use

    def use_fp32_update(self, flag=True) -> None:
        """Updates float32 copies of float16 parameters."""
        self._use_fp32_update = flag
        if self.target is not None:
            for param in self.target.params():
                param.update_rule.use_fp32_update()

    def reallocate_cleared_grads(self) -> None:
        """Gives parameters without a gradient one of zeros. A subclass may do nothing instead."""
        _core.make_gradients(self._params or list(self.target.params()))

    def call_hook(self, hook) -> None:
        super().call_hook(hook)
        self.reallocate_cleared_grads()

    def update(self, lossfun=None, *args, **kwds) -> None:
        if lossfun is not None:
            self._backward(lossfun, args, kwds)
        self._params = list(self.target.params())
        self.reallocate_cleared_grads()
        self.check_nan_in_grads()
        self.call_hooks("pre")
        self.t += 1
        if self.is_safe_to_update():
            self._update_all()
        self.reallocate_cleared_grads()
        self.call_hooks("post")
        self.update_loss_scale()
        self._params = None

    def _update_all(self):
        groups = {}  # rules and parameters for each set of common values
        # Another thread's update() may end, and forget the list.
        for param in self._params or list(self.target.params()):
            rule = param.update_rule
            if not isinstance(rule, Rule) or not rule.is_plain(param):
                param.update()
                continue
            common = (type(rule), rule.hyperparam._parent, rule.t, param.loss_scale,
                      *[getattr(rule, name) for name in rule.initial_values])
            # A parameter that several links share is updated once.
            groups.setdefault(common, {})[rule] = param
        steps = {}
        for common, members in groups.items():
            rules, params = list(members), list(members.values())
            for rule in rules:
                rule.t += 1
            if common[3] is not None:
                _core.scale_gradients(params, 1 / common[3])
            place = rules[0], rules[0].state_names
            steps[place] = self._steps.get(place) or Steps(rules[0])
            steps[place].run(rules, params)
        self._steps = steps

    def __getstate__(self):
        return {**self.__dict__, "_steps": {}, "_params": None}
