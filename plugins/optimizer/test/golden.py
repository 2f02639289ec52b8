"""Reference cases of the updates: PyTorch's optimizers, and formulas of the papers for those that it lacks."""
import torch


class Rule:
    """Updates a parameter by a formula: formula(p, grad, state, t) returns the new value; state starts at 0."""

    def __init__(self, param, formula, names):
        self.param, self.formula, self.t = param, formula, 0
        self.state = {name: torch.zeros_like(param) for name in names}

    def step(self):
        self.t += 1
        self.param.copy_(self.formula(self.param, self.param.grad, self.state, self.t))


def lion(p, g, s, t, lr=0.01, decay=0.1):
    direction = (0.9 * s["m"] + 0.1 * g).sign()
    s["m"] = 0.99 * s["m"] + 0.01 * g
    return p - lr * (direction + decay * p)


def graves(p, g, s, t, lr=0.01, alpha=0.95, momentum=0.9, eps=1e-4):
    s["n"] = alpha * s["n"] + (1 - alpha) * g * g
    s["g"] = alpha * s["g"] + (1 - alpha) * g
    s["delta"] = momentum * s["delta"] - lr * g / (s["n"] - s["g"] ** 2 + eps).sqrt()
    return p + s["delta"]


def bound(largest):
    def formula(p, g, s, t, lr=0.01, final_lr=0.1, gamma=0.1, decay=0.1):
        s["m"] = 0.9 * s["m"] + 0.1 * g
        s["v"] = 0.999 * s["v"] + 0.001 * g * g
        s["vhat"] = torch.maximum(s["vhat"], s["v"]) if largest else s["v"]
        rate = lr / (1 - 0.9 ** t) / ((s["vhat"] / (1 - 0.999 ** t)).sqrt() + 1e-8)
        rate = rate.clamp(final_lr * (1 - 1 / (gamma * t + 1)), final_lr * (1 + 1 / (gamma * t)))
        return p * (1 - lr * decay) - rate * s["m"]
    return formula


def cases(case):
    case.update("nesterov_ag", "nesterov_ag",
                lambda p: torch.optim.SGD([p], lr=0.1, momentum=0.8, nesterov=True),
                {"lr": 0.1, "momentum": 0.8})
    case.update("adam_w", "adam_w",
                lambda p: torch.optim.AdamW([p], lr=0.1, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.2),
                {"alpha": 0.1, "beta1": 0.8, "beta2": 0.99, "eps": 1e-3, "decay": 0.2})
    case.update("adam_w_no_decay", "adam_w", lambda p: torch.optim.Adam([p], lr=0.01),
                {"alpha": 0.01, "decay": 0.0})
    case.update("ams_grad", "ams_grad",
                lambda p: torch.optim.AdamW([p], lr=0.1, weight_decay=0.2, amsgrad=True),
                {"alpha": 0.1, "decay": 0.2}, steps=5)
    bounds = {"alpha": 0.01, "final_lr": 0.1, "gamma": 0.1, "decay": 0.1}
    states = ["m", "v", "vhat"]
    case.update("ada_bound", "adam_w", lambda p: Rule(p, bound(False), states), bounds, steps=5)
    case.update("ams_bound", "ams_grad", lambda p: Rule(p, bound(True), states), bounds, steps=5)
    case.update("lion", "lion", lambda p: Rule(p, lion, ["m"]), {"lr": 0.01, "decay": 0.1})
    case.update("rmsprop_graves", "rmsprop_graves", lambda p: Rule(p, graves, ["n", "g", "delta"]),
                {"lr": 0.01})
