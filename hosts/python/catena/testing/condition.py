"""Decorators of tests that succeed only with some probability."""
import functools
import traceback
import unittest
from typing import Any


def _run_once(test, args, kwargs):
    if not (args and isinstance(args[0], unittest.TestCase)):
        return test(*args, **kwargs)
    # setUp() often draws the numbers on which the success depends.
    case = type(args[0])(args[0]._testMethodName)
    case.setUp()
    try:
        test(case, *args[1:], **kwargs)
    except BaseException as error:
        if type(error).__name__ == "Skipped":  # by pytest.skip()
            raise unittest.SkipTest(str(error)) from None
        raise
    finally:
        case.tearDown()


def repeat_with_success_at_least(times, min_success) -> Any:
    """Runs a test several times. Raises AssertionError with the first error if too few succeed."""
    assert times >= min_success

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **kwargs):
            successes = failures = 0
            first = None
            for _ in range(times):
                try:
                    _run_once(test, args, kwargs)
                    successes += 1
                except unittest.SkipTest:
                    raise
                except Exception as error:
                    failures += 1
                    first = first or error
                    if failures > times - min_success:
                        text = "".join(traceback.format_exception(
                            type(first), first, first.__traceback__))
                        raise AssertionError(
                            f"Fail: {failures}, Success: {successes}\n\n"
                            f"The first error message:\n{text}") from first
                if successes >= min_success:
                    return
        return run
    return decorate


def repeat(times) -> Any:
    """Runs a test several times."""
    return repeat_with_success_at_least(times, times)


def retry(times) -> Any:
    """Runs a test until it succeeds, at most so many times."""
    return repeat_with_success_at_least(times, 1)
