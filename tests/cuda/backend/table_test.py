"""Tests that the README's table of ids lists exactly those that are in the module.

usage: table_test.py README MODULE
"""
import re
import sys
import unittest
from pathlib import Path

README, MODULE = (Path(word) for word in sys.argv[1:])


class Table(unittest.TestCase):
    def test_ids(self):
        told = re.findall(r"^\| `(catena\.[\w./]+)` \|", README.read_text(), re.M)
        there = re.findall(rb"\0(catena\.[a-z_.]+/\d+)(?=\0)", MODULE.read_bytes())
        self.assertEqual(sorted(told), sorted({one.decode() for one in there}))
        self.assertIn("catena.blas/1", told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
