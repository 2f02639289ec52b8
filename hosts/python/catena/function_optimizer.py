"""What the generated module catena.optimizers is made from: optimizers with a plugin's rule.

The build writes a class for each of catena's optimizers, with Chainer's names, arguments and
defaults, from the descriptions of the functions in plugins/optimizer. The class ``SGD`` has the
rule ``SGDRule``.
"""
import math
import sys
from typing import Any

from catena.optimizer import GradientMethod, HyperparameterProxy
from catena.optimizer_hooks import (
    GradientClipping, GradientHardClipping, GradientLARS, GradientNoise, Lasso, WeightDecay)
from catena.update_rule import Rule

__all__ = ["GradientClipping", "GradientHardClipping", "GradientLARS", "GradientNoise", "Lasso",
           "PluginOptimizer", "WeightDecay"]


class FunctionOptimizer(GradientMethod):
    """An optimizer with the rule ``rule_class``, whose hyperparameters are the arguments."""

    rule_class: Any = None
    hyperparam: Any

    def __init_subclass__(cls, **arguments) -> None:
        super().__init_subclass__(**arguments)
        if "rule_class" in cls.__dict__:
            for name in cls.rule_class.names:
                setattr(cls, name, HyperparameterProxy(name))

    def __init__(self, **hyperparameters) -> None:
        super().__init__()
        vars(self.hyperparam).update(hyperparameters)

    def create_update_rule(self) -> Any:
        return self.rule_class(self.hyperparam)


class BiasCorrected:
    """Properties of Adam and of its rule, which depend on the step."""

    hyperparam: Any
    initial_alpha: Any
    t: Any

    def _check_started(self, what):
        if self.t == 0:
            raise RuntimeError(f"Can't determine the {what} optimizer because the update steps "
                               "have not been started.")

    @property
    def alpha_t(self) -> float:
        """The bias-corrected rate of the last step."""
        self._check_started("learning rate of Adam")
        hp, t = self.hyperparam, self.t
        return hp.alpha * math.sqrt(1 - hp.beta2 ** t) / (1 - hp.beta1 ** t)

    lr = alpha_t

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and highest rate of AdaBound's last step."""
        self._check_started("bounds of AdaBound")
        hp = self.hyperparam
        final_lr = hp.final_lr * hp.alpha / self.initial_alpha
        speed = hp.gamma * self.t
        return final_lr * (1 - 1 / (speed + 1)), final_lr * (1 + 1 / speed)


class PluginOptimizer(GradientMethod):
    """An optimizer whose update rule is a function of a plugin.

    ``function`` is the full name of the function. Its inputs are the parameter, the gradient and the arrays
    ``state``; it changes the first and the last in place. ``hyperparameters`` are the values of its
    attributes, except "t", the number of the step, which it gets if ``counts`` is true.
    """

    def __init__(self, function: str, state=(), counts: bool = False,
                 **hyperparameters: Any) -> None:
        super().__init__()
        names = tuple(hyperparameters)
        self._rule = {"function": function, "all_state": tuple(state), "names": names,
                      "attributes": names + ("t",) * bool(counts)}
        vars(self.hyperparam).update(hyperparameters)

    def create_update_rule(self) -> Any:
        rule = Rule(self.hyperparam)
        rule.__dict__.update(self._rule)
        return rule


def missing(name, module, modules, names) -> Any:
    """What catena.optimizers has under a name that it does not define."""
    if name in modules:
        return sys.modules[module]
    from catena.functions._plugins import no_attribute
    raise no_attribute(module, name, names)
