"""Random numbers with given probabilities."""
from typing import Any

import numpy

from catena.device_resident import DeviceResident

__all__ = ["WalkerAlias"]


class WalkerAlias(DeviceResident):
    """Draws i with a probability proportional to probs[i], each in constant time (Walker, 1974).

    The numbers are drawn on the host, also if the object was moved to a GPU.
    """

    use_gpu = property(lambda self: self.device.is_gpu, doc="Whether the object is on a GPU.")

    def __init__(self, probs) -> None:
        shares = numpy.array(probs, "float32")
        shares /= shares.sum()
        n = len(shares)
        # Number i of the table is one of two values: the first with the probability threshold[i].
        self.threshold = numpy.empty(n, "float32")
        self.values = numpy.zeros((n, 2), "int32")
        filled = 0  # how many entries have a second value
        for k, i in enumerate(numpy.argsort(shares, kind="stable")):
            share = shares[i] * n
            while share > 1 and filled < k:
                self.values[filled, 1] = i
                share -= 1.0 - self.threshold[filled]
                filled += 1
            self.threshold[k] = share
            self.values[k, 0] = i

    def sample(self, shape) -> Any:
        """An int32 array of random numbers on the object's device."""
        places = numpy.random.uniform(0, len(self.threshold), shape)
        index = places.astype("int32")
        second = self.threshold[index] < (places.astype("float32") - index.astype("float32"))
        return self.device.send(self.values[index, second.astype("int32")])
