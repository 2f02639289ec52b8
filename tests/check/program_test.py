"""Tests that run catena-check: its options, exit codes and reports.

usage: program_test.py CATENA_CHECK GOOD CRASHING HANGING
"""
import json
import os
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, GOOD, CRASHING, HANGING = sys.argv[1:5]
REFUSING = os.path.join(os.path.dirname(GOOD), "entry_null.catena")
GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sdk/doc/testing-guide.md")


def check(*arguments, **environment):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})


class Program(unittest.TestCase):
    def test_usage(self):
        for arguments, text in [((), "expected a PLUGIN"),
                                (("--only", "nothing", GOOD), "got 'nothing'"),
                                (("--skip", "static/nothing", GOOD), "got 'static/nothing'"),
                                (("--format", "xml", GOOD), "got 'xml'"),
                                (("--seed", "-1", GOOD), "got '-1'"),
                                (("--timeout", "0", GOOD), "--timeout: expected more than 0 seconds"),
                                (("--total", "nan", GOOD), "got nan"),
                                (("--jobs", "0", GOOD), "got 0"),
                                (("--seed", "2", "--reproduce", "3", GOOD), "got both"),
                                (("--with", "/nowhere.catena", GOOD), "got '/nowhere.catena'"),
                                (("--only", "static", "--function", "f", GOOD), "got 'f'"),
                                (("--what", GOOD), "--what"),
                                (("/nowhere.catena",), "got '/nowhere.catena'")]:
            result = check(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(text, result.stderr, arguments)
            self.assertIn("catena-check --help", result.stderr, arguments)
            self.assertEqual(result.stdout, "", arguments)
        self.assertEqual(check("--help").returncode, 0)

    def test_output_that_is_lost_is_told(self):
        for words in (["--list"], ["--only", "static", GOOD],
                      ["--format", "json", "--only", "static", GOOD]):
            for command, reason in (('exec "$@" >/dev/full', "No space left"),
                                    ('exec "$@" >&-', "Bad file")):
                done = subprocess.run(["sh", "-c", command, "sh", PROGRAM, *words], text=True,
                                      capture_output=True)
                self.assertEqual(done.returncode, 2, words)
                self.assertIn(reason, done.stderr)

    def test_memory_that_runs_out_is_told_with_the_file(self):
        with open(GOOD, "rb") as good:
            data = bytearray(good.read())
        sections, = struct.unpack_from("<Q", data, 0x28)  # e_shoff and e_shstrndx of Elf64_Ehdr
        names, = struct.unpack_from("<H", data, 0x3e)
        struct.pack_into("<Q", data, sections + 64 * names + 0x20, 4 << 30)  # sh_size
        with tempfile.NamedTemporaryFile(suffix=".catena") as file:
            file.write(data)
            file.truncate(5 << 30)  # a sparse file, which takes no disk space

            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
            done = subprocess.run([PROGRAM, "--only", "static/file", file.name], text=True,
                                  capture_output=True, preexec_fn=limit)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(f"[check] {file.name}: expected enough memory, got too little",
                          done.stdout)

    def test_a_good_plugin(self):
        result = check("--only", "static", "--only", "schema/names", GOOD)
        self.assertEqual(result.returncode, 0, result.stdout)
        lines = result.stdout.splitlines()
        self.assertIn("org.example.good 1.0.0, seed 1", lines[0])
        self.assertIn("ok      static/manifest", lines)
        self.assertIn("ok      schema/names", lines)
        self.assertNotIn("values/", result.stdout)
        self.assertRegex(lines[-1], r"^\d+ checks: \d+ ok, 0 failed, 0 skipped, in [\d.]+ s$")
        quiet = check("-q", "--only", "static", GOOD).stdout.splitlines()
        self.assertEqual(len(quiet), 1 + 1)

    def test_only_and_skip(self):
        report = json.loads(check("--format", "json", "--only", "static", "--skip",
                                  "static/needed", GOOD).stdout)["plugins"][0]
        names = [c["check"] for c in report["checks"]]
        self.assertIn("static/exports", names)
        self.assertNotIn("static/needed", names)
        self.assertTrue(all(name.startswith("static/") for name in names))

    def test_no_temporary_folder_is_no_fault(self):
        result = check("--only", "load/host", GOOD, TMPDIR="/nowhere")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("skipped load/host: catena cannot be asked: ", result.stdout)

    def test_a_crash_is_named_with_what_it_did(self):
        # A crash counts as a failure of the first of the checks that ran together. The requested
        # check then runs by itself and, as it crashes again, without the calls that crash.
        result = check("--only", "gradients/kernel", CRASHING)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAILED  values/survives", result.stdout)
        self.assertIn("it crashed: SIGSEGV", result.stdout)
        self.assertIn("in: org.example.square: backward float32", result.stdout)
        self.assertIn("ok      gradients/kernel\n    org.example.square: without long calls, since "
                      "it crashed: SIGSEGV", result.stdout)

    def test_what_was_cut_off_is_not_run_again_where_the_time_for_all_is_over(self):
        result = check("--only", "values", "--timeout", "30", "--total", "20", HANGING)
        self.assertIn("FAILED  values/survives", result.stdout)
        self.assertIn("skipped values/empty: not begun within 20 s (--total)", result.stdout)

    def test_a_failure_is_reproduced(self):
        def problems(*arguments):
            report = json.loads(check("--format", "json", *arguments).stdout)["plugins"][0]
            self.assertEqual(report["failed"], 1)
            return next(c for c in report["checks"] if c["verdict"] == "failed")["problems"]
        first = problems("--only", "values", "--seed", "7", "--with", GOOD, "--timeout", "50",
                         CRASHING)
        words = shlex.split(first[0]["again"])
        self.assertEqual(words[0], "catena-check")
        self.assertIn("7", words)
        self.assertEqual(words[words.index("--with") + 1], os.path.abspath(GOOD))
        self.assertEqual(words[words.index("--timeout") + 1], "50")
        self.assertEqual(problems(*words[1:]), first)

    def test_a_program_that_was_stopped_continues(self):
        with subprocess.Popen([PROGRAM, "--only", "values", "--jobs", "1", GOOD],
                              stdout=subprocess.PIPE, text=True) as process:
            for _ in range(5):
                time.sleep(0.02)
                process.send_signal(signal.SIGSTOP)
                process.send_signal(signal.SIGCONT)
            out, _ = process.communicate()
        self.assertEqual(process.returncode, 0, out)

    def test_the_time_limit(self):
        result = check("--only", "values", "--timeout", "2", "--jobs", "1", HANGING)
        self.assertEqual(result.returncode, 1)
        self.assertIn("it did not end within 2 s, in: org.example.square: forward float32",
                      result.stdout)

    def test_a_function_that_hangs_is_left(self):
        result = check("--only", "values", "--only", "fuzz", "--timeout", "4", "--jobs", "1",
                       HANGING)
        self.assertEqual(result.stdout.count("it did not end within"), 1, result.stdout)
        self.assertIn("skipped fuzz/shapes: the function hangs: see values/survives",
                      result.stdout)
        result = check("--timeout", "4", HANGING)
        self.assertEqual(result.returncode, 1)
        self.assertIn("ok      values/empty\n    org.example.square: without long calls, since the "
                      "function hangs", result.stdout)

    def test_checks_without_time_are_skipped(self):
        result = check("--only", "values", "--total", "0.001", "--jobs", "1", GOOD)
        self.assertEqual(result.returncode, 0)
        self.assertIn("skipped values/survives: not begun within 0.001 s (--total)", result.stdout)
        self.assertRegex(result.stdout, r"checks: 0 ok, 0 failed, [1-9]\d* skipped")

    def test_waiting_for_a_cpu_does_not_count(self):
        # All processes share one CPU with endless loops, so they wait for most of the time.
        one = {min(os.sched_getaffinity(0))}

        def on_one():
            os.sched_setaffinity(0, one)

        def run(checks, *options):
            done = subprocess.run([PROGRAM, "--only", checks, "--format", "json", *options, GOOD],
                                  capture_output=True, text=True, preexec_fn=on_one)
            return json.loads(done.stdout)["plugins"][0]

        def among(loops, checks, *options):
            loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                      preexec_fn=on_one) for _ in range(loops)]
            try:
                return run(checks, *options)
            finally:
                for loop in loops:
                    loop.kill()
                    loop.wait()
        for checks in "values", "load/host":  # load/host waits for processes that it starts
            with self.subTest(checks):
                # Caches that are shared and other virtual machines slow a run down, but by a factor
                # that does not grow with the loops; waiting, if it counted, would.
                for times in 4, 8, 16, 32:
                    alone = run(checks)["seconds"]
                    report = among(2 * times, checks, "--timeout", str(times * alone))
                    if report["failed"] == 0:
                        break
                self.assertEqual(report["failed"], 0, report)
                self.assertGreater(report["ok"], 0, report)

    def test_json(self):
        everything = json.loads(check("--format", "json", "--only", "static", "--only",
                                      "gradients/composed", "--only", "gradients/kernel", GOOD,
                                      CRASHING).stdout)
        version = check("--version").stdout
        self.assertEqual(version, f"catena-check {everything['catena']}, ABI {everything['abi']}\n")
        self.assertEqual(everything["format"], 1)
        reports = everything["plugins"]
        self.assertEqual([os.path.basename(r["plugin"]) for r in reports],
                         ["good.catena", "crash.catena"])
        for report in reports:
            verdicts = [c["verdict"] for c in report["checks"]]
            for verdict in ("ok", "failed", "skipped"):
                self.assertEqual(report[verdict], verdicts.count(verdict))
        with open(GUIDE) as file:
            page = file.read()

        def members(value):
            inner = value.values() if isinstance(value, dict) else value
            found = set(value) if isinstance(value, dict) else set()
            return found.union(*(members(v) for v in inner if isinstance(v, (dict, list))))
        self.assertGreater(len(members(everything)), 15)
        self.assertEqual({m for m in members(everything) if f"`{m}`" not in page}, set())

    def test_files_that_are_no_plugins(self):
        with open(GOOD, "rb") as file:
            whole = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "damaged.catena")
            damaged = [b"", b"\x7fELF", whole[:64], whole[:500], whole[:-200], b"text" * 99]
            # Damages every field of the header, and places throughout the file.
            for at in list(range(16, 64, 4)) + list(range(64, len(whole), len(whole) // 12)):
                damaged.append(whole[:at] + b"\xff" * 8 + whole[at + 8:])
            for contents in damaged:
                with open(path, "wb") as file:
                    file.write(contents)
                result = check("--only", "static", path)
                self.assertIn(result.returncode, (0, 1), result.stderr)
                checks = "".join(result.stdout.splitlines()[:-1])  # without the line about loading
                self.assertNotIn("it crashed: SIG", checks)

    def test_a_plugin_beside_it_that_cannot_be_loaded(self):
        with tempfile.NamedTemporaryFile(suffix=".catena") as file:
            file.write(b"no plugin")
            file.flush()
            for only in ("static", "values"):
                result = check("--only", only, "--with", GOOD, "--with", file.name, GOOD)
                self.assertEqual(result.returncode, 2, result.stdout)
                self.assertIn(f"got one that cannot: '{file.name}': dlopen: ", result.stderr)
                self.assertEqual(result.stdout, "")

        result = check("--only", "static", "--with", REFUSING, GOOD)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(f"'{REFUSING}': catena_plugin_entry_v1() returned NULL", result.stderr)

    def test_a_plugin_that_cannot_be_loaded_is_not_well(self):
        for only, verdict in (("values", "skipped"), ("static/unique", "ok")):
            result = check("--only", only, REFUSING)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("0 failed", result.stdout)
            self.assertEqual(result.stdout.count("cannot be loaded: "), 1)  # not for each check
            self.assertIn("; the plugin cannot be loaded: catena_plugin_entry_v1() returned NULL",
                          result.stdout.splitlines()[-1])
            report = json.loads(check("--only", only, "--format", "json",
                                      REFUSING).stdout)["plugins"][0]
            self.assertIn("returned NULL", report["problem"])
            self.assertEqual({c["verdict"] for c in report["checks"]}, {verdict})

    def test_what_was_not_loaded_is_not_praised(self):
        report = json.loads(check("--format", "json", "--only", "load",
                                  __file__).stdout)["plugins"][0]
        verdicts = {c["check"]: c["verdict"] for c in report["checks"]}
        self.assertEqual(verdicts.pop("load/entry"), "failed")
        self.assertEqual(set(verdicts.values()), {"skipped"}, verdicts)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
