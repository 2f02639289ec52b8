"""ProgressBar, lines of text that are printed again and again at the same place."""
import collections
import sys
import time
from typing import Any


class ProgressBar:
    """A subclass implements ``get_lines()``."""

    def __init__(self, bar_length=None, out=None) -> None:
        self._bar_length = 50 if bar_length is None else bar_length
        self._out = out
        self._recent = collections.deque([], maxlen=100)

    def update_speed(self, iteration, epoch_detail) -> Any:
        """The iterations and the epochs per second, over the last 100 calls."""
        now = time.time()
        self._recent.append((iteration, epoch_detail, now))
        old_iteration, old_epoch, before = self._recent[0]
        if now == before:
            return float("inf"), float("inf")
        return (iteration - old_iteration) / (now - before), (
            epoch_detail - old_epoch) / (now - before)

    def bar(self, rate) -> Any:
        """A bar of which a fraction is filled."""
        marks = int(rate * self._bar_length)
        return f"[{'#' * marks}{'.' * (self._bar_length - marks)}] {rate:6.2%}\n"

    def speed(self, speed, left) -> Any:
        """A line with the speed, in iterations per second, and the seconds that are left."""
        import datetime
        time_left = datetime.timedelta(seconds=max(left, 0.0)) if left < 1e9 else "unknown"
        shown = f"{speed:10.5g}" if speed < float("inf") else "   unknown"
        return f"{shown} iters/sec. Estimated time to finish: {time_left}.\n"

    def get_lines(self) -> Any:
        """The lines, each with its end."""
        raise NotImplementedError

    def update(self) -> None:
        """Prints the lines and moves the cursor back to the first one."""
        lines = self.get_lines()
        self._write("\033[J" + "".join(lines) + f"\033[{len(lines)}A")

    def close(self) -> None:
        """Erases the lines."""
        self._write("\033[J")

    def _write(self, text):
        out = self._out or sys.stdout
        out.write(text)
        if hasattr(out, "flush"):
            out.flush()
