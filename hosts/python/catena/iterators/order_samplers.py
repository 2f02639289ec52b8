"""Orders of the examples of an epoch."""
from typing import Any

import numpy

__all__ = ["OrderSampler", "ShuffleOrderSampler"]


class OrderSampler:
    """Chooses the order of each epoch."""

    def __call__(self, current_order, current_position) -> Any:
        """The next order, as an array of indices of the same length."""
        raise NotImplementedError


class ShuffleOrderSampler(OrderSampler):
    """Random orders, from a numpy.random.RandomState or the global one."""

    def __init__(self, random_state=None) -> None:
        # None is numpy.random: a module cannot be copied or pickled.
        self._random = None if random_state is numpy.random else random_state

    def __call__(self, current_order, current_position) -> Any:
        return (self._random or numpy.random).permutation(len(current_order))

    def serialize(self, serializer) -> None:
        """Saves or loads the state of a random state of its own. A trainer saves the global one."""
        from catena.utils import random_state
        if self._random is not None:
            random_state.serialize(serializer, "order_sampler/random_state", {
                "numpy": random_state.of_numpy(self._random)})
