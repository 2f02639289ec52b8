"""Files that are swapped while they are loaded: only what was checked runs.

usage: swap_test.py CATENA CORE_LIBRARY HOST MODULES [unittest options]"""
import os
import threading
import unittest

from loading_test import GOOD, MODULES, OTHER, SWAP, Case, sha256

MARKS = MODULES / "marks.catena"


class Swap(Case):
    def setUp(self):
        super().setUp()
        self.path = self.put(GOOD, self.system)
        self.lock = self.system / "catena.plugins.lock"

    def test_a_swap_between_check_and_map(self):
        swap = {"LD_PRELOAD": str(MODULES / "loading-swap.so"),
                "CATENA_TEST_SWAP": str(self.system / "new"),
                "CATENA_PLUGIN_AUDIT": str(self.top / "audit")}
        self.catena("plugins", "lock", "--plugins", self.system)
        for lock in ("off", "warn", "strict"):
            self.path.unlink()
            self.put(GOOD, self.system)
            self.put(OTHER, self.system, "new")
            (self.top / "audit").unlink(missing_ok=True)
            self.refuses(self.path, "it was replaced after it was checked: expected inode [0-9]+, "
                                    "got [0-9]+$", CATENA_PLUGIN_LOCK=lock, **swap)
            line, = (self.top / "audit").read_text().splitlines()
            self.assertIn(f" refused id=org.example.good version=1.2 sha256={sha256(GOOD)} ", line)
            self.assertIn(" reason=it was replaced after it was checked: ", line)

    def test_a_lock_is_of_one_file(self):
        """Each time that the plugin is opened another one takes its place."""
        needs = self.put(MODULES / "needs.catena", self.top, "other")
        self.catena("plugins", "lock", "--plugins", self.system, LD_PRELOAD=str(SWAP),
                    CATENA_TEST_EXCHANGE=str(needs))
        self.assertEqual(self.lock.read_text().splitlines()[1:],
                         [f"org.example.good 1.2 {sha256(GOOD)}"])
        self.assertNotEqual(self.path.read_bytes(), GOOD.read_bytes())  # they changed places

    def test_a_swap_inside_dlopen(self):
        """What takes the name of a file that was checked does not run, not even its constructor."""
        mark = self.top / "mark"
        env = {"CATENA_TEST_MARK": str(mark)}
        self.put(MARKS, self.system, self.path.name)
        self.loads(self.path, **env)
        self.assertTrue(mark.exists())
        mark.unlink()
        env |= {"LD_PRELOAD": str(SWAP), "CATENA_TEST_SWAP": str(self.system / "new"),
                "CATENA_TEST_SWAP_LATE": str(self.path)}
        self.path.unlink()
        self.put(GOOD, self.system)
        self.catena("plugins", "lock", "--plugins", self.system)
        for lock in ("off", "warn", "strict"):
            self.path.unlink()
            self.put(GOOD, self.system)
            self.put(MARKS, self.system, "new")
            if lock == "off":
                self.refuses(self.path, "it was replaced after it was checked: expected inode ",
                             CATENA_PLUGIN_LOCK=lock, **env)
            else:  # a copy of what was checked
                self.loads(self.path, CATENA_PLUGIN_LOCK=lock, **env)
                self.assertEqual(self.all["plugins"][0]["sha256"], sha256(GOOD))
            self.assertFalse((self.system / "new").exists())  # it was swapped
            self.assertFalse(mark.exists())

    def test_without_proc(self):
        env = {"LD_PRELOAD": str(SWAP), "CATENA_TEST_NO_PROC": "1"}
        self.loads(self.path, **env)
        self.refuses(self.path, "a copy of it is mapped by its name in /proc: expected one, got none$",
                     CATENA_PLUGIN_LOCK=f"warn:{self.lock}", **env)

    def test_a_swap_while_it_is_loaded(self):
        """Renamed over and written over all the time: what runs has the hash, always."""
        self.catena("plugins", "lock", "--plugins", self.system)
        good, other = GOOD.read_bytes(), OTHER.read_bytes()
        stop = threading.Event()

        def swap():
            while not stop.is_set():
                for data in (other, good):
                    new = self.system / "new"
                    new.write_bytes(data)
                    os.chmod(new, 0o644)
                    new.rename(self.path)
                    self.path.write_bytes(data)

        swapper = threading.Thread(target=swap)
        swapper.start()
        seen = set()
        try:
            for _ in range(40):
                for row in self.report():
                    seen.add(row[0])
                    if row[0] == "loaded":
                        self.assertEqual(self.all["plugins"][0]["functions"], 1)
                        self.assertEqual(self.all["plugins"][0]["sha256"], sha256(GOOD))
                    else:
                        self.assertTrue(row[2])
        finally:
            stop.set()
            swapper.join()
        self.assertIn("refused", seen)


if __name__ == "__main__":
    os.umask(0o022)  # what a group can write to is refused for that
    unittest.main()
