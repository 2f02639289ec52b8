"""Snapshots of catena-train-mnist that were saved on a GPU resume on the CPU, and vice versa, with the
results of an uninterrupted training.

usage: snapshot_test.py PROGRAM DIGITS [--images N] [--device NAME]
"""
import argparse
import array
import gzip
import pathlib
import re
import struct
import subprocess
import tempfile
import zipfile


def shorten(source, target, n):
    """Copies the first n images or labels of an MNIST file; returns their number."""
    data = gzip.decompress(source.read_bytes())
    magic, count = struct.unpack(">II", data[:8])
    head = 4 + 4 * (magic & 0xFF)
    each = (len(data) - head) // count
    n = min(n, count)
    target.write_bytes(gzip.compress(data[:4] + struct.pack(">I", n) + data[8:head + n * each]))
    return n


def floats(snapshot):
    """Returns the float32 arrays of a snapshot, by name."""
    found = {}
    with zipfile.ZipFile(snapshot) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if b"'<f4'" in data[:128]:
                start = 10 + struct.unpack("<H", data[8:10])[0]
                found[name] = array.array("f", data[start:])
    return found


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("digits", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=10000)
    parser.add_argument("--device", default="cuda:0")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        data = folder / "data"
        data.mkdir()
        counts = [shorten(file, data / file.name, args.images) for file in args.digits.glob("*.gz")]
        least = min(counts)  # the number of test images

        def train(device, epochs, save, resume=None):
            """Returns the accuracy."""
            command = [args.program, "--model", "cnn", "--record", "--optimizer", "adam", "--seed", "3",
                       "--batch", min(100, args.images // 4), "--data", data, "--device", device,
                       "--epochs", epochs, "--save", folder / save]
            if resume:
                command += ["--resume", folder / resume]
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            assert done.returncode == 0, done.stdout
            assert f" on {device}" in done.stdout, done.stdout
            return float(re.search(r"^test accuracy: ([\d.]+)$", done.stdout, re.M)[1])

        for here, there in ((args.device, "cpu:0"), ("cpu:0", args.device)):
            before = train(here, 1, "one")
            after = train(there, 1, "same", resume="one")
            assert abs(before - after) < 2.5 / least, f"{here} {before}, {there} {after}"
            train(here, 2, "two")
            train(there, 2, "resumed", resume="one")
            expected, got = floats(folder / "two"), floats(folder / "resumed")
            assert expected.keys() == got.keys() and len(expected) >= 3 * 8, got.keys()
            for name, values in expected.items():
                largest = max(map(abs, values))
                off = max(abs(a - b) for a, b in zip(values, got[name], strict=True))
                assert off <= 0.02 * largest + 1e-6, f"{name}: {here} to {there}: off by {off} of {largest}"
    print("measured: snapshots go both ways")


main()
