"""Hooks that run before and after the calls of links."""
import threading
import types
from typing import Any

in_use = 0  # the number of hooks of all links that are active in any thread
_counting = threading.Lock()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.hooks = {}


_thread = _Thread()


def _count(change):
    global in_use
    with _counting:
        in_use += change


class LinkHook:
    """Runs before and after calls: of all links in ``with hook:``, or of one with ``add_hook()``.

    A subclass overrides ``forward_preprocess(args)`` and ``forward_postprocess(args)``. Their
    argument has the attributes ``link``, ``forward_name``, ``args`` and ``kwargs``; that of the
    second also has ``out``.
    """

    name = "LinkHook"

    def __enter__(self) -> Any:
        if self.name in _thread.hooks:
            raise KeyError(f"hook {self.name} already exists")
        _thread.hooks[self.name] = self
        _count(1)
        self.added(None)
        return self

    def __exit__(self, *_) -> None:
        _count(-1)
        _thread.hooks.pop(self.name).deleted(None)

    def added(self, link) -> Any:
        """Called when the hook becomes active; ``link`` is None for all links."""

    def deleted(self, link) -> Any:
        """Called when the hook ends to be active."""

    def forward_preprocess(self, args) -> Any:
        """Called before each call."""

    def forward_postprocess(self, args) -> Any:
        """Called after each call."""


def call(link, args, kwargs) -> Any:
    """Calls a link, and the hooks of the thread and of the link."""
    hooks = {**_thread.hooks, **link.local_link_hooks}.values()
    about = types.SimpleNamespace(link=link, forward_name="forward", args=args, kwargs=kwargs)
    for hook in hooks:
        hook.forward_preprocess(about)
    out = link.forward(*args, **kwargs)
    about.out = out
    for hook in hooks:
        hook.forward_postprocess(about)
    return out
