#!/usr/bin/env python3
"""Generates the headers of a hypothetical next minor, to test upgrades: the minor is one higher, every
struct that may grow has one more field, `next`, and the host has one more service.

usage: next.py INCLUDE OUT
"""
import pathlib
import re
import shutil
import sys

import layout


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    include, out = map(pathlib.Path, arguments)
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(include, out)
    grown = 0
    for path, name, fields in list(layout.structs(out)):
        if "struct_size" not in "".join(fields):
            continue
        text = layout.without_comments(path.read_text())
        field = ("\n    int64_t(CATENA_CALL *next)(catena_ctx *ctx, int64_t value);"
                 if name == "catena_host" else "\n    uint64_t next;")
        whole = "".join(fields)
        if text.count(whole) != 1:
            raise SystemExit(f"next: the fields of {name} are not there once")
        path.write_text(text.replace(whole, whole + field))
        grown += 1
    base = out / "catena" / "abi" / "base.h"
    text, n = re.subn(r"(#define CATENA_ABI_MINOR )(\d+)u",
                      lambda m: f"{m[1]}{int(m[2]) + 1}u", base.read_text())
    if n != 1 or not grown:
        raise SystemExit("next: expected one CATENA_ABI_MINOR and structs that may grow")
    base.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
