#!/usr/bin/env python3
"""Every released minor is kept as it was, and what was released has not grown without a new minor.

usage: kept_test.py INCLUDE KEPT
"""
import hashlib
import pathlib
import re
import sys
import tempfile

import layout


def version(include):
    text = (include / "catena" / "abi" / "base.h").read_text()
    return [int(re.search(rf"#define CATENA_ABI_{part} (\d+)u", text).group(1))
            for part in ("MAJOR", "MINOR")]


def shape(include):
    """Returns everything that the layout lock compares, except file names and drafts."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "layout.c")
        layout.generate(include, program, drafts=False)
        return [line for line in program.read_text().splitlines() if not line.startswith("#")]


def changed(folder):
    listed = dict(reversed(line.split("  ", 1))
                  for line in (folder / "SHA256SUMS").read_text().splitlines())
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")
             if path.is_file() and path.name != "SHA256SUMS"}
    for name in sorted(listed.keys() | there.keys()):
        if name not in there or name not in listed:
            yield f"{folder.name}: {name}: {'added' if name in there else 'gone'}"
        elif hashlib.sha256(there[name].read_bytes()).hexdigest() != listed[name]:
            yield f"{folder.name}: {name}: changed"


def findings(include, kept):
    major, minor = version(include)
    for old in range(minor):
        if not (kept / f"{major}.{old}").is_dir():
            yield f"{major}.{old} was not kept: tests/abi/keep.sh keeps a minor when it is released"
    for folder in sorted(path for path in kept.iterdir() if path.is_dir()):
        yield from changed(folder)
        if version(folder / "include") != [int(n) for n in folder.name.split(".")]:
            yield f"{folder.name}: has the headers of another minor"
    now = kept / f"{major}.{minor}"
    if now.is_dir() and shape(now / "include") != shape(include):
        yield (f"{major}.{minor} is released and kept: "
               f"what is new needs CATENA_ABI_MINOR {minor + 1}")


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    found = list(findings(*map(pathlib.Path, arguments)))
    print("\n".join(found) or "kept: every released minor is as it was")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
