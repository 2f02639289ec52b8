"""Reference cases of functions/noise.hpp for given noise."""
from generate import uniform


def cases(case):
    import torch

    for name, shape in (("gaussian", (2, 3)), ("gaussian_0d", ())):
        case(name, "gaussian",
             {"mean": uniform(-2, 2, shape), "ln_var": uniform(-2, 2, shape),
              "noise": uniform(-1, 1, shape)},
             lambda mean, ln_var, noise: mean + (ln_var / 2).exp() * noise, constants=["noise"])
    for axis in (0, 1, -1):
        for tau in (0.5, 2.0):
            case(f"gumbel_softmax_{axis}_{tau}", "gumbel_softmax",
                 {"log_pi": uniform(-1, 1, (2, 3, 2)), "noise": uniform(-1, 2, (2, 3, 2))},
                 lambda log_pi, noise: ((log_pi + noise) / tau).softmax(axis),
                 {"tau": tau, "axis": axis}, constants=["noise"])
