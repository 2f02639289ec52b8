"""Tests the code that nvcc generates for a formula's kernels: loads and stores of 16 bytes if nothing is
broadcast, and no local memory.

usage: code_test.py NVCC SOURCE INCLUDE...
"""
import re
import subprocess
import sys
import tempfile
import unittest

NVCC, SOURCE, *INCLUDES = sys.argv[1:]
OPTIONS = ["-std=c++20", "--expt-relaxed-constexpr", "-O3", "-arch=sm_80",
           *("-I" + folder for folder in INCLUDES)]
KINDS = ("flat_kernel", "each_kernel", "sum_kernel")
# PTX suffixes of 16-byte accesses, by the type in the kernel's name.
WIDE = {"f": r"\.v4\.(f32|u32|b32)", "d": r"\.v2\.(f64|u64|b64)|\.v4\.u32",
        "AnyHalf": r"\.v4\.(f32|u32|b32)"}


def nvcc(*options):
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/out"
        done = subprocess.run([NVCC, *OPTIONS, *options, "-o", out, SOURCE], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
        with open(out, "rb") as file:
            return file.read().decode(errors="replace"), done.stdout


class Code(unittest.TestCase):
    def test_wide_loads(self):
        ptx, _ = nvcc("-ptx")
        seen = set()
        for entry in re.split(r"\.visible \.entry ", ptx)[1:]:
            name = entry[:entry.index("(")]
            kind = next((k for k in KINDS if k in name), None)
            dtype = re.search(r"MulAddJ(?:N\w*?\d+(AnyHalf)E|([fd]))E", name)
            if kind is None or dtype is None:
                continue
            dtype = dtype.group(1) or dtype.group(2)
            seen.add((kind, dtype))
            with self.subTest(kernel=name):
                if kind == "flat_kernel":
                    self.assertRegex(entry, r"ld\.global(" + WIDE[dtype] + ")")
                    self.assertRegex(entry, r"st\.global(" + WIDE[dtype] + ")")
                self.assertNotIn(".local", entry)
        self.assertEqual(seen, {(k, t) for k in KINDS for t in WIDE})

    def test_registers(self):
        _, report = nvcc("-cubin", "--resource-usage")
        self.assertIn("bytes stack frame", report)
        for line in report.splitlines():
            if "bytes stack frame" in line:
                self.assertEqual(line.split(), "0 bytes stack frame, 0 bytes spill stores, "
                                 "0 bytes spill loads".split())
        # With at most 64 registers, a multiprocessor can run at least half of its maximum of threads.
        flat = re.findall(r"flat_kernel.*?Used (\d+) registers", report, re.S)
        self.assertGreater(len(flat), 0)
        self.assertLessEqual(max(map(int, flat)), 64)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
