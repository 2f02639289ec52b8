"""Runs catena-train-mnist with limited memory. Usage: memory_test.py PROGRAM [unittest options]"""
import unittest

from program_case import Case


class ShortMemory(Case):
    def test_every_limit_leaves_a_result_or_a_reason(self):
        codes = self.check_limits((*range(100, 1000, 60), 1200, 1600, 4000, 6000), "--epochs", 1,
                                  "--threads", 2, "--model", "cnn", "--batch", 500)
        self.assertIn(1, codes)
        self.assertEqual(codes[-1], 0)

    def test_memory_that_ends_after_the_libraries_are_loaded(self):
        self.env["OMP_NUM_THREADS"] = "1"  # OpenBLAS then needs less memory, so that products start
        for limit in range(380, 480, 8):
            with self.subTest(limit=limit):
                code, out = self.end_within(limit << 20, "--epochs", 1, "--threads", 2)
                self.assertIn(code, (0, 1), out)
                self.assertTrue(code == 0 or "memory" in out, out)

    def test_no_memory_for_further_threads(self):
        self.env["OMP_NUM_THREADS"] = "1"
        devices = ",".join(f"cpu:{i}" for i in range(6))
        codes = self.check_limits((*range(360, 760, 16), 6000), "--epochs", 1, "--threads", 4,
                                  "--device", devices)
        self.assertIn(1, codes)
        self.assertEqual(codes[-1], 0)


if __name__ == "__main__":
    unittest.main()
