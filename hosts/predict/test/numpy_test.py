"""NumPy and catena read each other's files. Usage: numpy_test.py PROGRAM [unittest options]"""
import gzip
import json
import os
import struct
import sys
import unittest

SYSTEM = "/usr/bin/python3"  # has the system's NumPy, if another Python is first in PATH
try:
    import numpy
except ImportError:
    if os.path.exists(SYSTEM) and not os.path.samefile(SYSTEM, sys.executable):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    print("NumPy is not here")
    sys.exit(77)

from program_case import PROGRAM, Case

BIN = PROGRAM.parent
DIGITS = BIN.parent / "share/catena/digits"
IMAGES = DIGITS / "t10k-images-idx3-ubyte.gz"


def images():
    data = gzip.decompress(IMAGES.read_bytes())
    return numpy.frombuffer(data, numpy.uint8, offset=16).reshape(-1, 784) / 255


class Files(Case):
    def model(self):
        """Returns the arrays of a net made by NumPy, and the classes that NumPy predicts."""
        random = numpy.random.default_rng(1)
        arrays = {}
        h = images()
        for i, (n_out, n_in) in enumerate(((20, 784), (20, 20), (10, 20)), 1):
            W = arrays[f"model/l{i}/W"] = random.normal(0, n_in ** -0.5, (n_out, n_in)).astype("f")
            b = arrays[f"model/l{i}/b"] = random.normal(0, 0.1, n_out).astype("f")
            h = h @ W.T + b
            if i < 3:
                h = numpy.maximum(h, 0)
        arrays.update({"about/net": numpy.bytes_("mlp"), "about/units": numpy.int64(20),
                       "about/classes": numpy.bytes_("".join(f"{i}\n" for i in range(10))),
                       "about/height": numpy.int64(28), "about/width": numpy.int64(28)})
        return arrays, h.argmax(1)

    def check(self, file, expected):
        lines = self.run_program("--model", file, IMAGES).splitlines()
        got = [int(line.split()[1]) for line in lines]
        self.assertGreater(numpy.mean(got == expected), 0.999)  # equal scores may differ

    def test_what_numpy_saves_is_read(self):
        arrays, expected = self.model()
        file = self.folder / "a.npz"
        numpy.savez(file, **arrays)
        self.check(file, expected)
        numpy.savez_compressed(file, **arrays)
        self.check(file, expected)
        columns = {name: numpy.asfortranarray(a) for name, a in arrays.items() if name.endswith("W")}
        numpy.savez(file, **{**arrays, **columns})
        self.check(file, expected)
        arrays["model/l2/W"] = arrays["model/l2/W"].astype("d")
        numpy.savez(file, **arrays)
        self.assertIn("l2/W: expected float32 (20, 20), got float64 (20, 20)",
                      self.run_program("--model", file, IMAGES, code=1))
        numpy.savez(file, **{**arrays, "more": numpy.array([None])})  # an array that nothing reads
        self.assertNotIn("more", self.run_program("--model", file, IMAGES, code=1))

    def test_what_is_saved_here_numpy_reads(self):
        file = self.folder / "a.npz"
        self.run_program("--epochs", 1, "--optimizer", "adam", "--save", file,
                         program=BIN / "catena-train-mnist")
        with numpy.load(file) as saved:
            self.assertEqual(saved["model/l1/W"].shape, (100, 784))
            self.assertEqual(saved["model/l1/W"].dtype, numpy.float32)
            self.assertEqual(saved["optimizer/t"], 100)
            self.assertEqual(saved["optimizer/l1/W/m"].shape, (100, 784))
            self.assertEqual(saved["batches/epoch"], 1)
            self.assertEqual(saved["about/net"], b"mlp")
            h = images()
            for i in range(1, 4):
                h = h @ saved[f"model/l{i}/W"].T + saved[f"model/l{i}/b"]
                h = numpy.maximum(h, 0) if i < 3 else h
        self.check(file, h.argmax(1))

    def test_safetensors_is_as_the_format_says(self):
        file = self.folder / "a.safetensors"
        self.run_program("--epochs", 1, "--save", file, program=BIN / "catena-train-mnist")
        data = file.read_bytes()
        length, = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        self.assertEqual(header.pop("__metadata__")["about/net"], "mlp")
        kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "U64": "<u8"}
        end = 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, stop = entry["data_offsets"]
            self.assertEqual(begin, end, name)
            end = stop
            array = numpy.frombuffer(data[8 + length + begin:8 + length + stop],
                                     kinds[entry["dtype"]]).reshape(entry["shape"])
            self.assertTrue(numpy.isfinite(array).all(), name)
        self.assertEqual(8 + length + end, len(data))
        try:
            from safetensors.numpy import load_file
        except ImportError:
            return
        self.assertEqual(load_file(file)["model/l1/W"].shape, (100, 784))


if __name__ == "__main__":
    unittest.main()
