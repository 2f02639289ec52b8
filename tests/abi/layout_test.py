#!/usr/bin/env python3
"""Tests the layout lock and the checks of the kept minors: each planted change must be found.

usage: layout_test.py GOLDEN INCLUDE KEPT
"""
import pathlib
import re
import shutil
import sys
import tempfile

import kept_test
import layout
import next as next_minor

PLANTED = [  # what is wrong, text of the golden file, its replacement in the printed layout
    ("a constant has another value", "CATENA_E_DTYPE 2", "CATENA_E_DTYPE 3"),
    ("a constant is gone", "constant CATENA_REQ_ADD 2\n", ""),
    ("a field moved", "catena_tensor.nbytes offset 56", "catena_tensor.nbytes offset 64"),
    ("a field has another type", "catena_tensor.nbytes offset 56 size 8 uint64_t",
     "catena_tensor.nbytes offset 56 size 8 int64_t"),
    ("a parameter has another type", "void(*)(catena_ctx*,int32_t,const char*)",
     "void(*)(catena_ctx*,int64_t,const char*)"),
    ("a frozen struct grew", "struct catena_value size 16", "struct catena_value size 24"),
    ("a struct shrank", "struct catena_plan size 24", "struct catena_plan size 16"),
    ("a reserved field got a name and another type",
     "field catena_tensor.reserved offset 68 size 4 uint32_t",
     "field catena_tensor.more offset 68 size 4 int32_t"),
    ("a field is not at the end", "field catena_plan.n_saved offset 4 size 4 uint32_t",
     "field catena_plan.n_saved offset 4 size 4 uint32_t\n"
     "field catena_plan.more offset 4 size 4 uint32_t"),
]
MISFITS = [  # what is wrong, the printed line
    ("a long", "field catena_plan.more offset 24 size 8 unsigned long"),
    ("a size_t", "field catena_plan.more offset 24 size 8 size_t"),
    ("an enum", "field catena_plan.more offset 24 size 4 enum more"),
    ("a bool in a parameter", "field catena_plan.more offset 24 size 8 void(*)(bool,int32_t)"),
    ("a callback that returns int", "callback catena_more_fn int(*)(void*)"),
    ("a growable struct in another", "field catena_plan.more offset 24 size 144 catena_meta"),
    ("an array of growable structs", "field catena_plan.more offset 24 size 288 catena_meta[2]"),
    ("a long in a union", "field catena_plan.more offset 24 size 8 union {long i; double f}"),
]
ALLOWED = [
    ("a new constant", "constant CATENA_REQ_ADD 2",
     "constant CATENA_REQ_ADD 2\nconstant CATENA_X 3"),
    ("a struct grew at its end", "struct catena_plan size 24 growable",
     "struct catena_plan size 32 growable\nfield catena_plan.more offset 24 size 8 uint64_t"),
    ("a reserved field got a name", "field catena_tensor.reserved", "field catena_tensor.more"),
]


def planted_minors(include, kept):
    """Yields (what is wrong, headers, kept folder, expected finding) of each case."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        major, minor = kept_test.version(include)
        copy, grown, far, bare = (folder / n for n in ("kept", "grown", "far", "bare"))
        shutil.copytree(kept, copy)
        if not (copy / f"{major}.{minor}").is_dir():  # as if this minor were released
            shutil.copytree(include, copy / f"{major}.{minor}" / "include")
            (copy / f"{major}.{minor}" / "SHA256SUMS").touch()
        next_minor.main([include, grown])
        base = grown / "catena" / "abi" / "base.h"
        yield "the next minor", grown, kept, ""
        base.write_text(re.sub(r"(ABI_MINOR) \d+u", rf"\1 {minor}u", base.read_text()))
        yield "growth without a new minor", grown, copy, f"needs CATENA_ABI_MINOR {minor + 1}"
        shutil.copytree(include, far)
        base = far / "catena" / "abi" / "base.h"
        base.write_text(re.sub(r"(ABI_MINOR) \d+u", rf"\1 {minor + 2}u", base.read_text()))
        yield "a minor that was not kept", far, copy, f"{major}.{minor + 1} was not kept"
        shutil.copytree(kept, bare)
        plugin = next(bare.glob("1.0/*.catena"))
        plugin.write_bytes(plugin.read_bytes() + b"x")
        yield "a kept plugin made anew", include, bare, f"{plugin.name}: changed"
        plugin.unlink()
        yield "a kept plugin is gone", include, bare, f"{plugin.name}: gone"


def main():
    golden = pathlib.Path(sys.argv[1]).read_text()
    failures = 0
    for wanted, cases in ((True, PLANTED), (False, ALLOWED)):
        for name, old, new in cases:
            assert old in golden, f"{name}: the golden file has no '{old}'"
            broken, added = layout.compare(layout.entries(golden),
                                           layout.entries(golden.replace(old, new, 1)))
            good = bool(broken) == wanted and bool(added) == (not wanted)
            print(f"{'ok  ' if good else 'FAIL'} {name}")
            failures += not good
    assert not list(layout.misfits(layout.entries(golden)))
    for name, line in MISFITS:
        good = len(list(layout.misfits(layout.entries(f"{golden}{line}\n")))) == 1
        print(f"{'ok  ' if good else 'FAIL'} {name}")
        failures += not good
    draft = f"{layout.DRAFT}field catena_d.a offset 0 size 4 int\n"  # not locked, but checked
    for name, good in (
            ("a draft may come", layout.compare(layout.entries(golden),
                                                layout.entries(golden + draft)) == ([], [])),
            ("a draft with a field of any size",
             len(list(layout.misfits(layout.entries(golden + draft, drafts=True)))) == 1)):
        print(f"{'ok  ' if good else 'FAIL'} {name}")
        failures += not good
    for name, include, kept, wanted in planted_minors(*map(pathlib.Path, sys.argv[2:])):
        said = "\n".join(kept_test.findings(include, kept))
        good = wanted in said if wanted else not said
        print(f"{'ok  ' if good else 'FAIL'} {name}")
        failures += not good
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
