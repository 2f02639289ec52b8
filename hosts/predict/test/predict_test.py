"""Tests that run catena-predict. Usage: predict_test.py PROGRAM [unittest options]"""
import json
import math
import pathlib
import re
import signal
import struct
import unittest
import zipfile

from pictures import png, write_set
from program_case import PROGRAM, Case, gpt2_shapes, npy, safetensors, with_members

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
        self.assertRegex(err, r"^1999 images: p50 [\d.]+ ms, p95 [\d.]+ ms, "
                              r"p99 [\d.]+ ms\n$")
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
        self.assertIn("got a file compressed by gzip", self.run_program("--model", IMAGES, code=1))
        self.assertIn("none.npz: expected a file, got none: there is no such file",
                      self.run_program("--model", "none.npz", code=1))
        self.assertIn("got a device", self.run_program("--model", "/dev/zero", code=1))
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

    def test_snapshots_that_cannot_be(self):
        self.train()
        for shape, part in (("1," * 17, "17 axes, more than 16"),
                            ("0, 9223372036854775807, 9223372036854775807", "more elements")):
            header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({shape}), }}"
            bad = with_members(self.model, self.folder / "bad.npz",
                               about__units=npy(header, bytes(8)))
            out = self.run_program("--model", bad, IMAGES, code=1)
            self.assertIn(f"{bad}: expected an array about/units", out)
            self.assertIn(part, out)
        header = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
        for units in (0, -3, 1 << 40):
            bad = with_members(self.model, self.folder / "bad.npz",
                               about__units=npy(header, units.to_bytes(8, "little", signed=True)))
            out = self.run_program("--model", bad, IMAGES, code=1)
            self.assertIn(f"about/units: expected 1 to 1073741824, got {units}", out)

    def test_options_of_other_nets_are_refused(self):
        self.train()
        self.assertIn("--prompt: expected a net for words", self.run_program(
            "--model", self.model, IMAGES, "--prompt", "x", code=2))
        (self.folder / "empty").mkdir()
        self.assertIn("expected PNG or JPEG files, got none", self.run_program(
            "--model", self.model, self.folder / "empty", code=1))
        odd = self.folder / "images.gz"  # the name does not matter
        odd.write_bytes(IMAGES.read_bytes())
        self.assertIn("accuracy: ", self.run_program("--model", self.model, odd, "--labels", LABELS))
        self.assertIn("expected one IDX file, got 2 inputs",
                      self.run_program("--model", self.model, odd, IMAGES, code=1))


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
        self.assertRegex(err, r"^7 tokens: p50 ")
        self.assertIn("--temperature: expected",
                      self.run_program("--model", model, "--temperature", -1, code=2))
        self.assertIn("--labels: expected a net for images",
                      self.run_program("--model", model, "--labels", "x", code=2))
        prompts = ("one two", "three", " ", "four . one")  # " ": no words
        many = [o for prompt in prompts for o in ("--prompt", prompt)]
        first = self.run_program("--model", model, *many, "--length", 3, "--temperature", 0.1)
        self.assertTrue(first.startswith(self.run_program(
            "--model", model, *many[:2], "--length", 3, "--temperature", 0.1)), first)
        for batch in (1, 3, 10):
            out = self.run_program("--model", model, *many, "--length", 3, "--temperature", 0.1,
                                   "--batch", batch)
            self.assertEqual(out, first)
        for going_on in ((), ("--latency",)):
            process = self.start("--model", model, "--length", 10**9, *going_on)
            self.until_it_catches(process, signal.SIGINT)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("interrupted", err)
        process = self.start("--model", model, "--prompt", "one zebra", "--length", 3)
        out, err = process.communicate()
        self.assertTrue(out.startswith("one <unk>"), out)
        self.assertIn("note: the vocabulary does not contain 'zebra' of the prompt", err)

    def folder_of_pretrained(self, following):
        """Writes a GPT-2 whose most likely next token is following[token], with a tokenizer."""
        source = pathlib.Path(__file__).parents[3] / "sdk/models/test/byte_pair_encoding.json"
        tokenizer = json.loads(source.read_text())["gpt2"]["tokenizer"]
        ids = tokenizer["model"]["vocab"]
        n = len(ids)

        def one_hot(pairs):
            values = bytearray(4 * n * n)
            for row, column in pairs:
                struct.pack_into("<f", values, 4 * (row * n + column), 1)
            return bytes(values)

        arrays = {name: (shape, bytes(4 * math.prod(shape)))
                  for name, shape in gpt2_shapes(n, 8, n, 1, 1).items()}
        arrays["wte.weight"] = (n, n), one_hot((i, i) for i in range(n))
        arrays["lm_head.weight"] = (n, n), one_hot((ids[b], ids[a]) for a, b in following.items())
        arrays["ln_f.weight"] = (n,), struct.pack("<f", 1) * n
        self.write("gpt2/model.safetensors", safetensors(arrays))
        self.write("gpt2/config.json", json.dumps({
            "model_type": "gpt2", "n_positions": 8, "n_embd": n, "n_layer": 1, "n_head": 1,
            "n_inner": 1, "tie_word_embeddings": False}))
        self.write("gpt2/tokenizer.json", json.dumps(tokenizer))
        return self.folder / "gpt2"

    def test_a_pretrained_model_begins_and_ends_a_text(self):
        end, other_end, begin = "<|endoftext|>", "d", "<|endof|>"
        model = self.folder_of_pretrained({begin: "a", "a": "b", "b": "c", "c": end, "x": "y",
                                           "y": other_end, end: "z", "z": "z", "d": "z"})

        def text(*options):
            return self.run_program("--model", model, "--temperature", 0, "--length", 7, *options)
        # The tokenizer knows an end, but no beginning.
        self.assertEqual(text("--prompt", "a"), "abc\n")
        self.assertEqual(text("--prompt", "x"), "xydzzzzz\n")
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        ids = [tokenizer["model"]["vocab"][token] for token in (end, other_end)]
        self.write("gpt2/generation_config.json", json.dumps({"eos_token_id": ids}))
        self.write("gpt2/tokenizer_config.json",
                   json.dumps({"add_bos_token": True, "bos_token": begin}))
        self.assertEqual(text("--prompt", "x"), "xy\n")
        for how in ((), ("--latency",)):
            self.assertEqual(text(*how), "abc\n")
            self.assertEqual(text("--prompt", "a", "--prompt", "x", "--prompt", "b", *how),
                             "abc\nxy\nbc\n")
        self.write("gpt2/generation_config.json", json.dumps({"eos_token_id": "d"}))
        self.assertIn("generation_config.json: eos_token_id: expected ids of tokens, got [\"d\"]",
                      self.run_program("--model", model, code=1))

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
