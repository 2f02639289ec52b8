#!/usr/bin/env python3
"""Compares the structs that a plugin in another language has written by hand with the ABI's layout.

usage: layout_check.py GOLDEN PROGRAM
  PROGRAM  prints lines as in GOLDEN; what it leaves out at a line's end is not compared
"""
import pathlib
import subprocess
import sys


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    golden = {" ".join(line.split()[:2]): line.split()
              for line in pathlib.Path(arguments[0]).read_text().splitlines()}
    printed = subprocess.run([arguments[1]], check=True, capture_output=True, text=True).stdout
    failures, structs = 0, set()
    for line in printed.splitlines():
        words = line.split()
        expected = golden.get(" ".join(words[:2]), [])
        if words != expected[:len(words)]:
            print(f"expected {' '.join(expected) or 'no such line'}\n     got {line}")
            failures += 1
        structs.add(words[1].split(".")[0])
    print(f"layout: {len(structs)} structs, {failures} lines differ")
    return 1 if failures or len(structs) < 8 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
