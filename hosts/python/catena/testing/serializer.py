"""Saving and loading in a temporary folder."""


def save_and_load(src, dst, filename, saver, loader) -> None:
    """Saves an object with ``saver(path, src)`` in a temporary folder, and loads another."""
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, filename)
        saver(path, src)
        loader(path, dst)


def save_and_load_npz(src, dst) -> None:
    from catena import serializers
    save_and_load(src, dst, "tmp.npz", serializers.save_npz, serializers.load_npz)


def save_and_load_hdf5(src, dst) -> None:
    from catena import serializers
    save_and_load(src, dst, "tmp.h5", serializers.save_hdf5, serializers.load_hdf5)
