"""Runs catena-train-lm in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import unittest

from processes_case import Processes, numbers, skip_without_mpi
from train_lm_test import text

TOLERANCE = 2e-4


class Language(Processes):
    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", text())

    def check(self, options, *others):
        common = ("--data", self.text, "--seed", 3, "--threads", 1, "--epochs", 2, "--units", 16,
                  "--lr", 0.003, *options)
        one = self.parameters(0, *common)
        for n, *more in others:
            with self.subTest(n=n, options=[*options, *more]):
                self.assert_close(one, self.parameters(n, *common, *more), TOLERANCE)

    def test_recurrent_nets(self):
        self.check(("--batch", 8, "--steps", 10), (2,), (4, "--shard"))

    def test_a_snapshot_goes_on_with_any_number(self):
        options = ("--data", self.text, "--seed", 3, "--threads", 1, "--units", 16, "--lr", 0.003,
                   "--batch", 8, "--steps", 10)
        first, second = self.folder / "1.npz", self.folder / "2.npz"
        one = self.parameters(0, *options, "--epochs", 2)
        self.run_program(*options, "--epochs", 1, "--save", first)
        self.run_processes(2, *options, "--epochs", 2, "--resume", first, "--save", second)
        self.assert_close(one, numbers(second), TOLERANCE)
        out = self.run_processes(2, *options, "--micro-batches", 4, code=2)
        self.assertIn("--micro-batches: expected the number of processes", out)

    def test_sentences(self):
        self.check(("--batch", 8, "--steps", 10, "--sentences"), (2,))

    def test_transformers(self):
        small = ("--net", "gpt", "--layers", 1, "--heads", 2, "--batch", 8, "--steps", 16,
                 "--max-steps", 50)
        self.check(small, (2,), (4, "--shard"))
        self.check((*small, "--accumulate", 2, "--ema", 0.9), (2,))

    def test_fewer_texts_than_processes(self):
        self.text = self.write("text.txt", text(80))
        common = ("--batch", 2, "--steps", 16)
        for options in ((), ("--sentences",), ("--net", "gpt", "--layers", 1, "--heads", 2)):
            self.check((*common, *options), (4,))

    def test_kills(self):
        self.check_kills_of_ranks(2, 3, (
            "--data", self.text, "--seed", 3, "--threads", 1, "--epochs", 4, "--units", 16, "--batch",
            8, "--steps", 10, "--dropout", 0.1, "--shard", "--save-every", 10))


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
