"""Tests that run catena-train-mnist. Usage: train_mnist_test.py PROGRAM [unittest options]"""
import contextlib
import functools
import gzip
import os
import pty
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
import unittest
import zipfile

import program_case
from program_case import PROGRAM

DIGITS = PROGRAM.parent.parent / "share/catena/digits"


def number(snapshot, name):
    """Returns an integer of a snapshot."""
    with zipfile.ZipFile(snapshot) as archive:
        return struct.unpack("<q", archive.read(name + ".npy")[-8:])[0]


class Case(program_case.Case):
    def accuracy(self, out):
        match = re.search(r"^test accuracy: (0\.\d{4}|1\.0000)\Z", out.rstrip("\n"), re.M)
        self.assertTrue(match, out)
        return float(match.group(1))


class Training(Case):
    def test_learns_the_digits_that_are_shipped(self):
        out = self.run_program("--epochs", 3, "--optimizer", "adam")
        self.assertIn(f"data: {DIGITS.resolve()} (10000 images to train, 2000 to test)", out)
        self.assertEqual(len(re.findall(r"^epoch +\d+ ", out, re.M)), 3)
        self.assertGreater(self.accuracy(out), 0.9)
        self.assertGreater(self.accuracy(self.run_program("--epochs", 5, "--lr", 0.1)), 0.89)

    def test_every_optimizer_learns_and_resumes(self):
        text = self.run_program("--optimizer", "best", code=2)
        names = re.search(r"expected one of (.+), got", text).group(1).split(", ")
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            with self.subTest(optimizer=name):
                whole, half = self.folder / "whole.npz", self.folder / "half.npz"
                options = ("--optimizer", name, "--units", 20)
                out = self.run_program("--epochs", 2, "--save", whole, *options)
                self.assertGreater(self.accuracy(out), 0.4)
                self.run_program("--epochs", 1, "--save", half, *options)
                self.run_program("--epochs", 2, "--resume", half, "--save", half, *options)
                self.assertEqual(half.read_bytes(), whole.read_bytes())
        for options in (("--lr", 0.1), ("--lr-decay", 0.9), ("--lr-decay-after", 2)):
            text = self.run_program("--optimizer", "ada_delta", *options, code=2)
            self.assertIn(options[0] + ": expected no value with --optimizer ada_delta", text)

    def test_same_seed_same_bits(self):
        def snapshot(name, *options):
            file = self.folder / name
            self.run_program("--epochs", 1, "--dropout", 0.5, "--save", file, *options)
            return file.read_bytes()
        first = snapshot("a", "--seed", 3)
        self.assertEqual(snapshot("b", "--seed", 3), first)
        self.assertNotEqual(snapshot("c", "--seed", 4), first)
        self.assertEqual(snapshot("d", "--deterministic", "--threads", 1),
                         snapshot("e", "--deterministic", "--threads", 3))

    def test_the_environment_gives_the_seed(self):
        def snapshot(*options):
            file = self.folder / "a"
            self.run_program("--epochs", 1, "--dropout", 0.5, "--save", file, *options)
            return file.read_bytes()
        three, zero = snapshot("--seed", 3), snapshot()
        self.env["CATENA_SEED"] = "3"
        self.assertEqual(snapshot(), three)
        self.assertEqual(snapshot("--seed", 0), zero)
        self.env["CATENA_SEED"] = "x"
        self.assertIn("[seed] CATENA_SEED: expected", self.run_program("--epochs", 0, code=1))
        self.env["CATENA_SEED"] = str(2**64 - 1)
        self.assertIn("at most 2^63 - 1", self.run_program("--epochs", 0, code=2))

    def test_data_are_looked_for_in_order(self):
        places = [self.folder / "cache/catena/mnist", self.folder / "data/mnist",
                  self.folder / "named"]
        for i, place in enumerate(places):
            shutil.copytree(DIGITS, place)
            if i == 1:
                self.env["CATENA_DATA"] = str(self.folder / "data")
            options = ["--data", place] if i == 2 else []
            self.assertIn(f"data: {place} ", self.run_program("--epochs", 0, *options))


class Snapshots(Case):
    OPTIONS = ("--optimizer", "adam", "--dropout", "0.3", "--seed", "5", "--batch", "64")

    def allow(self, milliseconds):
        """Sets the time that runs have to end by themselves after SIGTERM or SIGHUP."""
        self.env["CATENA_TEST_GRACE"] = str(milliseconds)

    def interrupted(self, how):
        """Ends a run with a signal during an epoch; returns its snapshot, exit code and output."""
        file = self.folder / "interrupted.npz"
        file.unlink(missing_ok=True)
        process = self.start(*self.OPTIONS, "--epochs", 100000, "--save", file)
        while not file.exists():
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3))  # about the time of an epoch and a snapshot
        process.send_signal(how)
        out, err = process.communicate()
        return file, process.returncode, out + err

    def check_resumes(self, file):
        epochs = number(file, "batches/epoch") + 1
        self.run_program(*self.OPTIONS, "--epochs", epochs, "--resume", file,
                         "--save", self.folder / "resumed")
        self.run_program(*self.OPTIONS, "--epochs", epochs, "--save", self.folder / "whole")
        self.assertEqual((self.folder / "resumed").read_bytes(),
                         (self.folder / "whole").read_bytes())

    def test_signals_save_in_the_middle_of_an_epoch(self):
        self.allow(3_600_000)
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            position = 0
            while position == 0:  # the epoch had ended
                file, code, out = self.interrupted(how)
                self.assertEqual(code, 128 + how, out)
                position = number(file, "batches/position")
            self.assertIn(f"saved {file}", out)
            self.check_resumes(file)

    def test_kills_change_nothing(self):
        self.check_kills(6, [*self.OPTIONS, "--epochs", 4, "--save-every", 20, "--deterministic"])

    def signalled_in_a_step(self, how, batch):
        """Sends a signal to a run in its first, long step; returns the run and its snapshot."""
        file = self.folder / "a.npz"
        process = self.start("--model", "cnn", "--batch", batch, "--epochs", 1000, "--threads", 1,
                             "--save", file)
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(how)
        return process, file

    def test_a_long_step_is_not_waited_for(self):
        self.allow(1)
        process, file = self.signalled_in_a_step(signal.SIGTERM, 10000)
        process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM)
        # The file is there if the signal came only in a later epoch.
        self.assertLessEqual(set(self.folder.iterdir()), {file})

    def test_a_terminal_that_closes_lets_a_long_step_end(self):
        self.allow(3_600_000)
        process, file = self.signalled_in_a_step(signal.SIGHUP, 5000)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGHUP, err)
        self.assertIn(f"saved {file}", out)

    def test_a_terminal_that_is_gone_cannot_be_written_and_still_saves(self):
        self.allow(3_600_000)
        file = self.folder / "a.npz"
        child, terminal = pty.fork()
        if child == 0:
            os.execve(PROGRAM, [PROGRAM, *map(str, self.OPTIONS), "--epochs", "1000", "--save", file],
                      self.env)
        while b"epoch" not in os.read(terminal, 1000):
            pass
        os.close(terminal)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 128 + signal.SIGHUP)
        self.assertTrue(file.exists())

    def limited(self, size, *options):
        """Returns the errors of a run whose files are limited to size bytes, as by ulimit -f."""
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
        process = self.start(*self.OPTIONS, *options, preexec_fn=limit)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("File too large", err)
        return err

    def test_a_log_that_cannot_be_written_loses_no_epoch(self):
        file, log = self.folder / "a.npz", self.folder / "log"
        self.run_program(*self.OPTIONS, "--epochs", 1, "--save", file, "--log-file", log)
        text, size = log.read_text(), file.stat().st_size
        head = len(text[:text.index("epoch   1")])
        file.unlink()
        log.write_bytes(bytes(size - head))  # the line of the first epoch does not fit
        self.assertIn("expected to write a line",
                      self.limited(size, "--epochs", 2, "--save", file, "--log-file", log))
        self.assertEqual(number(file, "batches/epoch"), 1)

    def test_a_snapshot_that_cannot_be_written_leaves_nothing(self):
        file = self.folder / "a.npz"
        self.assertIn(f"[save] {file}: expected", self.limited(4096, "--epochs", 1, "--save", file))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_link_is_no_log_file(self):
        (self.folder / "log").symlink_to(self.folder / "target")
        self.assertIn("got a symbolic link",
                      self.run_program("--epochs", 0, "--log-file", self.folder / "log", code=1))
        self.assertFalse((self.folder / "target").exists())

    def test_a_kill_leaves_a_whole_snapshot(self):
        file, code, _ = self.interrupted(signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        self.check_resumes(file)

    def held_up(self, **how):
        """Returns a run that only evaluates and handles signals, and the full pipe for its output."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, bytes(1 << 16))
        os.set_blocking(write, True)
        process = subprocess.Popen([PROGRAM, "--epochs", "0"], env=self.env, stdout=write, **how)
        os.close(write)
        self.until_it_catches(process, signal.SIGTERM)  # its last handler
        return process, read

    def signalled_before_the_end(self, **how):
        """Returns the exit code of such a run that receives SIGINT."""
        process, read = self.held_up(**how)
        process.send_signal(signal.SIGINT)
        with open(read, "rb") as out:
            out.read()
        return process.wait()

    @unittest.skipIf("thread" in os.environ.get("CATENA_SANITIZE", ""),
                     "the thread sanitizer delays signals until a write has ended")
    def test_output_that_is_held_up_is_not_waited_for(self):
        process, read = self.held_up()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        os.close(read)
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_a_snapshot_goes_on_on_another_device(self):
        there = ("--device", "cpu:1")
        self.run_program(*self.OPTIONS, *there, "--epochs", 1, "--save", self.folder / "one")
        self.run_program(*self.OPTIONS, *there, "--epochs", 2, "--save", self.folder / "two")
        out = self.run_program(*self.OPTIONS, "--device", "cpu:0", "--epochs", 2, "--resume",
                               self.folder / "one", "--save", self.folder / "resumed")
        self.assertIn(" on cpu:0", out)
        self.assertEqual((self.folder / "resumed").read_bytes(), (self.folder / "two").read_bytes())

    def test_ctrl_c_shows_even_at_the_end(self):
        self.assertEqual(self.signalled_before_the_end(), 130)

    def test_what_nohup_ignores_stays_ignored(self):
        ignore = functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
        self.assertEqual(self.signalled_before_the_end(preexec_fn=ignore), 0)

    def test_without_save_nothing_is_written(self):
        process = self.start("--epochs", 100000)
        process.stdout.readline()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_snapshot_of_another_net_is_refused(self):
        file = self.folder / "a.npz"
        self.run_program("--epochs", 0, "--save", file)
        self.assertFalse(file.exists())
        self.run_program("--epochs", 1, "--save", file)
        text = self.run_program("--units", 50, "--resume", file, code=1)
        self.assertIn("model/l1/W: expected float32 (50, 784), got float32 (100, 784)", text)
        text = self.run_program("--optimizer", "adam", "--resume", file, code=1)
        self.assertIn("options/optimizer: expected adam, got sgd", text)
        self.assertIn("options/lr: expected 0.001 1 1, got 0.01 1 1", text)
        self.assertIn("optimizer/l1/W/m: missing", text)
        self.assertIn("nowhere: expected a file, got none: there is no such file",
                      self.run_program("--resume", "nowhere", code=1))
        self.assertIn("/dev/zero: expected a zip archive of arrays (.npz), got a device",
                      self.run_program("--resume", "/dev/zero", code=1))  # it has no end
        for option, other, was in (("lr", "0.1", "0.01 1 1"), ("dropout", 0.5, 0), ("seed", 3, 0),
                                   ("batch", 50, 100), ("units", 50, 100)):
            text = self.run_program("--" + option, other, "--resume", file, code=1)
            part = "about" if option == "units" else "options"
            self.assertIn(f"{part}/{option}: expected {other}", text)
            self.assertIn(f", got {was}\n", text)
        out = self.run_program("--epochs", 1, "--resume", file)
        self.assertNotIn("epoch ", out)
        self.accuracy(out)


class Mistakes(Case):
    def test_options_that_say_nothing_together(self):
        for options, expected in (
                (("--model", "two-column", "--dropout", 0.5), "--dropout: expected 0 for two-column"),
                (("--model", "two-column", "--device", "cpu:0,cpu:1,cpu:2"), "--device: expected one or two"),
                (("--record", "--device", "cpu:0,cpu:1"), "--record: expected one device, got 2"),
                (("--device", "cpu:0,cpu:0"), "--device: expected each device once"),
                (("--device", ","), "--device: expected a name")):
            with self.subTest(options=options):
                self.assertIn(expected, self.run_program(*options, code=2))

    def test_a_snapshot_of_other_data_is_refused(self):
        file = self.folder / "a.npz"
        self.run_program("--epochs", 1, "--save", file)
        out = self.run_program("--dataset", "fashion-mnist", "--data", DIGITS, "--resume", file, code=1)
        self.assertIn("about/classes: expected T-shirt/top", out)

    def test_rates_fall(self):
        first = self.accuracy(self.run_program("--epochs", 1, "--lr", 0.1))
        out = self.run_program("--epochs", 3, "--lr", 0.1, "--lr-decay", 1e-9)
        self.assertAlmostEqual(self.accuracy(out), first, delta=0.002)

    def test_what_cannot_be_printed_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "--epochs", "0"], env=self.env, stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdout: expected to write a line, got No space left", done.stderr)

    def test_help(self):
        out = self.run_program("--help")
        for option in ("data epochs batch units optimizer lr dropout seed device threads plugins "
                       "save resume deterministic help").split():
            self.assertIn("--" + option, out)
        self.assertNotRegex(out, r"0\.\d{10}")  # no long decimal fractions

    def test_bad_options_exit_with_2(self):
        for options in (["--nonsense"], ["word"], ["--epochs", "x"], ["--epochs", "-1"],
                        ["--batch", "0"], ["--units", "0"], ["--optimizer", "best"], ["--lr", "0"],
                        ["--dropout", "1"], ["--threads", "0"], ["--data"], ["--epoch", "3"],
                        ["--seed", "1", "--seed", "2"], ["--seed", "-1"], ["--lr", "inf"],
                        ["--lr", "nan"], ["--lr", "-0.1"], ["--lr", "1e999"]):
            with self.subTest(options=options):
                self.assertIn("--help", self.run_program(*options, code=2))

    def test_bad_data_exit_with_1(self):
        data = self.folder / "data"
        shutil.copytree(DIGITS, data)
        labels = data / "train-labels-idx1-ubyte.gz"
        whole = gzip.decompress(labels.read_bytes())
        cases = {
            "cut off": gzip.compress(whole)[:-20],
            "expected gzip data": whole,
            "expected magic number 0x00000801": gzip.compress(b"\0\0\x08\x03" + whole[4:]),
            "more bytes": gzip.compress(whole + b"\0"),
            "expected 10000 labels": gzip.compress(whole[:4] + struct.pack(">i", 9999) + whole[8:-1]),
            "labels 0 to 9, got 77": gzip.compress(whole[:-1] + b"\x4d"),
        }
        for text, content in cases.items():
            with self.subTest(text=text):
                labels.write_bytes(content)
                out = self.run_program("--data", data, code=1)
                self.assertIn(str(labels), out)
                self.assertIn(text, out)
        self.assertIn("expected a file", self.run_program("--data", self.folder / "none", code=1))

    def test_a_snapshot_that_cannot_be_written_is_told_before_training(self):
        for file, reason in ((self.folder / "none/x.npz", "No such file"),
                             (self.folder, "a folder")):
            out = self.run_program("--save", file, code=1)
            self.assertIn(f"{file}: expected a file that can be written, got {reason}", out)
            self.assertNotIn("data:", out)

    def test_unknown_device(self):
        self.assertIn("nothing:7", self.run_program("--device", "nothing:7", code=1))
        for name in ("cuda:4096", "cpu:4096", "cpu:x", "cpu:-1"):
            with self.subTest(name=name):
                out = self.run_program("--device", name, code=1)
                self.assertTrue(out.startswith("catena-train-mnist: "), out)
                self.assertIn(name.split(":")[0], out.splitlines()[0])
                self.assertNotIn("data:", out)

    def test_missing_plugins_are_named(self):
        plugins = self.folder / "plugins"
        plugins.mkdir()
        self.assertIn(str(plugins), self.run_program("--plugins", plugins, code=1))
        source = PROGRAM.parent.parent / "lib/catena/plugins"
        for file in source.glob("*.catena"):
            if not file.name.startswith(("connection", "activation")):
                shutil.copy(file, plugins)
        (plugins / "text.catena").write_text("not a library")
        out = self.run_program("--plugins", plugins, code=1)
        for text in ("catena.linear", str(plugins), "text.catena"):
            self.assertIn(text, out)


if __name__ == "__main__":
    unittest.main()
