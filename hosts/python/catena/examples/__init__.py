"""Programs that show how catena is used: ``python -m catena.examples.mnist --help``."""
