"""Warnings, requirements and replacements in tests."""
import contextlib
import unittest
import warnings
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def assert_warns(expected) -> Iterator[Any]:
    """Raises AssertionError unless the scope warns with this class. Other warnings are shown."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    if not any(isinstance(each.message, expected) for each in seen):
        raise AssertionError(f"{expected.__name__} not triggered")
    for each in seen:
        if not isinstance(each.message, expected):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _installed(requirement):
    from importlib import metadata

    from packaging.requirements import Requirement
    requirement = Requirement(requirement)
    try:
        return requirement.specifier.contains(metadata.version(requirement.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def with_requires(*requirements) -> Any:
    """Skips a test unless packages are installed: ``@with_requires("numpy>=2")``."""
    return unittest.skipUnless(all(map(_installed, requirements)),
                               "requires: " + ",".join(requirements))


def without_requires(*requirements) -> Any:
    """Skips a test if packages are installed."""
    return unittest.skipIf(all(map(_installed, requirements)),
                           "requires no " + ",".join(requirements))


def patch(target, *args, **kwargs) -> Any:
    """unittest.mock.patch() whose replacement calls ``wraps``, by default the object itself."""
    import importlib
    from unittest import mock
    if "wraps" not in kwargs:
        module, *names = target.split(".")
        found = importlib.import_module(module)
        for name in names:
            found = getattr(found, name)
        kwargs["wraps"] = found
    return mock.patch(target, *args, **kwargs)
