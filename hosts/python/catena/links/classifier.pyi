from collections.abc import Callable
from typing import Any

from catena.link import Chain

__all__ = ["Classifier"]

class Classifier(Chain):
    compute_accuracy: bool
    lossfun: Callable[..., Any]
    accfun: Callable[..., Any]
    label_key: int | str
    predictor: Any
    y: Any
    loss: Any
    accuracy: Any
    def __init__(self, predictor: Any, lossfun: Callable[..., Any] = ..., accfun: Callable[..., Any] = ..., label_key: int | str = -1) -> None: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
