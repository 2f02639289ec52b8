"""Tests formula kernels that the genuine NVRTC compiles, for each architecture of the releases.

usage: nvrtc_test.py PROGRAM NVRTC [unittest options]
"""
import collections
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, NVRTC = (sys.argv.pop(1) for _ in range(2))
EM_CUDA = 190
NEWER = 990  # newer than any NVRTC knows, which then makes PTX, a text
OF_THE_ABI = {7: 0, 8: 8}  # by ELF ABI version (CUDA 12, CUDA 13): position of the 8 bits in e_flags


def architecture(binary):
    """Returns the architecture of a binary: 80 for sm_80."""
    flags, = struct.unpack_from("<I", binary, 48)
    return flags >> OF_THE_ABI[binary[8]] & 0xFF


class Nvrtc(unittest.TestCase):
    def make(self, folder, capability, *only, **settings):
        """Returns (the results of the kernels in order, the last line)."""
        variables = os.environ | {"CATENA_NVRTC": NVRTC, "CATENA_KERNEL_CACHE": str(folder),
                                  "CATENA_EMULATOR_CAPABILITY": str(capability)} | settings
        done = subprocess.run([PROGRAM, *only], env=variables, text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        *results, last = done.stdout.split("\n--\n")
        return results, last

    def check(self, capability):
        with tempfile.TemporaryDirectory() as folder:
            results, last = self.make(folder, capability)
            *good, broken, option = results
            for result in good:  # compiled, stored, and refused by the emulator
                self.assertIn("cudaLibraryLoadData", result)
            self.assertIn("[broken] operation, line 2: expected code that compiles, got\n"
                          "    y = t * q;", broken)
            self.assertIn('broken(2): error: identifier "q" is undefined', broken)
            self.assertIn("--no-such-option", option)
            compiled = int(re.search(r"compiled=(\d+)", last)[1])
            self.assertEqual(compiled, len(good))
            files = list(pathlib.Path(folder).glob("*.kernel"))
            self.assertEqual(len(files), compiled)
            for file in files:
                binary = file.read_bytes()
                name = file.name.rsplit("-", 1)[0]
                self.assertEqual(binary[:4], b"\x7fELF", file.name)
                self.assertEqual(struct.unpack_from("<H", binary, 18)[0], EM_CUDA, file.name)
                self.assertEqual(architecture(binary), capability, file.name)
                self.assertIn(b".text.catena_formula_" + name.encode() + b"\0", binary)

    def test_sm_80(self):
        self.check(80)

    def test_sm_90(self):
        self.check(90)

    def test_a_device_that_is_newer_than_nvrtc_gets_ptx(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, NEWER, "walk")
            files = list(pathlib.Path(folder).glob("walk-*.kernel"))
            self.assertEqual(len(files), 1)
            self.assertIn(b".visible .entry catena_formula_walk(", files[0].read_bytes())

    def test_one_instruction_multiplies_and_adds(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, NEWER, "walk")
            [file] = pathlib.Path(folder).glob("walk-*.kernel")
            self.assertIn(b"fma.rn.f32", file.read_bytes())

    def test_neighbours_are_moved_in_one_piece_and_nothing_in_vain(self):
        with tempfile.TemporaryDirectory() as folder:
            self.make(folder, NEWER, "pack")
            kernels = [file.read_bytes().decode("latin-1")
                       for file in pathlib.Path(folder).glob("pack-*.kernel")]
        self.assertEqual(len(kernels), 7)
        pieces = set()
        for ptx in kernels:
            reads, writes = (collections.Counter(re.findall(what + r"\.global\.([.\w]+)", ptx))
                             for what in ("ld", "st"))
            # Loops may be unrolled, but three arrays are read for each that is written.
            self.assertEqual(reads, {kind: 3 * n for kind, n in writes.items()})
            self.assertNotIn(".local", ptx)
            pieces |= {kind for kind in writes if kind.startswith("v")}
        self.assertGreaterEqual(pieces, {"v4.f32", "v4.b32", "v2.f64"})

    def test_without_nvrtc_the_error_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            results, _ = self.make(folder, 90, "walk", CATENA_NVRTC="/nowhere/libnvrtc.so")
            self.assertIn("[cuda compiler] NVRTC: expected", results[0])
            self.assertIn("CATENA_NVRTC", results[0])


if __name__ == "__main__":
    unittest.main()
