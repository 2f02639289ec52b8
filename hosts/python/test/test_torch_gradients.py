"""Gradients of catena's functions, and of other plugins, as PyTorch's autograd sees them."""
import os
import pathlib

import pytest

torch = pytest.importorskip("torch")

import catena
import catena.torch
from torch.autograd import gradcheck, gradgradcheck


def plugin(name):
    """Loads a plugin of the SDK's examples."""
    built = os.environ.get("CATENA_TEST_PLUGINS")
    folders = built.split(os.pathsep) if built else [
        pathlib.Path(catena.__file__).parents[3] / "examples"]
    for folder in folders:
        path = pathlib.Path(folder, f"{name}.catena")
        if path.exists():
            catena.load_plugin(str(path))
            return
    pytest.skip(f"{name}.catena is in none of {folders}: set CATENA_TEST_PLUGINS")


def tensor(*shape, low=-1.0, high=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.rand(shape, dtype=torch.float64, generator=generator) * (high - low) + low
    return x.requires_grad_()


# name, tensors, keyword arguments
FUNCTIONS = [
    ("exp", [tensor(2, 3)], {}),
    ("tanh", [tensor(5)], {}),
    ("sigmoid", [tensor(2, 1, 3)], {}),
    ("gelu", [tensor(4)], {}),
    ("log", [tensor(3, low=0.5, high=2)], {}),
    ("square", [tensor()], {}),
    ("mul", [tensor(2, 3), tensor(2, 3, seed=1)], {}),
    ("div", [tensor(4), tensor(4, low=1, high=2)], {}),
    ("add", [tensor(3), tensor(3, seed=1)], {}),
    ("sum", [tensor(2, 3, 2)], {"axis": (0, 2)}),
    ("logsumexp", [tensor(2, 3)], {"axis": 1}),
    ("var", [tensor(2, 4)], {"axis": 1}),
    ("reshape", [tensor(2, 3)], {"shape": (3, 2)}),
    ("transpose", [tensor(2, 3)], {}),
    ("softmax", [tensor(2, 4)], {}),
    ("log_softmax", [tensor(2, 4)], {}),
    ("linear", [tensor(3, 4), tensor(2, 4), tensor(2)], {}),
    ("linear", [tensor(1, 4), tensor(2, 4)], {}),
    ("matmul", [tensor(2, 3), tensor(3, 4)], {}),
    ("convolution_2d", [tensor(1, 2, 5, 4), tensor(3, 2, 3, 2), tensor(3)], {"stride": 2}),
    ("deconvolution_2d", [tensor(1, 2, 2, 3), tensor(2, 1, 2, 2)], {}),
    ("average_pooling_2d", [tensor(1, 1, 4, 4)], {"ksize": 2}),
    ("layer_normalization", [tensor(3, 4), tensor(4), tensor(4, seed=1)], {}),
    ("batch_normalization", [tensor(4, 2), tensor(2), tensor(2, seed=1)], {"eps": 0.1}),
    ("lstm", [tensor(2, 3), tensor(2, 12)], {}),
    ("scaled_dot_product_attention",
     [tensor(1, 2, 3, 4), tensor(1, 2, 3, 4, seed=1), tensor(1, 2, 3, 4, seed=2)],
     {"causal": True}),
]


@pytest.mark.parametrize("name, tensors, kwargs", FUNCTIONS,
                         ids=[f"{i}-{case[0]}" for i, case in enumerate(FUNCTIONS)])
def test_gradients(name, tensors, kwargs):
    function = catena.torch.wrap(f"catena.{name}")
    assert gradcheck(lambda *xs: function(*xs, **kwargs), tensors)
    assert gradgradcheck(lambda *xs: function(*xs, **kwargs), tensors)


# plugin, tensors, keyword arguments; block_attention keeps sums of exponentials for its gradient
PLUGINS = [
    ("swish", "swish", [tensor(2, 3)], {"beta": 1.5}),
    ("block_attention", "attention", [tensor(2, 3, 4), tensor(2, 5, 4), tensor(2, 5, 3)], {}),
    ("block_attention", "attention", [tensor(1, 4, 2), tensor(1, 4, 2, seed=1), tensor(1, 4, 1)],
     {"causal": True, "scale": 0.5}),
    ("polar", "polar", [tensor(3, low=1, high=2), tensor(3, low=1, high=2, seed=1)], {}),
    ("weighted_sum", "weighted_sum", [[tensor(2, 3), tensor(2, 3, seed=1)]], {"weights": [0.5, 2]}),
    ("log_sum_exp", "log_sum_exp", [tensor(2, 3)], {"axis": 0}),
    ("root_mean_square", "root_mean_square", [tensor(2, 3)], {}),
    ("huber_loss", "huber_loss", [tensor(5), tensor(5, seed=1)], {"delta": 0.3}),
]


@pytest.mark.parametrize("file, name, args, kwargs", PLUGINS,
                         ids=[f"{i}-{case[0]}" for i, case in enumerate(PLUGINS)])
def test_gradients_of_other_plugins(file, name, args, kwargs):
    plugin(file)
    function = catena.torch.wrap(f"org.example.{name}")
    is_list = isinstance(args[0], list)
    tensors = args[0] if is_list else args

    def call(*xs):
        return function(*([xs] if is_list else xs), **kwargs)
    assert gradcheck(call, tensors)
    assert gradgradcheck(call, tensors)


def test_attention_of_a_plugin_equals_pytorch():
    plugin("block_attention")
    attention = catena.torch.wrap("org.example.attention")
    args = [tensor(2, 70, 8), tensor(2, 70, 8, seed=1), tensor(2, 70, 8, seed=2)]
    ours = attention(*args, causal=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(*args, is_causal=True)
    torch.testing.assert_close(ours, theirs)
    g = tensor(2, 70, 8, seed=3).detach()
    torch.testing.assert_close(torch.autograd.grad(ours, args, g),
                               torch.autograd.grad(theirs, args, g))


class Net(torch.nn.Module):
    """Attention between the parts of an input, and a layer with a swish."""

    def __init__(self, attention, norm, swish):
        super().__init__()
        self.attention, self.norm, self.swish = attention, norm, swish
        self.project = torch.nn.Linear(4, 12)
        self.gamma = torch.nn.Parameter(torch.ones(4))
        self.beta = torch.nn.Parameter(torch.zeros(4))
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x):
        q, k, v = self.project(x).split(4, dim=2)
        h = self.norm((x + self.attention(q, k, v)).reshape(-1, 4), self.gamma, self.beta)
        return self.last(self.swish(h).reshape(x.shape).mean(1))


@pytest.mark.parametrize("make", [
    lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    lambda parameters: torch.optim.Adam(parameters, lr=0.01)])
def test_training_equals_pytorch(make):
    plugin("swish")
    plugin("block_attention")
    F = torch.nn.functional
    ours = Net(*(catena.torch.wrap(name) for name in [
        "org.example.attention", "catena.layer_normalization", "org.example.swish"])).double()
    theirs = Net(F.scaled_dot_product_attention,
                 lambda x, gamma, beta: F.layer_norm(x, (4,), gamma, beta), F.silu).double()
    theirs.load_state_dict(ours.state_dict())
    x, t = tensor(8, 5, 4).detach(), torch.arange(8) % 3
    losses = []
    for net in (ours, theirs):
        optimizer = make(net.parameters())
        losses.append([])
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), t)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0][-1] < losses[0][0]
    torch.testing.assert_close(*losses)
    for a, b in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(a, b)
