"""Links: functions with parameters, with the names and defaults of chainer.links."""
from catena.links.connection import Linear
