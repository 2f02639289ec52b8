#!/usr/bin/env python3
"""A second opinion on the layout lock, by abidiff: the types of the ABI, as one compiler sees them
in the kept headers of a released minor and in those of today.

usage: abidiff.py CC KEPT TODAY [--self-test]
  CC, KEPT, TODAY  a C compiler, and the two include folders
  --self-test      plants changes into KEPT and expects each to be told right

abidiff calls growth a change, so it is told which structs have grown, at their end: a stanza for
each, by its exact name, for a pattern for all of them hides fields put in the middle. A stanza also
hides other changes of its struct. So the headers are compared once more with the growth cut off,
and no stanza at all.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import layout

# BREAKS must be found, GROWTH must not: (name, file, text, replacement).
BREAKS = [
    ("a field in the middle of a struct", "kernel.h",
     "    uint32_t n_saved;\n    uint64_t scratch_bytes;",
     "    uint32_t n_saved;\n    uint64_t planted;\n    uint64_t scratch_bytes;"),
    ("a field in front of a service", "host.h",
     "    int32_t(CATENA_CALL *slots)",
     "    void(CATENA_CALL *planted)(void);\n    int32_t(CATENA_CALL *slots)"),
    ("a field is gone", "tensor.h", "    void *host_ref;\n", ""),
    ("a field has another type", "tensor.h", "    uint64_t nbytes;", "    int64_t nbytes;"),
    ("two fields changed places", "plugin.h",
     "    uint32_t n_functions;\n    uint32_t n_kernels;",
     "    uint32_t n_kernels;\n    uint32_t n_functions;"),
    ("a parameter has another type", "host.h", "int32_t level, const char *text",
     "int64_t level, const char *text"),
    ("a parameter more", "kernel.h", "(CATENA_CALL *run)(catena_ctx *ctx,",
     "(CATENA_CALL *run)(catena_ctx *ctx, int32_t planted,"),
    ("another result", "backend.h", "    void(CATENA_CALL *close)",
     "    int32_t(CATENA_CALL *close)"),
    ("a callback has another parameter", "host.h", "int64_t begin, int64_t end, int32_t slot);",
     "int64_t begin, int64_t end, int64_t slot);"),
    ("a constant in the middle", "base.h", "    CATENA_E_DTYPE = 2,",
     "    CATENA_E_PLANTED = 2, CATENA_E_DTYPE = 10,"),
    ("a constant is gone", "attribute.h", "    CATENA_ATTR_FLOATS = 6,\n", ""),
    ("a frozen struct grew", "attribute.h", "    const char *name;\n    catena_value value;\n",
     "    const char *name;\n    catena_value value;\n    uint64_t planted;\n"),
    ("an entry with another parameter", "plugin.h",
     "catena_plugin_entry_v1(const catena_host *host,",
     "catena_plugin_entry_v1(const catena_host *host, int32_t planted,"),
    ("a struct grew, but another field of it has another type", "kernel.h",
     "    uint32_t n_saved;\n    uint64_t scratch_bytes;\n    catena_meta *const *saved;\n",
     "    uint32_t n_saved;\n    int64_t scratch_bytes;\n    catena_meta *const *saved;\n"
     "    uint64_t planted;\n"),
    ("a manifest that is shorter", "plugin.h", "char version[32];", "char version[24];"),
]
GROWTH = [
    ("a service at the end", "host.h",
     "const catena_var *var, const void **elements);\n",
     "const catena_var *var, const void **elements);\n"
     "    int64_t(CATENA_CALL *planted)(catena_ctx *ctx);\n"),
    ("a field at the end", "kernel.h", "    uint32_t reserved;\n} catena_call;",
     "    uint32_t reserved;\n    uint64_t planted;\n} catena_call;"),
    ("a constant at the end", "kernel.h", "    CATENA_PRIORITY_TUNED = 300",
     "    CATENA_PRIORITY_TUNED = 300,\n    CATENA_PRIORITY_PLANTED = 400"),
    ("a reserved field has a name", "tensor.h", "    uint32_t reserved;", "    uint32_t planted;"),
    ("a new struct", "tensor.h", "#endif\n",
     "typedef struct catena_planted {\n    uint32_t struct_size;\n    uint32_t flags;\n"
     "} catena_planted;\n\n#endif\n"),
]


def probe(include):
    """Returns a C file whose exports use every type, callback and constant of the headers."""
    lines = [f'#include "{p.relative_to(include).as_posix()}"' for p in layout.headers(include)]
    enums = 0
    for path in layout.headers(include):
        text = layout.strip(path.read_text())
        for name in re.findall(r"\bstruct\s+(catena_\w+)\s*\{", text):
            lines.append(f"void use_{name}(struct {name} *p);\n"
                         f"void use_{name}(struct {name} *p) {{ (void)p; }}")
        for name in re.findall(r"\(\s*CATENA_CALL\s*\*\s*(catena_\w+)\s*\)", text):
            lines.append(f"void use_{name}({name} p);\nvoid use_{name}({name} p) {{ (void)p; }}")
        # Unnamed enums belong to no type, so each gets a type here, named after its first constant.
        for match in re.finditer(r"\benum\s*\{", text):
            names = [c.split("=")[0].strip()
                     for c in layout.body(text, match.end() - 1)[0].split(",") if c.strip()]
            own = ", ".join(f"own_{n} = {n}" for n in names)
            lines.append(f"enum of_{names[0]} {{ {own} }};\n"
                         f"void use_{names[0]}(enum of_{names[0]} c);\n"
                         f"void use_{names[0]}(enum of_{names[0]} c) {{ (void)c; }}")
            enums += 1
    lines.append("extern __typeof__(&catena_plugin_entry_v1) use_entry;\n"
                 "__typeof__(&catena_plugin_entry_v1) use_entry = 0;")
    if not enums:
        raise SystemExit(f"abidiff: found no constants under {include}")
    return "\n".join(lines) + "\n"


def library(compiler, include, built):
    source = built.with_suffix(".c")
    source.write_text(probe(include))
    result = subprocess.run([compiler, "-std=gnu99", "-g", "-shared", "-fPIC", "-I", str(include),
                             str(source), "-o", str(built)], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"abidiff: the headers under {include} do not compile:\n{result.stderr}")


def grown(kept, today):
    """Returns {struct that may grow and has grown: its previous number of fields}."""
    now = {name: fields for _, name, fields in layout.structs(today)}
    return {name: len(fields) for _, name, fields in layout.structs(kept)
            if "struct_size" in "".join(fields) and len(now.get(name, [])) > len(fields)}


def without_growth(today, grew, into):
    """Copies the headers, without the fields that the structs have gained at the end."""
    shutil.copytree(today, into)
    for path, name, fields in list(layout.structs(into)):
        if name in grew:
            text = layout.without_comments(path.read_text())
            whole, rest = "".join(fields), "".join(fields[:grew[name]])
            path.write_text(text.replace(whole, rest, 1))


def changes(compiler, before, after, grew, folder):
    """Returns the findings of abidiff; empty if there are none."""
    suppressions = folder / "growth.abignore"
    suppressions.write_text("".join(
        f"[suppress_type]\n  type_kind = struct\n  name = {name}\n"
        "  has_data_member_inserted_at = end\n\n" for name in grew))
    library(compiler, before, folder / "before.so")
    library(compiler, after, folder / "after.so")
    result = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", str(suppressions),
                             str(folder / "before.so"), str(folder / "after.so")],
                            capture_output=True, text=True)
    if result.returncode & 3:
        raise SystemExit(f"abidiff: failed: {result.stdout}{result.stderr}")
    return result.stdout if result.returncode else ""


def compare(compiler, kept, today):
    """Returns abidiff's findings on incompatible changes since kept; empty if there are none."""
    grew = grown(kept, today)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        without_growth(today, grew, folder / "cut")
        return (changes(compiler, kept, today, grew, folder)
                + changes(compiler, kept, folder / "cut", {}, folder))


def plain(text):
    """Returns the text without comments, indentation and empty lines."""
    lines = (" ".join(line.split()) for line in layout.without_comments(text).splitlines())
    return "\n".join(line for line in lines if line)


def self_test(compiler, kept):
    failures = 0
    for good, cases in ((False, BREAKS), (True, GROWTH)):
        for name, file, old, new in cases:
            with tempfile.TemporaryDirectory() as folder:
                planted = pathlib.Path(folder, "include")
                shutil.copytree(kept, planted)
                path = planted / "catena" / "abi" / file
                text, old, new = plain(path.read_text()), plain(old), plain(new)
                if text.count(old) != 1:
                    raise SystemExit(f"abidiff: {name}: {file} has '{old}' not once")
                path.write_text(text.replace(old, new) + "\n")
                said = compare(compiler, kept, planted)
            right = (said == "") == good
            print(f"{'ok  ' if right else 'FAIL'} {name}\n{'' if right else said}", end="")
            failures += not right
    return 1 if failures else 0


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[3:] not in ([], ["--self-test"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    compiler, kept, today = arguments[0], pathlib.Path(arguments[1]), pathlib.Path(arguments[2])
    if arguments[3:]:
        return self_test(compiler, kept)
    said = compare(compiler, kept, today)
    if said:
        print(f"{said}abidiff: ABI 1 never changes: see sdk/abi/RULES.md")
        return 1
    print(f"abidiff: {len(list(layout.structs(kept)))} structs, "
          f"grown at their end: {', '.join(grown(kept, today)) or 'none'}; nothing else changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
