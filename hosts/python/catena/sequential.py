"""Sequential: links and functions that are called one after the other."""
import copy
from typing import Any

from catena.link import ChainList, Link, _text_of_children


def _type_name(layer):
    return type(layer).__name__ if isinstance(layer, Link) else layer.__name__


def _text(layer):
    if getattr(layer, "__name__", None) != "<lambda>":
        return str(layer)
    import inspect
    return inspect.getsource(layer).strip().rstrip(",")


class Sequential(ChainList):
    """A list of callables. A call gives each one the result of the one before.

    Links of the list are children. Their names are the numbers that they have in Chainer 7, so that
    its files can be loaded. They are not in the order of the list: if a link is the first, each one
    that is appended becomes number 1 and moves the others.

    Args:
        layers: links, functions and other callables.
    """

    def __init__(self, *layers) -> None:
        super().__init__()
        self._layers = []
        self.extend(layers)

    def forward(self, *x) -> Any:
        """Calls all layers. A tuple becomes the arguments of the next layer."""
        if not self._layers:
            raise RuntimeError("Sequential does not have any layer.")
        for layer in self._layers:
            x = layer(*x) if isinstance(x, tuple) else layer(x)
        return x

    def __str__(self):
        return _text_of_children(self, [(i, _text(layer)) for i, layer in enumerate(self._layers)])

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, i) -> Any:
        return self._layers[i]

    def __setitem__(self, i, layer):
        if i >= len(self):
            raise ValueError(f"{i} should be less than {len(self)}")
        self._check(layer)
        if self._layers[i] is not layer:
            i = i + len(self) if i < 0 else i
            del self[i]
            self.insert(i, layer)

    def __delitem__(self, i):
        layer = self._layers.pop(i)
        if isinstance(layer, Link):
            del self._children[[child is layer for child in self._children].index(True)]
            self._set_names()

    def __iter__(self) -> Any:
        return iter(self._layers)

    def __add__(self, other):
        made = Sequential(*self)
        made += other
        return made

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError("add (+) operator supports only objects of Sequential class, but "
                             f"{type(other)} is given.")
        self.extend(other)
        return self

    def __reduce__(self):
        if any(getattr(layer, "__name__", None) == "<lambda>" for layer in self._layers):
            raise ValueError("This Sequential object has at least one lambda function as its "
                             "component. Lambda function can not be pickled, so please use "
                             "functools.partial or a function with a name instead.")
        return super().__reduce__()

    @staticmethod
    def _check(layer):
        if not callable(layer):
            raise ValueError("All elements of a Sequential class should be callable. But given "
                             f"{layer} is not callable.")

    def insert(self, i, layer) -> None:
        """Adds a layer before the one with the number."""
        n = len(self)
        if not -n <= i <= n:
            raise IndexError(f"Index out of range: {i}")
        self._check(layer)
        i = i + n if i < 0 else i
        self._layers.insert(i, layer)
        if isinstance(layer, Link):
            first = next((j for j in range(i) if isinstance(self._layers[j], Link)), 0)
            self._children.insert(first + 1 if i else 0, layer)
            self._set_names()

    def remove(self, layer) -> None:
        """Removes the first layer that is equal."""
        if layer not in self:
            raise ValueError(f"There is no layer object that is same as {layer}")
        del self[self.index(layer)]

    def index(self, layer, start=None, end=None) -> Any:
        """The number of the first equal layer, counted from ``start``."""
        return self._layers[start:end].index(layer)

    def count_by_layer_type(self, type_name) -> Any:
        """The number of links of a class, or of functions with a name."""
        return sum(_type_name(layer) == type_name for layer in self._layers)

    def remove_by_layer_type(self, type_name) -> None:
        """Removes all links of a class, or functions with a name."""
        for layer in [each for each in self._layers if _type_name(each) == type_name]:
            self.remove(layer)

    def copy(self, mode="share") -> Any:
        """A Sequential of copies of the layers; see Link.copy()."""
        return Sequential(*[layer.copy(mode) if isinstance(layer, Link) else copy.copy(layer)
                            for layer in self._layers])

    def copyparams(self, link, copy_persistent=True) -> None:
        if not isinstance(link, Sequential):
            raise ValueError("Objects other than Sequential object cannot be copied to a "
                             "Sequential object.")
        for layer, other in zip(self._layers, link, strict=True):
            if isinstance(layer, Link):
                layer.copyparams(other, copy_persistent)

    def flatten(self) -> Any:
        """A Sequential in which the layers of nested ones take their places."""
        made = Sequential()
        for layer in self._layers:
            made.extend(layer.flatten() if isinstance(layer, Sequential) else [layer])
        return made
