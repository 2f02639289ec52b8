"""Reference cases of the updates: PyTorch's optimizers, and formulas of Chainer and of papers."""
import torch


class Rule:
    """Updates a parameter by a formula: formula(p, grad, state, t) returns the new value; state starts at 0."""

    def __init__(self, param, formula, names):
        self.param, self.formula, self.t = param, formula, 0
        self.state = {name: torch.zeros_like(param) for name in names}

    def step(self):
        self.t += 1
        self.param.copy_(self.formula(self.param, self.param.grad, self.state, self.t))


def nesterov(p, g, s, t, lr=0.1, momentum=0.8):
    """Chainer's."""
    s["v"] = momentum * s["v"] - lr * g
    return p + momentum ** 2 * s["v"] - (1 + momentum) * lr * g


def corrected(p, g, s, t, lr=0.1, momentum=0.8):
    s["v"] = momentum * s["v"] - g
    return p + lr * s["v"]


def inside(p, g, s, t, lr=0.1, alpha=0.9, eps=0.1):
    s["ms"] = alpha * s["ms"] + (1 - alpha) * g * g
    return p - lr * g / (s["ms"] + eps).sqrt()


def smorms3(p, g, s, t, lr=0.1, eps=1e-16):
    if t == 1:
        s["mem"] += 1
    r = 1 / (s["mem"] + 1)
    s["g"] = (1 - r) * s["g"] + r * g
    s["g2"] = (1 - r) * s["g2"] + r * g * g
    x = s["g"] ** 2 / (s["g2"] + eps)
    s["mem"] = 1 + s["mem"] * (1 - x)
    return p - g * x.clamp(max=lr) / (s["g2"].sqrt() + eps)


def msvag(p, g, s, t, lr=0.1, beta=0.8, eta=0.5, decay=0.1):
    s["m"] = beta * s["m"] + (1 - beta) * g
    s["v"] = beta * s["v"] + (1 - beta) * g * g
    m, v = s["m"] / (1 - beta ** t), s["v"] / (1 - beta ** t)
    rho = min((1 - beta) ** 2 * (1 - beta ** (2 * t)) / ((1 - beta ** t) ** 2 * (1 - beta ** 2)), 0.9999)
    factor = (m * m / (m * m + rho * (v - m * m) / (1 - rho))).clamp(0, 1)
    return p - eta * (lr * factor * m + decay * p)


def lion(p, g, s, t, lr=0.01, decay=0.1):
    direction = (0.9 * s["m"] + 0.1 * g).sign()
    s["m"] = 0.99 * s["m"] + 0.01 * g
    return p - lr * (direction + decay * p)


def graves(p, g, s, t, lr=0.01, alpha=0.95, momentum=0.9, eps=1e-4):
    s["n"] = alpha * s["n"] + (1 - alpha) * g * g
    s["g"] = alpha * s["g"] + (1 - alpha) * g
    s["delta"] = momentum * s["delta"] - lr * g / (s["n"] - s["g"] ** 2 + eps).sqrt()
    return p + s["delta"]


def lamb(decay):
    """By You and others, 2020, with the norms in its Algorithm 2."""
    def formula(p, g, s, t, lr=0.1):
        s["m"] = 0.9 * s["m"] + 0.1 * g
        s["v"] = 0.999 * s["v"] + 0.001 * g * g
        r = (s["m"] / (1 - 0.9 ** t)) / ((s["v"] / (1 - 0.999 ** t)).sqrt() + 1e-6) + decay * p
        return p - lr * p.norm() / r.norm() * r
    return formula


def bound(largest):
    """Chainer's AdaBound and AMSBound, whose alpha is half of the first one."""
    def formula(p, g, s, t, alpha=0.01, final_lr=0.1, gamma=0.1, eta=0.5, decay=0.1):
        s["m"] = 0.9 * s["m"] + 0.1 * g
        s["v"] = 0.999 * s["v"] + 0.001 * g * g
        s["vhat"] = torch.maximum(s["vhat"], s["v"]) if largest else s["v"]
        rate = alpha * (1 - 0.999 ** t) ** 0.5 / (1 - 0.9 ** t) / (s["vhat"].sqrt() + 1e-8)
        final_lr /= 2
        rate = rate.clamp(final_lr * (1 - 1 / (gamma * t + 1)), final_lr * (1 + 1 / (gamma * t)))
        return p - eta * (rate * s["m"] + decay * p)
    return formula


def cases(case):
    for name, formula, attrs in [
            ("nesterov_ag", nesterov, {"lr": 0.1, "momentum": 0.8}),
            ("corrected_momentum_sgd", corrected, {"lr": 0.1, "momentum": 0.8}),
            ("rmsprop", inside, {"lr": 0.1, "alpha": 0.9, "eps": 0.1, "eps_inside_sqrt": True}),
            ("smorms3", smorms3, {"lr": 0.1}),
            ("msvag", msvag, {"lr": 0.1, "beta": 0.8, "eta": 0.5, "weight_decay_rate": 0.1}),
            ("lion", lion, {"lr": 0.01, "weight_decay_rate": 0.1}),
            ("rmsprop_graves", graves, {"lr": 0.01})]:
        names = ["v", "m", "ms", "mem", "g", "g2", "n", "delta"]
        atol = 1e-4 if formula is msvag else 1e-6  # multiplies a difference that is 0 by 9999
        case.update(name, name, lambda p, formula=formula: Rule(p, formula, names), attrs, steps=5,
                    atol=atol)
    for name, decay in [("lamb", 0.25), ("lamb_no_decay", 0.0)]:
        case.update(name, "lamb", lambda p, decay=decay: Rule(p, lamb(decay), ["m", "v"]),
                    {"lr": 0.1, "weight_decay_rate": decay})
    # PyTorch multiplies the decay by the rate, and adds eps elsewhere.
    case.update("adam_no_decay", "adam", lambda p: torch.optim.Adam([p], lr=0.01, eps=0),
                {"alpha": 0.01, "eps": 0.0})
    case.update("adam_decay", "adam",
                lambda p: torch.optim.AdamW([p], lr=0.1, betas=(0.8, 0.99), eps=0, weight_decay=0.2),
                {"alpha": 0.1, "beta1": 0.8, "beta2": 0.99, "eps": 0.0, "weight_decay_rate": 0.02})
    case.update("ams_grad", "adam",
                lambda p: torch.optim.AdamW([p], lr=0.1, weight_decay=0.2, amsgrad=True, eps=0),
                {"alpha": 0.1, "eps": 0.0, "weight_decay_rate": 0.02, "amsgrad": True}, steps=5)
    bounds = {"alpha": 0.01, "initial_alpha": 0.02, "final_lr": 0.1, "gamma": 0.1, "eta": 0.5,
              "weight_decay_rate": 0.1, "adabound": True}
    for name, largest in [("ada_bound", False), ("ams_bound", True)]:
        case.update(name, "adam", lambda p, largest=largest: Rule(p, bound(largest), ["m", "v", "vhat"]),
                    {**bounds, "amsgrad": largest}, steps=5)
