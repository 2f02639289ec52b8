"""Optimizers: the parts that all have in common. The classes are in catena.optimizers."""
import copy
import math
import warnings

import numpy

from catena import _core
from catena.configuration import using_device
from catena.optimizer_hooks import (
    GradientClipping, GradientHardClipping, GradientLARS, GradientNoise, Lasso, WeightDecay)
from catena.serializer import Deserializer
from catena.variable import Parameter, Variable

__all__ = ["GradientClipping", "GradientHardClipping", "GradientLARS", "GradientMethod",
           "GradientNoise", "Hyperparameter", "HyperparameterProxy", "Lasso", "Optimizer", "Rule",
           "UpdateRule", "WeightDecay"]


class _Hooks:
    """Hooks by name, which are called before or after an update."""

    def __init__(self):
        self.of = {"pre": {}, "post": {}}
        self.any = False

    def add(self, hook, name, timing):
        if not callable(hook):
            raise TypeError(f"[add_hook] hook: expected a callable, got {type(hook).__name__}")
        if timing not in ("pre", "post", "auto"):
            raise ValueError(f"[add_hook] timing: expected 'pre', 'post' or 'auto', got {timing!r}")
        if timing == "auto":
            timing = getattr(hook, "timing", "pre")
            if timing not in self.of:
                warnings.warn(f"the hook's timing {timing!r} is neither 'pre' nor 'post': it is "
                              "called before updates")
                timing = "pre"
        if name is None:
            name = getattr(hook, "name", getattr(hook, "__name__", None))
        if name is None:
            raise ValueError("[add_hook] name: expected one, because the hook has none, got None")
        if any(name in hooks for hooks in self.of.values()):
            raise KeyError(f"a hook {name!r} already exists")
        self.of[timing][name] = hook
        self.any = True

    def remove(self, name):
        del self.of["pre" if name in self.of["pre"] else "post"][name]
        self.any = bool(self.of["pre"] or self.of["post"])

    def at(self, timing):
        if timing not in self.of:
            raise ValueError(f"[call_hooks] timing: expected 'pre' or 'post', got {timing!r}")
        return list(self.of[timing].values())


class Hyperparameter:
    """Named numbers. Those that it lacks are its parent's.

    The hyperparameters of an optimizer are the parents of those of its update rules, so that
    ``optimizer.lr = 0.1`` holds for all parameters except those with a rate of their own:
    ``model.l1.W.update_rule.hyperparam.lr = 0.01``.
    """

    def __init__(self, parent=None):
        self._parent = parent

    def __getattr__(self, name):
        if "_parent" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._parent, name)

    def __repr__(self):
        values = ", ".join(f"{name}={value}" for name, value in sorted(self.get_dict().items()))
        return f"Hyperparameter({values})"

    @property
    def parent(self):
        return self._parent

    def get_dict(self):
        """All values, also those of the parents."""
        values = {} if self._parent is None else self._parent.get_dict()
        values.update((name, value) for name, value in self.__dict__.items() if name != "_parent")
        return values


class HyperparameterProxy:
    """A property of an optimizer: ``optimizer.lr`` is ``optimizer.hyperparam.lr``."""

    def __init__(self, attr_name):
        self._name = attr_name
        self.__doc__ = f"The same as ``hyperparam.{attr_name}``."

    def __get__(self, optimizer, owner=None):
        return self if optimizer is None else getattr(optimizer.hyperparam, self._name)

    def __set__(self, optimizer, value):
        setattr(optimizer.hyperparam, self._name, value)


def _moved(array, device):
    """The array on a device, as param.array would be."""
    if isinstance(array, numpy.ndarray) and not device.is_gpu:
        return array
    if not isinstance(array, (numpy.ndarray, _core.Array)):
        return array
    return _core.as_python(_core.as_array(array).to_device(device))


class UpdateRule:
    """How one parameter is updated.

    A subclass implements ``update_core(param)``, or ``update_core_cpu(param)`` and
    ``update_core_gpu(param)``, and ``init_state(param)`` if it keeps arrays in ``self.state``, a
    dict. State follows its parameter to other devices.

    Args:
        parent_hyperparam: the hyperparameters that this rule has no own values for.
    """

    is_elementwise = False

    def __init__(self, parent_hyperparam=None):
        self._state = None
        self._state_was_read = False  # so that its arrays may be others
        self.enabled = True
        self.hyperparam = Hyperparameter(parent_hyperparam)
        self.t = 0
        self._use_fp32_update = False
        self._fp32_param = None
        self._hooks = _Hooks()

    @property
    def state(self):
        """The arrays by name; None before the first update."""
        self._state_was_read = True
        return self._state

    def add_hook(self, hook, name=None, timing="auto"):
        """Adds a function that is called with the rule and the parameter."""
        self._hooks.add(hook, name, timing)

    def remove_hook(self, name):
        self._hooks.remove(name)

    def use_fp32_update(self, flag=True):
        """Updates a float32 copy of a float16 parameter, and rounds it to float16."""
        self._use_fp32_update = flag

    def update(self, param):
        """Updates the parameter, unless the rule is not enabled."""
        if not self.enabled:
            return
        self.t += 1
        if param.array is None:
            self._update(param)
        else:
            with using_device(param.device):
                self._update(param)

    def _update(self, param):
        target = param
        if param.array is not None:
            if self._is_fp32(param):
                target = self._fp32_of(param)
            self._init_states(target)
            if param.loss_scale is not None:
                _core.scale_gradients([target], 1 / param.loss_scale)
        for hook in self._hooks.at("pre"):
            hook(self, target)
        self.update_core(target)
        for hook in self._hooks.at("post"):
            hook(self, target)
        if target is not param:
            param.array = target._array.astype("float16")
            target.cleargrad()

    def _is_fp32(self, param):
        return self._use_fp32_update and param.dtype == "float16"

    def _fp32_of(self, param):
        if self._fp32_param is None:
            self._fp32_param = Parameter(param._array.astype("float32"), name=param.name)
        if param.grad is not None:
            self._fp32_param.grad = param.grad_var._array.astype("float32")
        return self._fp32_param

    def update_core(self, param):
        """Updates the parameter from its gradient."""
        if param.array is not None and param.device.is_gpu:
            self.update_core_gpu(param)
        else:
            self.update_core_cpu(param)

    def update_core_cpu(self, param):
        raise NotImplementedError

    def update_core_gpu(self, param):
        raise NotImplementedError

    def init_state(self, param):
        """Adds arrays to ``self.state``. Called at the first update."""

    def _init_states(self, param):
        if self._state is None:
            self._state = {}
            self.init_state(param)
        for name, value in self._state.items():
            self._state[name] = _moved(value, param.device)

    def serialize(self, serializer):
        """Saves or loads t and the state, not the parameter."""
        self.t = serializer("t", self.t)
        self._state_was_read = True
        if self._state is not None:
            for name, value in self._state.items():
                self._state[name] = serializer(name, value)
        elif isinstance(serializer, Deserializer):
            self._load_state(serializer)

    def _load_state(self, serializer):
        """Loads the state before the first update. It stays None if the file has none."""
        self._state = {}
        example = numpy.empty(1, numpy.float32)
        copy.copy(self).init_state(Variable(example, grad=example))
        for name in list(self._state):
            try:
                value = serializer(name, None)
            except KeyError:
                if self.enabled:
                    raise
                value = None
            if value is None:
                self._state = None
                return
            self._state[name] = value


class _Steps:
    """Steps of C++ on the parameters of some rules that share t and hyperparameters."""

    def __init__(self, rule):
        self._core = _core.Update(rule.function, rule.attributes, rule.state_names)
        self._rules = None

    def run(self, rules, params):
        """Runs the step t of the first rule. All rules must have this t."""
        first = rules[0]
        if rules == self._rules and not any([rule._state_was_read for rule in rules]):
            if self._core.run(params, first.values(), first.t):
                return
        state = []
        for rule, param in zip(rules, params):
            rule._init_states(param)
            rule._state_was_read = False
            state += [rule._state[name] for name in rule.state_names]
        self._core.setup(params, state, first.t - 1)
        self._rules = rules
        self._core.run(params, first.values(), first.t)


class Rule(UpdateRule):
    """An update rule that C++ computes, for all parameters of an optimizer in one call.

    Attributes:
        function: an update function of a plugin, or a rule of the extension module.
        attributes: the names of its attributes; "t" is the number of the step.
        state_names: the names of its state, in the order of the function's inputs.
        names: the names of the hyperparameters, which are also arguments of the constructor.
        defaults: the hyperparameters of a rule without a parent.
    """

    is_elementwise = True
    function = None
    attributes = ()
    state_names = ()
    names = ()
    defaults = Hyperparameter()
    initial_alpha = None
    _steps = None
    _runs_alone = False  # a subclass has a Python method for one parameter

    def __init_subclass__(cls, **arguments):
        super().__init_subclass__(**arguments)
        cls._runs_alone = cls.update is not UpdateRule.update or (
            cls.update_core is not Rule.update_core)

    def __init__(self, parent_hyperparam=None, *values, **named):
        super().__init__(parent_hyperparam or self.defaults)
        named.update(zip(self.names, values))
        for name, value in named.items():
            if name not in self.names:
                raise TypeError(f"{type(self).__name__}() got an unexpected argument {name!r}")
            if value is not None:
                setattr(self.hyperparam, name, value)

    def values(self):
        """The values of the attributes other than t, at step t."""
        hyperparam = self.hyperparam
        return tuple([getattr(hyperparam, name) for name in self.attributes if name != "t"])

    def init_state(self, param):
        for name in self.state_names:
            self._state[name] = self.new_state(param, 0)

    def new_state(self, param, value):
        """An array like the parameter; float32 for half precision, because updates are small."""
        state = param._array.astype(self._state_dtype(param)).copy()
        state.fill(value)
        return _core.as_python(state)

    def _state_dtype(self, param):
        return "float64" if param.dtype == "float64" else "float32"

    def _init_states(self, param):
        super()._init_states(param)
        dtype = self._state_dtype(param)
        for name, value in self._state.items():
            if value.dtype != dtype:
                self._state[name] = _core.as_python(_core.as_array(value).astype(dtype))

    def update_core(self, param):
        if param.array is None or param.grad is None:
            return
        self._steps = self._steps or _Steps(self)
        self._steps.run([self], [param])

    def is_plain(self, param):
        """Whether the parameter can be updated together with others of the optimizer."""
        return (self.enabled and not self._hooks.any and len(self.hyperparam.__dict__) == 1
                and not self._runs_alone and type(param) is Parameter and param.array is not None
                and not self._is_fp32(param))

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_steps"}


class _Parameters:
    """The target of Chainer 1's setup(): lists of parameters and of their gradients."""

    def __init__(self, params, grads):
        self._params = []
        for param, grad in zip(params, grads):
            if not isinstance(param, Variable):
                param = Parameter(param)
                param.grad = grad
                _core.keep_gradients([param])
            self._params.append(param)

    def params(self, include_uninit=True):
        return iter(self._params)

    def namedparams(self, include_uninit=True):
        for i, param in enumerate(self._params):
            yield f"/{i}", param

    def cleargrads(self):
        for param in self._params:
            param.cleargrad()

    def zerograds(self):
        for param in self._params:
            param.zerograd()


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

    target = None
    t = 0
    epoch = 0
    use_auto_new_epoch = False
    _hooks = None
    _loss_scale = None
    _loss_scale_max = 65504  # the largest number in float16
    _loss_scaling_is_dynamic = False
    _loss_scaling_isnan = False

    def setup(self, link):
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
        self._hooks = _Hooks()
        self._one_states = {}
        return self

    def update(self, lossfun=None, *args, **kwds):
        """Updates the parameters.

        Args:
            lossfun: a function of the other arguments that returns a loss, whose gradients are then
                computed. Without it, the gradients are those that the parameters have.
        """
        if type(self).update_one is Optimizer.update_one and all(
                getattr(type(self), name) is getattr(Optimizer, name)
                for name in ["update_one_cpu", "update_one_gpu"]):
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

    def init_state(self, param, grad):
        """The state of a parameter in Chainer 1."""
        return self._of_device("init_state", param, grad)

    def init_state_cpu(self, param, grad):
        return None

    def init_state_gpu(self, param, grad):
        return None

    def update_one(self, param, grad, state):
        """Updates the array of a parameter in place, as in Chainer 1."""
        self._of_device("update_one", param, grad, state)

    def update_one_cpu(self, param, grad, state):
        raise NotImplementedError

    def update_one_gpu(self, param, grad, state):
        raise NotImplementedError

    def new_epoch(self, auto=False):
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

    def add_hook(self, hook, name=None, timing="auto"):
        """Adds a function that update() calls with the optimizer before or after the step.

        If ``hook.call_for_each_param`` is true, it is called with each update rule and parameter.
        """
        self._check_set_up()
        self._hooks.add(hook, name, timing)

    def remove_hook(self, name):
        self._check_set_up()
        self._hooks.remove(name)

    def call_hooks(self, timing="pre"):
        """Calls the hooks in the order in which they were added."""
        self._check_set_up()
        for hook in self._hooks.at(timing):
            self.call_hook(hook)

    def call_hook(self, hook):
        if "call_for_all" in vars(type(hook)):
            hook.call_for_all(self)
        elif getattr(hook, "call_for_each_param", False):
            for param in self.target.params():
                hook(param.update_rule, param)
        else:
            hook(self)

    def serialize(self, serializer):
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

    def zero_grads(self):
        """Sets all gradients to zeros."""
        for param in self.target.params():
            param.zerograd()

    def compute_grads_norm(self):
        """The L2 norm of all gradients together, as a float."""
        return _core.gradients_norm(self._with_grads())

    def clip_grads(self, maxnorm):
        """Scales the gradients so that the norm of all together is at most ``maxnorm``."""
        _core.clip_gradients(self._with_grads(), maxnorm)

    def weight_decay(self, decay):
        """Adds ``decay`` times the parameter to each gradient."""
        _core.decay_weights(self._with_grads(), decay)

    def accumulate_grads(self, grads):
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

    def loss_scaling(self, interval=1000, scale=None):
        """Multiplies losses by a factor, and divides gradients by it.

        Args:
            interval: the number of updates without overflow after which the factor is doubled.
            scale: a constant factor.
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

    def set_loss_scale(self, loss_scale):
        self.loss_scaling(scale=loss_scale)

    def check_nan_in_grads(self):
        """With a factor that changes: finds gradients that are not finite."""
        self._loss_scaling_isnan = False
        if not self._loss_scaling_is_dynamic or math.isfinite(self.compute_grads_norm()):
            return
        self._loss_scaling_isnan = self._loss_scaling_isnan_ever = True
        bad = [name for name, param in self.target.namedparams(False)
               if not math.isfinite(_core.gradients_norm([param]))]
        warnings.warn(f"gradients of {', '.join(bad)} are not finite (iteration {self.t}, "
                      f"loss_scale {self._loss_scale})")

    def is_safe_to_update(self):
        return not self._loss_scaling_isnan

    def update_loss_scale(self):
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

    def __init__(self):
        super().__init__()
        self.hyperparam = Hyperparameter()
        self._use_fp32_update = False
        self._steps = {}
        self._params = None  # of the target, during update()

    def setup(self, link):
        super().setup(link)
        self._steps = {}
        for param in self.target.params():
            param.update_rule = self.create_update_rule()
            if self._use_fp32_update:
                param.update_rule.use_fp32_update()
        return self

    def create_update_rule(self):
        """A new update rule for a parameter."""
        raise NotImplementedError

    def use_cleargrads(self, use=True):
        warnings.warn("GradientMethod.use_cleargrads is deprecated.", DeprecationWarning,
                      stacklevel=2)
        self._use_cleargrads = use

    def use_fp32_update(self, flag=True):
        """Updates float32 copies of float16 parameters."""
        self._use_fp32_update = flag
        if self.target is not None:
            for param in self.target.params():
                param.update_rule.use_fp32_update()

    def reallocate_cleared_grads(self):
        """Gives parameters without a gradient one of zeros. A subclass may do nothing instead."""
        _core.make_gradients(self._params or list(self.target.params()))

    def call_hook(self, hook):
        super().call_hook(hook)
        self.reallocate_cleared_grads()

    def update(self, lossfun=None, *args, **kwds):
        if lossfun is not None:
            self._backward(lossfun, args, kwds)
        self._params = list(self.target.params())
        if self._loss_scale is not None:
            for param in self._params:
                param.loss_scale = self._loss_scale
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
        for param in self._params:
            rule = param.update_rule
            if not isinstance(rule, Rule) or not rule.is_plain(param):
                param.update()
                continue
            common = (type(rule), rule.hyperparam._parent, rule.t, rule.initial_alpha,
                      param.loss_scale)
            # A parameter that several links share is updated once.
            groups.setdefault(common, {})[rule] = param
        steps = {}
        for common, members in groups.items():
            rules, params = list(members), list(members.values())
            for rule in rules:
                rule.t += 1
            if common[-1] is not None:
                _core.scale_gradients(params, 1 / common[-1])
            place = rules[0], rules[0].function
            steps[place] = self._steps.get(place) or _Steps(rules[0])
            steps[place].run(rules, params)
        self._steps = steps

    def __getstate__(self):
        return {**self.__dict__, "_steps": {}, "_params": None}
