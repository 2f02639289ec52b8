"""Tests that run with several configurations, such as on the host and on a GPU."""
import contextlib
import functools
import operator
from typing import Any

import catena
from catena import backend  # noqa: F401
from catena.testing import attr
from catena.testing.parameterized import each_class

_defaults = {"use_chainerx": False, "chainerx_device": None, "use_cuda": False, "cuda_device": None,
             "use_cudnn": "never", "cudnn_deterministic": False, "autotune": False,
             "cudnn_fast_batch_normalization": False, "use_ideep": "never"}
_config = ["use_cudnn", "cudnn_deterministic", "autotune", "use_ideep"]


class BackendConfig:
    """A device and a configuration for a test. In a ``with`` block they are the current ones.

    Args:
        params: a dict, for example ``{"use_cuda": True}``; ``{}`` is the host.
    """

    def __init__(self, params) -> None:
        if not isinstance(params, dict):
            raise TypeError(f"[BackendConfig] params: expected a dict, got {type(params)}")
        for name in params:
            if name not in _defaults:
                raise ValueError(f"[BackendConfig] params: expected keys of {list(_defaults)}, "
                                 f"got {name!r}")
        self.__dict__.update(_defaults, **params)
        if self.use_cuda and self.cuda_device is None:
            self.cuda_device = 0
        self._scopes = []

    @property
    def device(self):
        if self.use_chainerx or self.use_ideep != "never":
            raise catena.UnsupportedError("[BackendConfig] device: expected the host or a GPU, got "
                                          f"{self}")
        return catena.get_device(self.cuda_device if self.use_cuda else -1)

    xp = property(operator.attrgetter("device.xp"), doc="numpy, or cupy for a GPU.")

    def __enter__(self) -> Any:
        with contextlib.ExitStack() as stack:
            for name in _config:
                stack.enter_context(catena.using_config(name, getattr(self, name)))
            stack.enter_context(catena.using_device(self.device))
            self._scopes.append(stack.pop_all())
        return self

    def __exit__(self, *exception) -> None:
        self._scopes.pop().__exit__(*exception)

    def __repr__(self):
        return f"<BackendConfig {' '.join(f'{k}={getattr(self, k)!r}' for k in _defaults)}>"

    def get_func_str(self) -> Any:
        """The configuration as a part of the name of a test."""
        values = {name: getattr(self, name) for name in _defaults}
        return "__".join(f"{name}_{str(value).lower() if isinstance(value, bool) else value}"
                         for name, value in values.items())

    def get_pytest_marks(self) -> Any:
        """The decorators that skip a test where it cannot run."""
        if self.use_chainerx:
            return [attr.chainerx]
        if self.use_cuda:
            return [attr.multi_gpu(self.cuda_device + 1)]
        return [attr.ideep] if self.use_ideep != "never" else []

    def get_array(self, np_array) -> Any:
        """The array on the device; also a list or a tuple of them."""
        return self.device.send(np_array)


def inject_backend_tests(method_names, params) -> Any:
    """A decorator of test classes: methods run with each configuration, which is their argument.

    Args:
        method_names: a list of names, or None for all methods whose names begin with "test_".
        params: a list of the arguments of BackendConfig.
    """
    if not (method_names is None or isinstance(method_names, list)):
        raise TypeError(f"[inject_backend_tests] method_names: expected a list or None, got "
                        f"{type(method_names)}")
    if not (isinstance(params, list) and all(isinstance(each, dict) for each in params)):
        raise TypeError("[inject_backend_tests] params: expected a list of dicts")
    configs = [("_".join(f"{key}_{value}" for key, value in each.items()) or "default",
                BackendConfig(each)) for each in params]

    def decorate(cls):
        for name in dir(cls):
            method = getattr(cls, name)
            original = getattr(method, "method_name", name)  # this decorator can be repeated
            if not callable(method) or not (
                    name.startswith("test_") if method_names is None else original in method_names):
                continue
            for suffix, config in configs:
                @functools.wraps(method)
                def test(self, *args, method=method, config=config, **kwargs):
                    return method(self, config, *args, **kwargs)

                del test.__wrapped__  # pytest would see the argument and look for a fixture
                for mark in config.get_pytest_marks():
                    test = mark(test)
                test.method_name = original
                test.__name__ = f"{name}_{suffix}"
                setattr(cls, test.__name__, test)
            setattr(cls, name, None)  # the method of a base class does not run either
        return cls
    return each_class(decorate)
