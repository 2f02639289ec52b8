#!/usr/bin/env python3
"""Tests that coming-from-chainer.md has a row for each name in chainer_names.txt, and that the names
in its right column exist, in the public headers or on the page of functions in the build
folder. The calls in that column must compile.

usage: chainer_test.py PAGE COMPILER OPTION...
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[2]
CODE_SPAN = re.compile(r"`([^`\n]+)`")
# The headers that must declare a qualified name; other names may be in any public header.
HOST = "sdk/host/include/catena"
FOLDERS = {"links": [f"{HOST}/links.hpp"],
           "cuda": [f"{HOST}/cuda", f"{HOST}/elementwise.hpp", f"{HOST}/reduction.hpp"]}
NAMESPACES = {"catena", "std"}
LANGUAGE = {"std", "vector", "struct", "static", "constexpr", "const", "auto", "throw", "false",
            "true", "return", "size_t", "int", "double", "using", "namespace", "bool"}
# Names of values and classes that cells use without declaring them.
VALUES = {"x", "y", "z", "a", "b", "c", "f", "w", "s", "t", "bn", "gy", "ggx", "model", "model_1",
          "optimizer", "scope", "array", "arrays", "inputs", "MulAdd", "Scale", "what", "l1",
          "gpu0", "h", "text", "tree", "c_prev", "other", "gw", "param", "grad", "state"}


def rows(text):
    """Yields (line number, left cell, right cell) of the tables about Chainer."""
    in_table = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("|"):
            in_table = False
        elif line.startswith("| in Chainer |"):
            in_table = True
        elif in_table and not line.startswith("|---"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) != 2:
                raise SystemExit(f"line {number}: expected 2 cells, got {len(cells)}")
            yield number, *cells


def without_comments(code):
    return re.sub(r"//[^\n]*|/\*.*?\*/|^#include[^\n]*", "", code, flags=re.S | re.M)


def words(*folders):
    found = set()
    for folder in folders:
        path = ROOT / folder
        for header in [path] if path.is_file() else sorted(path.rglob("*.hpp")):
            found.update(re.findall(r"[A-Za-z_]\w*", without_comments(header.read_text())))
    return found


def optimizers(page):
    """Returns the classes that update functions declare, and their attributes."""
    return set(re.findall(r"^(?:- )?([A-Z]\w*)\([\w=., ]*\): ", page, re.M)) | set(
        re.findall(r"^- attribute `(\w+)`", page, re.M))


def functions(page):
    """Returns the functions of plugins and those that the headers add."""
    found = set(re.findall(r"^`?\w[\w:<>]* (\w+)\(", page, re.M))
    for header in (ROOT / HOST).rglob("*.hpp"):
        code = without_comments(header.read_text())
        if "namespace catena::functions" in code:
            found |= set(re.findall(r"\b(?:X|Xs|Array|Variable|vector<\w+>) (\w+)\(", code))
            found |= set(re.findall(r"\bCATENA_\w+\((\w+)\)", code))
    return found


def unknown(code, declared):
    """Yields the names in a piece of code that are not declared."""
    code = without_comments(re.sub(r'"[^"]*"', '""', code))
    for qualifier, name in re.findall(r"\b(\w+)::(\w+)", code):
        if name not in declared.get(qualifier, declared[""]):
            yield f"{qualifier}::{name}"
    for name in re.findall(r"(?<!::)\b([A-Za-z_]\w*)\b", code):
        if name in LANGUAGE | VALUES | NAMESPACES | declared.keys() | declared[""]:
            continue
        yield name


def check(text, names, declared):
    """Yields the findings, as lines."""
    known = set()
    for number, left, right in rows(text):
        known |= set(CODE_SPAN.findall(left))
        if right.startswith("none") and len(right) < len("none: it is why"):
            yield f"{number}: expected a reason behind 'none', got '{right}'"
        if not CODE_SPAN.search(right) and not right.startswith("none"):
            yield f"{number}: expected a name, or 'none' and a reason, on the right, got '{right}'"
        for code in CODE_SPAN.findall(right):
            if re.fullmatch(r"CATENA_\w+|pop(=False)?|len|enable_double_backprop|None", code):
                continue
            if re.match(r"catena-|(sdk|hosts|tools)/", code):  # docs_test.py checks these
                continue
            for name in unknown(code, declared):
                yield f"{number}: there is no {name} (`{code}`)"
    for name in names:
        if name not in known:
            yield f"there is no row for `{name}`"


# The calls that are compiled. Methods of a class that the reader writes do not match.
CALL = re.compile(r"(const (auto|using|cuda)|\w+(::\w+)+[(<]|\w+\.|\w+\[|unpack<|"
                  r"(Variable|Parameter|MulAdd|as_variable|deep_copy|dot|seed)\()")
# Declares the names that cells use; {x} is Variable or Array.
CELL = """void cell_{n}_{x}({x} x, {x} y, {x} z, {x} w, {x} W, {x} c_prev, Array array, Arrays arrays,
    Array a, Array b, Array gy, Array ggx, Variable loss, Shape shape, FunctionSet model,
    FunctionSet other, FunctionSet model_1, MulAdd f, links::BatchNormalization bn,
    optimizers::Adam optimizer, cuda::Stream stream, Device device, Dtype dtype, bool train,
    bool test, bool finetune, std::uint64_t s, std::int64_t nbytes, std::int64_t in_size,
    std::string text, WordTree tree, double atol, double rtol, bool verbose, double scale,
    cuda::DeviceLike what, cuda::using_device& scope, ArraySpan inputs) {{
    {{
#line {n} "cell_{x}"
        {code};
    }}
}}
"""
HEAD = """#include <catena/catena.hpp>
using namespace catena;
namespace F = catena::functions;
struct MulAdd : Function<MulAdd> { Parameter W, b; };
struct MulAddNode : FunctionNode {};
struct Scale : FunctionNode { explicit Scale(double); };
"""


def uncompiled(text, compiler):
    """Yields calls on the right that compile neither with variables nor with arrays, as lines."""
    calls = []
    for number, _, right in rows(text):
        calls += [(number, code.rstrip(";")) for code in CODE_SPAN.findall(right)
                  if "(" in code and CALL.match(code)]
    source = HEAD
    for n, (_, code) in enumerate(calls, 1):
        code = code.replace("apply<MulAdd>", "apply<MulAddNode>")  # elsewhere MulAdd is a Function
        statement = code if code.startswith("const ") else f"static_cast<void>({code})"
        for x in ("Variable", "Array"):
            source += CELL.format(n=n, x=x, code=statement)
    done = subprocess.run([*compiler, "-std=c++20", "-fsyntax-only", "-w", "-x", "c++", "-"],
                          input=source, capture_output=True, text=True, check=False)
    wrong = set(re.findall(r"cell_(Variable|Array):(\d+):", done.stderr))
    if done.returncode != 0 and not wrong:
        yield f"the calls do not compile: {done.stderr}"
    for n, (number, code) in enumerate(calls, 1):
        if {("Variable", str(n)), ("Array", str(n))} <= wrong:
            yield f"{number}: `{code}` does not compile"


def self_test(declared, compiler):
    head = "| in Chainer | here |\n|---|---|\n"
    cases = [("| `F.relu` | `F::relu` |", 0), ("| `F.relu` | `F::rellu` |", 1),
             ("| `F.relu` | `cuda::relu` |", 1), ("| `F.exp` | `F::exp` |", 1),
             ("| `F.relu` | `x.no_such_method()` |", 1), ("| `F.relu` | none |", 1),
             ("| `F.relu` | none, because it is an example |", 0), ("| `F.relu` | nothing |", 1),
             ("| `F.relu` | `links::Linear(3, 2)`, `cuda::get_device(x)` |", 0),
             ("| `F.relu` | `links::SGD` |", 1)]
    failures = 0
    for row, expected in cases:
        found = list(check(head + row + "\n", ["F.relu"], declared))
        if len(found) != expected:
            print(f"FAIL {row}: expected {expected} findings, got {found}")
            failures += 1
    for row, expected in [("| `F.relu` | `F::relu(x, x)`, `F::relu(x)` |",
                           ["3: `F::relu(x, x)` does not compile"]),
                          ("| `x.array` | `x.data()`, `x.size()` |", [])]:
        found = list(uncompiled(head + row + "\n", compiler))
        if found != expected:
            print(f"FAIL {row}: expected {expected}, got {found}")
            failures += 1
    return failures


def main():
    declared = {namespace: words(*folders) for namespace, folders in FOLDERS.items()}
    page, compiler = pathlib.Path(sys.argv[1]).read_text(), sys.argv[2:]
    declared["F"] = functions(page)
    declared["optimizers"] = optimizers(page)
    declared[""] = words("core/include", "sdk/host/include") | declared["F"] | declared["optimizers"]
    failures = self_test(declared, compiler)
    lines = (HERE.parent / "chainer_names.txt").read_text().split("\n")
    names = [name for line in lines if not line.startswith("#") for name in line.split()]
    guide = ROOT / "sdk/doc/coming-from-chainer.md"
    text = guide.read_text()
    findings = [*check(text, names, declared), *uncompiled(text, compiler)]
    for finding in findings:
        print(f"{guide.relative_to(ROOT)}:{finding}")
    print(f"chainer_test: {len(names)} names, {len(findings)} findings")
    return 1 if failures or findings or not names else 0


if __name__ == "__main__":
    sys.exit(main())
