"""PrintReport, which prints the entries of a LogReport."""
import sys

from catena.training.extension import Extension
from catena.training.extensions.log_report import LogReport

__all__ = ["PrintReport"]


class PrintReport(Extension):
    """Prints the entries of a LogReport as a table.

    Args:
        entries: the names of the values.
        log_report: the name of the LogReport in the trainer, or one that the trainer does not have.
        out: the stream; None: sys.stdout.
    """

    def __init__(self, entries, log_report="LogReport", out=None) -> None:
        self._entries = entries
        self._log_report = log_report
        self._out = out
        self._printed = 0
        self._widths = [max(10, len(entry)) for entry in entries]
        self._header = "  ".join(
            f"{entry:{width}}" for entry, width in zip(entries, self._widths)) + "\n"

    def __call__(self, trainer) -> None:
        out = self._out or sys.stdout
        if self._header:
            out.write(self._header)
            self._header = None
        log_report = self._log_report
        if isinstance(log_report, str):
            log_report = trainer.get_extension(log_report)
        elif isinstance(log_report, LogReport):
            log_report(trainer)
        else:
            raise TypeError(f"log report has a wrong type {type(log_report)}")
        for entry in log_report.log[self._printed:]:
            out.write("\033[J")  # erases a progress bar
            for name, width in zip(self._entries, self._widths):
                out.write(f"{entry[name]:<{width}g}  " if name in entry else " " * (width + 2))
            out.write("\n")
            if hasattr(out, "flush"):
                out.flush()
        self._printed = len(log_report.log)

    def serialize(self, serializer) -> None:
        if isinstance(self._log_report, LogReport):
            self._log_report.serialize(serializer["_log_report"])
