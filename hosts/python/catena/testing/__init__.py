"""What tests of functions and links need, with the names of chainer.testing."""
from catena.testing import array, attr, backend, condition, parameterized, random
from catena.testing.array import assert_allclose
from catena.testing.backend import BackendConfig, inject_backend_tests
from catena.testing.function_link import (
    FunctionTestCase, FunctionTestError, InitializerArgument, LinkInitializersTestCase,
    LinkTestCase, LinkTestError)
from catena.testing.helper import assert_warns, patch, with_requires, without_requires
from catena.testing.matrix import generate_matrix
from catena.testing.parameterized import (
    from_pytest_parameterize, parameterize, parameterize_pytest, product, product_dict)
from catena.testing.random import fix_random, generate_seed
from catena.testing.serializer import save_and_load, save_and_load_hdf5, save_and_load_npz
from catena.testing.training import get_trainer_with_mock_updater
from catena.testing.unary_math_function_test import unary_math_function_unittest


def run_module(name, file):
    """Runs the tests of a file that is run as a program."""
    if name == "__main__":
        import pytest
        pytest.main([file, "-vvs", "-x"])
