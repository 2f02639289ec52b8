"""Warnings about the function that is called."""
import warnings

__all__ = ["experimental", "nondeterministic"]


def experimental(api_name) -> None:
    """Gives a FutureWarning that the interface with this name can change.

    ``catena.disable_experimental_feature_warning = True`` turns the warnings off.
    """
    import catena
    if not catena.disable_experimental_feature_warning:
        warnings.warn(f"{api_name} is experimental. The interface can change in the future.",
                      FutureWarning, stacklevel=3)


def nondeterministic(f_name) -> None:
    """Warns, if ``config.warn_nondeterministic`` is set, that a function may differ between runs."""
    from catena.configuration import config
    if config.warn_nondeterministic:
        warnings.warn("Potentially non-deterministic code is being executed while "
                      f"config.warn_nondeterministic set. Source: {f_name}", stacklevel=3)
