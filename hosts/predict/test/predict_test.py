"""Tests of catena-predict from outside: usage: predict_test.py PROGRAM [unittest options]"""
import re
import unittest
import zipfile

from pictures import png, write_set
from program_case import PROGRAM, Case

BIN = PROGRAM.parent
DIGITS = BIN.parent / "share/catena/digits"
IMAGES = DIGITS / "t10k-images-idx3-ubyte.gz"
LABELS = DIGITS / "t10k-labels-idx1-ubyte.gz"


class Digits(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "digits.npz"

    def train(self, *options):
        options = ("--lr", 0.1, *options) if "--lr" not in options else options
        out = self.run_program("--epochs", 1, "--save", self.model, *options,
                               program=BIN / "catena-train-mnist")
        return re.search(r"test accuracy: ([\d.]+)", out).group(1)

    def test_as_accurate_as_in_training(self):
        for options in ((), ("--model", "cnn"), ("--model", "two-column")):
            for name in ("digits.npz", "digits.safetensors"):
                with self.subTest(options=options, name=name):
                    self.model = self.folder / name
                    accuracy = self.train(*options)
                    out = self.run_program("--model", self.model, IMAGES, "--labels", LABELS)
                    self.assertEqual(out, f"accuracy: {accuracy}\n")

    def test_classes_with_probabilities(self):
        self.train()
        out = self.run_program("--model", self.model, IMAGES, "--top", 3)
        lines = out.splitlines()
        self.assertEqual(len(lines), 2000)
        for line in lines[:100]:
            numbers = [float(x) for x in line.split()[2::2]]
            self.assertEqual(len(numbers), 3)
            self.assertEqual(sorted(numbers, reverse=True), numbers)
            self.assertLessEqual(sum(numbers), 1.0003)
        self.assertTrue(lines[7].startswith("t10k-images-idx3-ubyte.gz[7]  "), lines[7])
        for batch in (1, 7, 5000):
            again = self.run_program("--model", self.model, IMAGES, "--top", 1, "--batch", batch)
            self.assertEqual([line.split()[1] for line in again.splitlines()],
                             [line.split()[1] for line in lines])

    def test_pictures_of_digits(self):
        self.train("--model", "cnn", "--optimizer", "adam", "--lr", 0.002)
        one = [[255 if 60 <= x < 80 and 24 <= y < 116 else 0 for x in range(140) for _ in range(3)]
               for y in range(140)]
        file = self.write("one.png", png(140, 140, one))
        self.assertIn(f"{file}  1 ", self.run_program("--model", self.model, file))

    def test_latency_and_rate(self):
        self.train()
        process = self.start("--model", self.model, IMAGES, "--labels", LABELS, "--latency")
        out, err = process.communicate()
        self.assertRegex(err, r"^1999 images: middle [\d.]+ ms, 95% below [\d.]+ ms, "
                              r"99% below [\d.]+ ms\n$")
        times = [float(t) for t in re.findall(r"([\d.]+) ms", err)]
        self.assertEqual(sorted(times), times)
        process = self.start("--model", self.model, IMAGES, "--labels", LABELS, "--batch", 100)
        self.assertRegex(process.communicate()[1], r"^[\d.]+ images/s\n$")

    def test_bad_input_is_told(self):
        self.train()
        model = ("--model", self.model)
        self.assertIn("--model: expected a snapshot", self.run_program(code=2))
        self.assertIn("--top: expected", self.run_program(*model, "--top", 0, code=2))
        self.assertIn("expected images to classify", self.run_program(*model, code=1))
        self.assertIn("a zip archive", self.run_program("--model", IMAGES, code=1))
        self.assertIn("No such file", self.run_program("--model", "none.npz", code=1))
        self.assertIn("expected a PNG or JPEG", self.run_program(*model, LABELS, code=1))
        self.assertIn("expected 2000 labels, got 10000", self.run_program(
            *model, IMAGES, "--labels", DIGITS / "train-labels-idx1-ubyte.gz", code=1))
        other = self.folder / "other.npz"
        with zipfile.ZipFile(self.model) as old, zipfile.ZipFile(other, "w") as new:
            for name in old.namelist():
                if name != "model/l2/b.npy":
                    new.writestr(name, old.read(name))
        self.assertIn("l2/b: missing", self.run_program("--model", other, IMAGES, code=1))
        with zipfile.ZipFile(other, "w") as new:
            new.writestr("x.npy", zipfile.ZipFile(self.model).read("model/l2/b.npy"))
        self.assertIn("a snapshot with about/net", self.run_program("--model", other, code=1))


class Pictures(Case):
    def test_a_folder_of_pictures(self):
        data = self.folder / "set"
        write_set(data, 20)
        model = self.folder / "net.npz"
        out = self.run_program(data, "--net", "alexnet-bn", "--size", 64, "--side", 72, "--width",
                               0.1, "--optimizer", "adam", "--lr", 0.001, "--epochs", 8, "--batch",
                               10, "--save", model, "--held-out", 0.2,
                               program=BIN / "catena-train-images")
        self.assertGreater(float(re.search(r"valid accuracy: ([\d.]+)", out).group(1)), 0.6, out)
        lines = self.run_program("--model", model, data, "--top", 2).splitlines()
        self.assertEqual(len(lines), 60)
        right = sum(f"/{line.split()[1]}/" in line.split()[0] for line in lines)
        self.assertGreater(right, 40)
        self.assertEqual(self.run_program("--model", model, data, "--top", 2, "--batch", 1),
                         "\n".join(lines) + "\n")


class Language(Case):
    def test_text_goes_on(self):
        text = self.write("text.txt", "one two three four .\n" * 200)
        model = self.folder / "lm.npz"
        self.run_program("--data", text, "--epochs", 5, "--units", 16, "--batch", 4, "--steps", 10,
                         "--lr", 0.02, "--save", model, program=BIN / "catena-train-lm")
        out = self.run_program("--model", model, "--prompt", "one two", "--length", 7,
                               "--temperature", 0.1)
        self.assertEqual(out, "one two three four.\none two three\n")
        process = self.start("--model", model, "--prompt", "one two", "--length", 7,
                             "--temperature", 0.1, "--latency")
        again, err = process.communicate()
        self.assertEqual(again, out)
        self.assertRegex(err, r"^7 tokens: middle ")
        self.assertIn("--temperature: expected",
                      self.run_program("--model", model, "--temperature", 0, code=2))

    def test_nearest_words(self):
        text = self.write("text.txt", "a cat sleeps here\na dog sleeps here\nwe eat rice now\n" * 50)
        model = self.folder / "words.npz"
        self.run_program("--data", text, "--epochs", 5, "--units", 8, "--window", 2, "--lr", 0.02,
                         "--subsample", 0, "--save", model, program=BIN / "catena-train-word2vec")
        out = self.run_program("--model", model, "--prompt", "cat", "--top", 1)
        self.assertIn("  dog\n", out)
        self.assertIn("got 'horse'",
                      self.run_program("--model", model, "--prompt", "horse", code=1))


if __name__ == "__main__":
    unittest.main()
