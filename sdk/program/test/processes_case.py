"""Processes: the base class of tests that run a program in several processes with mpirun."""
import array
import contextlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from program_case import LIMIT, PROGRAM, Case, members

MPIRUN = shutil.which("mpirun")
PLUGIN = PROGRAM.parent.parent / "lib/catena/plugins/mpi.catena" if PROGRAM else None


def skip_without_mpi():
    """Ends the test with the code for skipped tests if it cannot run."""
    for thing, there in (("mpirun", MPIRUN), ("mpi.catena", PLUGIN and PLUGIN.exists())):
        if not there:
            print(f"skipped: expected {thing}, got none")
            sys.exit(77)


def numbers(file, prefix="model/"):
    """Returns {name: numbers} of the float32 arrays in an .npz file whose names begin with the prefix."""
    result = {}
    for name, member in members(file).items():
        start = 10 + int.from_bytes(member[8:10], "little")
        if name.startswith(prefix) and b"'<f4'" in member[:start]:
            result[name] = array.array("f", member[start:])
    return result


class Processes(Case):
    def setUp(self):
        super().setUp()
        # TMPDIR: mpiruns that start at once in one folder can fail to create their session folders.
        self.env.update(TMPDIR=str(self.folder), OMPI_ALLOW_RUN_AS_ROOT="1",
                        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                        OMPI_MCA_hwloc_base_binding_policy="none",
                        CATENA_COMMUNICATOR_TIMEOUT=str(LIMIT))

    def start_processes(self, n, *options, first=(), others=(), first_in=None, **how):
        """Starts n processes. Rank 0 has the further options `first` and runs in the folder first_in."""
        own = [*options, "--communicator", "mpi"]
        command = ["-n", 1, "-wdir", first_in or self.folder, PROGRAM, *own, *first]
        if n > 1:
            command += [":", "-n", n - 1, "-wdir", self.folder, PROGRAM, *own, *others]
        return self.start(*command, program=MPIRUN, start_new_session=True, **how)

    def run_processes(self, n, *options, code=0, **how):
        process = self.start_processes(n, *options, **how)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"{process.args} still ran after {LIMIT} seconds:\n{out}{err}")
        self.assertEqual(process.returncode, code, out + err)
        return out if code == 0 else out + err

    def parameters(self, n, *options, **how):
        """The parameters after training in n processes, or in one without a communicator (0)."""
        file = self.folder / f"parameters-{n}.npz"
        if n == 0:
            self.run_program(*options, "--save", file)
        else:
            self.run_processes(n, *options, "--save", file, **how)
        return numbers(file)

    def assert_close(self, a, b, bound):
        self.assertEqual(a.keys(), b.keys())
        largest = max(max(map(abs, values)) for values in a.values())
        worst = {name: max(abs(x - y) for x, y in zip(a[name], b[name], strict=True)) / largest
                 for name in a}
        self.assertLessEqual(max(worst.values()), bound, worst)

    def children(self, process):
        """The process ids of the programs that mpirun has started."""
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                parent = re.search(r"^PPid:\t(\d+)", status.read_text(), re.M)
                name = (status.parent / "exe").resolve().name
            except (OSError, ValueError):
                continue
            if parent and int(parent[1]) == process.pid and name == PROGRAM.name:
                found.append(int(status.parent.name))
        return sorted(found)

    def check_kills_of_ranks(self, n, kills, options):
        """Kills a random rank at a random time and starts again, `kills` times, then lets the
        program end. The result must be that of an undisturbed run. Options include --checkpoint,
        and a snapshot is written at the end. CATENA_TEST_KILLS overrides the number."""
        kills = int(os.environ.get("CATENA_TEST_KILLS", kills))
        generator = random.Random(int(os.environ.get("CATENA_TEST_SEED", 7)))
        whole, file, folder = (self.folder / x for x in ("whole.npz", "killed.npz", "checkpoints"))
        began = time.monotonic()
        self.run_processes(n, *options, "--save", whole)
        seconds = time.monotonic() - began
        done = resumed = 0
        lines = []
        while done < kills or (done < 50 and not (resumed and lines)):  # most are early in short runs
            process = self.start_processes(n, *options, "--checkpoint", folder)
            there = any(folder.glob("*/complete"))
            time.sleep(generator.uniform(0.2, seconds))
            ranks = self.children(process)
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                if ranks:
                    os.kill(generator.choice(ranks), signal.SIGKILL)
            out, err = process.communicate(timeout=LIMIT)
            if process.returncode == 0:  # it had already ended: start again
                shutil.rmtree(folder, ignore_errors=True)
                continue
            done += 1
            resumed += there
            lines += re.findall(r"^.*rank \d+: .*expected .*, got .*$", out + err, re.M)
        self.run_processes(n, *options, "--checkpoint", folder, "--save", file)
        self.assertEqual(members(file), members(whole))
        self.assertGreater(min(resumed, len(lines)), 0)
        if "CATENA_TEST_KILLS" in os.environ:
            print(f"{PROGRAM.name}: {done} kills, {resumed} of resumed runs, {len(lines)} lines, "
                  f"e.g. {lines[-1]}")
