"""How optimizers update a parameter: update rules, their hyperparameters and hooks."""
import copy
import operator
import threading
import warnings
from typing import Any

import numpy

from catena import _core
from catena.configuration import using_device
from catena.serializer import Deserializer
from catena.variable import Parameter, Variable

_first_update = threading.RLock()  # held while the state of a rule is made


class Hooks:
    """Hooks by name, which are called before or after an update."""

    def __init__(self) -> None:
        self.of = {"pre": {}, "post": {}}
        self.any = False

    def add(self, hook, name, timing) -> None:
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

    def remove(self, name) -> None:
        del self.of["pre" if name in self.of["pre"] else "post"][name]
        self.any = bool(self.of["pre"] or self.of["post"])

    def at(self, timing) -> Any:
        if timing not in self.of:
            raise ValueError(f"[call_hooks] timing: expected 'pre' or 'post', got {timing!r}")
        return list(self.of[timing].values())


class Hyperparameter:
    """Named numbers. Those that it lacks are its parent's.

    The hyperparameters of an optimizer are the parents of those of its update rules, so that
    ``optimizer.lr = 0.1`` holds for all parameters except those with a rate of their own:
    ``model.l1.W.update_rule.hyperparam.lr = 0.01``.
    """

    def __init__(self, parent=None) -> None:
        self._parent = parent

    def __getattr__(self, name):
        if "_parent" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._parent, name)

    def __repr__(self):
        values = ", ".join(f"{name}={value}" for name, value in sorted(self.get_dict().items()))
        return f"Hyperparameter({values})"

    parent = property(operator.attrgetter("_parent"))

    def get_dict(self) -> Any:
        """All values, also those of the parents."""
        values = {} if self._parent is None else self._parent.get_dict()
        values.update((name, value) for name, value in self.__dict__.items() if name != "_parent")
        return values


class HyperparameterProxy:
    """A property of an optimizer: ``optimizer.lr`` is ``optimizer.hyperparam.lr``."""

    def __init__(self, attr_name) -> None:
        self._name = attr_name
        self.__doc__ = f"The same as ``hyperparam.{attr_name}``."

    def __get__(self, optimizer, owner=None):
        return self if optimizer is None else getattr(optimizer.hyperparam, self._name)

    def __set__(self, optimizer, value):
        setattr(optimizer.hyperparam, self._name, value)


class UpdateRule:
    """How one parameter is updated.

    A subclass implements ``update_core(param)``, or ``update_core_cpu(param)`` and
    ``update_core_gpu(param)``, and ``init_state(param)`` if it keeps arrays in ``self.state``, a
    dict. State follows its parameter to other devices. Hyperparameters that it lacks are those of
    ``parent_hyperparam``.
    """

    is_elementwise = False

    def __init__(self, parent_hyperparam=None) -> None:
        self._state = None
        self._state_was_read = False  # so that its arrays may be others
        self.enabled = True
        self.hyperparam = Hyperparameter(parent_hyperparam)
        self.t = 0
        self._use_fp32_update = False
        self._fp32_param = None
        self._hooks = Hooks()

    @property
    def state(self):
        """The arrays by name; None before the first update."""
        self._state_was_read = True
        return self._state

    def add_hook(self, hook, name=None, timing="auto") -> None:
        """Adds a function that is called with the rule and the parameter."""
        self._hooks.add(hook, name, timing)

    def remove_hook(self, name) -> None:
        self._hooks.remove(name)

    def use_fp32_update(self, flag=True) -> None:
        """Updates a float32 copy of a float16 parameter, and rounds it to float16."""
        self._use_fp32_update = flag

    def update(self, param) -> None:
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

    def update_core(self, param) -> None:
        """Updates the parameter from its gradient."""
        if param.array is not None and param.device.is_gpu:
            self.update_core_gpu(param)
        else:
            self.update_core_cpu(param)

    def update_core_cpu(self, param) -> Any:
        raise NotImplementedError

    update_core_gpu = update_core_chainerx = update_core_cpu  # there is no ChainerX

    def init_state(self, param) -> Any:
        """Adds arrays to ``self.state``. Called at the first update."""

    def _init_states(self, param):
        with _first_update:
            if self._state is None:
                self._state = {}
                self.init_state(param)
        for name, value in self._state.items():
            if isinstance(value, (numpy.ndarray, _core.Array)):
                self._state[name] = param.device.send(value)

    def serialize(self, serializer) -> None:
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


class Steps:
    """Steps of C++ on the parameters of some rules that share t and hyperparameters."""

    def __init__(self, rule) -> None:
        self._core = _core.Update(rule.function, rule.attributes, rule.state_names)
        self._rules = None

    def run(self, rules, params) -> None:
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
        function: an update function of a plugin.
        attributes: the names of its attributes; "t" is the number of the step, and "initial_NAME"
            the value that the hyperparameter NAME had when the rule was made.
        all_state: the names of its state, in the order of the function's inputs.
        optional_state: for arrays that are not always there, the hyperparameter that tells it.
        own_defaults: the hyperparameters, which are also arguments of the constructor.
        names, defaults: the same, as names, and as those of a rule without a parent.
    """

    is_elementwise = True
    function: Any = None
    attributes: Any = ()
    all_state: Any = ()
    optional_state: Any = {}
    own_defaults: Any = {}
    names: Any = ()
    initial_values: Any = ()  # the attributes "initial_NAME"
    defaults = Hyperparameter()
    _steps = None
    _runs_alone = False  # a subclass has a Python method for one parameter

    def __init_subclass__(cls, **arguments) -> None:
        super().__init_subclass__(**arguments)
        cls._runs_alone = cls.update is not UpdateRule.update or (
            cls.update_core is not Rule.update_core)
        if "own_defaults" in cls.__dict__:
            cls.names = tuple(cls.own_defaults)
            cls.defaults = Hyperparameter()
            vars(cls.defaults).update(cls.own_defaults)
            cls.initial_values = tuple(n for n in cls.attributes if n.startswith("initial_"))

    def __init__(self, parent_hyperparam=None, *values, **named) -> None:
        super().__init__(parent_hyperparam or self.defaults)
        named.update(zip(self.names, values))
        for name, value in named.items():
            if name not in self.names:
                raise TypeError(f"{type(self).__name__}() got an unexpected argument {name!r}")
            if value is not None:
                setattr(self.hyperparam, name, value)
        for name in self.initial_values:
            setattr(self, name, getattr(self.hyperparam, name[len("initial_"):]))

    @property
    def state_names(self) -> Any:
        """The names of the arrays that the hyperparameters ask for."""
        return tuple([name for name in self.all_state if name not in self.optional_state
                      or getattr(self.hyperparam, self.optional_state[name])])

    def values(self) -> Any:
        """The values of the attributes other than t, at step t."""
        return tuple([getattr(self if name in self.initial_values else self.hyperparam, name)
                      for name in self.attributes if name != "t"])

    def init_state(self, param) -> None:
        for name in self.state_names:
            self._state[name] = self.new_state(param, 0)

    def new_state(self, param, value) -> Any:
        """An array like the parameter; float32 for half precision, because updates are small."""
        return _core.as_python(_core.full(param.shape, value, self._state_dtype(param), param.device))

    def _state_dtype(self, param):
        return "float64" if param.dtype == "float64" else "float32"

    def _init_states(self, param):
        super()._init_states(param)
        dtype = self._state_dtype(param)
        for name, value in self._state.items():
            if value.dtype != dtype:
                self._state[name] = _core.as_python(_core.as_array(value).astype(dtype))

    def update_core(self, param) -> None:
        if param.array is None or param.grad is None:
            return
        self._steps = self._steps or Steps(self)
        self._steps.run([self], [param])

    def is_plain(self, param) -> Any:
        """Whether the parameter can be updated together with others of the optimizer."""
        return (self.enabled and not self._hooks.any and len(self.hyperparam.__dict__) == 1
                and not self._runs_alone and type(param) is Parameter and param.array is not None
                and not self._is_fp32(param))

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_steps"}
