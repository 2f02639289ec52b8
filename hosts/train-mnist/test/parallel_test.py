"""Runs catena-train-mnist on several devices. Usage: parallel_test.py PROGRAM [unittest options]"""
import array
import unittest

from program_case import Case, members

# Error after an epoch, relative to the largest value of an array: float32 sums in a different order.
TOLERANCE = 2e-4


def values(member):
    """Returns the numbers of a float32 .npy member."""
    start = 10 + int.from_bytes(member[8:10], "little")
    return array.array("f", member[start:])


class Parallel(Case):
    OPTIONS = ("--epochs", 1, "--lr", 0.05, "--seed", 4, "--batch", 150)

    def parameters(self, batch, *options):
        file = self.folder / "a.npz"
        self.run_program(*self.OPTIONS[:-1], batch, *options, "--save", file)
        return {name: values(member) for name, member in members(file).items()
                if name.startswith("model/")}

    def check_equal(self, options, *others, batch=150):
        one = self.parameters(batch, "--device", "cpu:0", *options)
        self.assertGreater(len(one), 3)
        for other in others:
            several = self.parameters(batch, "--device", other, *options)
            self.assertEqual(several.keys(), one.keys())
            for name, expected in one.items():
                scale = max(map(abs, expected))
                worst = max(abs(a - b) for a, b in zip(several[name], expected, strict=True))
                self.assertLess(worst, TOLERANCE * scale, f"{other}: {name}")

    def test_replicas_learn_as_one(self):
        # Few steps of the cnn: in 66 steps, rounding changes some of its maxima and signs.
        for model, batch in (("mlp", 150), ("cnn", 1500)):
            with self.subTest(model=model):
                self.check_equal(("--model", model), "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2", batch=batch)

    def test_columns_on_two_devices_learn_as_on_one(self):
        self.check_equal(("--model", "two-column"), "cpu:0,cpu:1")

    def test_replicas_go_on_from_a_snapshot(self):
        options = (*self.OPTIONS, "--device", "cpu:0,cpu:1", "--dropout", 0.3, "--deterministic")
        files = [self.folder / name for name in ("one.npz", "two.npz", "resumed.npz")]
        self.run_program(*options, "--save", files[0])
        two = [o if o != 1 or options[i - 1] != "--epochs" else 2 for i, o in enumerate(options)]
        self.run_program(*two, "--save", files[1])
        self.run_program(*two, "--resume", files[0], "--save", files[2])
        self.assertEqual(members(files[1]), members(files[2]))

    def test_without_dropout_any_number_of_devices_goes_on(self):
        one, two = self.folder / "one.npz", self.folder / "two.npz"
        self.run_program(*self.OPTIONS, "--save", one)
        self.run_program("--epochs", 2, *self.OPTIONS[2:], "--device", "cpu:0,cpu:1", "--resume", one,
                         "--save", two)
        self.run_program("--epochs", 3, *self.OPTIONS[2:], "--resume", two)
        dropout = ("--dropout", 0.3)
        self.run_program(*self.OPTIONS, *dropout, "--save", one)
        self.assertIn("options/devices: expected 2, got 1", self.run_program(
            "--epochs", 2, *self.OPTIONS[2:], *dropout, "--device", "cpu:0,cpu:1", "--resume", one,
            code=1))

    def test_more_devices_than_images(self):
        out = self.run_program("--device", "cpu:0,cpu:1,cpu:2", "--batch", 2, "--epochs", 1)
        self.assertGreater(float(out.split("test accuracy: ")[1]), 0.8)

    def test_a_device_that_is_not_there(self):
        self.assertIn("nothing:1", self.run_program("--device", "cpu:0,nothing:1", code=1))


if __name__ == "__main__":
    unittest.main()
