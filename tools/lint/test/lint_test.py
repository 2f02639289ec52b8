#!/usr/bin/env python3
"""Tests the lint: each rule must find its planted violation, and nothing in good code."""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import binaries
import sources

HEAD = "// A file.\n"
TRACKER = "issue"
RELU = HEAD + '#pragma once\nconst char *name = "catena.relu";\n'
PARTS = HEAD + "struct A {\n    // [body]\n    int x;\n    // [/body]\n};\n"

# Every tree also has these: a plugin with catena.relu, and functions of the core.
OTHERS = {
    "plugins/other/relu.hpp": RELU,
    "plugins/other/parts.cpp": PARTS,
    "core/src/device/low.hpp": HEAD + "#pragma once\nint low(int x = {});\nstruct Low { void f(); };\n",
    "core/include/catena/core/wide.hpp": HEAD + "#pragma once\nint wide();\nint broad();\n",
    "core/src/device/wide.cpp": HEAD + "int wide() { return 1; }\n",
}

# rule, file, text, how many findings
SOURCES = [
    ("core_names", "core/src/a.cpp", HEAD + 'auto f = find("catena.relu");', 1),
    ("core_names", "core/src/a.cpp", HEAD + 'auto f = find("catena.other");', 1),
    ("core_names", "core/include/catena/core/a.hpp", HEAD + 'auto f = find("relu");', 1),
    ("core_names", "core/src/a.cpp", HEAD + 'auto d = device("cpu");', 1),
    ("core_names", "core/src/a.cpp", HEAD + 'auto d = device("cuda:0");', 1),
    ("core_names", "core/src/a.cpp", HEAD + '// as in device("cpu")\nauto d = "catena.x/1";', 0),
    ("core_names", "core/test/a.cpp", HEAD + 'auto d = device("cpu");', 0),
    ("arrows", "sdk/abi/include/catena/abi/a.h", "#include <catena/core/array.hpp>\n", 1),
    ("arrows", "sdk/plugin/include/catena/plugin/a.hpp", "#include <catena/core/array.hpp>\n", 1),
    ("arrows", "core/src/a.cpp", "#include <catena/links.hpp>\n", 1),
    ("arrows", "core/src/a.cpp", "#include <catena/plugin/describe.hpp>\n", 1),
    ("arrows", "plugins/math/a.cpp", "#include <catena/core/array.hpp>\n", 1),
    ("arrows", "plugins/math/a.cpp", '#include "../other/relu.hpp"\n', 1),
    ("arrows", "plugins/math/a.cpp", '#include "../../../outside.hpp"\n', 1),
    ("arrows", "plugins/math/test/a.cpp", '#include <catena/links.hpp>\n', 0),
    ("arrows", "plugins/other/a.cpp", '#include "relu.hpp"\n#include <catena/abi.h>\n', 0),
    ("arrows", "sdk/host/src/a.cpp", "#include <catena/models.hpp>\n", 1),
    ("arrows", "sdk/models/src/a.cpp", "#include <catena/program.hpp>\n", 1),
    ("arrows", "sdk/models/src/a.cpp", "#include <catena/models/classifier.hpp>\n", 0),
    ("arrows", "hosts/a/a.cpp", "#include <catena/images/image.hpp>\n", 0),
    ("arrows", "sdk/host/src/a.cpp", "#include <catena/plugin/describe.hpp>\n", 1),
    ("arrows", "hosts/a/a.cpp", "#include <catena/abi/kernel.h>\n", 1),
    ("arrows", "hosts/a/a.cpp", "#include <catena/links.hpp>\n#include <catena/core/a.hpp>\n", 0),
    ("arrows", "plugins/math/CMakeLists.txt", "target_link_libraries(m PRIVATE catena::core)\n", 1),
    ("arrows", "core/CMakeLists.txt", "target_link_libraries(m PRIVATE catena::host)\n", 1),
    ("arrows", "plugins/math/CMakeLists.txt", "# not catena::core\ncatena_add_plugin(math)\n", 0),
    ("arrows", "core/src/device/a.cpp", "#include <catena/loader/plugins.hpp>\n", 1),
    ("arrows", "core/loader/a.cpp", "#include <catena/loader/plugins.hpp>\n", 0),
    ("core_order", "core/src/device/a.cpp", '#include "array/array_ops.hpp"\n', 1),
    ("core_order", "core/src/array/a.cpp", '#include "device/queue.hpp"\n', 0),
    ("core_order", "core/src/other/a.cpp", '#include "device/queue.hpp"\n', 1),
    ("core_private", "sdk/host/src/a.cpp", '#include "device/low.hpp"\n', 1),
    ("core_private", "tests/a/a.cpp", '#include "device/low.hpp"\n', 1),
    ("core_private", "core/loader/a.cpp", '#include "device/low.hpp"\n', 0),
    ("core_private", "plugins/other/a.cpp", '#include "relu.hpp"\n', 0),
    ("core_private", "tests/CMakeLists.txt", 'include_directories("${a}/core/src")\n', 1),
    ("core_private", "core/loader/CMakeLists.txt", 'include_directories("${a}/core/src")\n', 0),
    ("definitions", "core/src/array/a.cpp", "namespace a {\nint low(int x) { return x; }\n}\n", 1),
    ("definitions", "core/src/array/a.cpp", "void Low::f() {}\nvoid High::f() {}\n", 1),
    ("definitions", "core/src/array/a.cpp", "int broad() noexcept { return 1; }\n", 1),
    ("definitions", "core/src/device/a.cpp", "int low(int) { return 1; }\nvoid Low::f() {}\n", 0),
    ("definitions", "core/src/device/a.cpp", "int broad() { return 1; }\n", 0),
    ("definitions", "core/src/array/a.cpp", "namespace {\nint low(int) { return 1; }\n}\n", 0),
    ("definitions", "core/src/array/a.cpp", "High::High() : x{low(1)} { if (low(2)) {} }\n", 0),
    ("definitions", "core/src/array/a.cpp", "struct High {\n    int low(int) { return 1; }\n};\n", 0),
    ("manners", "core/src/a.cpp", HEAD + "void f() { std::cout << 1; }", 1),
    ("manners", "core/src/a.cpp", HEAD + 'void f() { std::printf("%d", 1); }', 1),
    ("manners", "plugins/math/a.cpp", HEAD + "void f() { abort(); }", 1),
    ("manners", "sdk/host/src/a.cpp", HEAD + "void f() { std::exit(1); }", 1),
    ("manners", "sdk/host/src/a.cpp", HEAD + 'void f() { fmt::print("{}", 1); }', 1),
    ("manners", "sdk/host/src/a.cpp", HEAD + 'void f() { fmt::print(stdout, "{}", 1); }', 1),
    ("manners", "core/src/a.cpp", HEAD + 'void f() { snprintf(s, 1, "exit("); x.exit(); }', 0),
    ("manners", "core/src/a.cpp", HEAD + 'void f() { fmt::print(out_, "x"); }', 0),
    ("manners", "sdk/program/src/a.cpp", HEAD + 'void f() { std::cout << 1; }', 0),
    ("manners", "sdk/plugin/a/main.c", HEAD + 'int main(void) { puts("x"); }', 0),
    ("macros", "sdk/abi/include/catena/abi/a.h", "#define RELU 1\n", 1),
    ("macros", "core/include/catena/core/a.hpp", HEAD + "  # define RELU(x) x\n", 1),
    ("macros", "sdk/abi/include/catena/abi/a.h", "#define CATENA_RELU 1\n", 0),
    ("length", "core/src/a.cpp", "// line\n" * 601, 1),
    ("length", "tools/a", "#!/bin/sh\n" * 601, 1),
    ("length", "core/src/a.cpp", "// line\n" * 600, 0),
    ("length", "sdk/host/include/catena/a.hpp", "//" + "x" * 99 + "\n", 1),
    ("length", "sdk/host/src/a.cpp", "//" + "x" * 99 + "\n", 0),
    ("heads", "core/src/a.cpp", "int x;\n" * 6, 1),
    ("heads", "core/src/a.cpp", '#include "a.hpp"\n\nA_LINE;\n', 0),
    ("heads", "core/src/a.hpp", HEAD + "int x;\n", 1),
    ("heads", "core/src/a.hpp", HEAD + "#pragma once\n", 0),
    ("quotes", "README.md", "<!-- plugins/other/relu.hpp -->\n```cpp\nold\n```\n", 1),
    ("quotes", "README.md", "<!-- plugins/gone.hpp -->\n```cpp\n```\n", 1),
    ("quotes", "README.md", f"<!-- plugins/other/relu.hpp -->\n```cpp\n{RELU}```\n", 0),
    ("quotes", "README.md", "<!-- plugins/other/parts.cpp#body -->\n```cpp\nint x;\n```\n", 0),
    ("quotes", "README.md", "<!-- plugins/other/parts.cpp#body -->\n```cpp\nint y;\n```\n", 1),
    ("quotes", "README.md", "<!-- plugins/other/parts.cpp#gone -->\n```cpp\nint x;\n```\n", 1),
    ("quotes", "README.md", "<!-- plugins/other/parts.cpp -->\n```cpp\n" + HEAD +
     "struct A {\n    int x;\n};\n```\n", 0),
    ("words", "README.md", "see /home/ann/catena\n", 1),
    ("words", "core/src/a.cpp", "// TODO later\n", 1),
    ("words", "core/src/a.cpp", f"// as {TRACKER} 12 says\n", 1),
    ("words", "tools/a", 'to=$HOME{0}work{0}x; cd "$root{0}root{0}x"\n'.format("/"), 0),
]

GOOD = """
__attribute__((section(".catena"))) extern const char catena_manifest_v1[4] = "abc";
const void *catena_plugin_entry_v1(void) { return 0; }
"""

# rule, name of the plugin, language, text, libraries, how many findings
BINARIES = [
    ("links", "a", "c", GOOD, ["m"], 0),
    ("links", "a", "c", GOOD, ["openblas"], 1),
    ("links", "cpu", "c", GOOD, ["openblas"], 1),
    ("presence", "a", "c", GOOD, [], 0),
    ("presence", None, "c", GOOD, [], 1),
    ("layers", None, "c", GOOD, [], 0),
    ("layers", None, "c", GOOD, ["catena-host"], 1),
]


def library(folder, path, language, text, libraries):
    """Builds a shared library that links empty libraries of these names."""
    compiler = os.environ.get("CXX", "c++") if language == "c++" else os.environ.get("CC", "cc")
    source = folder / ("a.cpp" if language == "c++" else "a.c")
    source.write_text(text)
    (folder / "empty.c").write_text("extern int nothing;\n")
    for name in libraries:
        if name != "m":
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC",
                            f"-Wl,-soname,lib{name}.so.1", "-o", folder / f"lib{name}.so",
                            folder / "empty.c"], check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-nostartfiles", "-o", path, source,
                    f"-L{folder}", "-Wl,--no-as-needed", *[f"-l{n}" for n in libraries]],
                   check=True)


def check(name, expected, findings):
    good = len(findings) == expected
    if not good:
        print(f"FAIL {name}: expected {expected} findings, got {findings}")
    return not good


def fixes():
    """Tests that --fix updates a page, which then has no findings."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "README.md")
        pathlib.Path(folder, "a.hpp").write_text(RELU)
        pathlib.Path(folder, "b.hpp").write_text(PARTS)
        page.write_text("Text\n\n<!-- a.hpp -->\n```cpp\nold\n```\nmore\n"
                        "<!-- b.hpp#body -->\n```cpp\n```\n")
        sources.fix_quotes(sources.Tree(folder))
        good = page.read_text() == (f"Text\n\n<!-- a.hpp -->\n```cpp\n{RELU}```\nmore\n"
                                    "<!-- b.hpp#body -->\n```cpp\nint x;\n```\n")
        return not good or check("fix", 0, list(sources.quotes(sources.Tree(folder))))


def main():
    failures, used = int(fixes()), set()
    for rule, path, text, expected in SOURCES:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**OTHERS, path: text}.items():
                file = pathlib.Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(content)
            found = list(getattr(sources, rule)(sources.Tree(folder)))
            failures += check(f"{rule}: {path}: {text[:60]!r}", expected, found)
            used.add(rule)
    for rule, name, language, text, libraries, expected in BINARIES:
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder, "build")
            place = f"catena/plugins/{name}.catena" if name else "libcatena-core.so"
            target = build / "lib" / place
            library(pathlib.Path(folder), target, language, text, libraries)
            found = list(getattr(binaries, rule)(build))
            failures += check(f"{rule}: {name} {libraries} {text[:40]!r}", expected, found)
            used.add(rule)
    untested = {r.__name__ for r in sources.RULES + binaries.RULES} - used
    if untested:
        print(f"FAIL rules without a test: {sorted(untested)}")
    print(f"lint_test: {len(SOURCES) + len(BINARIES)} cases, {failures} failures")
    return 1 if failures or untested else 0


if __name__ == "__main__":
    sys.exit(main())
