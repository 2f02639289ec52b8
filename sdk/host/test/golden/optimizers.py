"""Reference cases of optimizers whose step consists of several functions."""
import torch

from generate import uniform


def lamb(param, *grads, lr, decay):
    """Steps by the formula of You and others, 2020, with the norms in its Algorithm 2."""
    m = v = torch.zeros_like(param)
    for t, g in enumerate(grads, 1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        r = (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-6) + decay * param
        ratio = param.norm() / r.norm() if param.norm() > 0 and r.norm() > 0 else 1
        param = param - lr * ratio * r
    return param.detach()


def cases(case):
    for name, attrs in (("lamb", {"lr": 0.1, "decay": 0.25}), ("lamb_no_decay", {"lr": 0.5, "decay": 0.0})):
        for start in ("", "_from_0"):
            grads = {f"g{t}": uniform(-1, 1, (3, 5)) for t in range(3)}
            p = uniform(-1, 1, (3, 5)) * (0 if start else 1)
            case(name + start, "lamb", {"p": p} | grads,
                 lambda p, **g: lamb(p, *g.values(), **attrs), attrs)
