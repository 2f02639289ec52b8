"""The graph of variables and function calls, in Graphviz's language."""
from typing import Any

from catena import _core

_default_styles = {"variable": {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"},
                   "function": {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}}


def _style(kind, style):
    base = {"shape": "oval" if kind == "variable" else "box"}
    return {**base, **(_default_styles[kind] if style == "default" else style or {})}


def _escaped(text):
    return str(text).replace("\\", "\\\\").replace('"', '\\"')


class ComputationalGraph:
    """A graph that ``build_computational_graph()`` has found, with its arguments.

    Attributes:
        nodes: the nodes of variables and the function calls.
        edges: pairs of nodes, in the direction of the data.
    """

    def __init__(self, nodes, edges, variable_style="default", function_style="default",
                 rankdir="TB", remove_variable=False, show_name=True) -> None:
        if rankdir not in ("TB", "BT", "LR", "RL"):
            raise ValueError("rankdir must be in TB, BT, LR or RL.")
        self.nodes = nodes
        self.edges = edges
        self.variable_style = _style("variable", variable_style)
        self.function_style = _style("function", function_style)
        self.rankdir = rankdir
        self.remove_variable = remove_variable
        self.show_name = show_name

    def _without_variables(self):
        """The function calls, and edges from the call that makes a value to those that use it."""
        nodes = [node for node in self.nodes if not _is_variable(node)]
        edges = [(source.creator_node, call) for source, call in self.edges
                 if _is_variable(source) and source.creator_node is not None]
        return nodes, edges

    def dump(self, format="dot") -> Any:
        """The graph as text."""
        if format != "dot":
            raise NotImplementedError("Currently, only dot format is supported.")
        nodes, edges = (self._without_variables() if self.remove_variable
                        else (self.nodes, self.edges))
        numbers = {node: i for i, node in enumerate(nodes)}
        text = "digraph graphname{rankdir=" + self.rankdir + ";"
        for node, i in numbers.items():
            is_variable = _is_variable(node)
            name = node.name if is_variable and self.show_name else None
            label = node.label if name is None else f"{name}: {node.label}"
            style = self.variable_style if is_variable else self.function_style
            attributes = ",".join(
                f'{key}="{_escaped(value)}"' for key, value in {"label": label, **style}.items())
            text += f"{i} [{attributes}];"
        pairs = dict.fromkeys((numbers[source], numbers[target]) for source, target in edges)
        return text + "".join(f"{source} -> {target};" for source, target in pairs) + "}"


def _is_variable(node):
    return hasattr(node, "creator_node")


def build_computational_graph(outputs, remove_split=True, variable_style="default",
                              function_style="default", rankdir="TB", remove_variable=False,
                              show_name=True) -> Any:
    """The graph from which variables were computed.

    Args:
        outputs: a variable, or a list of variables, their nodes or function calls.
        remove_split: must be true.
        variable_style, function_style: dictionaries of Graphviz's attributes; "default" or None.
        rankdir: the direction of the data in a drawing: "TB", "BT", "LR" or "RL".
        remove_variable: whether only function calls are drawn.
        show_name: whether the names of variables are drawn.
    """
    if not remove_split:
        raise ValueError("remove_split=False is not supported anymore")
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    if not all(hasattr(output, "rank") for output in outputs):
        raise TypeError("element of outputs must be either Variable, VariableNode, or "
                        "FunctionNode.")
    waiting = [each.node if isinstance(each, _core.Variable) else each for each in outputs]
    nodes, edges = dict.fromkeys(waiting), {}
    while waiting:
        node = waiting.pop()
        sources = (node.creator_node,) if _is_variable(node) else node.inputs
        for source in sources:
            if source is None:
                continue
            edges[source, node] = None
            if source not in nodes:
                nodes[source] = None
                waiting.append(source)
    return ComputationalGraph(list(nodes), list(edges), variable_style, function_style, rankdir,
                              remove_variable, show_name)
