"""Tests the memory use of catena-train-lm. Usage: memory_test.py PROGRAM [unittest options]"""
import os
import unittest

from train_lm_test import LanguageCase


class Memory(LanguageCase):
    def peak(self, steps, *options):
        """Returns the peak memory of a run with this many steps, in bytes."""
        process = self.start("--data", self.text, "--epochs", 10**9, "--units", 2, "--batch", 2,
                             "--steps", 3, "--threads", 1, "--max-steps", steps, *options)
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss * 1024

    def test_memory_is_flat(self):
        for steps, options in ((10**6, ()), (10**5, ("--sentences",)),
                               (10**5, ("--cell", "rnn", "--dropout", 0.1, "--layers", 2))):
            with self.subTest(options=options):
                early, late = (self.peak(n, *options) for n in (steps // 10, steps))
                self.assertLess(late - early, 1 << 20, f"{early} -> {late}")


if __name__ == "__main__":
    unittest.main()
