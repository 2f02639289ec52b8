"""Runs catena-train-mnist in several processes. Usage: processes_test.py PROGRAM [unittest options]"""
import os
import signal
import unittest

from processes_case import PROGRAM, Processes, numbers, skip_without_mpi

# Float32 sums in another order, after an epoch of 80 steps.
TOLERANCE = 2e-4


class Mnist(Processes):
    OPTIONS = {"--epochs": 1, "--lr": 0.05, "--seed": 4, "--batch": 150, "--threads": 1}

    def options(self, *more, **changed):
        options = {**self.OPTIONS, **{f"--{name}": value for name, value in changed.items()}}
        return (*[part for option in options.items() for part in option], *more)

    def test_processes_learn_as_one(self):
        one = self.parameters(0, *self.options())
        for n, *options in ((1, "--shard"), (2,), (4,), (3, "--shard"), (2, "--bucket", 0.1, "--micro-batches", 4)):
            with self.subTest(n=n, options=options):
                self.assert_close(one, self.parameters(n, *self.options(*options)), TOLERANCE)

    def test_the_cnn(self):
        options = self.options(model="cnn", batch=1500)
        one = self.parameters(0, *options)
        for n in (2, 4):
            with self.subTest(n=n):
                self.assert_close(one, self.parameters(n, *options), TOLERANCE)

    def test_runs_repeat_their_bits(self):
        options = self.options("--shard", dropout=0.3)
        a, b = (self.parameters(2, *options) for _ in range(2))
        self.assertEqual(a, b)

    def test_deterministic_bits_do_not_depend_on_processes(self):
        options = self.options("--deterministic", "--micro-batches", 4)
        one = self.parameters(0, *options)
        for n in (2, 4):
            self.assertTrue(self.parameters(n, *options) == one, n)

    def test_only_the_first_prints_and_writes(self):
        out = self.run_processes(2, *self.options("--curves", "curves.csv", "--log-file", "log"))
        self.assertEqual(out.count("test accuracy"), 1, out)
        self.assertEqual((self.folder / "log").read_text().count("test accuracy"), 1)
        self.assertEqual(len((self.folder / "curves.csv").read_text().splitlines()), 2)

    def test_snapshots_go_on_with_any_number(self):
        files = [self.folder / f"{i}.npz" for i in range(4)]
        self.run_processes(2, *self.options("--shard", save=files[0]))
        self.run_processes(3, *self.options("--shard", epochs=2, resume=files[0], save=files[1]))
        self.run_program(*self.options(epochs=3, resume=files[1], save=files[2]))
        self.run_program(*self.options(epochs=3, save=files[3]))
        self.assert_close(numbers(files[3]), numbers(files[2]), 5 * TOLERANCE)
        self.assertEqual(sorted(f.name for f in self.folder.glob("*.npz*")),
                         [f.name for f in files])

    def test_checkpoints_go_on_with_any_number(self):
        folder = self.folder / "checkpoints"
        for n, epochs in ((4, 1), (2, 2), (1, 3)):
            out = self.run_processes(n, *self.options("--shard", epochs=epochs, checkpoint=folder,
                                                      keep=2, curves="curves.csv"))
            self.assertEqual(out.count("epoch "), 1, out)
        self.assertEqual(len(list(folder.glob("step-*/complete"))), 2)
        self.assertEqual(len((self.folder / "curves.csv").read_text().splitlines()), 4)

    def test_only_updates_are_saved(self):
        folder = self.folder / "checkpoints"
        self.run_processes(2, *self.options("--double-buffering", "--save-every", 1, batch=4000,
                                            checkpoint=folder, keep=100))
        self.assertEqual(sorted(x.name for x in folder.iterdir()), ["lock", "step-1", "step-2"])

    def test_killed_ranks_change_nothing(self):
        self.check_kills_of_ranks(2, 4, self.options("--save-every", 5, epochs=3))

    def check_failure(self, process, *texts):
        out, err = process.communicate()
        self.assertNotEqual(process.returncode, 0)
        for text in texts:
            self.assertRegex(out + err, text)

    def training(self, *options, n=2, **how):
        """Starts a long training and waits for its first epoch."""
        process = self.start_processes(n, *self.options(*options, epochs=1000), **how)
        line = process.stdout.readline()
        while "epoch" not in line:
            self.assertNotEqual(line, "", process.stderr)
            line = process.stdout.readline()
        return process

    def test_a_killed_rank_is_named(self):
        process = self.training(n=3)
        os.kill(self.children(process)[-1], signal.SIGKILL)
        self.check_failure(process, r"rank \d: .*expected rank \d to take part, got the end of")

    def test_a_rank_that_hangs_is_named(self):
        process = self.training("--timeout", 10)
        stopped = self.children(process)[-1]
        os.kill(stopped, signal.SIGSTOP)
        lines = [process.stderr.readline()]
        while lines[-1] and "to start it within 10" not in lines[-1]:
            lines.append(process.stderr.readline())
        self.assertRegex(lines[-1], r"rank \d: .*expected rank \d to start it within 10")
        os.kill(stopped, signal.SIGCONT)  # mpirun waits for it
        self.check_failure(process)

    def test_other_options_are_refused(self):
        for first, others, got in ((("--lr", 0.1), ("--lr", 0.05), ("0.1", "0.05")),
                                   (("--lr", 0.1), (), ("0.1", "none")),
                                   (("--optimizer", "adam"), (), ("adam", "sgd")),
                                   (("--dropout", 0.25), (), ("0.25", "0")),
                                   (("--seed", 9), (), ("9", "0")),
                                   (("--units", 50), (), ("50", "100")),
                                   ((), ("--deterministic",), ("false", "true")),
                                   (("--save", "x.npz"), (), ("x.npz", "none"))):
            with self.subTest(first=first, others=others):
                out = self.run_processes(2, "--epochs", 1, first=first, others=others, code=2)
                self.assertIn("{}: expected the same in all processes, got {} on rank 0 and {} on rank 1"
                              .format((first or others)[0], *got), out)
        out = self.run_processes(2, "--epochs", 1, "--batch", 4000, others=("--threads", 1, "--profile"),
                                 first=("--threads", 2, "--device", "cpu:0", "--log-file", "log"))
        self.assertIn("test accuracy", out)
        self.env["CATENA_SEED"] = "5"
        out = self.run_processes(2, "--epochs", 1, first=("--seed", 6), code=2)
        self.assertIn("--seed: expected the same in all processes, got 6 on rank 0 and 5 on rank 1", out)
        del self.env["CATENA_SEED"]
        out = self.run_processes(2, *self.options(resume="none.npz"), code=1)
        self.assertRegex(out, r"catena-train-mnist: rank \d: .*none.npz")
        out = self.run_processes(2, *self.options("--shard", optimizer="lamb"), code=1)
        self.assertIn("--shard with --optimizer lamb: [setup] optimizer: expected a function", out)

    def test_other_data_is_refused(self):
        digits = PROGRAM.parent.parent / "share/catena/digits"
        folder = self.folder / "other" / "digits"
        folder.mkdir(parents=True)
        (self.folder / "digits").symlink_to(digits)
        for file in digits.glob("t10k-*"):  # trains on the images for testing
            for name in (file.name, file.name.replace("t10k", "train")):
                (folder / name).symlink_to(file)
        out = self.run_processes(2, *self.options("--data", "digits"), code=1, first_in=folder.parent)
        self.assertRegex(out, r"\[Trainer\] batches/size: expected the same in all processes, "
                              r"got \d+ on rank 0 and \d+ on rank 1")

    def test_a_signal_stops_all_ranks_after_the_same_step(self):
        file = self.folder / "stopped.npz"
        process = self.training("--save", file)
        for rank in self.children(process)[:1]:
            os.kill(rank, signal.SIGINT)
        out, err = process.communicate()
        self.assertIn("interrupted in epoch", out + err)
        self.assertGreater(len(numbers(file)), 3)

    def test_wrong_options(self):
        for options, text in ((("--shard",), "--shard: expected --communicator as well"),
                              (("--communicator", "none"), "[Communicator] name: expected one of"),
                              (("--communicator", "mpi", "--wire", "int8"), "--wire: expected"),
                              (("--keep", 2), "--keep: expected --checkpoint as well"),
                              (("--communicator", "mpi", "--bucket", "1e18"), "--bucket: expected"),
                              (("--communicator", "mpi", "--record"), "--record: expected no")):
            out = self.run_program(*options, code=1 if "none" in options else 2)
            self.assertIn(text, out)
        self.env["OMPI_COMM_WORLD_SIZE"] = "2"
        out = self.run_program("--communicator", "threads", code=2)
        self.assertIn("--communicator: expected one that joins the 2 processes", out)
        del self.env["OMPI_COMM_WORLD_SIZE"]
        out = self.run_processes(2, "--micro-batches", 3, code=2)
        self.assertIn("--micro-batches: expected a multiple of 2 processes, got 3", out)


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
