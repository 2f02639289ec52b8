"""Runs hosts with no, few and bad plugins.

usage: empty_core.py LOADER_LIBRARY HOST GOOD_PLUGIN [PROGRAM...]

The loader is copied into a tree of its own, so that the test controls its plugin folder."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LOADER, HOST, GOOD = map(pathlib.Path, sys.argv[1:4])
PROGRAMS = sys.argv[4:]


class EmptyCore(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="catena-empty-core-")
        self.addCleanup(folder.cleanup)
        self.lib = pathlib.Path(folder.name).resolve() / "lib"
        self.plugins = self.lib / "catena/plugins"
        self.plugins.mkdir(parents=True)
        shutil.copy(LOADER, self.lib / LOADER.resolve().name.rsplit(".", 1)[0])
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CATENA_")}
        self.env["LD_LIBRARY_PATH"] = str(self.lib)
        self.env["XDG_DATA_HOME"] = str(self.lib / "data")
        self.user = f"looked in {self.lib}/data/catena/plugins (no such folder)"

    def run_host(self, what, **env):
        return subprocess.run([HOST, what], env={**self.env, **env}, text=True,
                              capture_output=True)

    def fails(self, lines, what="test.a", **env):
        done = self.run_host(what, **env)
        self.assertEqual(done.stderr.splitlines(), lines)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 1)

    def works(self, **env):
        done = self.run_host("test.a", **env)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "test.a\n", ""))

    def test_an_empty_folder(self):
        self.fails(["no plugin has the function test.a", self.user, f"looked in {self.plugins}",
                    "no plugin is loaded"])

    def test_no_folder(self):
        self.plugins.rmdir()
        self.fails(["no plugin has the function test.a", self.user,
                    f"looked in {self.plugins} (no such folder)", "no plugin is loaded"])

    def test_no_device(self):
        self.fails(["no plugin has a backend with a device", self.user,
                    f"looked in {self.plugins}", "no plugin is loaded"], what="device")

    def test_what_was_refused(self):
        (self.plugins / "b.catena").write_text("a text that is long enough to be read as a header")
        (self.plugins / "a.catena").write_bytes(GOOD.read_bytes()[:3000])
        (self.plugins / "README").write_text("not looked at")
        done = self.run_host("test.a")
        lines = done.stderr.splitlines()
        self.assertEqual(lines[:3], ["no plugin has the function test.a", self.user,
                                     f"looked in {self.plugins}"])
        self.assertRegex(lines[3], "^refused .*/a.catena: the file is truncated: ")
        self.assertEqual(lines[4:], [f"refused {self.plugins}/b.catena: not a shared library: it is "
                                     "too short", "no plugin is loaded"])
        self.assertEqual(done.returncode, 1)

    def test_another_function(self):
        shutil.copy(GOOD, self.plugins)
        self.fails(["no plugin has the function test.b", self.user,
                    f"looked in {self.plugins}", f"loaded org.example.a 1.2 from {self.plugins}/{GOOD.name}"], what="test.b")

    def test_the_folder_beside_the_library(self):
        shutil.copy(GOOD, self.plugins)
        self.works()

    def test_the_search_path(self):
        self.works(CATENA_PLUGIN_PATH=f"/nowhere:{GOOD.parent}")
        self.fails(["no plugin has the function test.a", "looked in /nowhere (no such folder)",
                    self.user, f"looked in {self.plugins}",
                    "refused here: CATENA_PLUGIN_PATH: expected absolute folders",
                    "no plugin is loaded"], CATENA_PLUGIN_PATH="/nowhere::here")

    def test_switched_off(self):
        shutil.copy(GOOD, self.plugins)
        self.fails(["no plugin has the function test.a",
                    "plugins are switched off: CATENA_PLUGINS=off", "no plugin is loaded"],
                   CATENA_PLUGINS="off", CATENA_PLUGIN_PATH=str(GOOD.parent))
        self.works(CATENA_PLUGINS="on")

    def test_programs_end_with_1_and_say_why(self):
        for program in PROGRAMS:
            with self.subTest(program):
                env = {**os.environ, "CATENA_PLUGINS": "off"}
                done = subprocess.run([program], env=env, text=True, capture_output=True)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("no plugin has ", done.stderr)
                self.assertIn("plugins are switched off: CATENA_PLUGINS=off", done.stderr)


if __name__ == "__main__":
    os.umask(0o022)  # files that a group can write to are refused
    unittest.main(argv=sys.argv[:1])
