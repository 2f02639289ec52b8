"""Fixtures and settings of all tests."""
import catena
import numpy


def pytest_report_header(config):
    return f"catena {catena.__version__} in {catena.__path__[0]}, numpy {numpy.__version__}"
