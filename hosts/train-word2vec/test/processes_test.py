"""Runs catena-train-word2vec in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import unittest

from processes_case import Processes, skip_without_mpi


class Words(Processes):
    def test_processes_learn_as_one(self):
        text = self.write("text.txt", "the red ball . the old cat sees the young dog . " * 40)
        options = ("--data", text, "--seed", 3, "--epochs", 2, "--batch", 50, "--units", 8, "--min-count",
                   1, "--threads", 1, "--lr", 0.003)
        one = self.parameters(0, *options)
        for n, *more in ((2,), (4, "--shard")):
            with self.subTest(n=n):
                self.assert_close(one, self.parameters(n, *options, *more), 2e-4)


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
