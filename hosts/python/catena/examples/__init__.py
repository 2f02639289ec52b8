"""Programs that show how catena is used: ``python -m catena.examples.mnist --help``."""
import os


def shipped(name):
    """The folder of a dataset that is part of the package."""
    import catena
    return os.path.join(catena.__path__[0], "share", name)
