"""Functions of catena.utils, and what the package says about itself."""
import io
import itertools
import platform

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import utils


@pytest.mark.parametrize("k, s, p, d, cover_all", list(itertools.product(
    [1, 2, 3], [1, 2, 3], [0, 1], [1, 2], [False, True])))
def test_sizes_of_convolutions(k, s, p, d, cover_all):
    for size in (7, 8):
        found = utils.get_conv_outsize(size, k, s, p, cover_all, d)
        image = np.zeros((1, 1, size, 7), "float32")
        made = F.im2col(image, (k, 1), (s, 1), (p, 0), cover_all, (d, 1))
        assert found == utils.conv.get_conv_outsize(size, k, s, p, cover_all, d) == made.shape[2]
        back = utils.get_deconv_outsize(found, k, s, p, cover_all, d)
        assert utils.get_conv_outsize(back, k, s, p, cover_all, d) == found


def test_sizes_are_those_of_chainer():
    chainer = pytest.importorskip("chainer")
    theirs = chainer.utils
    for values in itertools.product([5, 8], [1, 3], [1, 2], [0, 1], [False, True], [1, 2]):
        assert utils.get_conv_outsize(*values) == theirs.get_conv_outsize(*values)
        assert utils.get_deconv_outsize(*values) == theirs.get_deconv_outsize(*values)


def test_print_runtime_info(capsys):
    F.relu(np.ones(2, "float32"))
    catena.print_runtime_info()
    text = io.StringIO()
    catena.print_runtime_info(text)
    assert capsys.readouterr().out == text.getvalue()
    lines = text.getvalue().splitlines()
    assert lines[:3] == [f"Platform: {platform.platform()}", f"catena: {catena.__version__}",
                         f"NumPy: {np.__version__}"]
    assert any("loaded org.catena.cpu" in line for line in lines)
