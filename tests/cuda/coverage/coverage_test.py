"""Checks that the tests of CUDA have executed every kernel of every module.

usage: coverage_test.py FOLDER TESTS KERNELS MODULE...

FOLDER has a folder for each test, into which the emulator wrote the kernels that were executed. TESTS is a
file with the names of the tests; if one of them did not run, nothing can be said. KERNELS is the program
that lists kernels.
"""
import json
import pathlib
import subprocess
import sys

SKIPPED = 77


def main():
    folder, tests, program, *modules = sys.argv[1:]
    folder = pathlib.Path(folder)
    missing = [t for t in pathlib.Path(tests).read_text().split() if not (folder / t).is_dir()]
    if missing:
        print("skipped: these tests did not run:", " ".join(missing))
        return SKIPPED
    executed = {json.loads(line)["kernel"] for file in folder.glob("*/*.jsonl")
                for line in file.read_text().splitlines()}
    listed = subprocess.run([program, *modules], check=True, text=True, stdout=subprocess.PIPE)
    kernels = [line.split() for line in listed.stdout.splitlines()]
    never = [(module, kernel) for module, kernel in kernels if kernel not in executed]
    names = subprocess.run(["c++filt"], input="\n".join(k for _, k in never), check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    for (module, _), name in zip(never, names):
        print(f"{module}: no test executes {name}")
    print(f"{len(kernels) - len(never)} of {len(kernels)} kernels were executed")
    return 1 if never or not kernels else 0


sys.exit(main())
