"""DumpGraph, which draws the graph of the first iteration."""
import contextlib
import os
from typing import Any

from catena import _core
from catena.configuration import config, using_config
from catena.training.extension import Extension

__all__ = ["DumpGraph"]


def is_graphviz_available() -> bool:
    """Whether Graphviz's program ``dot`` is found."""
    import shutil
    return shutil.which("dot") is not None


class DumpGraph(Extension):
    """Writes the graph of a reported variable, in Graphviz's language and with ``dot`` as PNG.

    Args:
        root_name: the name of the variable, such as "main/loss".
        filename, out_name: the name of the file in the trainer's folder, by default "cg.dot".
        variable_style, function_style: dictionaries of Graphviz's attributes.
    """

    default_name = "dump_graph"

    def __init__(self, root_name, filename=None, variable_style=None, function_style=None, *,
                 out_name="cg.dot") -> None:
        self._root_name = root_name
        self._filename = out_name if filename is None else filename
        self._styles = {
            "variable_style": variable_style or "default",
            "function_style": function_style or "default"}
        self._original_flag = None
        self._flag_called = False
        self._scope = contextlib.ExitStack()

    def initialize(self, trainer) -> None:
        if not self._flag_called:
            self._original_flag = config.keep_graph_on_report
            self._scope.enter_context(using_config("keep_graph_on_report", True))

    def trigger(self, trainer) -> Any:
        called, self._flag_called = self._flag_called, True
        return not called

    def __call__(self, trainer) -> None:
        import subprocess
        from catena.computational_graph import build_computational_graph
        try:
            variable = trainer.observation[self._root_name]
            if not isinstance(variable, _core.Variable):
                raise TypeError("root value is not a Variable")
            path = os.path.join(trainer.out, self._filename)
            with open(path, "w") as file:
                file.write(build_computational_graph([variable], **self._styles).dump())
            if is_graphviz_available():
                picture = os.path.splitext(path)[0] + ".png"
                subprocess.check_call(["dot", "-Tpng", path, "-o", picture])
        finally:
            self.finalize()

    def finalize(self) -> None:
        """Restores the configuration, also if the training ends before the first call."""
        self._scope.close()

    def serialize(self, serializer) -> None:
        serializer("_original_flag", bool(self._original_flag))  # Chainer reads it
        self._flag_called = serializer("_flag_called", self._flag_called)
