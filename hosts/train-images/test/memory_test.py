"""Runs catena-train-images with limited memory. Usage: memory_test.py PROGRAM [unittest options]"""
import unittest

from pictures import write_set
from program_case import Case


class ShortMemory(Case):
    def test_loaders_that_find_no_memory(self):
        self.env["OMP_NUM_THREADS"] = "1"
        data = self.folder / "set"
        write_set(data, 6)
        codes = []
        for loaders in (4, 8):
            codes += self.check_limits((*range(280, 640, 12), 4000), data, "--width", 0.1,
                                       "--size", 64, "--side", 64, "--batch", 4, "--threads", 2,
                                       "--loaders", loaders, "--epochs", 1)
        self.assertIn(1, codes)
        self.assertEqual(codes[-1], 0)


if __name__ == "__main__":
    unittest.main()
