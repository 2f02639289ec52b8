"""Tests that run catena-train-images. Usage: train_images_test.py PROGRAM [unittest options]"""
import pathlib
import re
import shutil
import tempfile
import unittest

from pictures import write_set
from program_case import Case, members, npy, with_members


class Images(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp()) / "set"
        write_set(cls.data, 40)
        cls.addClassCleanup(shutil.rmtree, cls.data.parent)

    OPTIONS = {"--size": 64, "--side": 64, "--batch": 12, "--held-out": 0.2, "--seed": 1}
    # Options with which each net learns in seconds.
    NETS = {
        "nin": {"--width": 0.25, "--optimizer": "adam", "--lr": 0.001, "--epochs": 12},
        "alexnet-bn": {"--width": 0.1, "--optimizer": "adam", "--lr": 0.001, "--epochs": 12},
        "googlenet": {"--width": 0.25, "--optimizer": "adam", "--lr": 0.0015, "--lr-decay": 0.94,
                      "--epochs": 36, "--size": 96, "--side": 96},
    }

    def train(self, net, code=0, data=None, **more):
        options = {**self.OPTIONS, **self.NETS[net], "--net": net,
                   **{"--" + name.replace("_", "-"): value for name, value in more.items()}}
        return self.run_program(data or self.data, *[x for o in options.items() for x in o],
                                code=code)

    def test_every_net_learns(self):
        for net in self.NETS:
            with self.subTest(net=net):
                out = self.train(net)
                self.assertIn("(96 to train, 24 to validate, 3 classes)", out)
                self.assertRegex(out, r"[\d.]+ images/s")
                accuracy = float(re.search(r"valid accuracy: ([\d.]+)", out).group(1))
                self.assertGreater(accuracy, 0.8, out)

    def test_training_and_validation_apart(self):
        data = self.folder / "parts"
        write_set(data / "train", 8)
        write_set(data / "val", 3, seed=2)
        out = self.train("nin", data=data, epochs=1)
        self.assertIn("(24 to train, 9 to validate, 3 classes)", out)
        shutil.rmtree(data / "val/bars")
        self.assertIn("val: expected the same class folders as in", self.train("nin", data=data, code=1))

    def test_kills_change_nothing(self):
        options = {**self.OPTIONS, **self.NETS["alexnet-bn"], "--net": "alexnet-bn", "--epochs": 6,
                   "--save-every": 2}
        self.check_kills(4, [self.data, *[x for o in options.items() for x in o]],
                         at_last=("--loaders", 3))

    def test_a_snapshot_goes_on_with_its_own_mean(self):
        files = [self.folder / name for name in ("one.npz", "two.npz", "resumed.npz")]
        self.train("alexnet-bn", epochs=1, save=files[0])
        self.train("alexnet-bn", epochs=2, save=files[1])
        self.train("alexnet-bn", epochs=2, resume=files[0], save=files[2], measured=1)
        self.assertEqual(members(files[1]), members(files[2]))
        shutil.copytree(self.data, self.folder / "set")
        (self.folder / "set/bars/000.png").rename(self.folder / "set/bars/other.png")
        self.assertIn("batches/files: expected", self.train(
            "alexnet-bn", data=self.folder / "set", epochs=2, resume=files[0], code=1))

    def test_a_snapshot_of_no_place_in_the_images_is_refused(self):
        file = self.folder / "one.npz"
        self.train("alexnet-bn", epochs=1, save=file)
        header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
        bad = with_members(file, self.folder / "bad.npz", batches__batch=npy(
            header, (-10**9).to_bytes(8, "little", signed=True)))
        self.assertIn("batches/batch: expected 0 to 7, got -1000000000",
                      self.train("alexnet-bn", epochs=2, resume=bad, code=1))

    def test_a_few_images_are_validated_too(self):
        data = self.folder / "few"
        write_set(data, 4)
        out = self.train("nin", data=data, epochs=1, held_out=0.1)
        self.assertIn("(9 to train, 3 to validate, 3 classes)", out)
        self.assertNotIn(" nan", out)

    def test_a_broken_image_is_named(self):
        data = self.folder / "broken"
        shutil.copytree(self.data, data)
        file = data / "bars/007.png"
        file.write_bytes(file.read_bytes()[:200])
        out = self.train("nin", data=data, epochs=1, code=1)
        self.assertIn(f"[read_image] {file}: expected a PNG image", out)

    def test_bad_input_is_told(self):
        self.assertIn("--data: expected a folder", self.run_program(code=2))
        self.assertIn("[list_images]", self.run_program(self.folder / "none", code=1))
        (self.folder / "empty").mkdir()
        self.assertIn("expected folders of PNG or JPEG files",
                      self.run_program(self.folder / "empty", code=1))
        for option, value in (("--net", "vgg"), ("--size", 0), ("--side", 10), ("--held-out", 1),
                              ("--width", 0), ("--weight-decay", -1), ("--loaders", 10**6),
                              ("--size", 4097), ("--side", 4097), ("--optimizer", "best"), ("--lr", "nan")):
            with self.subTest(option=option):
                self.assertIn(option + ": expected",
                              self.run_program(self.data, option, value, code=2))
        out = self.run_program(self.data, "--size", 20, code=1)
        self.assertIn("[NIN] image: expected sides of 55 or more, got 20", out)


if __name__ == "__main__":
    unittest.main()
