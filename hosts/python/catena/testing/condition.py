"""Decorators of tests that succeed only with some probability."""
import functools
import unittest

__all__ = ["repeat", "repeat_with_success_at_least", "retry"]


def _run_once(test, args, kwargs):
    if not (args and isinstance(args[0], unittest.TestCase)):
        return test(*args, **kwargs)
    # setUp() often draws the numbers on which the success depends.
    case = type(args[0])(args[0]._testMethodName)
    case.setUp()
    try:
        test(case, *args[1:], **kwargs)
    finally:
        case.tearDown()


def repeat_with_success_at_least(times, min_success):
    """Runs a test several times. Raises the last error if it succeeds too rarely."""
    assert times >= min_success

    def decorate(test):
        @functools.wraps(test)
        def run(*args, **kwargs):
            successes = 0
            for run_number in range(times):
                try:
                    _run_once(test, args, kwargs)
                    successes += 1
                except unittest.SkipTest:
                    raise
                except Exception:
                    if times - run_number - 1 + successes < min_success:
                        raise
                if successes >= min_success:
                    return
        return run
    return decorate


def repeat(times):
    """Runs a test several times."""
    return repeat_with_success_at_least(times, times)


def retry(times):
    """Runs a test until it succeeds, at most so many times."""
    return repeat_with_success_at_least(times, 1)
