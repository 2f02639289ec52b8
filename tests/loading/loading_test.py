"""Tests that run catena: which plugins it loads and which it refuses.

usage: loading_test.py CATENA LOADER_LIBRARY HOST MODULES [unittest options]

The loader is copied into a tree of its own, so that the test controls its plugin folder. HOST is
the program of tests/empty_core, which also finds its libraries if it is setuid."""
import grp
import hashlib
import json
import os
import pathlib
import pwd
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

CATENA, LOADER, HOST, MODULES = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(4))
GOOD, OTHER = (MODULES / name for name in ("good.catena", "other.catena"))
DRY, BOUND, BOUND_TOO, BOTH, GOOD_BOUND = (
    MODULES / f"{name}.catena" for name in ("dry", "bound", "bound_too", "both", "good_bound"))
SWAP = MODULES / "loading-swap.so"
# libcatena-loader.so.1.0, from libcatena-loader.so.1.0.0
SONAME = LOADER.name.rsplit(".", 1)[0]
ROOT = os.geteuid() == 0
STRANGER = 1234


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="catena-loading-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        os.chmod(self.top, 0o755)
        self.lib = self.folder("lib")
        self.system, self.user, self.named = (
            self.lib / "catena/plugins", self.top / "data/catena/plugins", self.top / "named")
        self.brought = pathlib.Path(shutil.copy(LOADER, self.lib / SONAME))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CATENA_")}
        self.env |= {"LD_LIBRARY_PATH": str(self.lib), "XDG_DATA_HOME": str(self.top / "data")}

    def folder(self, name, mode=0o755):
        path = self.top / name
        path.mkdir(parents=True, exist_ok=True)
        for part in (path, *path.parents):
            if part == self.top:
                break
            os.chmod(part, 0o755)
        os.chmod(path, mode)
        return path

    def put(self, module, folder, name=None, mode=0o644):
        folder = self.folder(folder.relative_to(self.top))
        path = folder / (name or module.name)
        shutil.copyfile(module, path)
        os.chmod(path, mode)
        return path

    def catena(self, *arguments, cwd=None, **env):
        done = subprocess.run([CATENA, *map(str, arguments)], env=self.env | env, cwd=cwd,
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.log = done.stderr
        return done.stdout

    def fails(self, *arguments, printed="", **env):
        """Returns the errors of a command that must fail."""
        done = subprocess.run([CATENA, *map(str, arguments)], env=self.env | env, text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (1, printed), done.stderr)
        return done.stderr

    def report(self, *arguments, **kind):
        """Returns the state, path and reason of every plugin."""
        self.all = json.loads(self.catena("plugins", "--json", *arguments, **kind))
        return [(p["state"], p["path"], p.get("reason", "")) for p in self.all["plugins"]]

    def loads(self, path, **kind):
        self.assertEqual(self.report(**kind), [("loaded", str(path), "")])

    def refuses(self, path, reason, **kind):
        report = self.report(**kind)
        self.assertEqual([row[:2] for row in report], [("refused", str(path))])
        self.assertRegex(report[0][2], "^" + reason)

    def mode_refused(self, what, path, mode):
        self.refuses(self.system / "good.catena",
                     re.escape(f"mode of the {what} {path}: expected that only its owner can write, "
                               f"got {mode:04o} (group {path.stat().st_gid}); chmod go-w {path}"))


class Search(Case):
    def test_the_order(self):
        paths = [self.put(GOOD, folder) for folder in (self.named, self.user, self.system)]
        path = f"/nowhere:{self.named}/"
        self.assertEqual(
            self.report(CATENA_PLUGIN_PATH=path),
            [("loaded", str(paths[0]), "")] +
            [("overridden", str(p), f"{paths[0]} came first") for p in paths[1:]])
        self.assertEqual([(f["path"], f["from"], f["exists"]) for f in self.all["searched"]],
                         [("/nowhere", "CATENA_PLUGIN_PATH", False),
                          (str(self.named), "CATENA_PLUGIN_PATH", True),
                          (str(self.user), "user", True), (str(self.system), "system", True)])
        text = self.catena("plugins", "--hash", CATENA_PLUGIN_PATH=path)
        self.assertEqual(text.splitlines(), [
            "1. /nowhere (CATENA_PLUGIN_PATH): no such folder",
            f"2. {self.named} (CATENA_PLUGIN_PATH)",
            "   loaded      org.example.good  1.2      good.catena, 1 function",
            f"               sha256 {sha256(GOOD)}",
            f"3. {self.user} (user)",
            f"   overridden  org.example.good  1.2      good.catena: {paths[0]} came first",
            f"               sha256 {sha256(GOOD)}",
            f"4. {self.system} (system)",
            f"   overridden  org.example.good  1.2      good.catena: {paths[0]} came first",
            f"               sha256 {sha256(GOOD)}",
            "1 loaded, 0 refused, 2 overridden, 0 left out"])
        paths[0].unlink()
        self.assertEqual(self.report(CATENA_PLUGIN_PATH=path)[0][:2], ("loaded", str(paths[1])))
        paths[1].unlink()
        self.loads(paths[2], CATENA_PLUGIN_PATH=path)

    def test_the_program_alone(self):
        self.put(OTHER, self.user)
        path = self.put(GOOD, self.named)
        self.assertEqual(self.report("--plugins", self.named), [("loaded", str(path), "")])
        self.assertEqual([f["from"] for f in self.all["searched"]], ["program"])
        self.assertEqual(self.report("--plugins", "named", cwd=self.top)[0][:2],
                         ("loaded", str(path)))

    def test_the_user_s_folder(self):
        path = self.put(GOOD, self.top / "home/.local/share/catena/plugins")
        for data in ("", "relative"):
            self.loads(path, XDG_DATA_HOME=data, HOME=str(self.top / "home"))

    def test_never_the_current_directory(self):
        self.put(GOOD, self.named)
        self.put(GOOD, self.named / "catena/plugins")
        for path in ("", ":", ".:", "catena/plugins", "::./:"):
            report = self.report(cwd=self.named, XDG_DATA_HOME="", HOME="", CATENA_PLUGIN_PATH=path)
            self.assertEqual([row for row in report if row[0] != "refused"], [])
            for row in report:
                self.assertEqual(row[2], "CATENA_PLUGIN_PATH: expected absolute folders")

    def test_two_of_one_id_in_one_folder(self):
        first, second = (self.put(GOOD, self.system, name) for name in ("a.catena", "b.catena"))
        self.assertEqual(self.report(), [
            ("loaded", str(first), ""),
            ("refused", str(second), f"id org.example.good is already loaded from {first}")])

    def test_a_name_of_several_lines_is_one_line(self):
        self.put(GOOD, self.system)
        (self.system / "evil\n9. loaded\t\x1b[31m.catena").write_text("no plugin")
        text = self.catena("plugins")
        self.assertIn("   refused     evil?9. loaded??[31m.catena: ", text)
        self.assertNotIn("\n9. loaded", text)
        self.assertNotIn("\x1b", text)
        self.assertIn("evil?9. loaded??[31m.catena: ", self.fails("functions", "--plugins", self.system))

    def test_switched_off(self):
        self.put(GOOD, self.system)
        for word in ("off", "of", "0"):  # a misspelled value does not switch on
            for explicit in ((), ("--plugins", self.system)):
                self.assertEqual(self.report(*explicit, CATENA_PLUGINS=word), [])
                self.assertEqual(self.all["switched_off"], word)
        self.assertIn("plugins are switched off: CATENA_PLUGINS=off\n",
                      self.catena("plugins", CATENA_PLUGINS="off"))
        self.assertIn("plugins are switched off: CATENA_PLUGINS: expected on or off, got 'yes'\n",
                      self.catena("plugins", CATENA_PLUGINS="yes"))
        for word in ("on", ""):
            self.loads(self.system / "good.catena", CATENA_PLUGINS=word)

    @unittest.skipUnless(ROOT, "needs root: makes a setuid program")
    def test_a_setuid_program_ignores_the_environment(self):
        if os.statvfs(self.top).f_flag & os.ST_NOSUID or \
                "NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text():
            self.skipTest("setuid has no effect here")
        self.put(GOOD, self.named)
        self.put(GOOD, self.user)
        host = self.top / "host"
        shutil.copy(HOST, host)
        env = self.env | {"CATENA_PLUGIN_PATH": str(self.named),
                          "CATENA_PLUGIN_AUDIT": str(self.top / "audit")}
        for setuid in (False, True):
            os.chmod(host, 0o4755 if setuid else 0o755)
            done = subprocess.run([host, "test.none"], env=env, text=True, capture_output=True,
                                  user=65534 if setuid else None)
            self.assertEqual(done.returncode, 1, done.stderr)
            for folder in (self.named, self.user):
                self.assertEqual(f"looked in {folder}" in done.stderr, not setuid, done.stderr)
            self.assertEqual((self.top / "audit").exists(), not setuid)
            (self.top / "audit").unlink(missing_ok=True)

    def test_an_unknown_function_may_be_in_a_refused_file(self):
        self.put(GOOD, self.system)
        text = "catena: no plugin has the function test.xyzzy; "
        self.assertEqual(self.fails("describe", "test.xyzzy"), text + "see catena functions\n")
        other = self.put(OTHER, self.system, "1.catena", mode=0o666)
        self.assertRegex(self.fails("describe", "test.xyzzy"), re.escape(
            f"{text}refused {other}: mode of the file {other}: expected that only its owner can "
            "write, got 0666") + ".*; see catena functions\n$")
        self.put(OTHER, self.system, "2.catena", mode=0o666)
        said = self.fails("describe", "test.xyzzy").splitlines()
        self.assertEqual([line.split(":")[0] for line in said[1:3]],
                         [f"refused {self.system}/{n}.catena" for n in (1, 2)])
        self.assertEqual(said[3:], ["see catena functions"])
        for n in (3, 4, 5):
            self.put(OTHER, self.system, f"{n}.catena", mode=0o666)
        said = self.fails("describe", "test.xyzzy").splitlines()
        self.assertEqual(len(said), 6, said)
        self.assertEqual(said[4], "refused 2 more files: see catena plugins")


class Odd(Case):
    def test_a_file_that_is_replaced_while_it_is_loaded(self):
        path = self.put(GOOD, self.system)
        self.put(OTHER, self.system, "new")
        audit = self.top / "audit"
        self.refuses(path, "it was replaced or changed after it was checked$",
                     LD_PRELOAD=str(SWAP), CATENA_TEST_SWAP=str(self.system / "new"),
                     CATENA_PLUGIN_AUDIT=str(audit))
        line, = audit.read_text().splitlines()
        self.assertIn(f" refused id=org.example.good version=1.2 sha256={sha256(GOOD)} ", line)
        self.assertIn(" reason=it was replaced or changed after it was checked", line)

    def test_a_missing_symbol_is_told_of_the_plugin_s_own_file(self):
        path = self.put(MODULES / "undefined.catena", self.named)
        reason = (f"the system's loader refuses it: {path}: "
                  "undefined symbol: function_of_a_missing_library")
        for lock in ("off", "lock"):
            if lock == "lock":
                self.catena("plugins", "lock", "--plugins", self.named)
            self.assertEqual(self.report("--plugins", self.named),
                             [("refused", str(path), reason)])

    def test_a_plugin_that_ends_the_process_while_it_is_loaded_is_named(self):
        audit = self.top / "audit"
        for name, step in (("constructor", "static constructors"), ("entry", "entry"),
                           ("init", "init()"), ("quickly", "init()")):
            path = self.put(MODULES / f"exits_{name}.catena", self.folder(name))
            error = self.fails("plugins", "--plugins", path.parent, CATENA_PLUGIN_AUDIT=audit)
            self.assertEqual(error, f"catena error: [plugin] {path}: its {step} called exit(): "
                                    "the process ends with code 1\n")
            self.assertIn(f" path={path} reason=its {step} called exit()", audit.read_text())

    def test_a_plugin_that_ends_the_process_as_a_device_is_named(self):
        for name in ("count", "open", "get_extension", "supports_isa"):
            path = self.put(MODULES / f"exits_{name}.catena", self.folder(name))
            error = self.fails("call", "test.zero", "--device", "dry", "--plugins", path.parent,
                               "--out", self.top / "out.npz")
            self.assertEqual(error, f"catena error: [plugin] {path}: its {name}() called exit(): "
                                    "the process ends with code 1\n")

    def test_a_plugin_that_ends_the_process_while_it_ends_is_named(self):
        path = self.put(MODULES / "exits_deinit.catena", self.folder("deinit"))
        error = self.fails("describe", "test.xyzzy", "--plugins", path.parent)
        self.assertEqual(error.splitlines()[-1], f"catena error: [plugin] {path}: its deinit() called "
                                                 "exit(): the process ends with code 1")

    def test_kernels_for_a_function_that_nobody_has(self):
        self.put(GOOD, self.user)
        self.put(MODULES / "slip.catena", self.user)
        meant = ("org.example.slip: it has kernels for test.goood, a function that no plugin has; "
                 "did you mean test.good?")
        self.assertEqual(self.report()[0][0], "loaded")
        self.assertEqual(self.log.splitlines(), [f"catena warning: [plugin] {meant}"])
        self.assertEqual(self.all["kernels_without_function"][:2], [
            {"plugin": "org.example.slip", "function": "test.goood", "guess": "test.good"},
            {"plugin": "org.example.slip", "function": "org.nobody.one"}])
        self.assertEqual(len(self.all["kernels_without_function"]), 5)
        self.assertIn(meant, self.catena("plugins").splitlines())
        self.assertEqual(self.fails("describe", "test.goood").splitlines()[-1],
                         "catena: no plugin has the function test.goood; org.example.slip has "
                         "kernels for it alone; did you mean test.good?")


class Idle(Case):
    """Plugins for devices that do not exist."""
    REASON = "dry has no device"
    BACKEND = "dry: no device (the driver is not there)"

    def test_what_serves_no_device_of_this_machine_is_not_loaded(self):
        bound = self.put(BOUND, self.user, "a.catena")  # found before the backend
        too = self.put(BOUND_TOO, self.system)
        both = self.put(BOTH, self.system, "b.catena")
        dry = self.put(DRY, self.system, "z.catena")
        audit = self.top / "audit"
        self.assertEqual(
            self.report(CATENA_LOG="info", CATENA_PLUGIN_AUDIT=audit),
            [("loaded", str(dry), ""), ("loaded", str(both), ""),
             ("idle", str(bound), self.REASON), ("idle", str(too), self.REASON)])
        self.assertEqual(self.all["backends"], [
            {"name": "dry", "plugin": "org.example.dry", "devices": 0,
             "reason": "the driver is not there"}])
        for name, path in ("bound", bound), ("bound_too", too):
            line = f" idle id=org.example.{name} version=1.2 .* path={path} reason="
            self.assertEqual(len(re.findall(line, audit.read_text())), 1)
        # The log has one line for the backend.
        self.assertEqual([line for line in self.log.splitlines() if "bound" in line], [
            f"catena info: [plugin] {self.BACKEND}: not loaded: org.example.bound, org.example.bound_too"])
        self.assertEqual(self.catena("plugins").splitlines()[-2:], [
            self.BACKEND, "2 loaded, 0 refused, 0 overridden, 0 left out, 2 idle"])
        self.assertEqual(self.log, "")  # not an error
        self.assertIn("[device] dry: expected a device, got none: the driver is not there",
                      self.fails("call", "test.bound", "--device", "dry", "--out", self.top / "out.npz"))

    def test_nor_is_it_from_a_folder_that_the_program_names(self):
        bound, dry = self.put(BOUND, self.named), self.put(DRY, self.named)
        self.assertEqual(self.report("--plugins", self.named),
                         [("loaded", str(dry), ""), ("idle", str(bound), self.REASON)])

    def test_without_the_backend_nobody_knows(self):
        self.loads(self.put(BOUND, self.system))

    def test_a_lock_need_not_have_it(self):
        self.put(DRY, self.named)
        self.catena("plugins", "lock", "--plugins", self.named)
        self.put(BOUND, self.named)
        self.assertEqual([row[0] for row in self.report("--plugins", self.named)],
                         ["loaded", "idle"])

    def test_the_first_of_an_id_comes_first_whatever_its_devices(self):
        first, second = self.put(GOOD_BOUND, self.user), self.put(GOOD, self.system)
        self.assertEqual(self.report(), [("loaded", str(first), ""),
                                         ("overridden", str(second), f"{first} came first")])


class Trust(Case):
    def setUp(self):
        super().setUp()
        self.path = self.put(GOOD, self.system)

    def test_modes_that_are_fine(self):
        for mode in (0o400, 0o644, 0o755):
            os.chmod(self.path, mode)
            self.loads(self.path)

    def test_a_file_that_others_can_write_to(self):
        for mode in (0o646, 0o666):
            os.chmod(self.path, mode)
            self.mode_refused("file", self.path, mode)
        os.chmod(self.path, 0o644)
        self.loads(self.path)

    def test_a_folder_that_others_can_write_to(self):
        for folder in (self.system, self.system.parent):
            os.chmod(folder, 0o757)
            self.mode_refused("folder", folder, 0o757)
            os.chmod(folder, 0o755)
        self.loads(self.path)

    def test_sticky_is_fine_above_the_file_s_own_folder(self):
        os.chmod(self.system.parent, 0o1777)
        self.loads(self.path)
        os.chmod(self.system, 0o1777)
        self.mode_refused("folder", self.system, 0o1777)

    def in_a_private_group(self, path):
        try:
            user = pwd.getpwuid(os.geteuid())
            group = grp.getgrgid(path.stat().st_gid)
        except KeyError:  # a user without a name, as in containers
            return False
        return (group.gr_gid, group.gr_name, group.gr_mem) == (user.pw_gid, user.pw_name, [])

    def test_what_a_group_can_write_to(self):
        for what, path in (("folder", self.system), ("file", self.path)):
            os.chmod(path, 0o775)
            if self.in_a_private_group(path):
                self.loads(self.path)  # the group has no other members
                # Except another user whose primary group it is.
                self.env |= {"LD_PRELOAD": str(SWAP), "CATENA_TEST_GROUP": str(path.stat().st_gid)}
                self.mode_refused(what, path, 0o775)
                del self.env["LD_PRELOAD"]
            else:
                self.mode_refused(what, path, 0o775)
            if not ROOT:
                self.skipTest("needs root: gives it to another group")
            os.chown(path, -1, STRANGER)
            os.chmod(path, 0o775)
            self.mode_refused(what, path, 0o775)
            os.chown(path, -1, os.getegid())
            os.chmod(path, 0o755)

    def let_write(self, path, tag, permissions=6):
        """Sets an access list with one more entry than the mode, for a user or a group."""
        def entry(tag, permissions, number=0xffffffff):
            return struct.pack("<HHI", tag, permissions, number)
        entries = [entry(1, 7), entry(2, permissions, STRANGER), entry(4, 7),
                   entry(8, permissions, STRANGER), entry(16, 7), entry(32, 5)]
        del entries[3 if tag == "user" else 1]
        try:
            os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + b"".join(entries))
        except OSError as error:
            self.skipTest(f"access lists: {error}")

    def test_who_an_access_list_lets_write(self):
        lock = self.system / "catena.plugins.lock"
        self.catena("plugins", "lock", "--plugins", self.system)
        for what, path in (("folder", self.system), ("file", lock)):
            for tag in ("user", "group"):
                self.let_write(path, tag)
                os.chmod(path, 0o755)  # limits all entries of the access list
                self.loads(self.path)
                os.chmod(path, 0o775)
                if not self.in_a_private_group(path):
                    self.skipTest("needs a group that nobody else is in")
                reason = (f"access list of the {what} {path}: expected none where a group can "
                          f"write; setfacl -b {path}")
                self.refuses(self.path, re.escape(reason if what == "folder" else
                                                  f"lock {lock}: {reason}") + "$")
            os.removexattr(path, "system.posix_acl_access")
            os.chmod(path, 0o755)

    @unittest.skipUnless(ROOT, "needs root: gives files away")
    def test_what_a_stranger_owns(self):
        for what, path in (("file", self.path), ("folder", self.system),
                           ("folder", self.system.parent)):
            os.chown(path, STRANGER, -1)
            self.refuses(self.path, re.escape(
                f"owner of the {what} {path}: expected root or this user (uid 0), got uid "
                f"{STRANGER}; if that owner is trusted: CATENA_PLUGIN_OWNERS={STRANGER}"))
            self.loads(self.path, CATENA_PLUGIN_OWNERS=f"77:{STRANGER}")
            for owners in ("", "77", f"{STRANGER}0"):
                self.refuses(self.path, "owner of the ", CATENA_PLUGIN_OWNERS=owners)
            for owners in ("x", f"{STRANGER}x", "-1", f"{STRANGER}::", "99999999999"):
                self.refuses(self.path, "CATENA_PLUGIN_OWNERS: expected uids with ':' between, got "
                                        f"'{owners}'$", CATENA_PLUGIN_OWNERS=owners)
            os.chown(path, 0, -1)
        self.loads(self.path)

    def test_who_can_replace_the_core_is_not_asked(self):
        """A checkout of somebody else, an umask of 002, a cluster's software account."""
        os.chmod(self.lib, 0o777)
        self.loads(self.path)
        elsewhere = self.put(GOOD, self.named)
        self.path.unlink()
        os.chmod(self.named, 0o777)
        self.refuses(elsewhere, "mode of the folder ", CATENA_PLUGIN_PATH=str(self.named))
        os.chmod(self.named, 0o755)
        if not ROOT:
            self.skipTest("needs root: gives files away")
        os.chown(self.top, STRANGER, -1)
        self.loads(elsewhere, CATENA_PLUGIN_PATH=str(self.named))
        os.chown(elsewhere, STRANGER, -1)
        self.refuses(elsewhere, "owner of the file ", CATENA_PLUGIN_PATH=str(self.named))
        os.chown(self.brought, STRANGER, -1)
        self.loads(elsewhere, CATENA_PLUGIN_PATH=str(self.named))

    @unittest.skipUnless(ROOT, "needs root: runs as another user")
    def test_another_user_takes_root_s_files_and_his_own(self):
        for owner, state in ((0, "loaded"), (65534, "loaded"), (STRANGER, "refused")):
            os.chown(self.path, owner, -1)
            done = subprocess.run([CATENA, "plugins", "--json"], env=self.env, user=65534, group=65534,
                                  extra_groups=[], text=True, capture_output=True)
            if done.returncode == 127 or "cannot open shared object" in done.stderr:
                self.skipTest("another user cannot run the program in this folder")
            self.assertEqual([p["state"] for p in json.loads(done.stdout)["plugins"]], [state])

    def test_links(self):
        real = self.put(GOOD, self.named, "good.catena.1")
        self.path.unlink()
        self.path.symlink_to(real)
        self.loads(self.path)
        os.chmod(self.named, 0o757)
        self.mode_refused("folder", self.named, 0o757)
        os.chmod(self.named, 0o755)
        if ROOT:
            os.chown(self.path, STRANGER, -1, follow_symlinks=False)
            self.refuses(self.path, f"owner of the link {self.path}: ")
        self.path.unlink()
        self.path.symlink_to(self.path.name)
        self.refuses(self.path, f"{self.path}: links in a circle")


if __name__ == "__main__":
    os.umask(0o022)  # files that a group can write to are refused
    unittest.main()
