"""Runs catena-train-images in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import unittest

from pictures import write_set
from processes_case import Processes, skip_without_mpi


class Images(Processes):
    def test_processes_learn_as_one(self):
        data = self.folder / "set"
        write_set(data, 20)
        for net, tolerance in (("nin", 2e-4), ("alexnet-bn", 2e-3)):
            options = (data, "--net", net, "--width", 0.1, "--size", 64, "--side", 64, "--batch", 12,
                       "--held-out", 0.2, "--seed", 1, "--epochs", 2, "--lr", 0.001, "--threads", 1)
            one = self.parameters(0, *options)
            for n in (2, 4):
                with self.subTest(net=net, n=n):
                    self.assert_close(one, self.parameters(n, *options), tolerance)


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
