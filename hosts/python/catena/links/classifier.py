"""Classifier: a model with its loss and accuracy."""
from collections.abc import Callable
from typing import Any

from catena import functions as F
from catena import reporter
from catena.link import Chain

__all__ = ["Classifier"]


class Classifier(Chain):
    """Calls a model and computes the loss and the accuracy, which are attributes and are reported.

    The arguments of the model are those of the classifier without the label, whose number or keyword is
    ``label_key``. lossfun and accfun are functions of the model's result and the label.
    """

    compute_accuracy = True
    y: Any = None
    loss: Any = None
    accuracy: Any = None

    def __init__(self, predictor, lossfun: Callable[..., Any] = F.softmax_cross_entropy,
                 accfun: Callable[..., Any] = F.accuracy, label_key: int | str = -1) -> None:
        if not isinstance(label_key, (int, str)):
            raise TypeError(f"label_key must be int or str, but is {type(label_key)}")
        super().__init__()
        self.lossfun = lossfun
        self.accfun = accfun
        self.label_key = label_key
        with self.init_scope():
            self.predictor = predictor

    def forward(self, *args, **kwargs) -> Any:
        """Returns the loss."""
        key = self.label_key
        if isinstance(key, int):
            if not -len(args) <= key < len(args):
                raise ValueError(f"Label key {key} is out of bounds")
            args = list(args)
            t = args.pop(key)
        else:
            if key not in kwargs:
                raise ValueError(f'Label key "{key}" is not found')
            t = kwargs.pop(key)
        self.y = self.loss = self.accuracy = None
        self.y = self.predictor(*args, **kwargs)
        self.loss = self.lossfun(self.y, t)
        reporter.report({"loss": self.loss}, self)
        if self.compute_accuracy:
            self.accuracy = self.accfun(self.y, t)
            reporter.report({"accuracy": self.accuracy}, self)
        return self.loss
