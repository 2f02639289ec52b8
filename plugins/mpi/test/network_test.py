"""Tests mpi.catena over TCP: ranks in two network namespaces, which stand for two machines.

usage: network_test.py WORKER PLUGIN [unittest options]
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import mpi_test

NET = "10.231.77"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


class Network:
    """Two namespaces with a cable. `launcher` starts ranks in both, in turns."""

    def __init__(self):
        self.hosts = [f"catena-{os.getpid()}-{side}" for side in "ab"]
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="catena-test-"))

    def __enter__(self):
        try:
            for host in self.hosts:
                ip("netns", "add", host)
            ip("link", "add", "cable", "netns", self.hosts[0], "type", "veth", "peer", "name",
               "cable", "netns", self.hosts[1])
            for i, host in enumerate(self.hosts):
                ip("-n", host, "address", "add", f"{NET}.{i + 1}/24", "dev", "cable")
                ip("-n", host, "link", "set", "lo", "up")
                ip("-n", host, "link", "set", "cable", "up")
        except BaseException:
            self.__exit__()
            raise
        # mpirun's remote shell: HOST COMMAND...
        agent = self.folder / "agent"
        agent.write_text('#!/bin/sh\nhost=$1\nshift\n'
                         'exec ip netns exec "$host" unshare --uts sh -c '
                         '"hostname $host; $*"\n')
        agent.chmod(0o755)
        interfaces = [word for name in ("btl_tcp_if_include", "oob_tcp_if_include")
                      for word in ("--mca", name, f"{NET}.0/24")]
        command = ["mpirun", "--mca", "plm_rsh_agent", str(agent), "--mca", "btl", "tcp,self",
                   *interfaces, "--host", ",".join(f"{host}:4" for host in self.hosts),
                   "--map-by", "node"]
        self.launcher = ["ip", "netns", "exec", self.hosts[0], "unshare", "--uts", "sh", "-c",
                         f'hostname {self.hosts[0]}; exec "$@"', "sh", *command]
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "delete", host], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def received(self):
        """Bytes that arrived at each end of the cable."""
        return [int(re.search(r"RX:.*\n\s*(\d+)", ip("-n", host, "-s", "link", "show", "cable"))[1])
                for host in self.hosts]

    def shape(self, *discipline):
        """Changes how both ends of the cable send; returns whether this kernel can."""
        return all(subprocess.run(["tc", "-n", host, "qdisc", "replace", "dev", "cable", "root",
                                   *discipline], capture_output=True).returncode == 0
                   for host in self.hosts)


class TwoMachines(unittest.TestCase):
    def setUp(self):
        self.network = Network()
        self.network.__enter__()
        self.addCleanup(self.network.__exit__)

    def ranks(self, n, timeout, *arguments):
        return mpi_test.ranks(n, timeout, *arguments, launcher=self.network.launcher)

    def passes(self, n, command):
        status, output = self.ranks(n, 60, command)
        self.assertEqual((status, output.count(": passed")), (0, n), output)

    def test_values(self):
        before = self.network.received()
        self.passes(3, "operations")
        for old, new in zip(before, self.network.received()):
            self.assertGreater(new - old, 1 << 20)  # the data went through the cable

    def test_groups_and_many(self):
        self.passes(4, "groups")
        self.passes(2, "many")

    def test_a_slow_network(self):
        if not self.network.shape("tbf", "rate", "200mbit", "burst", "64kb", "latency", "100ms"):
            self.skipTest("tc or this kernel has no tbf")
        self.passes(2, "bits")

    def test_a_slow_network_with_a_delay(self):
        if not self.network.shape("netem", "delay", "2ms", "rate", "200mbit"):
            self.skipTest("tc or this kernel has no netem")
        self.passes(2, "bits")
        mpi_test.Failures.check(self, 3, "count",
                                *self.ranks(3, mpi_test.FAILURES["count"][0], "fail", "count"))

    def test_failures(self):
        names = "count", "abort", "leave", "stop"
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            runs = {name: pool.submit(self.ranks, 3, mpi_test.FAILURES[name][0], "fail", name)
                    for name in names}
        for name, result in runs.items():
            with self.subTest(name):
                mpi_test.Failures.check(self, 3, name, *result.result())

    def test_a_rank_that_is_killed(self):
        """Its machine has no other rank, so mpirun finds it and ends the others."""
        status, output = self.ranks(3, 60, "fail", "kill")
        self.assertNotEqual(status, 0)
        self.assertIn("mpirun noticed that process rank 1", output)


def missing():
    """Why the test cannot run, or None."""
    for program in ("mpirun", "ip", "unshare", "hostname"):
        if shutil.which(program) is None:
            return f"expected {program}, which is not here"
    if "Open MPI" not in mpi_test.run(["mpirun", "--version"])[1]:
        return "expected Open MPI, whose remote shell is replaced"
    try:
        with Network():
            return None
    except (subprocess.CalledProcessError, OSError) as error:
        return "expected the right to create network namespaces: " + str(
            getattr(error, "stderr", "") or error).strip()


if __name__ == "__main__":
    REASON = missing()
    if REASON:
        print("skipped:", REASON)
        sys.exit(77)
    unittest.main()
