"""The rules that need only the sources. Each is a function (tree) -> findings "path:line: text"."""
import os
import pathlib
import re
import textwrap

import outline

CODE = {".c", ".h", ".cpp", ".hpp", ".cu", ".cuh"}
SKIPPED = {".git", ".cache", "build", "__pycache__"}
DEVICES = ("cpu", "cuda")
MAX_LINES = 600

# The folders of core/src: each may include itself and those before it.
CORE = ("device", "registry", "array", "dispatch", "graph")

# The layers that each layer may include. A test may also use the layers in the second set.
LAYERS = {
    "sdk/abi": ({"abi"}, set()),
    "sdk/plugin": ({"abi", "plugin"}, {"core", "host", "loader"}),
    "core/loader": ({"abi", "core", "loader"}, set()),
    "core": ({"abi", "core"}, {"loader", "plugin", "diagnostics"}),
    "sdk/diagnostics": ({"abi", "core", "diagnostics"}, set()),
    "plugins": ({"abi", "plugin"}, {"core", "host", "loader"}),
    "sdk/host": ({"abi", "core", "host", "loader", "diagnostics"}, {"plugin"}),
    "sdk/models": ({"core", "host", "models"}, set()),
    "sdk/images": ({"core", "host", "images"}, set()),
    "sdk/distributed": ({"abi", "core", "host", "distributed"}, {"models"}),
    "sdk/program": ({"core", "host", "distributed", "program"}, set()),
    "hosts": ({"core", "host", "models", "images", "distributed", "program"}, set()),
}


class Tree:
    """The files of a source tree, read once."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {}
        for folder, folders, names in os.walk(self.root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED)
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                data = path.read_bytes()
                if b"\0" not in data[:4096] and not data.startswith(b"\x1f\x8b"):
                    relative = path.relative_to(self.root).as_posix()
                    self.texts[relative] = data.decode("utf-8", "replace")

    def code(self, *folders):
        """Yields (path, text) of the C, C++ and CUDA files under the folders."""
        for path, text in self.texts.items():
            if pathlib.PurePosixPath(path).suffix in CODE and \
                    (not folders or any(path.startswith(f + "/") for f in folders)):
                yield path, text


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def without_comments(text):
    """Returns the text with comments blanked; lines and columns stay the same."""
    return TOKEN.sub(lambda m: blank(m) if m.group()[0] == "/" else m.group(), text)


def bare(text):
    """Returns the text with comments and literals blanked."""
    return TOKEN.sub(blank, text)


def at(path, text, position, what):
    return f"{path}:{text.count(chr(10), 0, position) + 1}: {what}"


def found(pattern, path, text, what):
    """Yields a finding for each match of which what(match) returns a description."""
    for match in re.finditer(pattern, text, re.M):
        if what(match):
            yield at(path, text, match.start(), what(match))


def is_test(path):
    """Tests and examples are programs: they may print, and use the layers that they need."""
    return not {"test", "examples"}.isdisjoint(path.split("/")[:-1])


def core_names(tree):
    """No function name and no device name is a string in the core."""
    names = set()
    for _, text in tree.code("plugins"):
        names.update(re.findall(r'"catena\.([a-z0-9_]+)"', text))

    def named(match):
        literal = match[1]
        if re.fullmatch(r"catena\.[a-z0-9_]+", literal) or literal in names:
            return f"the core names the function \"{literal}\""
        return literal.split(":")[0] in DEVICES and f"the core names the device \"{literal}\""

    for path, text in tree.code("core/include", "core/src"):
        yield from found(r'"((?:\\.|[^"\\\n])*)"', path, without_comments(text), named)


def part_of(path):
    """Returns (layer, part). Each plugin and each host is a part of its own."""
    for layer in LAYERS:
        if path.startswith(layer + "/"):
            own = layer in ("plugins", "hosts")
            return layer, "/".join(path.split("/")[:2]) if own else layer
    return None, None


def layer_of_header(name):
    layers = "abi|core|plugin|testing|loader|models|images|distributed|program|diagnostics"
    match = re.match(rf"catena/(?:({layers})\b)?", name)
    return match and {"testing": "plugin", None: "host"}.get(match[1], match[1])


def arrows(tree):
    """Includes and link libraries point downward only."""
    for path, text in tree.code():
        layer, part = part_of(path)
        if not layer:
            continue
        allowed = LAYERS[layer][0] | (LAYERS[layer][1] if is_test(path) else set())

        def upward(match):
            target = layer_of_header(match[2])
            if target and target not in allowed:
                return f"{layer} may not include <{match[2]}>"
            resolved = os.path.normpath(os.path.join(os.path.dirname(path), match[2]))
            other = resolved in tree.texts and part_of(resolved)[1] != part
            wrong = match[1] == '"' and not target and (resolved.startswith("..") or other)
            return wrong and f"{part} may not include {resolved}"

        yield from found(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', path, text, upward)
    for path, text in tree.texts.items():
        low = path.startswith(("plugins/", "sdk/plugin/", "core/")) and not is_test(path)
        if low and path.endswith("CMakeLists.txt"):
            above = "host" if path.startswith("core/") else "core|host"
            yield from found(rf"\bcatena(?:::|-)(?:{above})\b(?![-:])", path,
                             re.sub(r"#.*", "", text), lambda match: f"may not link {match[0]}")


def core_order(tree):
    """A folder of the core includes itself and those before it in CORE."""
    for path, text in tree.code("core/src"):
        folder = path.split("/")[2]
        below = CORE[:CORE.index(folder) + 1] if folder in CORE else ()
        yield from found(r'^#include "(\w+)/', path, text, lambda match: match[1] not in below and
                         f"core/src/{folder} may not include {match[1]}/")


def core_private(tree):
    """Only the core includes headers of core/src."""
    for path, text in tree.code():
        def private(match):
            beside = os.path.normpath(os.path.join(os.path.dirname(path), match[1])) in tree.texts
            return not beside and f"core/src/{match[1]}" in tree.texts and \
                f"only the core may include {match[1]}"
        if not path.startswith("core/"):
            yield from found(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', path, text, private)
    for path, text in tree.texts.items():
        if path.endswith("CMakeLists.txt") and not path.startswith("core/"):
            yield from found(r"\bcore/src\b", path, text, lambda _: "only the core may use core/src")


def definitions(tree):
    """A function is defined in the folder of core/src whose header declares it; the functions of a
    public header are all defined in one folder."""
    headers, sources = {}, []
    for path, text in tree.code("core/include", "core/src"):
        for name, has_body, position in outline.functions(bare(text)):
            if path.endswith(".cpp") and has_body:
                sources.append((name, path.split("/")[2], at(path, text, position, "")))
            elif not path.endswith(".cpp") and not has_body:
                headers.setdefault(name, set()).add(path)
    first = {}
    for name, folder, place in sources:
        declared = headers.get(name, set())
        private = {path for path in declared if path.startswith("core/src/")}
        if private and all(path.split("/")[2] != folder for path in private):
            yield f"{place}{name}() is declared in {min(private)}"
        for header in declared - private if len(declared) == 1 else ():
            other, other_name = first.setdefault(header, (folder, name))
            if folder != other:
                yield f"{place}{name}() of {header} is defined in {folder}, {other_name}() in {other}"


MANNERS = [
    (r"\bstd::cout\b", "std::cout"),
    (r"(?<![\w.>])(?:std::)?(?:printf|vprintf|puts|putchar)\s*\(", "printing to stdout"),
    (r"\bfprintf\s*\(\s*stdout\b", "printing to stdout"),
    (r"\bfmt::print(?:ln)?\s*\(\s*(?:stdout\b|[,)])", "printing to stdout"),  # literals are blank
    (r"(?<![\w.>])(?:std::)?(?:(?:exit|_exit|_Exit|quick_exit)\s*\(|(?:abort|terminate)\s*\(\s*\))",
     "ending the process"),
]


def manners(tree):
    """A library neither prints to stdout nor ends the process; main.* is a program, sdk/program a
    part of one, and process.cpp ends a process that a plugin is ending."""
    for path, text in tree.code("core", "sdk", "plugins"):
        if is_test(path) or pathlib.PurePosixPath(path).stem == "main" or \
                path.startswith("sdk/program/") or path == "core/src/device/process.cpp":
            continue
        for pattern, what in MANNERS:
            yield from found(pattern, path, bare(text), lambda match: f"{what} in a library")


def macros(tree):
    """A public header defines no macro outside CATENA_."""
    for path, text in tree.code("core", "sdk"):
        if "/include/" in path:
            yield from found(r"^[ \t]*#[ \t]*define[ \t]+(?!CATENA_)(\w+)", path,
                             without_comments(text), lambda m: f"macro {m[1]} lacks CATENA_")


def length(tree):
    """No file has too many lines, and no line of a public header is too wide."""
    for path, text in tree.texts.items():
        script = text.startswith("#!") or path.endswith((".py", ".sh", ".cmake", "CMakeLists.txt"))
        lines = text.count("\n")
        if (script or pathlib.PurePosixPath(path).suffix in CODE) and lines > MAX_LINES:
            yield f"{path}:{MAX_LINES + 1}: expected at most {MAX_LINES} lines, got {lines}"
        if path.startswith(("core/", "sdk/")) and "/include/" in path:
            yield from found(r"^.{101,}$", path, text, lambda _: "expected at most 100 columns")


def heads(tree):
    """A file begins with a comment on its purpose; a C++ header is included once."""
    for path, text in tree.code():
        if not text.startswith(("//", "/*")) and text.count("\n") > 5:
            yield f"{path}:1: expected a comment that says what the file is for"
        if path.endswith(".hpp") and not re.search(r"^#pragma once$", text, re.M):
            yield f"{path}:1: expected #pragma once"


WORDS = [
    (r"(?<![\w.}$)])/(?:home|Users|root|work)/\w+", "a path of somebody's machine"),
    (r"\b(?:TODO|FIXME|XXX|HACK)\b", "unfinished work"),
    (r"\b(?:issue|ticket)\s+#?\d+", "the project speaks of itself, not of its tracker"),
]


def words(tree):
    """The sources contain no paths of a user, no unfinished work and no references to a tracker."""
    for path, text in tree.texts.items():
        for pattern, why in WORDS if not path.startswith("tools/lint/") else ():
            yield from found(pattern, path, text, lambda match: f"'{match[0]}': {why}")


QUOTE = r"(?s)(<!-- ([\w./-]+)(?:#([\w-]+))? -->\n```\w*\n)(.*?)(^```)"
MARK = re.compile(r"^[ \t]*(?://|#) \[/?[\w-]+\]\n", re.M)  # of sections; not part of a quote


def quotable(tree, path, section):
    """Returns a file's text or its section's: the lines from "// [NAME]" to "// [/NAME]"."""
    text = tree.texts.get(path)
    if text is not None and section:
        found = re.search(rf"^[ \t]*(//|#) \[{section}\]\n(.*?)^[ \t]*\1 \[/{section}\]$",
                          text, re.S | re.M)
        text = textwrap.dedent(found.group(2)) if found else None
    return text if text is None else MARK.sub("", text)


def quotes(tree):
    """Code in a page, below a comment with its file's name, equals that file."""
    for path, text in tree.texts.items():
        def outdated(match):
            name = match[2] + (f"#{match[3]}" if match[3] else "")
            source = quotable(tree, match[2], match[3])
            if source is None:
                return f"there is no {name} to quote"
            return source != match[4] and f"expected the text of {name}: run tools/lint/run --fix"

        if path.endswith(".md"):
            yield from found(QUOTE, path, text, outdated)


def fix_quotes(tree):
    """Updates the quoted files in the pages that quote them."""
    def quoted(match):
        source = quotable(tree, match[2], match[3])
        return match[1] + (match[4] if source is None else source) + match[5]

    for path, text in tree.texts.items():
        if path.endswith(".md"):
            new = re.sub(QUOTE, quoted, text, flags=re.M)
            if new != text:
                (tree.root / path).write_text(new)
                tree.texts[path] = new


RULES = [core_names, arrows, core_order, core_private, definitions, manners, macros, length, heads,
         words, quotes]
