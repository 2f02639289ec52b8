# Types of the host SDK's functions. Written by test_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any

from catena import Variable
from catena._core import ArrayLike

