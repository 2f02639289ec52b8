"""Tests of lock files and of the audit.

usage: lock_test.py CATENA LOADER_LIBRARY HOST MODULES [unittest options]"""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import unittest

from loading_test import CATENA, GOOD, OTHER, ROOT, Case, sha256


class Lock(Case):
    def setUp(self):
        super().setUp()
        self.path = self.put(GOOD, self.system)
        self.lock = self.system / "catena.plugins.lock"

    def write_lock(self):
        self.assertEqual(self.catena("plugins", "lock", "--plugins", self.system),
                         f"wrote {self.lock}: 1 plugin\n")
        self.assertEqual(self.lock.read_text().splitlines()[1:],
                         [f"org.example.good 1.2 {sha256(GOOD)}"])
        self.assertEqual(stat.S_IMODE(self.lock.stat().st_mode), 0o644)

    def swap(self):
        shutil.copyfile(OTHER, self.system / "new")
        os.chmod(self.system / "new", 0o644)
        (self.system / "new").rename(self.path)

    def warns(self, text, **env):
        self.loads(self.path, CATENA_PLUGIN_LOCK="warn", **env)
        self.assertEqual(self.log, f"catena warning: [plugin] {self.path}: {text}\n")

    def test_a_lock_beside_the_plugins_is_strict(self):
        self.loads(self.path)
        self.write_lock()
        self.loads(self.path)
        self.assertEqual(self.all["plugins"][0]["sha256"], sha256(GOOD))
        self.swap()
        self.refuses(self.path, "lock ")
        self.write_lock_of_other()
        self.loads(self.path)

    def write_lock_of_other(self):
        self.catena("plugins", "lock", "--plugins", self.system)
        self.assertIn(sha256(OTHER), self.lock.read_text())

    def test_another_hash(self):
        self.write_lock()
        self.swap()
        reason = (f"lock {self.lock}, line 2: expected org.example.good 1.2 with SHA-256 "
                  f"{sha256(GOOD)}, got 1.2 with {sha256(OTHER)}")
        for mode in ({}, {"CATENA_PLUGIN_LOCK": "strict"}):
            self.refuses(self.path, re.escape(reason) + "$", **mode)
        self.warns(reason)
        self.loads(self.path, CATENA_PLUGIN_LOCK="off")
        self.assertEqual(self.log, "")

    def test_a_plugin_without_a_line(self):
        self.lock.write_text("# none\n")
        reason = f"lock {self.lock}: expected a line for org.example.good, got none"
        self.refuses(self.path, re.escape(reason) + "$")
        self.warns(reason)

    def test_no_lock(self):
        reason = f"lock {self.lock}: there is no such file"
        self.refuses(self.path, re.escape(reason) + "$", CATENA_PLUGIN_LOCK="strict")
        self.warns(reason)

    def test_a_lock_elsewhere(self):
        elsewhere = self.folder("etc") / "plugins.lock"
        self.assertEqual(self.catena("plugins", "lock", "--out", elsewhere),
                         f"wrote {elsewhere}: 1 plugin\n")
        self.assertFalse(self.lock.exists())
        self.loads(self.path, CATENA_PLUGIN_LOCK=f"strict:{elsewhere}")
        self.swap()
        self.refuses(self.path, f"lock {elsewhere}, line 2: ",
                     CATENA_PLUGIN_LOCK=f"strict:{elsewhere}")
        self.loads(self.path)

    def test_a_package_s_folder_gets_no_lock_unasked(self):
        fails = self.fails("plugins", "lock")
        self.assertEqual(fails, f"catena: [lock] plugins in {self.user}: expected some, got none; for "
                                "those of another folder: --plugins DIR\n")
        self.assertIn(" in the user's folders: ",
                      self.fails("plugins", "lock", XDG_DATA_HOME="", HOME=""))
        self.put(OTHER, self.named)
        self.put(OTHER, self.user)
        wrote = [f"wrote {folder / self.lock.name}: 1 plugin\n" for folder in (self.named, self.user)]
        named = {"CATENA_PLUGIN_PATH": f"/nowhere:{self.named}"}
        self.assertEqual(self.catena("plugins", "lock", **named), "".join(wrote))
        self.assertFalse(self.lock.exists())
        (self.user / self.lock.name).unlink()  # the first is written and reported, the second fails
        (self.user / self.lock.name).mkdir()
        self.assertRegex(self.fails("plugins", "lock", printed=wrote[0], **named),
                         f"^catena: .save. {self.user / self.lock.name}: expected a file that can be "
                         "written, got ")
        self.assertIn("[lock] plugins: expected a folder to read, got /nowhere (No such file or",
                      self.fails("plugins", "lock", "--plugins", "/nowhere"))

    def test_locks_that_are_no_locks(self):
        self.lock.write_text(f"# a comment\norg.example.good {sha256(GOOD)}\n")
        reason = (f"lock {self.lock}, line 2: expected ID VERSION SHA256 (64 digits 0-9a-f), got "
                  f"'org.example.good {sha256(GOOD)}'")
        self.refuses(self.path, re.escape(reason) + "$")
        self.warns(reason)
        self.lock.write_text(f"org.example.good 1.2 {sha256(GOOD)}\n")
        os.chmod(self.lock, 0o646)
        self.refuses(self.path, f"lock {self.lock}: mode of the file {self.lock}: expected ")
        os.chmod(self.lock, 0o644)
        self.loads(self.path)
        self.lock.unlink()
        self.lock.mkdir()
        self.refuses(self.path, f"lock {self.lock}: it is no regular file$")
        self.lock.rmdir()
        self.lock.symlink_to("nowhere")
        self.refuses(self.path, f"lock {self.lock}: there is no such file$")
        if not ROOT:
            self.lock.unlink()
            self.lock.touch(0o200)
            self.refuses(self.path, f"lock {self.lock}: the file cannot be opened: Permission denied$")

    def test_a_link_leads_around_no_lock(self):
        """The lock beside the true file counts, too."""
        self.path.unlink()
        real, link = self.put(GOOD, self.named), self.folder("data/catena/plugins") / "link.catena"
        of_real, of_link = (path.parent / self.lock.name for path in (real, link))
        link.symlink_to(real)
        self.catena("plugins", "lock", "--plugins", self.named)
        self.loads(link)
        self.assertEqual(self.all["plugins"][0]["file"], str(real))
        self.assertIn(f"  link.catena -> {real}, 1 function\n", self.catena("plugins"))
        real.unlink()
        self.put(OTHER, self.named, real.name)
        reason = (f"lock {of_real}, line 2: expected org.example.good 1.2 with SHA-256 "
                  f"{sha256(GOOD)}, got 1.2 with {sha256(OTHER)}")
        self.refuses(link, re.escape(reason) + "$")
        self.loads(link, CATENA_PLUGIN_LOCK="off")
        self.loads(link, CATENA_PLUGIN_LOCK="warn")
        self.assertEqual(self.log.splitlines(), [
            f"catena warning: [plugin] {link}: {text}"
            for text in (f"lock {of_link}: there is no such file", reason)])
        self.catena("plugins", "lock", "--plugins", link.parent)  # of_real still disagrees
        self.assertIn(sha256(OTHER), of_link.read_text())
        self.refuses(link, re.escape(reason) + "$")
        self.catena("plugins", "lock", "--plugins", self.named)
        self.loads(link)
        of_link.write_text("# none\n")
        self.refuses(link, f"lock {of_link}: expected a line for org.example.good, got none$")

    def test_words_that_mean_nothing(self):
        self.put(GOOD, self.system, "second.catena")
        self.put(GOOD, self.user)
        for words in ("Strict", "strict:plugins.lock", "strict:", ":", "no"):  # reported once for all
            self.refuses(self.user, "CATENA_PLUGIN_LOCK: expected strict, warn or off, or one with "
                                    f":/ABSOLUTE/FILE, got '{re.escape(words)}'$",
                         CATENA_PLUGIN_LOCK=words)

    def test_what_cannot_be_locked(self):
        self.write_lock()
        before = self.lock.read_text()
        (self.system / "text.catena").write_text("no plugin")
        self.put(OTHER, self.named)
        for out in (("--plugins", self.named, "--plugins", self.system), ("--out", "/nowhere/lock")):
            done = subprocess.run([CATENA, "plugins", "lock", *out], env=self.env, text=True,
                                  capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, "text.catena: not a shared library")
        self.assertEqual(self.lock.read_text(), before)
        self.assertFalse((self.named / self.lock.name).exists())
        (self.system / "text.catena").unlink()
        done = subprocess.run([CATENA, "plugins", "lock", "--out", "/nowhere/lock"], env=self.env,
                              text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "catena: [save] /nowhere/lock: expected a file that can be written, "
                             "got No such file or directory\n"))
        self.assertEqual(sorted(p.name for p in self.system.iterdir()),
                         ["catena.plugins.lock", "good.catena"])


class Audit(Case):
    LINE = (r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ pid=\d+ (?P<what>\S+) id=(?P<id>\S+) "
            r"version=(?P<version>\S+) sha256=(?P<sha256>\S+) owner=(?P<owner>\S+) "
            r"mode=(?P<mode>\S+) path=(?P<path>\S+)(?: file=(?P<file>\S+))?"
            r"(?: reason=(?P<reason>.*))?$")

    def audit(self, **env):
        file = self.top / "audit"
        file.unlink(missing_ok=True)
        for _ in range(2):  # the second run appends
            self.report(CATENA_PLUGIN_AUDIT=str(file), **env)
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        lines = file.read_text().splitlines()
        self.assertEqual([line.split("Z pid=")[1].split(" ", 1)[1] for line in lines[:len(lines) // 2]],
                         [line.split("Z pid=")[1].split(" ", 1)[1] for line in lines[len(lines) // 2:]])
        found = [re.match(self.LINE, line).groupdict() for line in lines[:len(lines) // 2]]
        return {pathlib.Path(line["path"]).name: line for line in found}

    def test_lines(self):
        good = self.put(GOOD, self.system, mode=0o755)
        bad = self.put(GOOD, self.system, "bad name.catena", mode=0o646)
        (self.system / "text.catena").write_text("no plugin")
        os.chmod(self.system / "text.catena", 0o644)
        odd = OTHER.read_bytes().replace(b"\0" + b"1.2".ljust(16, b"\0"),
                                         b"\0" + b"1\nid=x y%\x7f".ljust(16, b"\0"))
        (self.system / "odd.catena").write_bytes(odd)
        os.chmod(self.system / "odd.catena", 0o644)
        me = str(os.geteuid())
        lines = self.audit()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines["good.catena"], {
            "what": "loaded", "id": "org.example.good", "version": "1.2", "sha256": sha256(GOOD),
            "owner": me, "mode": "0755", "path": str(good), "file": None,
            "reason": None})
        line = lines["bad%20name.catena"]
        self.assertRegex(line.pop("reason"), f"^mode of the file {bad}: expected .*, got 0646 ")
        self.assertEqual(line, {"what": "refused", "id": "-", "version": "-", "sha256": "-",
                                "owner": me, "mode": "0646", "path": f"{self.system}/bad%20name.catena",
                                "file": None})
        self.assertEqual(lines["text.catena"]["mode"], "0644")
        self.assertRegex(lines["text.catena"]["reason"], "^not a shared library: ")
        self.assertEqual(lines["odd.catena"]["version"], "1%0Aid=x%20y%25%7F")

    def test_folders_and_what_is_passed_over(self):
        path = self.put(GOOD, self.user)
        over = self.put(OTHER, self.system)
        text = self.user / "text"
        text.touch()
        env = {"CATENA_PLUGIN_PATH": f"rel:::a b:{text}"}
        lines = self.audit(**env)
        self.assertEqual({name: line["what"] for name, line in lines.items()},
                         {"rel": "refused", "a%20b": "refused", "text": "refused",
                          path.name: "loaded", "other.catena": "overridden"})
        for name in ("rel", "a%20b"):
            self.assertEqual((lines[name]["path"], lines[name]["owner"], lines[name]["reason"]),
                             (name, "-", "CATENA_PLUGIN_PATH: expected absolute folders"))
        self.assertEqual((lines["text"]["path"], lines["text"]["reason"]),
                         (str(text), "the folder cannot be read: Not a directory"))
        self.assertEqual((lines["other.catena"]["path"], lines["other.catena"]["sha256"],
                          lines["other.catena"]["reason"]),
                         (str(over), sha256(OTHER), f"{path} came first"))
        audit = self.top / "without"
        self.catena("functions", "--without", "org.example.good", CATENA_PLUGIN_AUDIT=str(audit))
        self.assertEqual([line.split()[2:4] for line in audit.read_text().splitlines()],
                         [["left-out", "id=org.example.good"]] * 2)

    def test_the_true_file_of_a_link(self):
        real = self.put(GOOD, self.named, "true file")
        (self.folder("data/catena/plugins") / "good.catena").symlink_to(real)
        for lock, what in (("off", "loaded"), ("strict", "refused")):
            line = self.audit(CATENA_PLUGIN_LOCK=lock)["good.catena"]
            self.assertEqual((line["what"], line["path"], line["file"]),
                             (what, f"{self.user}/good.catena", f"{self.named}/true%20file"))

    def test_a_refusal_by_the_lock_has_the_hash(self):
        self.put(GOOD, self.system)
        line = self.audit(CATENA_PLUGIN_LOCK="strict")["good.catena"]
        self.assertEqual((line["what"], line["id"], line["sha256"]),
                         ("refused", "org.example.good", sha256(GOOD)))

    def test_the_log(self):
        path = self.put(GOOD, self.system)
        for level in ("info", "debug"):
            self.loads(path, CATENA_LOG=level)
            self.assertEqual(self.log, "catena info: loaded id=org.example.good version=1.2 sha256=- "
                                       f"owner={os.geteuid()} mode=0644 path={path}\n")
        for level in ("warning", "error", "x", ""):
            self.loads(path, CATENA_LOG=level)
            self.assertEqual(self.log, "")

    def test_a_file_that_cannot_be_written(self):
        path = self.put(GOOD, self.system)
        (self.system / "text.catena").write_text("no plugin")
        self.report(CATENA_PLUGIN_AUDIT="/nowhere/audit")
        self.assertEqual(self.log, "catena warning: [plugin] CATENA_PLUGIN_AUDIT: /nowhere/audit: "
                                   "cannot be written: No such file or directory\n")
        self.report(CATENA_PLUGIN_AUDIT="relative", cwd=self.top)
        self.assertEqual(self.log, "catena warning: [plugin] CATENA_PLUGIN_AUDIT: relative: "
                                   "cannot be written: expected an absolute path\n")
        self.assertFalse((self.top / "relative").exists())
        (self.top / "link").symlink_to(self.top / "target")
        path.unlink()
        self.report(CATENA_PLUGIN_AUDIT=str(self.top / "link"))
        self.assertFalse((self.top / "target").exists())


if __name__ == "__main__":
    os.umask(0o022)  # files that a group can write to are refused
    unittest.main()
