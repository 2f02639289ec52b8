#!/usr/bin/env python3
"""Links, files, names, commands and options in the guides under sdk/doc exist.

tools/lint checks that quoted code is up to date, the tests of the examples run it, and guides_test.py
runs the commands of the pages. --fix updates the output of programs: the table of catena-check's
checks and the files that catena-new writes.
"""
import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

FENCE = re.compile(r"(?:^<!-- [^\n]* -->\n)?^```(\w*)\n(.*?)^```", re.S | re.M)
PROGRAM = re.compile(r"catena(-[a-z-]+)?$")
OTHER_PAGES = {"sdk/abi/RULES.md", "README.md", "core/README.md", "sdk/README.md", "plugins/README.md",
               "hosts/README.md", "tests/README.md", "tools/README.md"}
ELSEWHERE = {"GTest", "gtest_main"}
FOLDERS = ("core", "hosts", "plugins", "sdk", "tests", "tools")
CODE = {".c", ".h", ".cpp", ".hpp", ".cuh", ".cmake", ".in", ".txt", ".py", ".rs", ".f90"}


class Tree:
    """The pages, and all words of the code and of the build files. With every: all pages, not only the
    guides."""

    def __init__(self, root, every=False):
        self.root = pathlib.Path(root)
        self.pages = {}
        self.words = set()
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if name.startswith((".", "build")) or "__pycache__" in name or not path.is_file():
                continue
            guide = name.startswith("sdk/doc/") or name in OTHER_PAGES
            if path.suffix == ".md" and (every or guide):
                self.pages[name] = path.read_text()
            elif path.suffix in CODE and not name.startswith("tests/docs/"):
                self.words.update(re.findall(r"\w+", path.read_text("utf-8", "replace")))


def prose(text):
    """Returns the text without blocks of code; the line numbers stay the same."""
    return FENCE.sub(lambda m: "\n" * m.group().count("\n"), text)


def at(page, text, position, what):
    return f"{page}:{text.count(chr(10), 0, position) + 1}: {what}"


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text):
    return {slug(h) for h in re.findall(r"^#+ (.*)$", prose(text), re.M)}


def links(tree, _):
    """Links lead to files, and to headings in them."""
    for page, text in tree.pages.items():
        clean = prose(text)
        for match in re.finditer(r"\]\(([^)\s]+)\)", clean):
            target, _, anchor = match.group(1).partition("#")
            if target.startswith(("http:", "https:")):
                continue
            file = (tree.root / page).parent / target if target else tree.root / page
            if not file.exists():
                yield at(page, clean, match.start(), f"there is no {match.group(1)}")
            elif anchor and anchor not in anchors(file.read_text()):
                yield at(page, clean, match.start(), f"{file.name} has no heading #{anchor}")


def spans(text):
    """Yields (position, code) of each text between backquotes in prose."""
    for match in re.finditer(r"`([^`\n]+)`", prose(text)):
        yield match.start(), match.group(1)


def files(tree, _):
    """The named files of the repository and the named headers exist."""
    includes = [*tree.root.glob("core/**/include"), *tree.root.glob("sdk/*/include")]
    for page, text in tree.pages.items():
        for position, code in spans(text):
            path = re.fullmatch(r"<?((?:[\w.-]+/)+[\w.-]+)/?>?", code)
            if not path:
                continue
            first = path.group(1).split("/")[0]
            if first in FOLDERS and not (tree.root / path.group(1)).exists():
                yield at(page, text, position, f"there is no {path.group(1)}")
            if first == "catena" and path.group(1).endswith((".h", ".hpp")) and \
                    not any((i / path.group(1)).exists() for i in includes):
                yield at(page, text, position, f"there is no header {path.group(1)}")


def names(tree, _):
    """Names in backquotes are words of the code or, on the page about Chainer, names of Chainer."""
    listed = tree.root / "tests/docs/chainer_names.txt"
    chainer = set(re.findall(r"\w+", listed.read_text())) if listed.exists() else set()
    for page, text in tree.pages.items():
        known = tree.words | ELSEWHERE
        if pathlib.Path(page).name == "coming-from-chainer.md":
            known |= chainer
        for position, code in spans(text):
            if re.search(r"\s--|^(?:-|catena|cmake|\$|~|/)|[./]\w", code) or code.isupper():
                continue
            for word in re.findall(r"[A-Za-z]\w{3,}", re.sub(r'"[^"]*"', "", code)):
                if word not in known and not word.isupper():
                    yield at(page, text, position, f"nothing is called {word} (`{code}`)")


def variables(tree, _):
    """Environment variables and macros occur in the code."""
    for page, text in tree.pages.items():
        for match in re.finditer(r"\bCATENA_\w+", text):
            if match.group() not in tree.words:
                yield at(page, text, match.start(), f"nothing reads {match.group()}")


ERRORS = re.compile(r"<!-- errors of (\S+) -->")


def errors(tree, _):
    """A page that promises the errors of a header names all of its error classes."""
    for page, text in tree.pages.items():
        for match in ERRORS.finditer(text):
            header = (tree.root / match.group(1)).read_text()
            for name in re.findall(r"^(?:class|using) (\w*Error)\b", header, re.M):
                if f"`{name}`" not in text:
                    yield at(page, text, match.start(), f"it leaves out {name}")


ALL_OF = re.compile(r"<!-- all of ([\w./-]+) (\w+) -->")


def public_names(code, name):
    """Returns the public functions of a struct or class, and free ones that take such an object."""
    body = re.search(rf"^(?:class|struct) {name}(?: : [^{{;]*)? {{\n(.*?)^(?:private:|}};)", code, re.S | re.M)
    declared = r"(?!.*\boperator\b)[^\s/(][^(\n]*? (\w+)\("
    inside = re.findall(f"^    {declared}", body.group(1) if body else "", re.M)
    taking = re.findall(rf"^{declared}(?:const )?{name}\b", code, re.M)
    return set(inside + taking)


def members(tree, _):
    """A page that promises all of a class names each of its public functions."""
    for page, text in tree.pages.items():
        told = {word for _, code in spans(text) for word in re.findall(r"\w+", code)}
        for match in ALL_OF.finditer(text):
            names_there = public_names((tree.root / match.group(1)).read_text(), match.group(2))
            for name in sorted(names_there - told) if names_there else ["what it promises"]:
                yield at(page, text, match.start(), f"it leaves out {name}")


COUNTERPARTS = re.compile(r"^\| in \w+ \| here \|\n\|[-|]+\n((?:\|.*\n)+)", re.M)
CPP = {"const", "cout", "double", "false", "float", "scope", "std", "true"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def public_words(tree, functions):
    """Returns the words of the public headers, and the names of functions and of their attributes,
    which generated wrappers have."""
    found = set(CPP)
    for folder in [*tree.root.glob("core/**/include"), *tree.root.glob("sdk/*/include")]:
        for path in folder.rglob("*.h*"):
            found.update(re.findall(r"\w+", COMMENT.sub(" ", path.read_text("utf-8", "replace"))))
    if functions:
        text = functions.read_text()
        found.update(re.findall(r"^#+ (\w+)$", text, re.M))
        for name in re.findall(r"^(?:- )?([A-Z]\w*)\([\w=., ]*\): ", text, re.M):  # of optimizers
            found.update([name, name.lower()])
        found.update(re.findall(r"`(\w+)`", text))
    return found


def counterparts(tree, programs):
    """Names in the second column of tables "in X | here" are declared in a public header."""
    public = None
    for page, text in tree.pages.items():
        # chainer_test.py checks the one, the tests of the Python package the other.
        if pathlib.Path(page).name in ("coming-from-chainer.md", "python.md"):
            continue
        for table in COUNTERPARTS.finditer(text):
            public = public or public_words(tree, programs.functions)
            position = table.start(1)
            for row in table.group(1).splitlines(keepends=True):
                here = row.strip().strip("|").partition(" | ")[2]
                codes = [c for _, c in spans(here) if not c.startswith("catena-")]
                if not codes and not re.search(r"\bnot\b|\]\(", here):
                    yield at(page, text, position, f"no name, and no 'not available': {row.strip()}")
                for code in codes:
                    bare = re.sub(r'"[^"]*"|/\*.*?\*/', "", code)
                    for word in re.findall(r"(?<![\w.])[A-Za-z_]\w+|(?<=\.)[A-Za-z_]\w+", bare):
                        if word not in public and not word.isupper() and \
                                not word.startswith("CATENA_"):
                            yield at(page, text, position, f"no public header has {word} (`{code}`)")
                position += len(row)


class Programs:
    """The output of the programs, whose commands run only once, and the page of functions."""

    def __init__(self, folder, functions=None):
        self.folder = pathlib.Path(folder)
        self.functions = functions
        self.texts = {}

    def output(self, *command):
        """Returns the output of a command, or None if it fails."""
        if command not in self.texts:
            try:
                done = subprocess.run([self.folder / command[0], *command[1:]], text=True,
                                      capture_output=True)
                self.texts[command] = done.stdout if done.returncode == 0 else None
            except OSError:
                self.texts[command] = None
        return self.texts[command]

    def scaffold(self, command, name):
        """Returns the text of a file that catena-new writes, or None."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([self.folder / "catena-new", *command.split(), "--output", folder],
                                  capture_output=True)
            file = pathlib.Path(folder) / name
            return file.read_text() if done.returncode == 0 and file.is_file() else None

    def wrong(self, line):
        """Returns what is wrong with a command, or None."""
        words = shlex.split(re.sub(r"\s+[>|<].*", "", line), comments=True)
        while words and "=" in words[0]:
            words.pop(0)
        if not words or not PROGRAM.fullmatch(words[0]):
            return None
        text = self.output(words[0], "--help")
        if text is None:
            return f"{words[0]} --help does not work"
        if words[0] in ("catena", "catena-new") and len(words) > 1:
            if not re.search(rf"^(  |.*{words[0]} ){re.escape(words[1])}\b", text, re.M):
                return f"{words[0]} has no command {words[1]}"
        for word in words[1:]:
            option = re.match(r"--[a-z][a-z0-9-]*|-[a-z]$", word)
            if option and not re.search(rf"(^|[\s\[]){re.escape(option.group())}(?![\w-])", text):
                return f"{words[0]} has no option {option.group()}"
        return None


def commands(tree, programs):
    """Commands of catena's programs, in blocks and in prose, agree with their --help."""
    for page, text in tree.pages.items():
        for match in FENCE.finditer(text):
            whole = match.group(2).replace("\\\n", " ")
            for line in whole.split("\n") if match.group(1) == "sh" else ():
                if (wrong := programs.wrong(line)) is not None:
                    yield at(page, text, match.start(), f"{wrong}: {line}")
        for position, code in spans(text):
            if PROGRAM.match(code.split()[0]) and " " in code:
                if (wrong := programs.wrong(code)) is not None:
                    yield at(page, text, position, f"{wrong}: {code}")


def blocks(tree, _):
    """Code is quoted from compiled files, or written to files by guides_test.py. A sketch in C or C++
    contains an ellipsis. CMake code calls functions of catena that exist."""
    for page, text in tree.pages.items():
        for match in FENCE.finditer(text):
            language, code = match.group(1), match.group(2)
            if language == "cmake":
                for name in re.findall(r"\bcatena_\w+(?=\()", code):
                    if name not in tree.words:
                        yield at(page, text, match.start(), f"CMake has no {name}()")
            if match.group().startswith("<!--") or language not in ("c", "cpp", "cmake"):
                continue
            if language == "cmake" or "..." not in code:
                yield at(page, text, match.start(), f"expected code quoted from a file: {code[:40]!r}")


SCAFFOLD = re.compile(r"(<!-- catena-new ([^\n]*): (\S+) -->\n```\w*\n)(.*?)(^```)", re.S | re.M)


def scaffolds(tree, programs):
    """Files that catena-new writes are shown as it writes them."""
    for page, text in tree.pages.items():
        for match in SCAFFOLD.finditer(text):
            if match.group(4) != programs.scaffold(match.group(2), match.group(3)):
                yield at(page, text, match.start(), f"not the {match.group(3)} of today: the target "
                                                    "docs-update writes it anew")


TABLE = re.compile(r"(<!-- catena-check --list -->\n)(.*?)(^<!-- end -->)", re.S | re.M)


def table(programs):
    """Returns the output of catena-check --list as Markdown."""
    lines = ["| group | check | |", "|---|---|---|"]
    group = ""
    for line in programs.output("catena-check", "--list").splitlines():
        if re.match(r"\S", line):
            group = line.strip()
        elif line.strip():
            name, _, doc = line.strip().partition("  ")
            lines.append(f"| {group} | `{name}` | {doc.strip()} |")
            group = ""
    return "\n".join(lines) + "\n"


def tables(tree, programs):
    """The table of checks equals that of catena-check."""
    for page, text in tree.pages.items():
        for match in TABLE.finditer(text):
            if match.group(2) != table(programs):
                yield at(page, text, match.start(), "not of today: the target docs-update writes it anew")


CLASSES = re.compile(r"(<!-- classes of ([\w/.\- ]+) -->\n)(.*?)(^<!-- end -->)", re.S | re.M)
CLASS = re.compile(r"^((?://[^\n]*\n)*)(?:template <[^\n]*>\n)?(?:class|struct) (?:\[\[nodiscard\]\] )?"
                   r"(\w+)[^;{}\n]*{\n(.*?)^(?:private:|protected:|};)", re.S | re.M)


def first_sentence(comment, name):
    """The first sentence of a comment of lines, without its marks, examples and the name."""
    lines = [line for line in comment.splitlines() if not line.startswith("//   ")]
    text = "\n".join(re.sub(r"^// ?", "", line) for line in lines).split("\n\n")[0]
    text = re.sub(rf"^{name}: ", "", re.sub(r"\s+", " ", text).strip())
    end = re.search(r"(?<!e\.g)\.(?= |$)|:$", text)
    text = text[:end.start()] if end else text
    if re.match(r"[a-z]+,? [A-Za-z]", text) and not text.startswith(name):  # not a formula or a name
        text = text[:1].upper() + text[1:]
    return text.replace("|", "\\|")


def declared(body):
    """The names of several variables that one declaration has, as in `Linear q, k{2}, v = 1;`."""
    for line in re.findall(r"^    ([A-Za-z][^()\n;]*, [^()\n;]*);", body, re.M):
        plain = line
        while (shorter := re.sub(r"<[^<>]*>|\{[^{}]*\}", "", plain)) != plain:
            plain = shorter
        names = [part.partition("=")[0].split() for part in plain.split(",")]
        if len(names) > 1 and len(names[0]) > 1 and all(len(each) == 1 for each in names[1:]):
            yield from (each[-1] for each in names)


def class_table(root, places):
    """A table of the classes in headers: what each is by its comment, or by its header's, and its
    public members."""
    lines = ["| class | what it is | public members |", "|---|---|---|"]
    for place in places.split():
        headers = sorted((root / place).glob("*.hpp")) if (root / place).is_dir() else [root / place]
        for header in headers:
            code = header.read_text()
            name = header.as_posix().partition("/include/")[2]
            shown = f"**`<{name}>`**"
            for comment, kind, body in CLASS.findall(code):
                if kind in ("ArrayBody", "ErrorOf", "ArrayFunction"):  # no program names them
                    continue
                of_header = re.sub(r"^// \w+: ", "// ", code.partition("\n")[0])
                found = re.findall(r"^    (?!using |friend |return |template |explicit )(?:[^\s/(][^(\n;=]*? )?(\w+)(\(|;| = |{)(?!.*= delete)",
                                   body, re.M)
                members = {word + "()" * (mark == "("): None for word, mark in found
                           if word not in (kind, "operator", "requires", "static_assert")}
                if re.search(r"^    [^/\n]*operator\(\)\(", body, re.M):
                    members = {"operator()": None, **members}
                for word in declared(body):
                    members.setdefault(word)
                alone = len(CLASS.findall(code)) == 1  # then the header's comment is the class's
                what = first_sentence(comment or (of_header if alone else ""), kind)
                lines.append(f"| `{kind}` {shown} | {what} | " +
                             ", ".join(f"`{member}`" for member in members) + " |")
                shown = ""
    return "\n".join(re.sub(r" +\|", " |", line) for line in lines) + "\n"


def classes(tree, _):
    """Tables of classes equal what the headers say."""
    for page, text in tree.pages.items():
        for match in CLASSES.finditer(text):
            if match.group(3) != class_table(tree.root, match.group(2)):
                yield at(page, text, match.start(), "not of today: the target docs-update writes it anew")


def fix(tree, programs):
    for page, text in tree.pages.items():
        text = CLASSES.sub(lambda m: m[1] + class_table(tree.root, m[2]) + m[4], text)
        new = TABLE.sub(lambda m: m[1] + table(programs) + m[3], text)
        new = SCAFFOLD.sub(lambda m: m[1] + (programs.scaffold(m[2], m[3]) or m[4]) + m[5], new)
        if new != tree.pages[page]:
            (tree.root / page).write_text(new)
            tree.pages[page] = new


RULES = [tables, classes, scaffolds, links, files, names, counterparts, variables, errors, members, commands,
         blocks]

# rule, text of a page, how many findings; the tree has sdk/a.hpp with `struct Known`, `class
# KnownError` and `class Whole` with one() and two(), a heading, and programs: catena knows
# `run --deep`, catena-check two checks, catena-new a file x.c.
TIMES = "| group | check | |\n|---|---|---|\n| load | `time` | short |\n|  | `end` | clean |\n"
CASES = [
    (tables, f"<!-- catena-check --list -->\n{TIMES}<!-- end -->\n", 0),
    (tables, "<!-- catena-check --list -->\n| old |\n<!-- end -->\n", 1),
    (classes, "<!-- classes of sdk/a.hpp -->\n| class | what it is | public members |\n|---|---|---|\n"
              "| `Whole` **`<>`** | Struct Known; // CATENA_HERE | `one()` |\n<!-- end -->\n", 0),
    (classes, "<!-- classes of sdk/a.hpp -->\n| old |\n<!-- end -->\n", 1),
    (links, "[x](../a.hpp) [y](b.md#a-heading) [z](#here)\n\n## Here\n", 0),
    (links, "[x](../gone.hpp)", 1),
    (links, "[x](b.md#gone)", 1),
    (links, "```sh\n[x](gone)\n```\n", 0),
    (files, "`sdk/a.hpp`, `catena/b.hpp`, `share/x`", 1),
    (files, "`sdk/gone.hpp`", 1),
    (names, "`Known`, `Known::x`, `NAME`", 0),
    (names, "`Unknown(1)`", 1),
    (variables, "`CATENA_GONE=1`", 1),
    (variables, "`CATENA_HERE=1`", 0),
    (errors, "<!-- errors of sdk/a.hpp -->\n`KnownError`\n", 0),
    (errors, "<!-- errors of sdk/a.hpp -->\nKnownError\n", 1),
    (members, "<!-- all of sdk/a.hpp Whole -->\n`w.one()`, `two(w)`", 0),
    (members, "<!-- all of sdk/a.hpp Whole -->\n`w.one()`, two", 1),
    (members, "<!-- all of sdk/a.hpp Gone -->\n", 1),
    (counterparts, "| in X | here |\n|---|---|\n| `x.y` | `Known::one()`, `whole.two(1)` |\n"
                   "| `x.z` | not available |\n| `x.w` | a [page](b.md) |\n", 0),
    (counterparts, "| in X | here |\n|---|---|\n| `x.y` | `Known::gone()`, `x.three(1)` |\n", 2),
    (counterparts, "| in X | here |\n|---|---|\n| `x.y` | so |\n", 1),
    (commands, "```sh\ncatena run x --deep > y   # --not\nls --gone\n```\n`catena run --deep`", 0),
    (commands, "```sh\nA=b catena run --gone\n```\n", 1),
    (commands, "```sh\ncatena run \\\n    --gone\n```\n", 1),
    (commands, "`catena walk`", 1),
    (commands, "`catena-gone --help`", 1),
    (blocks, "```cpp\nint x;\n```\n", 1),
    (blocks, "<!-- a.cpp -->\n```cpp\nint x;\n```\n", 0),
    (blocks, "<!-- x -->\n```cmake\ncatena_gone(x)\n```\n", 1),
    (blocks, "<!-- x -->\n```cmake\nproject(x)\n```\n", 0),
    (blocks, "```cmake\nproject(...)\n```\n", 1),
    (scaffolds, "<!-- catena-new plugin y: x.c -->\n```c\nint plugin_y;\n```\n", 0),
    (scaffolds, "<!-- catena-new plugin y: x.c -->\n```c\nint plugin_x;\n```\n", 1),
    (scaffolds, "<!-- catena-new plugin y: gone.c -->\n```c\n```\n", 1),
]


def self_test():
    failures = 0
    for rule, text, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "sdk/doc").mkdir(parents=True)
            (root / "sdk/a.hpp").write_text(
                "struct Known; // CATENA_HERE\nclass KnownError;\n"
                "class Whole {\n    Whole();\n    int one();\nprivate:\n    int no();\n};\n"
                "int two(Whole w);\n")
            (root / "core/include").mkdir(parents=True)
            (root / "core/include/a.hpp").write_text(
                "struct Known { void one(); Known whole; int two(int); }; // three\n")
            (root / "sdk/doc/a.md").write_text(text)
            (root / "sdk/doc/b.md").write_text("# A heading\n")
            for name, line in (("catena", "echo '  run  it\n  --deep  more'"),
                               ("catena-check", "echo 'load\n  time  short\n  end   clean'"),
                               ("catena-new", 'echo "int $1_$2;" >"$4/x.c"')):
                (root / name).write_text(f"#!/bin/sh\n{line}\n")
                (root / name).chmod(0o755)
            found = list(rule(Tree(root), Programs(root)))
            if len(found) != expected:
                print(f"FAIL {rule.__name__}: {text!r}: expected {expected} findings, got {found}")
                failures += 1
    untested = {r.__name__ for r in RULES} - {case[0].__name__ for case in CASES}
    if untested:
        print(f"FAIL rules without a case: {sorted(untested)}")
    return failures + len(untested)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--programs", help="the folder of catena, catena-check ...")
    parser.add_argument("--functions", type=pathlib.Path, help="the page of functions in the build folder")
    parser.add_argument("--installed", help="a folder of pages: only whether their links lead on")
    parser.add_argument("--fix", action="store_true", help="first write tables anew")
    arguments = parser.parse_args()
    findings = self_test()
    if arguments.installed:
        tree = Tree(arguments.installed, every=True)
        broken = list(links(tree, None))
        print("\n".join(broken + [f"docs_test: {len(tree.pages)} pages, {len(broken)} dead links"]))
        return 1 if findings or broken or not tree.pages else 0
    tree, programs = Tree(arguments.source), Programs(arguments.programs, arguments.functions)
    if arguments.fix:
        fix(tree, programs)
    for rule in RULES:
        for finding in rule(tree, programs):
            print(f"{finding} [{rule.__name__}]")
            findings += 1
    print(f"docs_test: {len(tree.pages)} pages, {len(CASES)} cases, {findings} findings")
    return 1 if findings or not tree.pages else 0


if __name__ == "__main__":
    sys.exit(main())
