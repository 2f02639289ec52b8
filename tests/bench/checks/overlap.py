"""Checks that communication and backward() overlap. Usage: overlap.py BIN"""
import json
import os
import sys
import unittest

sys.argv[1] += "/catena-bench-ranks"

from program_case import Case  # noqa: E402, which reads the program

# Largest time of a step, as a multiple of the longer of computation and transfer, and smallest factor by
# which overlap shortens it. The transfer takes as long as backward().
MOST, LEAST = 1.25, 1.4


class Overlap(Case):
    def test_steps_take_little_longer_than_the_longer_part(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor")
        for _ in range(10):  # the machine may be busy
            out = json.loads(self.run_program("--measure", "overlap", "--filter", "^GPT",
                                              "--bucket", 1, "--block", 1))
            print(out, file=sys.stderr)
            if out["of longer"] <= MOST and out["gain"] >= LEAST:
                return
        self.assertLessEqual(out["of longer"], MOST)
        self.assertGreaterEqual(out["gain"], LEAST)


if __name__ == "__main__":
    unittest.main()
