"""Functions for add_hook() of optimizers and update rules. They change gradients in place."""
from typing import Any

import numpy

from catena import _core, functions


class _OfEachParameter:
    """A hook that changes the gradient of one parameter. A subclass implements ``change()``."""

    call_for_each_param = True
    timing = "pre"

    def __call__(self, rule, param) -> None:
        if param.array is not None and param.grad is not None:
            self.change(param._array, param.grad_var._array, rule, param)


class WeightDecay(_OfEachParameter):
    """Adds ``rate`` times the parameter to the gradient, which is that of L2 regularization."""

    name = "WeightDecay"

    def __init__(self, rate) -> None:
        self.rate = rate

    def change(self, p, g, rule, param) -> None:
        g += (self.rate if param.loss_scale is None else self.rate * param.loss_scale) * p

    def call_for_all(self, optimizer) -> None:
        """The same for all parameters of an optimizer, in one call."""
        groups = {}
        for param in optimizer._with_grads():
            groups.setdefault(param.loss_scale, []).append(param)
        for scale, params in groups.items():
            _core.decay_weights(params, self.rate if scale is None else self.rate * scale)


class Lasso(_OfEachParameter):
    """Adds ``rate`` times the parameter's sign to the gradient: that of L1 regularization."""

    name = "Lasso"

    def __init__(self, rate) -> None:
        self.rate = rate

    def change(self, p, g, rule, param) -> None:
        g += self.rate * functions.sign(p)._array


class GradientClipping:
    """Scales all gradients so that the L2 norm of all together is at most ``threshold``."""

    name = "GradientClipping"
    timing = "pre"

    def __init__(self, threshold) -> None:
        self.threshold = threshold

    def __call__(self, opt) -> None:
        opt.clip_grads(self.threshold)


class GradientHardClipping(_OfEachParameter):
    """Clips each element of a gradient to the interval from ``lower_bound`` to ``upper_bound``."""

    name = "GradientHardClipping"

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def change(self, p, g, rule, param) -> None:
        g.copy_from(functions.clip(g, self.lower_bound, self.upper_bound)._array)


def exponential_decay_noise(xp, shape, dtype, hook, opt) -> Any:
    """Normal noise with the variance eta / (1 + t)^0.55 (Neelakantan and others, 2015)."""
    std = numpy.sqrt(hook.eta / numpy.power(1 + opt.t, 0.55))
    return xp.random.normal(0, std, shape).astype(dtype)


class GradientNoise(_OfEachParameter):
    """Adds noise to the gradient: noise_func(numpy, shape, dtype, hook, update rule).

    ``eta`` is its scale, for which the paper takes 0.01, 0.3 or 1.
    """

    name = "GradientNoise"

    def __init__(self, eta, noise_func=exponential_decay_noise) -> None:
        self.eta = eta
        self.noise_func = noise_func

    def change(self, p, g, rule, param) -> None:
        noise = self.noise_func(numpy, g.shape, numpy.dtype(str(g.dtype)), self, rule)
        g += _core.as_array(noise).to_device(g.device)


class GradientLARS(_OfEachParameter):
    """Scales a gradient to the norm of its parameter (You, Gitman and Ginsburg, 2017).

    Args:
        threshold: the gradients of parameters with a smaller norm are not scaled.
        weight_decay: the factor of the parameter that is added first.
        eps: a number that is added to the norm of the gradient.
    """

    name = "GradientLARS"

    def __init__(self, threshold=1e-2, weight_decay=0.0, eps=1e-9) -> None:
        self.threshold = threshold
        self.weight_decay = weight_decay
        self.eps = eps

    def change(self, p, g, rule, param) -> None:
        def norm(x):
            return functions.sqrt(functions.sum(functions.square(x)))

        p_norm = norm(p)
        rate = p_norm / (norm(g) + self.weight_decay * p_norm + self.eps)
        rate = functions.where(p_norm > self.threshold, rate, 1.0)
        if self.weight_decay:
            g += self.weight_decay * p
        g *= rate._array
