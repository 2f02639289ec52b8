"""Tests what catena-new writes and refuses, and that it never overwrites or leaves partial output.

tests/package checks that its output builds and passes its tests.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
COMPILER = sys.argv.pop(1)
INCLUDE = sys.argv.pop(1).split(":")
# Names of the C and C++ libraries, including macros, and names in the code of plugins.
SYSTEM = """abs any begin bool catena complex data detail div double end errno error exp forward function
    functions i in index int linux list log main map math max min move name namespace next null out
    plugin printf queue remove right set shape signal size stack std stderr string struct swap t test
    testing time unix unsigned var vector x y y0""".split()


class CatenaNew(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def new(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True,
                              text=True)

    def written(self, *arguments):
        run = self.new(*arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def refused(self, status, text, *arguments):
        before = sorted(self.folder.rglob("*"))
        run = self.new(*arguments)
        self.assertEqual((run.returncode, run.stdout), (status, ""), run.stderr)
        self.assertIn(text, run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def files(self, name):
        root = self.folder / name
        return {p.relative_to(root).as_posix(): p.read_text()
                for p in root.rglob("*") if p.is_file()}

    def test_plugin(self):
        output = self.written("plugin", "soft_step2")
        self.assertIn("cmake -S soft_step2 -B soft_step2/build -DCMAKE_PREFIX_PATH=", output)
        files = self.files("soft_step2")
        self.assertEqual(set(files), {".gitignore", "CMakeLists.txt", "README.md", "soft_step2.hpp",
                                      "soft_step2.cpp", "test/soft_step2_test.cpp"})
        self.assertIn('describe("org.example.soft_step2"', files["soft_step2.hpp"])
        self.assertIn("struct SoftStep2 {", files["soft_step2.hpp"])
        self.assertLessEqual(len(re.findall(r"^.+$", files["soft_step2.hpp"], re.M)), 25)
        for text in files.values():
            self.assertNotIn("my_name", text)
            self.assertNotIn("MyName", text)
            self.assertTrue(text.endswith("\n") and not text.endswith("\n\n"))

    def test_the_build_folder_is_a_package(self):
        """What is printed works beside an installed program, and beside one that was just built."""
        for kind in ("plugin", "host"):
            command = self.written(kind, "a", "--output", kind).splitlines()[1]
            run = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_languages(self):
        self.written("plugin", "a", "--lang", "c")
        self.assertIn("a.c", self.files("a"))
        self.assertNotIn("a.cpp", self.files("a"))
        self.written("plugin", "b", "--cuda")
        self.assertIn("b.cpp", self.files("b"))
        self.assertIn('CATENA_PLUGIN("org.example.b.cuda"', self.files("b")["b.cu"])
        self.assertIn("CUDA_SOURCES b.cu", self.files("b")["CMakeLists.txt"])
        self.written("host", "c")
        self.assertEqual(set(self.files("c")), {".gitignore", "CMakeLists.txt", "README.md",
                                                "main.cpp", "training.hpp", "training.cpp",
                                                "test/training_test.cpp"})

    def test_id(self):
        self.written("plugin", "a", "--id", "com.acme-2.my_name_of_it")
        self.assertIn('describe("com.acme-2.my_name_of_it"', self.files("a")["a.hpp"])
        # Names that begin with the templates' own name are allowed.
        self.written("plugin", "my_name_2")
        self.assertIn('describe("org.example.my_name_2"', self.files("my_name_2")["my_name_2.hpp"])

    def test_output(self):
        self.written("host", "a", "--output", "deep/er/folder/")
        self.assertIn("cmake -S 'new one' -B 'new one/build' -DCMAKE_PREFIX_PATH=",
                      self.written("host", "a", "--output", "new one"))
        self.assertIn("project(a ", self.files("deep/er/folder")["CMakeLists.txt"])
        (self.folder / "empty").mkdir()
        self.written("plugin", "a", "--output", "empty")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["deep", "empty", "new one"])

    def test_output_is_kept(self):
        """An empty folder is filled, not replaced: by any name, and where nothing beside it can be
        written."""
        outer = self.folder / "outer"
        outputs = {"dot": ".", "slash": "./", "up": "../up/.", "real": "../link"}
        for name in outputs:
            (outer / name).mkdir(parents=True)
        (outer / "link").symlink_to("real")
        for name, output in outputs.items():
            before = (outer / name).stat().st_ino
            run = subprocess.run([PROGRAM, "plugin", "a", "--output", output], cwd=outer / name,
                                 capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertEqual((outer / name).stat().st_ino, before)
            self.assertEqual(set(self.files(f"outer/{name}")),
                             {".gitignore", "CMakeLists.txt", "README.md", "a.hpp", "a.cpp",
                              "test/a_test.cpp"})
        self.assertTrue((outer / "link").is_symlink())
        run = subprocess.run([PROGRAM, "plugin", "a", "--output", "."], cwd=outer / "dot",
                             capture_output=True, text=True)
        self.assertIn("got something in it", run.stderr)

    def test_output_in_a_folder_of_others(self):
        (self.folder / "ours/mine").mkdir(parents=True)
        drop = {}
        if os.geteuid() == 0:  # modes do not restrict root
            drop = {"user": 65534, "group": 65534, "extra_groups": []}
            for folder, owner in ((self.folder, 0), (self.folder / "ours/mine", 65534)):
                os.chmod(folder, 0o755)
                os.chown(folder, owner, -1)
            try:
                subprocess.run([PROGRAM, "--version"], cwd=self.folder, capture_output=True, check=True,
                               **drop)
                subprocess.run(["ls", PROGRAM.parents[1] / "share/catena/templates/plugin-cpp"],
                               capture_output=True, check=True, **drop)
            except (OSError, subprocess.CalledProcessError):
                self.skipTest("other users do not get at the build folder")
        os.chmod(self.folder / "ours", 0o555)
        self.addCleanup(os.chmod, self.folder / "ours", 0o755)
        run = subprocess.run([PROGRAM, "plugin", "a", "--output", self.folder / "ours/mine"],
                             cwd=self.folder, capture_output=True, text=True, **drop)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("a.cpp", self.files("ours/mine"))

    def test_nothing_is_overwritten(self):
        (self.folder / "a").mkdir()
        (self.folder / "a" / "mine").write_text("mine")
        self.refused(1, "a: expected to be new or an empty folder, got something in it", "plugin", "a")
        self.assertEqual(self.files("a"), {"mine": "mine"})
        (self.folder / "b").write_text("mine")
        self.refused(1, "b: expected to be new or an empty folder, got no folder", "plugin", "b")
        (self.folder / "c").symlink_to("nowhere")
        self.refused(1, "c: expected to be new or an empty folder, got no folder", "plugin", "c")
        self.refused(1, "[output]", "plugin", "d", "--output", "b/d")

    def test_names(self):
        for name in ("Swish", "2d", "a-b", "a__b", "_a", "a_", "a/b", "../a", "", "ä", "a" * 61):
            self.refused(2 if not name else 1, "expected", "plugin", name)
        for name in ("test", "edit_cache", "install"):
            self.refused(1, "none of CMake's own targets", "host", name)
            self.written("plugin", name)  # the target is NAME.catena
        for name in ("swish", "a.b.", "Org.b", "org.Example.b", "org.example.a b", "org.example.1.2",
                     "org.2d", "org._b", "a." + "b" * 94):
            self.refused(1, "[id] expected", "plugin", "a", "--id", name)
        self.refused(1, "one of your own", "plugin", "a", "--id", "catena.relu")

    def compile(self, text):
        source = self.folder / "all.cpp"
        source.write_text(text)
        run = subprocess.run([COMPILER, "-std=gnu++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                              *(f"-I{folder}" for folder in INCLUDE), source],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr[:4000])

    def test_any_name_compiles(self):
        """Whatever the SDK and the system call something, a plugin may be called as well."""
        words = set(SYSTEM)
        for folder in INCLUDE:
            for header in pathlib.Path(folder).rglob("catena/plugin/*.hpp"):
                words |= set(re.findall(r"\w+", header.read_text()))
            for header in pathlib.Path(folder).rglob("catena/abi/*.h"):
                words |= set(re.findall(r"\w+", header.read_text()))
        names = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower() for word in words}
        names = sorted(n for n in names if re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", n))
        self.assertGreater(len(names), 500)
        self.assertLess({"shape", "grads", "error", "row"}, set(names))
        self.written("plugin", "some_name")
        files = self.files("some_name")
        table = re.search(r'CATENA_PLUGIN\("[^"]*", "[^"]*", (.*)\);', files["some_name.cpp"]).group(1)

        def named(text, name):
            struct = "".join(part[0].upper() + part[1:] for part in name.split("_"))
            return text.replace("some_name", name).replace("SomeName", struct)

        text = files["some_name.hpp"].replace("#pragma once", "") + f"static_assert(sizeof({table}));\n"
        self.compile("".join(named(text, name) for name in names))
        self.compile("".join(named(files[f"some_name.{end}"], "shape").replace("#pragma once", "")
                             .replace('#include "shape.hpp"', "") for end in ("hpp", "cpp")))

    def test_names_in_code(self):
        """Of the other templates nothing is called NAME but files, targets and texts."""
        for kind in (["plugin", "some_name", "--lang", "c"], ["host", "some_name"]):
            self.written(*kind, "--output", kind[0])
            for name, text in self.files(kind[0]).items():
                if name.endswith((".c", ".cpp", ".hpp")):
                    code = re.sub(r'"[^"]*"|/\*.*?\*/|//[^\n]*', "", text, flags=re.DOTALL)
                    self.assertNotRegex(code, "(?i)some_?name", name)

    def test_usage(self):
        self.refused(2, "expected plugin or host, got 'link'", "link", "a")
        self.refused(2, "plugin: expected a NAME", "plugin")
        self.refused(2, "--lang: expected c or cpp, got 'rust'", "plugin", "a", "--lang", "rust")
        self.refused(2, "--cuda: expected --lang cpp", "plugin", "a", "--lang", "c", "--cuda")
        self.refused(2, "--id: expected with a plugin", "host", "a", "--id", "org.b")
        self.refused(2, "--cuda: expected with a plugin", "host", "a", "--cuda")
        self.refused(2, "unrecognised option", "plugin", "a", "--speed")
        self.assertIn("usage: catena-new plugin NAME", self.written("--help"))

    def elsewhere(self, *arguments):
        copy = self.folder / "bin" / "catena-new"
        copy.parent.mkdir()
        copy.write_bytes(PROGRAM.read_bytes())
        copy.chmod(0o755)
        return subprocess.run([copy, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})

    def test_templates_that_are_links(self):
        """As programs that install by links have them: what is written stays in the folder."""
        held = self.folder / "held"
        shutil.copytree(PROGRAM.parents[1] / "share/catena/templates/plugin-c", held)
        for file in [f for f in held.rglob("*") if f.is_file()]:
            link = self.folder / "share/catena/templates/plugin-c" / file.relative_to(held)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
        run = self.elsewhere("plugin", "a", "--lang", "c", "--output", "one/two/three/four/five")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(set(self.files("one")), {f"two/three/four/five/{name}" for name in (
            ".gitignore", "CMakeLists.txt", "README.md", "a.c", "test/a_test.cpp")})

    def test_without_templates(self):
        run = self.elsewhere("plugin", "a")
        self.assertEqual(run.returncode, 1)
        self.assertIn(f"[template] {self.folder.resolve()}/share/catena/templates/plugin-cpp",
                      run.stderr)
        self.assertFalse((self.folder / "a").exists())


if __name__ == "__main__":
    unittest.main()
