"""forget(): a call whose inner values are computed twice instead of kept."""
from typing import Any

from catena import _core
from catena.configuration import config, using_config

__all__ = ["forget"]


def forget(func, *xs) -> Any:
    """func(*xs), without keeping the values within: backward calls func again.

    Both calls draw the same random numbers. In the second one ``config.in_recomputing`` is True, so
    that links do not update statistics twice.
    """
    if not callable(func):
        raise TypeError(f"[forget] func: expected a function, got {type(func).__name__}")
    kept = None  # the list of what links keep in the first call

    def call(*xs):
        nonlocal kept
        again = _core._in_recomputation()
        if kept is None:
            outer = config._kept_for_recomputing  # of a forget() whose function calls this one
            kept = next(outer) if again and outer is not None else []
            if outer is not None and not again:
                outer.append(kept)
        with using_config("_kept_for_recomputing", iter(kept) if again else kept), using_config(
                "in_recomputing", again):
            ys = func(*xs)
        for i, y in enumerate(ys if isinstance(ys, tuple) else (ys,), 1):
            if not isinstance(y, _core.Variable):
                ending = "th" if i in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(i % 10, "th")
                raise RuntimeError(f"[forget] func: expected a variable as the {i}{ending} result, "
                                   f"got {type(y).__name__}")
        return ys

    outputs = _core._checkpoint(call, xs)
    return outputs[0] if len(outputs) == 1 else outputs
