"""All optimizers, with Chainer's names, arguments and defaults; also Lamb and Lion.

Each has an update rule in C++. The class ``SGD`` has the rule ``SGDRule``.
"""
import math

from catena.optimizer import GradientMethod, Hyperparameter, HyperparameterProxy, Rule
from catena.optimizer_hooks import (
    GradientClipping, GradientHardClipping, GradientLARS, GradientNoise, Lasso, WeightDecay)

__all__ = ["AMSBound", "AMSGrad", "AdaBound", "AdaDelta", "AdaGrad", "Adam", "AdamW",
           "CorrectedMomentumSGD", "GradientClipping", "GradientHardClipping", "GradientLARS",
           "GradientNoise", "Lamb", "Lasso", "Lion", "MSVAG", "MomentumSGD", "NesterovAG",
           "PluginOptimizer", "RMSprop", "RMSpropGraves", "SGD", "SMORMS3", "WeightDecay"]


class _Method(GradientMethod):
    """An optimizer with a rule in C++. The arguments of __init__() are its hyperparameters."""

    rule_class = None

    def __init_subclass__(cls, function=None, state=(), rule=Rule, **arguments):
        super().__init_subclass__(**arguments)
        if function is None:  # a subclass with other arguments or methods
            return
        code = cls.__init__.__code__
        names = code.co_varnames[1:code.co_argcount]
        defaults = Hyperparameter()
        for name, default in zip(names, cls.__init__.__defaults__):
            setattr(cls, name, HyperparameterProxy(name))
            setattr(defaults, name, default)
        attributes = {"function": function, "state_names": tuple(state), "names": names,
                      "attributes": names, "defaults": defaults, "__module__": cls.__module__,
                      "__doc__": f"The update rule of {cls.__name__}."}
        if rule is not Rule:  # it has attributes of its own
            for name in ["function", "state_names", "attributes"]:
                attributes.pop(name)
        cls.rule_class = type(cls.__name__ + "Rule", (rule,), attributes)
        globals()[cls.__name__ + "Rule"] = cls.rule_class

    def __init__(self, **hyperparameters):
        super().__init__()
        for name, value in hyperparameters.items():
            setattr(self.hyperparam, name, value)

    def create_update_rule(self):
        return self.rule_class(self.hyperparam)


class SGD(_Method, function="catena.sgd_update"):
    """Stochastic gradient descent: p -= lr g."""

    def __init__(self, lr=0.01):
        super().__init__(lr=lr)


class MomentumSGD(_Method, function="catena.momentum_sgd_update", state=["v"]):
    """Gradient descent with momentum: v = momentum v - lr g; p += v."""

    def __init__(self, lr=0.01, momentum=0.9):
        super().__init__(lr=lr, momentum=momentum)


class CorrectedMomentumSGD(_Method, function="corrected_momentum_sgd", state=["v"]):
    """Momentum that does not depend on the rate: v = momentum v - g; p += lr v (Goyal, 2017)."""

    def __init__(self, lr=0.01, momentum=0.9):
        super().__init__(lr=lr, momentum=momentum)


class NesterovAG(_Method, function="nesterov_ag", state=["v"]):
    """Nesterov's accelerated gradient, as Chainer computes it.

    v = momentum v - lr g; p += momentum^2 v - (1 + momentum) lr g
    """

    def __init__(self, lr=0.01, momentum=0.9):
        super().__init__(lr=lr, momentum=momentum)


class AdaGrad(_Method, function="catena.ada_grad_update", state=["h"]):
    """h += g^2; p -= lr g / (sqrt(h) + eps) (Duchi, Hazan and Singer, 2011)."""

    def __init__(self, lr=0.001, eps=1e-8):
        super().__init__(lr=lr, eps=eps)


class AdaDelta(_Method, function="catena.ada_delta_update", state=["msg", "msdx"]):
    """Steps without a learning rate (Zeiler, 2012)."""

    def __init__(self, rho=0.95, eps=1e-6):
        super().__init__(rho=rho, eps=eps)


class _RMSpropRule(Rule):
    attributes = ("lr", "alpha", "eps")
    state_names = ("ms",)

    @property
    def function(self):
        inside = self.hyperparam.eps_inside_sqrt
        return "rmsprop_inside" if inside else "catena.rmsprop_update"


class RMSprop(_Method, function="", rule=_RMSpropRule):
    """ms = alpha ms + (1 - alpha) g^2; p -= lr g / (sqrt(ms) + eps) (Tieleman and Hinton, 2012).

    With ``eps_inside_sqrt`` the denominator is sqrt(ms + eps).
    """

    def __init__(self, lr=0.01, alpha=0.99, eps=1e-8, eps_inside_sqrt=False):
        super().__init__(lr=lr, alpha=alpha, eps=eps, eps_inside_sqrt=eps_inside_sqrt)


class RMSpropGraves(_Method, function="catena.rmsprop_graves_update", state=["n", "g", "delta"]):
    """RMSprop with the variance of the gradient and with momentum (Graves, 2013)."""

    def __init__(self, lr=1e-4, alpha=0.95, momentum=0.9, eps=1e-4):
        super().__init__(lr=lr, alpha=alpha, momentum=momentum, eps=eps)


def _rate(hyperparam, t):
    """The factor of m / (sqrt(v) + eps) in Adam's step t."""
    if t == 0:
        raise RuntimeError("Can't determine the learning rate of Adam optimizer because the update "
                           "steps have not been started.")
    return hyperparam.alpha * math.sqrt(1 - hyperparam.beta2 ** t) / (1 - hyperparam.beta1 ** t)


class _AdamRule(Rule):
    attributes = ("alpha", "beta1", "beta2", "eps", "decay", "final_lr", "gamma", "t")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.hyperparam.adabound:
            self.initial_alpha = self.hyperparam.alpha

    @property
    def function(self):
        return "catena.ams_grad_update" if self.hyperparam.amsgrad else "catena.adam_w_update"

    @property
    def state_names(self):
        return ("m", "v", "vhat") if self.hyperparam.amsgrad else ("m", "v")

    def values(self):
        # The functions add eps to the root of the bias-corrected v, and multiply alpha and decay.
        hp = self.hyperparam
        alpha = max(hp.eta * hp.alpha, 1e-30)
        eps = hp.eps / math.sqrt(1 - hp.beta2 ** self.t)
        final_lr = self._final_lr() * hp.eta if hp.adabound else 0
        decay = hp.eta * hp.weight_decay_rate / alpha
        return alpha, hp.beta1, hp.beta2, eps, decay, final_lr, hp.gamma

    def _final_lr(self):
        return self.hyperparam.final_lr * self.hyperparam.alpha / self.initial_alpha

    @property
    def alpha_t(self):
        """The bias-corrected rate of the last step."""
        return _rate(self.hyperparam, self.t)

    lr = alpha_t

    @property
    def bounds(self):
        """The lowest and highest rate of AdaBound's last step."""
        if self.t == 0:
            raise RuntimeError("Can't determine the bounds of AdaBound optimizer because the "
                               "update steps have not been started.")
        speed = self.hyperparam.gamma * self.t
        return self._final_lr() * (1 - 1 / (speed + 1)), self._final_lr() * (1 + 1 / speed)


class Adam(_Method, function="", rule=_AdamRule):
    """Steps scaled by running moments of the gradient (Kingma and Ba, 2014).

    Args:
        alpha: the learning rate.
        beta1: the decay of the mean of gradients.
        beta2: the decay of the mean of their squares.
        eps: a number that is added to the root of the latter.
        eta: a factor of all steps and decays.
        weight_decay_rate: the rate of decoupled weight decay.
        amsgrad: whether to divide by the largest mean of squares so far (Reddi, 2018).
        adabound: whether to clip rates to bounds that converge to final_lr (Luo, 2019).
        final_lr: the rate to which the bounds converge.
        gamma: how fast they converge.
    """

    def __init__(self, alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-8, eta=1.0, weight_decay_rate=0,
                 amsgrad=False, adabound=False, final_lr=0.1, gamma=1e-3):
        super().__init__(alpha=alpha, beta1=beta1, beta2=beta2, eps=eps, eta=eta,
                         weight_decay_rate=weight_decay_rate, amsgrad=amsgrad, adabound=adabound,
                         final_lr=final_lr, gamma=gamma)

    @property
    def alpha_t(self):
        """The bias-corrected rate of the last step."""
        return _rate(self.hyperparam, self.t)

    lr = alpha_t


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(self, alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-8, eta=1.0, weight_decay_rate=0):
        super().__init__(alpha, beta1, beta2, eps, eta, weight_decay_rate)


class AMSGrad(Adam):
    """Adam that divides by the largest mean of squares so far (Reddi, Kale and Kumar, 2018)."""

    def __init__(self, alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-8, eta=1.0):
        super().__init__(alpha, beta1, beta2, eps, eta, amsgrad=True)


class AdaBound(Adam):
    """Adam with bounds of the rates that converge to ``final_lr`` (Luo and others, 2019)."""

    def __init__(self, alpha=0.001, beta1=0.9, beta2=0.999, final_lr=0.1, gamma=1e-3, eps=1e-8,
                 eta=1.0):
        super().__init__(alpha, beta1, beta2, eps, eta, adabound=True, final_lr=final_lr,
                         gamma=gamma)


class AMSBound(Adam):
    """AdaBound that divides by the largest mean of squares so far."""

    def __init__(self, alpha=0.001, beta1=0.9, beta2=0.999, final_lr=0.1, gamma=1e-3, eps=1e-8,
                 eta=1.0):
        super().__init__(alpha, beta1, beta2, eps, eta, amsgrad=True, adabound=True,
                         final_lr=final_lr, gamma=gamma)


class _MSVAGRule(Rule):
    function = "msvag"
    attributes = ("lr", "beta", "decay", "power")
    state_names = ("m", "v")

    def values(self):
        hp = self.hyperparam
        return hp.eta * hp.lr, hp.beta, hp.eta * hp.weight_decay_rate, hp.beta ** self.t


class MSVAG(_Method, function="", rule=_MSVAGRule):
    """M-SVAG: momentum scaled by the variance of gradients (Balles and Hennig, 2018)."""

    def __init__(self, lr=0.1, beta=0.9, eta=1.0, weight_decay_rate=0):
        super().__init__(lr=lr, beta=beta, eta=eta, weight_decay_rate=weight_decay_rate)


class _SMORMS3Rule(Rule):
    function = "smorms3"
    attributes = ("lr", "eps")
    state_names = ("mem", "g", "g2")

    def init_state(self, param):
        super().init_state(param)
        self._state["mem"] = self.new_state(param, 1)


class SMORMS3(_Method, function="", rule=_SMORMS3Rule):
    """Simon Funk's SMORMS3, RMSprop with a memory that adapts."""

    def __init__(self, lr=0.001, eps=1e-16):
        super().__init__(lr=lr, eps=eps)


class Lamb(_Method, function="lamb", state=["m", "v"]):
    """AdamW whose step has the length lr |p| for each parameter (You and others, 2020)."""

    def __init__(self, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay_rate=0.01):
        super().__init__(lr=lr, beta1=beta1, beta2=beta2, eps=eps,
                         weight_decay_rate=weight_decay_rate)


class _LionRule(Rule):
    function = "catena.lion_update"
    attributes = ("lr", "beta1", "beta2", "decay")
    state_names = ("m",)

    def values(self):
        hp = self.hyperparam
        return hp.lr, hp.beta1, hp.beta2, hp.weight_decay_rate


class Lion(_Method, function="", rule=_LionRule):
    """Steps of one size in the direction of the momentum's sign (Chen and others, 2023)."""

    def __init__(self, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay_rate=0):
        super().__init__(lr=lr, beta1=beta1, beta2=beta2, weight_decay_rate=weight_decay_rate)


class PluginOptimizer(GradientMethod):
    """An optimizer whose update rule is a function of a plugin.

    Args:
        function: the full name of the function. Its inputs are the parameter, the gradient and the
            state; it changes the first and the last in place.
        state: the names of its state arrays.
        hyperparameters: the values of its attributes, except "t", the number of the step, which it
            gets if ``counts`` is true.
    """

    def __init__(self, function, state=(), counts=False, **hyperparameters):
        super().__init__()
        names = tuple(hyperparameters)
        self._rule = {"function": function, "state_names": tuple(state), "names": names,
                      "attributes": names + ("t",) * bool(counts)}
        for name, value in hyperparameters.items():
            setattr(self.hyperparam, name, value)

    def create_update_rule(self):
        rule = Rule(self.hyperparam)
        rule.__dict__.update(self._rule)
        return rule


def __getattr__(name):
    # Chainer's modules, whose contents are here.
    if name in ("ada_delta", "ada_grad", "adam", "corrected_momentum_sgd", "momentum_sgd", "msvag",
                "nesterov_ag", "rmsprop", "rmsprop_graves", "sgd", "smorms3"):
        import sys
        return sys.modules[__name__]
    text = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("_"):
        from catena.functions._plugins import suggestion
        hint = suggestion(name, __all__)
        text += hint and "; " + hint
    raise AttributeError(text)
