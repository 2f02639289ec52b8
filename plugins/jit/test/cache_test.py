"""Tests the folder of compiled kernels, which several processes share.

usage: cache_test.py WORKER DEVICE [unittest options]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

WORKER, DEVICE = sys.argv.pop(1), sys.argv.pop(1)
ON_CPU = DEVICE.startswith("cpu")
EMULATED = any(name.startswith("CATENA_EMULATOR_") for name in os.environ)


class Cache(unittest.TestCase):
    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="catena-test-"))
        self.folder = self.base / "kernels"

    def tearDown(self):
        shutil.rmtree(self.base, ignore_errors=True)

    def start(self, *addends, **settings):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("CATENA_KERNEL")}
        variables["CATENA_KERNEL_CACHE"] = str(self.folder)
        variables |= settings
        variables = {k: v for k, v in variables.items() if v is not None}
        return subprocess.Popen([WORKER, DEVICE, *map(str, addends)], env=variables, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process):
        """Returns (counts by name, stdout, stderr)."""
        output, errors = process.communicate()
        counts = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", output)}
        return counts, output, errors

    def run_worker(self, *addends, **settings):
        return self.finish(self.start(*addends, **settings))

    def expect(self, compiled, loaded, *addends, warns=None, **settings):
        counts, output, errors = self.run_worker(*addends, **settings)
        self.assertEqual((counts.get("compiled"), counts.get("loaded")), (compiled, loaded),
                         output + errors)
        if warns is None:
            self.assertNotIn("warning", errors)
        else:
            self.assertEqual(errors.count("catena warning: [kernels]"), 1, errors)
            self.assertIn(warns, errors)
        return counts

    def entries(self):
        return sorted(self.folder.glob("*.kernel"))

    def entry(self):
        [only] = self.entries()
        return only

    def test_a_second_process_compiles_nothing(self):
        counts = self.expect(2, 0, 1, 2, 1)
        self.assertEqual(counts["hits"], 1)
        self.assertEqual(len(self.entries()), 2)
        self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual(self.entries()[0].stat().st_mode & 0o777, 0o600)
        self.assertTrue(self.entries()[0].name.startswith("cached-"))
        self.expect(0, 2, 1, 2)

    def test_sources_are_kept_if_asked_for(self):
        self.expect(1, 0, 1)
        self.assertEqual(list(self.folder.glob("*.source")), [])
        _, _, errors = self.run_worker(1, KEEP="1", CATENA_LOG="info")  # already compiled
        [source] = self.folder.glob("*.source")
        self.assertEqual(source.stem, self.entry().stem)
        self.assertIn(str(source), errors)
        self.assertIn("y = x + 1", source.read_text())
        self.assertEqual(source.stat().st_mode & 0o777, 0o600)
        self.expect(0, 1, 1, KEEP="1")
        self.expect(1, 0, 1, KEEP="1", CATENA_KERNEL_CACHE="off",
                    warns="source of cached: expected a folder")

    @unittest.skipUnless(ON_CPU and shutil.which("objdump") and os.uname().machine == "x86_64",
                         "code of an x86-64, by objdump")
    def test_the_symbol_has_the_name_and_its_loop_is_vectorised(self):
        self.expect(1, 0, 1)
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", self.entry()], text=True,
                              capture_output=True, check=True).stdout
        body = re.search(r"<catena_formula_cached>:\n(.*?)\n\n", code, re.S)[1]
        self.assertRegex(body, r"\bv?addps\b")

    def test_files_of_the_author_are_read_anew(self):
        header = self.base / "own.hpp"
        include = f'#include "{header}"'
        header.write_text("#define ONE 1\n")
        for preamble in (include, f"# include <{header}>") * 2:
            self.expect(1, 0, "1*ONE", PREAMBLE=preamble)
        self.expect(1, 0, f"1*\n{include}\nONE")
        self.assertEqual(self.entries(), [])
        header.write_text("#define ONE 2\n")
        self.assertIn("wrong", self.run_worker("1*ONE", PREAMBLE=include)[1])
        self.expect(1, 0, "1*ONE", PREAMBLE="#define ONE 1")
        self.expect(0, 1, "1*ONE", PREAMBLE="#define ONE 1")

    def test_entries_that_are_damaged_are_made_anew(self):
        self.expect(1, 0, 1)
        whole = self.entry().read_bytes()
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 1
        for bytes_now, said in ((bytes(broken), "fit their checksum"), (whole[:-1], "fit their checksum"),
                                (whole[:1000], "fit their checksum"), (whole[:10], "too short"),
                                (b"", "too short"), (whole + b"x", "fit their checksum")):
            self.entry().write_bytes(bytes_now)
            self.expect(1, 0, 1, warns=said)
            self.assertEqual(self.entry().read_bytes(), whole)
            self.expect(0, 1, 1)

    def test_what_others_may_write_is_not_run(self):
        self.expect(1, 0, 1)
        self.entry().chmod(0o666)
        self.expect(1, 0, 1, warns="mode: expected that only its owner can write, got 666")
        self.assertEqual(self.entry().stat().st_mode & 0o777, 0o600)
        self.folder.chmod(0o777)
        self.expect(1, 0, 1, warns="mode: expected that only its owner can write, got 777")
        self.folder.chmod(0o755)  # others may read it
        self.expect(0, 1, 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files away")
    def test_what_belongs_to_others_is_not_run(self):
        self.expect(1, 0, 1)
        os.chown(self.entry(), 4321, -1)
        self.expect(1, 0, 1, warns="owner: expected this user (uid 0), got uid 4321")
        self.assertEqual(self.entry().stat().st_uid, 0)
        os.chown(self.folder, 4321, -1)
        self.expect(1, 0, 1, warns="owner: expected this user (uid 0), got uid 4321")

    def test_an_entry_that_is_a_link_is_not_followed(self):
        self.expect(1, 0, 1)
        entry = self.entry()
        entry.rename(self.base / "elsewhere")
        entry.symlink_to(self.base / "elsewhere")
        self.expect(1, 0, 1)
        self.assertFalse(entry.is_symlink())

    def test_processes_at_once_compile_once(self):
        processes = [self.start(1, 2) for _ in range(4)]
        done = [self.finish(p) for p in processes]
        self.assertEqual(sum(counts["compiled"] for counts, _, _ in done), 2, done)
        self.assertEqual(sum(counts["loaded"] for counts, _, _ in done), 6, done)

    def test_the_folder_has_a_limit(self):
        self.expect(3, 0, 1, 2, 3)
        sizes = [entry.stat().st_size for entry in self.entries()]
        size = str(sum(sizes) + min(sizes) // 2)  # room for three kernels, not four
        for k, entry in enumerate(sorted(self.entries(), key=lambda e: e.stat().st_mtime_ns)):
            os.utime(entry, (k + 1, k + 1))
        oldest, second, third = sorted(self.entries(), key=lambda e: e.stat().st_mtime_ns)
        self.expect(0, 3, 1, 2, 3, CATENA_KERNEL_CACHE_SIZE=size)  # uses all, 3 last
        for k, entry in enumerate((third, second, oldest)):
            os.utime(entry, (k + 1, k + 1))
        counts = self.expect(1, 0, 4, CATENA_KERNEL_CACHE_SIZE=size)
        self.assertEqual(counts["evicted"], 1)
        self.assertEqual(len(self.entries()), 3)
        self.assertFalse(third.exists())
        self.assertTrue(oldest.exists() and second.exists())
        self.expect(1, 0, 5, CATENA_KERNEL_CACHE_SIZE="1")  # the newest stays, of any size
        self.assertEqual(len(self.entries()), 1)
        self.expect(0, 1, 5, warns="CATENA_KERNEL_CACHE_SIZE: expected bytes as 256M, got 'much'",
                    CATENA_KERNEL_CACHE_SIZE="much")
        self.expect(0, 1, 5, warns="CATENA_KERNEL_CACHE_SIZE", CATENA_KERNEL_CACHE_SIZE="18014398509481984K")

    def test_sources_go_with_their_binaries(self):
        def stems(suffix):
            return {file.stem for file in self.folder.glob("*" + suffix)}
        self.expect(1, 0, 1, KEEP="1")
        self.expect(1, 0, 2, KEEP="1")
        self.assertEqual(len(stems(".source")), 2)
        counts = self.expect(1, 0, 3, KEEP="1", CATENA_KERNEL_CACHE_SIZE="1")
        self.assertEqual(counts["evicted"], 2)
        self.assertEqual(len(stems(".kernel")), 1)
        self.assertEqual(stems(".source"), stems(".kernel"))
        self.entry().unlink()  # a source without a binary is removed too
        self.expect(1, 0, 4, CATENA_KERNEL_CACHE_SIZE="1")
        self.assertEqual(stems(".source"), set())

    def test_without_a_folder_kernels_live_in_memory(self):
        self.expect(2, 0, 1, 2, 1, CATENA_KERNEL_CACHE="off")
        self.expect(1, 0, 1, warns="Not a directory", CATENA_KERNEL_CACHE="/dev/null/kernels")
        self.expect(1, 0, 1, warns="expected an absolute path", CATENA_KERNEL_CACHE="relative")
        self.assertFalse(self.folder.exists())

    def test_the_usual_places(self):
        self.expect(1, 0, 1, CATENA_KERNEL_CACHE=None, XDG_CACHE_HOME=str(self.base / "xdg"))
        self.expect(1, 0, 1, CATENA_KERNEL_CACHE=None, XDG_CACHE_HOME=None, HOME=str(self.base))
        self.assertEqual(len(list((self.base / "xdg/catena/kernels").glob("*.kernel"))), 1)
        self.assertEqual(len(list((self.base / ".cache/catena/kernels").glob("*.kernel"))), 1)

    def test_processes_of_one_number_share_a_folder(self):
        """An unfinished file of another machine or container causes no problem."""
        self.folder.mkdir(0o700)
        variables = os.environ | {"CATENA_KERNEL_CACHE": str(self.folder)}
        subprocess.run(["sh", "-c", 'for n in 0 1 2; do : > "$0/.new-$$-$n"; done; exec "$@"',
                        self.folder, WORKER, DEVICE, "1", "2"], env=variables, check=True,
                       stdout=subprocess.DEVNULL)
        self.expect(0, 2, 1, 2)

    def test_what_a_writer_that_died_left_behind_goes(self):
        self.expect(1, 0, 1)
        old, new = self.folder / ".new-1-0", self.folder / ".new-2-0"
        old.write_bytes(b"x")
        new.write_bytes(b"x")
        os.utime(old, (1, 1))
        self.expect(1, 0, 2)
        self.assertEqual((old.exists(), new.exists()), (False, True))

    def test_without_a_compiler_the_error_says_what_to_do(self):
        if ON_CPU:
            cases = [({setting: value}, "error: [cpu compiler] expected a C++ compiler to make a kernel "
                      f"with, found none of {looked_for} in PATH; install one (Debian: g++), name it in "
                      "CATENA_CXX, or ship the kernel with the program: CATENA_KERNEL_PATH") for setting, value, looked_for in
                     (("PATH", "/nowhere", "c++, g++, clang++"),
                      ("CATENA_CXX", "no-such-c++", "no-such-c++"))]
        else:
            cases = [({"CATENA_NVRTC": "/no/nvrtc"}, "(a path in CATENA_NVRTC goes first), got: /no/nvrtc")]
        for settings, said in cases:
            _, output, _ = self.run_worker(1, **settings)
            self.assertIn(said, output)
        self.assertEqual(self.entries(), [])

    @unittest.skipUnless(ON_CPU, "of the CPU's compiler")
    def test_a_compiler_that_says_nothing_is_named(self):
        _, output, _ = self.run_worker(1, CATENA_CXX="/bin/true")
        self.assertIn("error: [cpu compiler] /bin/true: expected a kernel or a message, got neither; it "
                      "ended with status 0", output)
        self.assertEqual(self.entries(), [])

    def test_binaries_of_other_compilers_and_targets_are_apart(self):
        if ON_CPU:
            other = {"CATENA_CPU_MARCH": "x86-64-v2"}
        elif EMULATED:
            other = {"CATENA_EMULATOR_CAPABILITY": "80"}
        else:
            self.skipTest("one GPU is one target")
        self.expect(1, 0, 1)
        self.expect(1, 0, 1, **other)
        self.expect(0, 1, 1, **other)
        if ON_CPU and shutil.which("clang++"):
            self.expect(1, 0, 1, CATENA_CXX="clang++")
        self.expect(0, 1, 1)

    def ship(self, march, *addends):
        """Exports kernels to a folder; returns the folder."""
        shipped = self.base / "shipped"
        self.run_worker(*addends, CATENA_CPU_MARCH=march, CATENA_KERNEL_EXPORT=str(shipped))
        return shipped

    @unittest.skipUnless(ON_CPU and os.uname().machine == "x86_64", "targets of an x86-64")
    def test_shipped_kernels_need_no_compiler(self):
        shipped = self.ship("x86-64", 1, 2)
        self.ship("x86-64-v4", 1)  # this machine may not support it
        names = sorted(f.name.split(".", 1)[1] for f in shipped.glob("cached-*"))
        self.assertEqual(names, ["x86-64-v4.kernel", "x86-64.kernel", "x86-64.kernel"])
        self.assertEqual(len(list(shipped.iterdir())), 3)
        self.ship("x86-64", 1, 2)  # also exports kernels from the user's folder
        before = {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in shipped.iterdir()}
        shutil.rmtree(self.folder)
        for file in shipped.iterdir():
            file.chmod(0o444)
        shipped.chmod(0o555)
        without = {"CATENA_CXX": "/nowhere/c++", "CATENA_KERNEL_CACHE": "off"}
        for where in ({"CATENA_KERNEL_PATH": f"{self.base}:{shipped}"}, {"SHIPPED": str(shipped)}):
            counts = self.expect(0, 2, 1, 2, 1, **without, **where)
            self.assertEqual(counts["hits"], 1)
        _, output, _ = self.run_worker(3, **without, SHIPPED=str(shipped))
        self.assertIn("error: [cpu compiler] expected a C++ compiler to make a kernel with", output)
        self.assertIn("or ship the kernel with the program: CATENA_KERNEL_PATH", output)
        self.expect(1, 2, 1, 2, 3, SHIPPED=str(shipped))  # missing kernels are compiled
        self.assertEqual(before, {f: (f.read_bytes(), f.stat().st_mtime_ns)
                                  for f in shipped.iterdir()})
        shipped.chmod(0o755)

    @unittest.skipUnless(ON_CPU and os.uname().machine == "x86_64", "targets of an x86-64")
    def test_kernels_that_do_not_reach_the_disk_are_not_exported(self):
        shipped = self.base / "shipped"
        counts, _, errors = self.run_worker(1, CATENA_CPU_MARCH="x86-64", NO_DISK="1",
                                            CATENA_KERNEL_EXPORT=str(shipped))
        self.assertEqual(counts["compiled"], 1, errors)
        self.assertRegex(errors, "CATENA_KERNEL_EXPORT: cached-.*: cannot be written: Input/output error")
        self.assertEqual(list(shipped.iterdir()) + self.entries(), [])

    @unittest.skipUnless(ON_CPU and os.uname().machine == "x86_64", "targets of an x86-64")
    def test_shipped_kernels_that_cannot_be_trusted_are_not_run(self):
        shipped = self.ship("x86-64", 1)
        [file] = shipped.iterdir()
        whole = file.read_bytes()
        file.write_bytes(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
        path = {"CATENA_KERNEL_PATH": str(shipped), "CATENA_KERNEL_CACHE": "off"}
        self.expect(1, 0, 1, warns="expected bytes that fit their checksum, got others; it is not used",
                    **path)
        self.assertTrue(file.exists())
        file.write_bytes(whole)
        self.expect(0, 1, 1, **path)
        file.chmod(0o666)
        self.expect(1, 0, 1, warns="mode: expected that only its owner can write, got 666", **path)
        file.chmod(0o644)
        shipped.chmod(0o777)
        self.expect(1, 0, 1, warns="mode: expected that only its owner can write, got 777", **path)
        self.assertIn("error: [kernels] folder of compiled kernels", self.run_worker(
            1, SHIPPED=str(shipped))[1])
        self.assertIn("No such file", self.run_worker(1, SHIPPED=str(self.base / "none"))[1])
        self.expect(1, 0, 1, warns="No such file", CATENA_KERNEL_CACHE="off",
                    CATENA_KERNEL_PATH=str(self.base / "none"))

    @unittest.skipUnless(ON_CPU, "of the CPU's compiler")
    def test_kernels_for_this_machine_alone_are_not_exported(self):
        shipped = self.base / "shipped"
        self.expect(2, 0, 1, 2, CATENA_KERNEL_EXPORT=str(shipped), CATENA_CPU_MARCH=None,
                    warns="CATENA_KERNEL_EXPORT: expected kernels for a target that other machines have")
        self.assertEqual(list(shipped.iterdir()), [])

    def test_the_log_tells_what_is_compiled(self):
        _, _, errors = self.run_worker(1, CATENA_LOG="debug")
        self.assertRegex(errors, r"catena debug: \[cached\] compiled in \d+ ms: float32 x -> float32 y")
        _, _, errors = self.run_worker(1, CATENA_LOG="debug")
        self.assertIn("catena debug: [cached] found compiled: float32 x -> float32 y", errors)


if __name__ == "__main__":
    unittest.main()
