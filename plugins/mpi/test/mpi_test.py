"""Tests mpi.catena: ranks are processes of mpi-worker, which mpirun starts.

usage: mpi_test.py WORKER PLUGIN [unittest options]
"""
import concurrent.futures
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

WORKER, PLUGIN = sys.argv.pop(1), sys.argv.pop(1)
# Seconds. A run that takes half of its test's time limit counts as hung.
LIMIT = int(os.environ.get("CATENA_TEST_TIMEOUT", 1800)) / 2
SETTINGS = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "HYDRA_LAUNCHER": "fork"}
# MPI is not built with sanitizers, and does not free all its memory.
for name, option in (("ASAN_OPTIONS", "detect_leaks=0"),
                     ("TSAN_OPTIONS", "ignore_noninstrumented_modules=1")):
    SETTINGS[name] = ":".join(filter(None, (os.environ.get(name), option)))
ENVIRONMENT = {**os.environ, **SETTINGS}


def run(command, **settings):
    """Runs a command in a session of its own. Returns (status, output)."""
    # Two mpiruns that start at once in one TMPDIR can fail: both create Open MPI's session folder.
    with (tempfile.TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True) as folder,
          subprocess.Popen(command, env={**ENVIRONMENT, "TMPDIR": folder, **settings}, text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, start_new_session=True) as process):
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\n(ended after {LIMIT} s)"
        return process.returncode, output


def ranks(n, timeout, *arguments, launcher=("mpirun",), **settings):
    return run([*launcher, "-n", str(n), WORKER, PLUGIN, str(timeout), *arguments], **settings)


class Values(unittest.TestCase):
    def passes(self, n, command, **options):
        status, output = ranks(n, 60, command, **options)
        self.assertEqual((status, output.count(": passed")), (0, n), output)
        return output

    def test_operations(self):
        for n in (1, 2, 3, 4):
            with self.subTest(n):
                self.passes(n, "operations")

    def test_bits(self):
        for n in (3, 4):
            with self.subTest(n):
                bits = {re.search("bits (.*)", self.passes(n, "bits"))[1] for _ in range(2)}
                self.assertEqual(len(bits), 1)

    def test_many(self):
        for n in (1, 2, 3):
            with self.subTest(n):
                self.passes(n, "many")

    def test_groups(self):
        for n in (2, 4):
            with self.subTest(n):
                self.passes(n, "groups")

    def test_refusals(self):
        self.passes(2, "refusals")

    def test_a_program_that_uses_mpi_itself(self):
        self.passes(2, "own-mpi")

    def test_without_mpirun(self):
        for command in ("operations", "refusals", "load"):
            status, output = run([WORKER, PLUGIN, "60", command])
            self.assertEqual(status, 0, output)

    def test_loading_starts_nothing(self):
        status, output = run([WORKER, PLUGIN, "60", "load"])
        self.assertEqual((status, output), (0, "threads 1, mpi 0\n"))

    def test_the_environment_decides(self):
        status, output = ranks(2, 60, "wrong-size")
        self.assertEqual(status, 0, output)


# What rank 1 does, the timeout of the group, and the error of the other ranks; %d is their number.
SUM = "[allreduce] l1/W: expected allreduce sum of float32 x 10, got"
ENDED = (r"[allreduce] l1/W: expected rank 1 to take part, got the end of its process "
         r"(pid PID)")
CLOSED = "[allreduce] l1/W: expected rank 1 to take part, got that it has closed the group"
FAILURES = {
    "count": (60, f"rank %d: {SUM} allreduce sum of float32 x 9 from rank 1"),
    "large-count": (60, "rank %d: [allreduce] l1/W: expected allreduce sum of float32 x 1048576, "
                        "got allreduce sum of float32 x 9 from rank 1"),
    "dtype": (60, f"rank %d: {SUM} allreduce sum of int32 x 10 from rank 1"),
    "reduction": (60, f"rank %d: {SUM} allreduce max of float32 x 10 from rank 1"),
    "kind": (60, f"rank %d: {SUM} barrier from rank 1"),
    "root": (60, "rank %d: [bcast] l1/W: expected bcast of float32 x 10 from rank 0, "
                 "got bcast of float32 x 10 from rank 1 from rank 1"),
    "gather": (60, "rank %d: [gather] v: expected 10 elements from rank 1 for rank 0, got 15"),
    "scatter": (60, "rank %d: [scatter] v: expected 15 elements from rank 0 for rank 1, got 10"),
    "alltoall": (60, "rank %d: [alltoall] v: expected 15 elements from rank 0 for rank 1, got 10"),
    "split": (60, "rank %d: [allgather] split: expected split, "
                  "got allreduce sum of float32 x 10 from rank 1"),
    "recv-count": (60, "rank %d: [barrier] after: expected send of float32 x 9, "
                       "got send of float32 x 10 from rank 0"),
    "recv-dtype": (60, "rank %d: [barrier] after: expected send of int32 x 10, "
                       "got send of float32 x 10 from rank 0"),
    "abort": (60, "rank 1: aborted: disk full"),
    "late-abort": (60, "rank 1: aborted: disk full"),
    "abort-exit": (60, "rank 1: aborted: disk full"),
    "kill": (60, f"rank %d: {ENDED}"),
    "kill-large": (60, f"rank %d: {ENDED}"),
    "exit": (60, f"rank %d: {ENDED}"),
    "throw": (60, f"rank %d: {ENDED}"),
    "stdlib-exit": (60, f"rank %d: {CLOSED}"),
    "leave": (60, f"rank %d: {CLOSED}"),
    "leave-in-part": (60, f"rank %d: {CLOSED}"),
    "kill-in-part": (10, f"rank %d: {ENDED}"),
    "hang-in-part": (10, "rank %d: [allreduce] l1/W: expected rank 1 to start it within 10 s, "
                        "got no operation"),
    "stop": (10, "rank %d: [allreduce] l1/W: expected rank 1 to start it within 10 s, got no answer"),
    "hang": (10, "rank %d: [allreduce] l1/W: expected rank 1 to start it within 10 s, "
                "got [barrier] before as its last operation (number 3)"),
    "short-timeout": (60, "rank %d: [allreduce] l1/W: expected rank 1 to start it within 0.3 s, "
                          "got [barrier] before as its last operation (number 3)"),
}
# In these, rank 1 cannot print its own line.
SILENT = {"kill", "kill-large", "exit", "throw", "stdlib-exit", "stop", "hang", "abort-exit", "leave",
          "leave-in-part", "kill-in-part", "hang-in-part", "short-timeout"}


class Failures(unittest.TestCase):
    """Each rank prints its own line and ends with an error."""

    def check(self, n, scenario, status, output):
        _, line = FAILURES[scenario]
        self.assertNotEqual(status, 0, output)
        for rank in range(n):
            if rank == 1 and scenario in SILENT:
                continue
            expected = "error: " + line.replace("%d", str(rank))
            pattern = re.escape(expected).replace("PID", r"\d+")
            if rank == 1 and scenario in ("kind", "split"):  # its own operation
                pattern = "error: rank 1: .* from rank 1"
            if scenario.startswith("recv"):  # the others may still be in the operation before
                pattern = re.escape(expected).replace(re.escape("[barrier] after"), ".*")
            self.assertRegex(output, re.compile(f"^{pattern}$", re.M))
        count = output.count("error: rank")
        self.assertGreaterEqual(count, n - 1, output)

    def test_failures(self):
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            runs = {(n, name): pool.submit(ranks, n, FAILURES[name][0], "fail", name)
                    for name in FAILURES for n in ((2, 3) if name == "kill" else (3,))}
        for (n, name), result in runs.items():
            with self.subTest(name):
                self.check(n, name, *result.result())

    def test_a_rank_that_does_not_open(self):
        wait = 'test "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" != 1 || exec sleep 1000; exec "$@"'
        status, output = run(["mpirun", "-n", "3", "sh", "-c", wait, "sh", WORKER, PLUGIN, "2",
                              "operations"])
        self.assertNotEqual(status, 0)
        self.assertRegex(output, r"error: rank [02]: \[open\] group: expected all ranks to open it "
                                 r"within 2.0 s, got fewer")

    def test_two_ranks_that_differ(self):
        """No operation is in the majority: that of rank 0 is expected."""
        status, output = ranks(2, 60, "fail", "count")
        self.assertNotEqual(status, 0)
        for rank in (0, 1):
            self.assertIn(f"error: rank {rank}: {SUM} allreduce sum of float32 x 9 from rank 1",
                          output)

    def test_a_message_that_does_not_come(self):
        status, output = ranks(2, 10, "fail", "recv-timeout")
        self.assertNotEqual(status, 0)
        # whose timeout is over first?
        self.assertRegex(output, r"rank 0: \[recv\] l1/W: expected rank (1 to start it within 10 s, "
                                 r"got \[barrier\] after|0 to start \[barrier\] after within 10 s, "
                                 r"got \[recv\] l1/W) as its last operation")
        self.assertIn("rank 1: [barrier] after: expected rank", output)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("skipped: expected mpirun, which is not here")
        sys.exit(77)
    unittest.main()
