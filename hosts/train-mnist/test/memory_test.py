"""catena-train-mnist under limits on memory: usage: memory_test.py PROGRAM [unittest options]"""
import functools
import resource
import signal
import subprocess
import unittest

from program_case import Case

MIB = 1 << 20
REASONS = ("memory", "alloc", "Cannot allocate", "failed to map")


class ShortMemory(Case):
    def end_within(self, limit, *options):
        """Exit code and output of a short training, which is ended if it has not ended by itself."""
        set_limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
        process = self.start("--epochs", 1, "--threads", 2, *options, preexec_fn=set_limit)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            self.communicate_in_time(process)
            self.fail(f"it still ran after 60 seconds with {limit // MIB} MiB")
        return process.returncode, out + err

    def test_every_limit_leaves_a_result_or_a_reason(self):
        codes = []
        for limit in (*range(100, 1000, 60), 1200, 1600, 4000):
            with self.subTest(limit=limit):
                code, out = self.end_within(limit * MIB, "--model", "cnn", "--batch", 500)
                self.assertIn(code, (0, 1, 127), out)  # 127: the system's loader finds no memory
                if code != 0:
                    self.assertTrue(any(reason in out for reason in REASONS), out)
                codes.append(code)
        self.assertIn(1, codes)
        self.assertEqual(codes[-1], 0)

    def test_memory_that_ends_after_the_libraries_are_loaded(self):
        self.env["OMP_NUM_THREADS"] = "1"  # OpenBLAS takes less, so products begin
        for limit in range(380, 480, 8):
            with self.subTest(limit=limit):
                code, out = self.end_within(limit * MIB)
                self.assertIn(code, (0, 1), out)
                self.assertTrue(code == 0 or "memory" in out, out)


if __name__ == "__main__":
    unittest.main()
