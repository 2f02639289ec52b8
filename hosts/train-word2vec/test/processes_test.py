"""Runs catena-train-word2vec in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import unittest

from processes_case import Processes, skip_without_mpi


class Words(Processes):
    def check(self, repeats, batch, *others):
        text = self.write("text.txt", "the red ball . the old cat sees the young dog . " * repeats)
        options = ("--data", text, "--seed", 3, "--epochs", 2, "--batch", batch, "--units", 8,
                   "--min-count", 1, "--threads", 1, "--lr", 0.003)
        one = self.parameters(0, *options)
        for n, *more in others:
            with self.subTest(n=n):
                self.assert_close(one, self.parameters(n, *options, *more), 2e-4)

    def test_processes_learn_as_one(self):
        self.check(40, 50, (2,), (4, "--shard"))

    def test_fewer_positions_than_processes(self):
        self.check(10, 2, (4,))


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
