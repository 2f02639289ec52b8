"""Libraries that plugins bring: held to what plugins are held to, to any depth.

usage: libraries_test.py CATENA CORE_LIBRARY HOST MODULES [unittest options]

MARK is written by constructors: a library that was refused must not have run."""
import os
import re
import shutil
import unittest

from loading_test import MODULES, ROOT, STRANGER, SWAP, Case

ANOTHER = MODULES / "another/libbrought.so.1"
LOCKS = ("off", "strict")


class Libraries(Case):
    def setUp(self):
        super().setUp()
        self.mark = self.top / "mark"
        self.env |= {"CATENA_TEST_MARK": str(self.mark)}

    def bring(self, module, *folders):
        """The module with these folders beside it, under a lock for whoever asks."""
        path = self.put(MODULES / module, self.system)
        for folder in folders:
            shutil.copytree(MODULES / folder, self.system / folder, symlinks=True)
            for part in (self.system / folder).rglob("*"):
                os.chmod(part, 0o755)
            os.chmod(self.system / folder, 0o755)
        self.catena("plugins", "lock", "--plugins", self.system)
        self.assertEqual(self.ran(), [])
        return path

    def ran(self):
        """Who left a mark, in order."""
        lines = self.mark.read_text().split() if self.mark.exists() else []
        self.mark.unlink(missing_ok=True)
        return lines

    def refused_unseen(self, path, reason, **env):
        """No constructor has run."""
        for lock in LOCKS:
            with self.subTest(lock=lock):
                self.refuses(path, reason, CATENA_PLUGIN_LOCK=lock, **env)
                self.assertEqual(self.ran(), [])

    def loads_with(self, path, *marks, **env):
        for lock in LOCKS:
            with self.subTest(lock=lock):
                self.loads(path, CATENA_PLUGIN_LOCK=lock, **env)
                self.assertEqual(self.ran(), list(marks))

    def test_of_the_plugin_and_of_its_libraries(self):
        self.loads_with(self.bring("needs.catena", "brought"), "brought")
        shutil.rmtree(self.system)
        self.loads_with(self.bring("chain.catena", "chain"), "deep", "middle")

    def test_one_that_two_need_is_there_once(self):
        self.loads_with(self.bring("diamond.catena", "chain"), "deep", "middle")
        shutil.rmtree(self.system)
        self.bring("needs.catena", "brought", "chain")
        self.put(MODULES / "opens.catena", self.system)  # another plugin
        self.catena("plugins", "lock", "--plugins", self.system)
        for lock in LOCKS:
            self.assertEqual([row[0] for row in self.report(CATENA_PLUGIN_LOCK=lock)],
                             ["loaded", "refused"])
            self.assertIn("linked 1, by linked 1", self.all["plugins"][1]["reason"])
            self.assertEqual(self.ran().count("brought"), 1)

    def test_an_rpath_holds_for_libraries_too(self):
        self.loads_with(self.bring("inherits.catena", "bare", "chain"), "deep", "bare")

    def test_who_else_can_write(self):
        path = self.bring("chain.catena", "chain")
        middle = self.system / "chain/libmiddle.so.1"
        deep = self.system / "chain/deep/libdeep.so.1"
        for what, of, reason in ((middle, middle, f"its library {middle}: mode of the file {middle}: "),
                                 (deep, deep, f"its library {middle}: its library {deep}: mode of "
                                              f"the file {deep}: "),
                                 (deep.parent, deep, f"its library {middle}: its library {deep}: "
                                                     f"mode of the folder {deep.parent}: ")):
            os.chmod(what, 0o757)
            self.refused_unseen(path, re.escape(reason) + "expected that only its owner can write")
            os.chmod(what, 0o755)
        os.chmod(deep, 0o775)  # whoever is in the group, as of a plugin
        self.refused_unseen(path, f"its library {middle}: its library {deep}: mode of the file ")
        os.chmod(deep, 0o755)
        self.loads_with(path, "deep", "middle")

    @unittest.skipUnless(ROOT, "needs root: gives files away")
    def test_a_stranger_s(self):
        path = self.bring("chain.catena", "chain")
        middle = self.system / "chain/libmiddle.so.1"
        deep = self.system / "chain/deep/libdeep.so.1"
        os.chown(deep, STRANGER, -1)
        self.refused_unseen(path, f"its library {middle}: its library {deep}: owner of the file ")
        self.loads_with(path, "deep", "middle", CATENA_PLUGIN_OWNERS=str(STRANGER))

    def test_damaged_ones(self):
        path = self.bring("chain.catena", "chain")
        deep = self.system / "chain/deep/libdeep.so.1"
        data = deep.read_bytes()
        for bad, reason in ((b"text", "not a shared library: "), (data[:2000], "the file is truncated")):
            deep.write_bytes(bad)
            self.refused_unseen(path, f".*: its library {deep}: {reason}")

    def test_swapped_ones_never_run(self):
        path = self.bring("chain.catena", "chain")
        for library in ("chain/libmiddle.so.1", "chain/deep/libdeep.so.1"):
            library = self.system / library
            env = {"LD_PRELOAD": str(SWAP), "CATENA_TEST_SWAP": str(self.top / "new"),
                   "CATENA_TEST_SWAP_LATE": str(library)}
            for lock in LOCKS:
                with self.subTest(library=library.name, lock=lock):
                    shutil.copy(library, self.top / "kept")
                    shutil.copy(ANOTHER, self.top / "new")
                    self.refuses(path, f"its library {library}: it was replaced after it was checked: ",
                                 CATENA_PLUGIN_LOCK=lock, **env)
                    self.assertFalse((self.top / "new").exists())  # it was swapped
                    self.assertNotIn("another", self.ran())
                    (self.top / "kept").rename(library)
        self.loads_with(path, "deep", "middle")

    @unittest.skipUnless(os.access(MODULES, os.W_OK), "writes to the build's folder")
    def test_what_appears_after_the_search_never_runs(self):
        """In a folder that the plugin names, before the system's own."""
        folder = MODULES / "planted"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        path = self.bring("planted.catena")
        shutil.copy(MODULES / "brought/libbrought.so.1", self.lib)  # in LD_LIBRARY_PATH
        self.loads_with(path, "brought")
        for lock in LOCKS:
            shutil.copy(ANOTHER, self.top / "new")
            self.loads(path, CATENA_PLUGIN_LOCK=lock, LD_PRELOAD=str(SWAP),
                       CATENA_TEST_SWAP=str(self.top / "new"),
                       CATENA_TEST_SWAP_LATE=str(folder / "libbrought.so.1"))
            self.assertEqual(self.ran(), ["brought"])
            (folder / "libbrought.so.1").unlink()

    def test_a_circle(self):
        path = self.bring("chain.catena", "chain")
        shutil.copy(MODULES / "circle/libdeep.so.1", self.system / "chain/deep")
        self.refused_unseen(path, ".*: libraries that need each other in a circle: libmiddle.so.1, "
                                  "libdeep.so.1, libmiddle.so.1$")

    def test_one_without_a_soname(self):
        path = self.bring("nameless.catena", "nameless")
        self.refused_unseen(path, f"its library {self.system}/nameless/libnameless.so: SONAME: expected "
                                  "libnameless.so, as it is asked for, got none; link it with "
                                  "-Wl,-soname,libnameless.so$")
        path.unlink()
        path = self.bring("pathname.catena")
        self.refused_unseen(path, ".*/nameless/libnameless.so.*; link (it|that) with "
                                  "-Wl,-soname,libnameless.so$")

    def test_one_that_is_missing(self):
        path = self.bring("chain.catena", "chain")
        (self.system / "chain/deep/libdeep.so.1").unlink()
        self.refused_unseen(path, ".*the system's loader refuses it: libdeep.so.1: cannot open shared ")

    def test_not_in_the_current_directory(self):
        path = self.bring("careless.catena")
        self.refused_unseen(path, "where it looks for libraries: expected absolute folders or "
                                  "\\$ORIGIN, got 'brought', in the current directory$")
        self.refuses(path, "where it looks for libraries: ", cwd=MODULES)

    def test_libraries_that_stand_in_for_others(self):
        for kind in ("filter", "auxiliary"):
            path = self.bring(f"{kind}.catena", "brought")
            self.refused_unseen(path, "what it needs: expected libraries under DT_NEEDED alone, got "
                                      f"libbrought.so.1 \\(DT_{kind.upper()}\\)$")
            shutil.rmtree(self.system)

    def test_a_plugin_that_opens_libraries_itself(self):
        path = self.bring("opens.catena", "brought", "chain")
        self.folder("lib/catena/private")
        shutil.copy(MODULES / "chain/deep/libdeep.so.1", self.lib / "catena/private")
        for lock, itself in (("off", 1), ("strict", 0)):
            self.refuses(path, "its init.. failed: by RUNPATH 0, linked 1, by linked 1, by host 1, "
                               f"by itself {itself}$", CATENA_PLUGIN_LOCK=lock)


if __name__ == "__main__":
    os.umask(0o022)  # what a group can write to is refused for that
    unittest.main()
