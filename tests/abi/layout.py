#!/usr/bin/env python3
"""The layout lock of the ABI: sizes, offsets and values in the headers never change; new ones are added.

usage: layout.py generate INCLUDE OUT.c    write the C program that prints the layout
       layout.py check GOLDEN PRINTED      compare what it printed with the golden file
       layout.py update GOLDEN PRINTED     take additions into the golden file; changes are refused

The program is generated from the headers, so no struct, field or constant can be forgotten. It
checks that the fields' sizes add up to the struct's, which also shows that nothing is padded. Drafts
are held to the same but for the golden file: they may change.
"""
import pathlib
import re
import sys


DRAFT = "draft "  # prefix of the lines about drafts, which may change


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def strip(text):
    return re.sub(r"^\s*#(?:.*\\\n)*.*$", "", without_comments(text), flags=re.M)


def body(text, start):
    """Returns the text between the brace at start and its closing brace, and the next position."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1 : i], i + 1
    raise SystemExit("layout: unbalanced braces")


def squeeze(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\s*([*(),\[\]])\s*", r"\1", text)


def anonymous(parameter):
    """Returns a parameter's type without its name, because renaming does not change the ABI."""
    parameter = parameter.strip()
    if " " in parameter:
        parameter = re.sub(r"(?<=[\s*])\w+$", "", parameter)
    return squeeze(parameter)


def fields(text):
    """Yields (name, type as text) of each field of a struct's body."""
    position = 0
    while True:
        rest = text[position:]
        if not rest.strip():
            return
        union = re.match(r"\s*union\s*\{", rest)
        if union:
            inner, end = body(text, position + union.end() - 1)
            name = re.match(r"\s*(\w+)\s*;", text[end:])
            members = "; ".join(f"{kind} {member}" for member, kind in fields(inner))
            yield name.group(1), f"union {{{members}}}"
            position = end + name.end()
            continue
        declaration, position = rest.split(";", 1)[0], position + rest.index(";") + 1
        pointer = re.match(r"(.*)\(\s*CATENA_CALL\s*\*\s*(\w+)\s*\)\s*\((.*)\)\s*$", declaration,
                           re.S)
        if pointer:
            result, name, parameters = pointer.groups()
            types = ",".join(anonymous(p) for p in parameters.split(","))
            yield name, f"{squeeze(result)}(*)({types})"
        else:
            kind, name, extent = re.match(r"(.*?)(\w+)\s*((?:\[\w+\])?)\s*$", declaration,
                                          re.S).groups()
            yield name, squeeze(kind) + extent


def headers(include):
    found = sorted(pathlib.Path(include).rglob("*.h"))
    if not found:
        raise SystemExit(f"layout: expected headers under {include}, found none")
    return found


def is_draft(path):
    return path.parent.name == "draft"


def structs(include):
    """Yields (file, name, declarations of its fields) of each struct, without comments."""
    for path in headers(include):
        text = without_comments(path.read_text())
        for match in re.finditer(r"\bstruct\s+(catena_\w+)\s*\{", text):
            inner = body(text, match.end() - 1)[0]
            yield path, match.group(1), re.findall(r"(?:[^;{]|\{[^}]*\})*;", inner)


def generate(include, out, drafts=True):
    lines, includes = [], []
    for path in headers(include):
        if is_draft(path) and not drafts:
            continue
        includes.append(f'#include "{path.relative_to(include).as_posix()}"')
        raw = path.read_text()
        text = strip(raw)
        start = len(lines)
        for name in re.findall(r"^#define\s+(CATENA_(?:ABI_MAJOR|RETAIN_\w+))\s", raw, re.M):
            lines.append(f'    printf("constant {name} %llu\\n", (unsigned long long)({name}));')
        for name in re.findall(r'^#define\s+(CATENA_\w+)\s+"', raw, re.M):
            lines.append(f'    printf("constant {name} \\"%s\\"\\n", {name});')
        for match in re.finditer(r"\benum\s*\w*\s*\{", text):
            for constant in body(text, match.end() - 1)[0].split(","):
                if constant.strip():
                    name = constant.split("=")[0].strip()
                    lines.append(f'    printf("constant {name} %lld\\n", (long long){name});')
        callback = r"\btypedef\s+([^;{}]*?)\(\s*CATENA_CALL\s*\*\s*(\w+)\s*\)\(([^;]*)\)\s*;"
        for match in re.finditer(callback, text):
            types = ",".join(anonymous(p) for p in match.group(3).split(","))
            lines.append(f'    puts("callback {match.group(2)} '
                         f'{squeeze(match.group(1))}(*)({types})");')
        for match in re.finditer(r"\bstruct\s+(catena_\w+)\s*\{", text):
            struct = match.group(1)
            members = list(fields(body(text, match.end() - 1)[0]))
            growth = "growable" if "struct_size" in dict(members) else "frozen"
            lines.append(f'    printf("struct {struct} size %lu {growth}\\n", '
                         f'(unsigned long)sizeof(struct {struct}));')
            lines.append("    sum = 0;")
            for name, kind in members:
                size = f"sizeof(((struct {struct} *)0)->{name})"
                lines.append(f"    sum += {size};")
                lines.append(f'    printf("field {struct}.{name} offset %lu size %lu {kind}\\n", '
                             f"(unsigned long)offsetof(struct {struct}, {name}), "
                             f"(unsigned long){size});")
            lines.append(f'    bad |= wrong("{struct}", sum, sizeof(struct {struct}));')
        if is_draft(path):
            lines[start:] = [re.sub(r'(printf|puts)\("', rf'\1("{DRAFT}', line)
                             for line in lines[start:]]
    program = "\n".join([
        "/* Generated by tests/abi/layout.py. */", *includes, "#include <stdio.h>", "",
        "static int wrong(const char *name, size_t sum, size_t size) {",
        "    if (sum == size) return 0;",
        '    fprintf(stderr, "%s: its fields have %lu bytes, the struct has %lu\\n", name,',
        "            (unsigned long)sum, (unsigned long)size);",
        "    return 1;", "}", "",
        "int main(void) {", "    size_t sum = 0;", "    int bad = 0;", *lines, "    return bad;",
        "}", ""])
    pathlib.Path(out).write_text(program)


def entries(text, drafts=False):
    """Returns {subject of the line: the line} in order, either of drafts or of everything else."""
    lines = [line for line in text.splitlines()
             if line.strip() and line.startswith(DRAFT) == drafts]
    lines = [line.removeprefix(DRAFT) for line in lines]
    return {" ".join(line.split()[:2]): line for line in lines}


def compare(golden, printed):
    """Returns (changes that break the lock, additions)."""
    broken, added, named = [], [], set()
    places = {(key.split(".")[0], *line.split()[2:]): key for key, line in printed.items()
              if key.startswith("field ")}
    for key, line in golden.items():
        now = printed.get(key)
        if now is None and key.endswith(".reserved"):
            place = places.get((key.split(".")[0], *line.split()[2:]))
            if place:  # a reserved field got a name
                named.add(place)
                added.append(printed[place])
                continue
        if now is None:
            broken.append(f"gone:    {line}")
        elif now != line:
            was, got = line.split(), now.split()
            grown = (was[0] == "struct" and was[4] == got[4] == "growable"
                     and int(got[3]) > int(was[3]))
            if grown:
                added.append(now)
            else:
                broken.append(f"changed: {line}\n     to: {now}")
    sizes = {key.split()[1]: int(line.split()[3]) for key, line in golden.items()
             if line.startswith("struct ")}
    for key, line in printed.items():
        if key in golden or key in named:
            continue
        struct, _, _ = key.split()[1].partition(".")
        if key.startswith("field ") and struct in sizes and int(line.split()[3]) < sizes[struct]:
            broken.append(f"not at the end: {line}")
        else:
            added.append(line)
    return broken, added


FIXED = re.compile(r"u?int(8|16|32|64)_t|char|float|double|void|const|union|catena_\w+")


def misfits(printed):
    """Yields errors about types that structs and callbacks of the ABI may not use."""
    growable = {key.split()[1] for key, line in printed.items() if line.endswith(" growable")}
    for key, line in printed.items():
        if not key.startswith(("field ", "callback ")):
            continue
        kind = line.split(" ", 6 if key.startswith("field ") else 2)[-1]
        types = re.sub(r"\w+\s*(?=[;}])", "", kind) if kind.startswith("union") else kind
        words = re.findall(r"[A-Za-z_]\w*", types.split("[")[0])
        if not all(map(FIXED.fullmatch, words)):
            yield f"{key}: expected types of the same size everywhere, got {kind}"
        if kind.split("[")[0] in growable:
            yield f"{key}: {kind} may grow, and then moves what follows: point to it"


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("generate", "check", "update"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    verb, first, second = arguments
    if verb == "generate":
        generate(first, second)
        return 0
    path = pathlib.Path(first)
    printed_text = pathlib.Path(second).read_text()
    golden = entries(path.read_text()) if path.exists() else {}
    printed = entries(printed_text)
    broken, added = compare(golden, printed)
    broken += misfits(printed | entries(printed_text, drafts=True))
    for line in broken:
        print(line)
    if broken:
        print(f"layout: {len(broken)} lines of {path.name} no longer hold. ABI 1 never changes: "
              "see sdk/abi/RULES.md")
        return 1
    if verb == "update":
        path.write_text("".join(line + "\n" for line in printed.values()))
        print(f"layout: {len(added)} lines added or grown")
        return 0
    for line in added:
        print(f"new:     {line}")
    if added:
        print(f"layout: {len(added)} lines are not in {path.name} yet: build abi-layout-update")
        return 1
    print(f"layout: {len(golden)} lines hold")
    return 0 if golden else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
