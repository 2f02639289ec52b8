#!/usr/bin/env python3
"""Runs the commands in the README and in the pages of an installed catena.

Each page runs in its own empty folder. For the README and the walkthrough, the folder is like a checkout.

The sh blocks of a page run in order, in one shell that stops at the first failure and has catena's bin
folder in PATH. A comment above a block changes what happens with it:

    <!-- file: PATH -->      write the block to this file
    <!-- end of: PATH -->    append it to this file
    <!-- change: PATH -->    apply the diff in the block to this file, which must contain each old text once
    <!-- not run: WHY -->    do not run this sh block

Some pages use the plugin swish.catena, which catena-new creates; it is built first.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from docs_test import FENCE

IN_CHECKOUT = ("README.md", "sdk/doc/walkthrough.md")
DIRECTIVE = re.compile(r"<!-- (file|end of|change|not run): ([^\n]+) -->\n")
# Replaces NumPy if it is not installed: the functions of NumPy that the pages use.
NUMPY = '''
import struct, zipfile
def linspace(low, high, n): return [low + (high - low) * i / (n - 1) for i in range(n)]
def ones(n): return [1.0] * n
def savez(file, **arrays):
    with zipfile.ZipFile(file, "w") as out:
        for name, values in arrays.items():
            head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(values)},), }}"
            head = head.encode().ljust(117) + b"\\n"
            out.writestr(name + ".npy", b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head +
                         struct.pack(f"<{len(values)}d", *values))
'''


def script(page, text):
    """Returns a page as a script for bash, and the number of its blocks in the script."""
    lines = ["set -euo pipefail"]
    count = 0
    for match in FENCE.finditer(text):
        said = DIRECTIVE.match(match.group())
        directive, about = said.groups() if said else (None, None)
        language, code = match.group(1), match.group(2)
        where = f"{page}:{text.count(chr(10), 0, match.start(2))}"
        if directive in ("file", "end of"):
            lines += [f"mkdir -p {shlex.quote(os.path.dirname(about) or '.')}",
                      f"cat {'>' if directive == 'file' else '>>'}{shlex.quote(about)} "
                      f"<<'END OF BLOCK'\n{code}END OF BLOCK"]
        elif directive == "change":
            lines.append(f"python3 -B {shlex.quote(__file__)} --change {shlex.quote(about)} "
                         f"<<'END OF BLOCK'\n{code}END OF BLOCK")
        elif language == "sh" and directive is None:
            lines += [f"echo '== {where}'", code]
        else:
            continue
        count += 1
    return "\n".join(lines) + "\n", count


def change(file, diff):
    """Applies a diff to a file: each hunk's old lines (" ", "-") are replaced by its new ones (" ", "+")."""
    text = file.read_text()
    for hunk in re.split(r"^@@\n", diff, flags=re.M):
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
        if text.count(old) != 1:
            raise SystemExit(f"{file}: expected once, got {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    file.write_text(text)


def self_test():
    """Checks script() and change() with a page that succeeds and with pages that fail."""
    page = ("<!-- file: a/b -->\n```cpp\n$x'\n```\n<!-- end of: a/b -->\n```cmake\ny\n```\n```cpp\n?\n```\n"
            "<!-- not run: no -->\n```sh\nexit 3\n```\n```sh\nz=1\n```\n\n```sh\ncat a/b; echo $z{}\n```\n")
    said = "== p:16\n== p:20\n$x'\ny\n1\n"
    changed = "\n```\n<!-- change: a/b -->\n```diff\n-{}\n y\n@@\n y\n+z\n```\n```sh\ncat a/b"
    failures = 0
    for more, expected in (("", (0, said, 4)), ("; false | cat; echo no", (1, said, 4)),
                           (changed.replace("{}", "$x'"), (0, said + "== p:31\ny\nz\n", 6)),
                           (changed.replace("{}", "x'"), (0, said + "== p:31\n$y\nz\n", 6)),
                           (changed.replace("{}", "gone"), (1, said, 6))):
        text, count = script("p", page.replace("{}", more))
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True)
        if (run.returncode, run.stdout, count) != expected:
            print(f"FAIL expected {expected}, got {(run.returncode, run.stdout, count)}")
            failures += 1
    return failures


def environment(work, prefix, libdir, cmake):
    kept = {name: os.environ[name] for name in ("CC", "CXX", "LANG", "TMPDIR") if name in os.environ}
    path = f"{prefix}/bin:{os.path.dirname(shutil.which(cmake))}:{os.environ['PATH']}"
    # The pages' programs run only briefly, so they are compiled with -O1 to save time.
    variables = kept | {"HOME": str(work / "home"), "PATH": path, "CMAKE_GENERATOR": "Ninja",
                        "CMAKE_BUILD_TYPE": "None", "CXXFLAGS": "-O0",
                        "PKG_CONFIG_PATH": f"{prefix}/{libdir}/pkgconfig"}
    (work / "home").mkdir()
    have = subprocess.run(["python3", "-c", "import numpy"], env=variables, capture_output=True)
    if have.returncode != 0:
        (work / "modules").mkdir()
        (work / "modules/numpy.py").write_text(NUMPY)
        variables["PYTHONPATH"] = str(work / "modules")
    return variables


def run(command, folder, variables):
    """Returns the exit code of a command. If it fails, prints its output."""
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout[-8000:])
    return done.returncode


def checkout(folder, source, build):
    """Makes a folder like a checkout: it has the tools and the build folder."""
    (folder / "build").mkdir(parents=True)
    for preset in ("release", "quick"):  # tools/demo builds the latter
        (folder / "build" / preset).symlink_to(pathlib.Path(build).resolve())
    shutil.copytree(source / "tools", folder / "tools")
    shutil.copy2(source / "CMakePresets.json", folder)


def follow(work, prefix, variables, only, build):
    """Runs the pages. Returns the number of pages that failed."""
    if run("catena-new plugin swish && cmake -S swish -B build && "
           "cmake --build build --target swish.catena", work, variables) != 0:
        return 1
    failures = pages = 0
    root = prefix / "share/doc/catena"
    names = [path.relative_to(root).as_posix() for path in sorted(root.glob("sdk/**/*.md"))]
    for name in [*(IN_CHECKOUT if build else ()), *(n for n in names if n not in IN_CHECKOUT)]:
        path = root / name
        text, count = script(name, path.read_text())
        if count == 0 or (only and path.name not in only):
            continue
        folder = work / name
        own = variables
        if name in IN_CHECKOUT:  # these pages set PATH themselves
            checkout(folder, pathlib.Path(__file__).resolve().parents[2], build)
            own = variables | {"PATH": variables["PATH"].removeprefix(f"{prefix}/bin:")}
        else:
            folder.mkdir(parents=True)
        shutil.copy(work / "build/lib/catena/plugins/swish.catena", folder)
        failed = run(text, folder, own) != 0
        print(f"{'FAIL' if failed else 'ok  '} {name}: {count} blocks", flush=True)
        failures += failed
        pages += 1
    return failures if pages else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prefix", help="an installed catena")
    parser.add_argument("--build", help="a build folder to install first, instead of --prefix")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--libdir", default="lib")
    parser.add_argument("--change", metavar="FILE", help="only apply the diff from stdin to this file")
    parser.add_argument("pages", nargs="*", help="names of pages; default: all")
    arguments = parser.parse_args()
    if arguments.change:
        return change(pathlib.Path(arguments.change), sys.stdin.read())
    os.umask(0o022)
    failures = self_test()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder).resolve()
        prefix = pathlib.Path(arguments.prefix or work / "prefix").resolve()
        if not arguments.prefix:
            subprocess.run([arguments.cmake, "--install", arguments.build, "--prefix", prefix],
                           check=True, stdout=subprocess.DEVNULL)
        variables = environment(work, prefix, arguments.libdir, arguments.cmake)
        failures += follow(work, prefix, variables, arguments.pages, arguments.build)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
