"""Runs catena-train-lm on the included text. Usage: learns_test.py PROGRAM [unittest options]"""
import re
import unittest

from program_case import Case

# Maximum perplexity. Predicting each word by its frequency alone gives 700.
FLOOR = 140


class Learns(Case):
    def test_perplexity_falls(self):
        out = self.run_program("--epochs", 1, "--threads", 2)
        perplexity = float(re.search(r"valid perplexity ([\d.]+)", out).group(1))
        self.assertLess(perplexity, FLOOR)


if __name__ == "__main__":
    unittest.main()
