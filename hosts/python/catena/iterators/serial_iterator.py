"""SerialIterator, and the order of examples that all iterators share."""
import collections
import operator
from typing import Any

import numpy

from catena.dataset.iterator import Iterator
from catena.iterators.order_samplers import ShuffleOrderSampler

_State = collections.namedtuple("_State", "current_position epoch is_new_epoch order")


class OrderedIterator(Iterator):
    """An iterator that visits the examples of each epoch in the order of an order sampler.

    Without a sampler, examples are visited in the order of their indices.
    """

    _is_order_private = False  # the order's name in snapshots of Chainer

    def __init__(self, dataset, batch_size, repeat=True, shuffle=None, order_sampler=None) -> None:
        if shuffle is not None and order_sampler is not None:
            raise ValueError(
                "`shuffle` is not `None` and a custom `order_sampler` is set. Please set "
                "`shuffle` to `None` to use the custom order sampler.")
        self.dataset = dataset
        self.batch_size = batch_size
        self._repeat = repeat
        self.order_sampler = order_sampler
        if order_sampler is None and shuffle is not False:
            self.order_sampler = ShuffleOrderSampler()
        self._ahead = collections.deque()  # orders that were drawn for epochs to come
        self.reset()

    def reset(self) -> None:
        """Starts from the first epoch, in a new order."""
        self._ahead.clear()
        order = None
        if self.order_sampler is not None:
            order = self.order_sampler(numpy.arange(len(self.dataset)), 0)
        self._state = _State(0, 0, False, order)
        self._previous_epoch_detail = -1.0

    def _next_order(self, state, drawn):
        """The order of the next epoch. drawn: the number of orders in _ahead that are used up."""
        if state.order is None:
            return None
        if drawn == len(self._ahead):
            order = self.order_sampler(state.order, state.current_position)
            if len(order) != len(state.order):
                raise ValueError("The size of order does not match the size of the previous order.")
            self._ahead.append(order)
        return self._ahead[drawn]

    def _advance(self, state, drawn=0):
        """The state after the next minibatch, the indices of its examples (None at the end of the
        only epoch), and the number of orders in _ahead that are used up then."""
        position, epoch, _, order = state
        if not self._repeat and epoch > 0:
            return state, None, drawn
        n = len(self.dataset) if order is None else len(order)
        if self._repeat and n == 0:
            raise ValueError("Epoch size must be positive for an iterator that repeats.")
        indices, end, is_new_epoch = [], position + self.batch_size, False
        while end >= n:
            indices.extend(range(position, n) if order is None else order[position:n])
            if order is not None:
                order = self._next_order(_State(position, epoch, is_new_epoch, order), drawn)
                drawn += 1
            position, epoch, is_new_epoch = 0, epoch + 1, True
            end = end - n if self._repeat else 0
            if not self._repeat:
                break
        indices.extend(range(position, end) if order is None else order[position:end])
        return _State(end, epoch, is_new_epoch, order), indices, drawn

    def _enter(self, state, drawn):
        """Makes a state of _advance() the current one."""
        self._previous_epoch_detail = self.epoch_detail
        self._state = state
        for _ in range(drawn):
            self._ahead.popleft()

    repeat = property(operator.attrgetter("_repeat"))
    current_position = property(operator.attrgetter("_state.current_position"),
                                doc="The number of examples of the current epoch that were visited.")
    epoch = property(operator.attrgetter("_state.epoch"), doc="The number of finished epochs.")
    is_new_epoch = property(operator.attrgetter("_state.is_new_epoch"),
                            doc="Whether the last minibatch finished an epoch.")

    @property
    def _epoch_size(self):
        return len(self.dataset) if self._state.order is None else len(self._state.order)

    @property
    def epoch_detail(self):
        """The number of epochs, with a fraction."""
        return self.epoch + self.current_position / max(self._epoch_size, 1)

    @property
    def previous_epoch_detail(self):
        """epoch_detail before the last minibatch; None before the first one."""
        return None if self._previous_epoch_detail < 0 else self._previous_epoch_detail

    def serialize(self, serializer) -> None:
        position = serializer("current_position", self.current_position)
        epoch = serializer("epoch", self.epoch)
        is_new_epoch = serializer("is_new_epoch", self.is_new_epoch)
        order = self._state.order
        if order is not None:
            order = order.copy()  # loading writes into the array
            keys = ("_order", "order") if self._is_order_private else ("order", "_order")
            try:
                serializer(keys[0], order)
            except KeyError:
                serializer(keys[1], order)
            self._serialize_sampler(serializer, order)
        self._state = _State(position, epoch, is_new_epoch, order)
        try:
            self._previous_epoch_detail = serializer(
                "previous_epoch_detail", self._previous_epoch_detail)
        except KeyError:
            guess = epoch + (position - self.batch_size) / self._epoch_size
            self._previous_epoch_detail = max(guess, 0.0) if self.epoch_detail > 0 else -1.0

    def _serialize_sampler(self, serializer, order):
        try:
            count = serializer("orders_ahead", len(self._ahead))
        except KeyError:  # a snapshot of Chainer
            self._ahead.clear()
            return
        while len(self._ahead) < count:
            self._ahead.append(order.copy())
        while len(self._ahead) > count:
            self._ahead.pop()
        for i, ahead in enumerate(self._ahead):
            serializer(f"order_ahead_{i}", ahead)
        if hasattr(self.order_sampler, "serialize"):
            self.order_sampler.serialize(serializer)

    def __getstate__(self):
        return {**self.__dict__, "_ahead": self._ahead.copy()}


class SerialIterator(OrderedIterator):
    """Reads the examples one after another.

    Args:
        dataset: a sequence of examples.
        batch_size: the number of examples of a minibatch.
        repeat: whether another epoch follows each one. Otherwise the last minibatch may be smaller.
        shuffle: whether each epoch has a new random order; None: True unless there is an
            order_sampler.
        order_sampler: chooses the order of each epoch.
    """

    def __next__(self) -> Any:
        state, indices, drawn = self._advance(self._state)
        self._enter(state, drawn)
        if indices is None:
            raise StopIteration
        return [self.dataset[index] for index in indices]
