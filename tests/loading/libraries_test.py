"""Tests that plugins find their own libraries by RUNPATH, with and without a lock.

usage: libraries_test.py CATENA LOADER_LIBRARY HOST MODULES [unittest options]

Each library writes its name to MARK when it is loaded."""
import os
import shutil
import unittest

from loading_test import MODULES, Case


class Libraries(Case):
    def setUp(self):
        super().setUp()
        self.mark = self.top / "mark"
        self.env |= {"CATENA_TEST_MARK": str(self.mark)}

    def bring(self, module, *folders):
        """Installs the module with these folders beside it, and locks it; returns its path."""
        path = self.put(MODULES / module, self.system)
        for folder in folders:
            shutil.copytree(MODULES / folder, self.system / folder, symlinks=True)
        self.catena("plugins", "lock", "--plugins", self.system)
        self.assertEqual(self.ran(), [])  # writing a lock loads nothing
        return path

    def ran(self):
        lines = self.mark.read_text().split() if self.mark.exists() else []
        self.mark.unlink(missing_ok=True)
        return lines

    def both_ways(self):
        for lock in ("off", "strict"):
            with self.subTest(lock=lock):
                self.env["CATENA_PLUGIN_LOCK"] = lock
                yield

    def test_libraries_beside_the_plugin_and_beside_them(self):
        for module, folder, marks in (("needs.catena", "brought", ["brought"]),
                                      ("chain.catena", "chain", ["deep", "middle"])):
            path = self.bring(module, folder)
            for _ in self.both_ways():
                self.loads(path)
                self.assertEqual(self.ran(), marks)
            self.env.pop("CATENA_PLUGIN_LOCK")
            shutil.rmtree(self.system)

    def test_a_library_that_is_missing(self):
        path = self.bring("chain.catena", "chain")
        (self.system / "chain/deep/libdeep.so.1").unlink()
        for _ in self.both_ways():
            self.refuses(path, "the system's loader refuses it: libdeep.so.1: cannot open shared ")
            self.assertEqual(self.ran(), [])

    def test_a_plugin_that_opens_libraries_itself(self):
        path = self.bring("opens.catena", "brought", "chain")
        self.folder("lib/catena/private")
        shutil.copy(MODULES / "chain/deep/libdeep.so.1", self.lib / "catena/private")
        for _ in self.both_ways():
            self.refuses(path, "its init.. failed: by RUNPATH 1, linked 1, by linked 1, by host ., "
                               "by itself 1$")


if __name__ == "__main__":
    os.umask(0o022)  # files that a group can write to are refused
    unittest.main()
