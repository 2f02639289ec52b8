"""Runs catena-train-images in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import unittest

from pictures import write_set
from processes_case import Processes, numbers, skip_without_mpi


class Images(Processes):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "set"
        write_set(self.data, 20)

    def options(self, net, *more):
        return (self.data, "--net", net, "--width", 0.1, "--size", 64, "--side", 64, "--batch", 12,
                "--held-out", 0.2, "--seed", 1, "--epochs", 2, "--lr", 0.001, "--threads", 1, *more)

    def test_processes_learn_as_one(self):
        one = self.parameters(0, *self.options("vit"))
        for n, *more in ((2,), (4, "--shard", "--loaders", 2), (2, "--micro-batches", 4)):
            with self.subTest(n=n):
                self.assert_close(one, self.parameters(n, *self.options("vit", *more)), 2e-4)

    def test_weight_decay(self):
        """A process whose part of the last minibatch is empty decays its parameters too."""
        options = [{12: 5, 2: 1}.get(option, option) for option in
                   self.options("vit", "--weight-decay", 0.5)]
        one = self.parameters(0, *options)
        for n, *more in ((4,), (2, "--micro-batches", 4)):
            with self.subTest(n=n):
                self.assert_close(one, self.parameters(n, *options, *more), 2e-4)

    def test_fewer_images_than_processes(self):
        for net in ("vit", "alexnet-bn"):
            options = [3 if option == 12 else option for option in self.options(net)]
            self.run_processes(4, *options)

    def test_dropout_and_normalization(self):
        """Each process drops other values, so only the statistics of the first layer are those of one."""
        options = self.options("alexnet-bn")
        two = self.parameters(2, *options)
        self.assertEqual(two, self.parameters(2, *options))
        file = self.folder / "one.npz"
        still = [1e-9 if option == 0.001 else option for option in options]  # parameters do not change
        self.run_program(*still, "--save", file)
        self.run_processes(2, *still, "--save", self.folder / "two.npz")
        of = [numbers(self.folder / f"{name}.npz", "model/bn1/avg") for name in ("one", "two")]
        self.assertEqual(len(of[0]), 2)
        self.assert_close(*of, 1e-4)


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
