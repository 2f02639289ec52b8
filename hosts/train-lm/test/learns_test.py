"""Runs catena-train-lm on the included text. Usage: learns_test.py PROGRAM [unittest options]"""
import re
import time
import unittest

from program_case import Case

# Maximum perplexity. Predicting each word by its frequency alone gives 700.
FLOOR = 140
SECONDS = 60


class Learns(Case):
    def test_perplexity_falls_within_a_minute(self):
        began = time.monotonic()
        out = self.run_program("--epochs", 1, "--threads", 2)
        seconds = time.monotonic() - began
        perplexity = float(re.search(r"valid perplexity ([\d.]+)", out).group(1))
        print(f"perplexity {perplexity} in {seconds:.0f} s")
        self.assertLess(perplexity, FLOOR)
        self.assertLess(seconds, SECONDS)


if __name__ == "__main__":
    unittest.main()
