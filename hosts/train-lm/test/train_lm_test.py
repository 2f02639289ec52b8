"""Tests that run catena-train-lm. Usage: train_lm_test.py PROGRAM [unittest options]"""
import gzip
import json
import math
import os
import pathlib
import random
import re
import signal
import struct
import time
import unittest

from program_case import PROGRAM, Case, gpt2_shapes, members, safetensors

# A language of twelve sentences. Only the person and the thing cannot be predicted.
LINES = [f"{who} {what} the {thing} ." for who, what in (("anna", "sees"), ("bruno", "has"))
         for thing in ("red ball", "blue ball", "old cat", "young dog", "house", "tree")]


def text(lines=400, seed=1):
    """Returns random sentences, with a few blank lines."""
    generator = random.Random(seed)
    return "".join(generator.choice(LINES) + "\n" + "\n" * (i % 50 == 0) for i in range(lines))


class LanguageCase(Case):
    SMALL = {"--units": 16, "--batch": 8, "--steps": 10, "--lr": 0.01, "--seed": 3}

    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", text())

    def small(self, *options):
        """Returns options for a small net; the arguments override them."""
        return [part for option in self.SMALL.items() if option[0] not in options
                for part in option] + [*options]

    def train(self, *options, **how):
        return self.run_program("--data", self.text, *self.small(*options), **how)

    def tokenizer(self):
        """Writes a byte-pair encoding of a few hundred tokens and returns its file."""
        source = pathlib.Path(__file__).parents[3] / "sdk/models/test/byte_pair_encoding.json"
        tokenizer = json.loads(source.read_text())["gpt2"]["tokenizer"]
        return self.write("tokenizer.json", json.dumps(tokenizer))

    def pretrained(self):
        """Writes a GPT-2 with random weights, as Hugging Face stores it, and returns its folder."""
        generator = random.Random(1)
        arrays = {}
        for name, shape in gpt2_shapes(410, 24, 16, 1, 32).items():
            n = math.prod(shape)
            values = [1.0] * n if len(shape) == 1 and name.endswith("weight") else [
                generator.gauss(0, 0.05) for _ in range(n)]
            arrays[f"transformer.{name}"] = shape, struct.pack(f"<{n}f", *values)
        self.write("pretrained/model.safetensors", safetensors(arrays))
        self.write("pretrained/config.json", json.dumps({
            "model_type": "gpt2", "n_positions": 24, "n_embd": 16, "n_layer": 1, "n_head": 2,
            "n_inner": 32, "activation_function": "gelu"}))
        self.tokenizer().rename(self.folder / "pretrained/tokenizer.json")
        return self.folder / "pretrained"

    def perplexity(self, out, which="test perplexity:"):
        return float(re.findall(rf"{which} ([\d.]+)", out)[-1])


class Training(LanguageCase):
    def test_every_kind_of_net_learns(self):
        # The person and the thing are random, so the lowest possible perplexity is about 12^(1/6).
        for options in ((), ("--cell", "rnn"), ("--layers", 2), ("--optimizer", "sgd", "--lr", 1),
                        ("--sentences",), ("--sentences", "--cell", "rnn", "--layers", 2),
                        ("--dropout", 0.1), ("--lr-decay", 0.9, "--lr-decay-after", 3)):
            with self.subTest(options=options):
                out = self.train("--epochs", 8, *options)
                self.assertLess(self.perplexity(out), 2.2, out)

    def test_characters(self):
        out = self.train("--tokens", "characters", "--epochs", 5)
        self.assertIn(" characters to train", out)
        self.assertRegex(out, r"\d characters/s")
        self.assertLess(self.perplexity(out), 2)

    def test_samples_are_of_the_language(self):
        out = self.train("--epochs", 8, "--sample", 40, "--prompt", "anna sees the",
                         "--temperature", 0.5)
        sample = out.split("sample: ")[-1].split("test perplexity")[0]
        self.assertTrue(sample.startswith("anna sees the "), sample)
        known = {line.replace(" .", ".") for line in LINES}
        whole = [line for line in sample.split("\n")[:-2] if line]
        self.assertGreater(len(whole), 3)
        self.assertGreater(sum(line in known for line in whole) / len(whole), 0.8, sample)

    def test_the_parts_of_a_text(self):
        folder = self.folder / "parts"
        for i, part in enumerate(("train", "valid", "test")):
            self.write(f"parts/my.{part}.txt", text(200 if part == "train" else 50, i))
        self.write("parts/my.valid.txt.gz", gzip.compress((folder / "my.valid.txt").read_bytes()))
        (folder / "my.valid.txt").unlink()
        out = self.run_program("--data", folder, *self.small(), "--epochs", 1)
        words = len(re.findall(r"[a-z]+|\.|\n", text(200, 0)))
        self.assertIn(f"({words} words to train", out)
        (folder / "my.test.txt").unlink()
        text_ = self.run_program("--data", folder, *self.small(), code=1)
        self.assertIn("expected one file with 'test' in its name, got 0", text_)

    def test_rare_words_are_unknown(self):
        self.text = self.write("text.txt", text() + "zebra\n")
        self.assertIn(", vocabulary of 17", self.train("--epochs", 0))
        self.assertIn(", vocabulary of 17", self.train("--epochs", 0, "--min-count", 2))
        self.assertIn(", vocabulary of 5", self.train("--epochs", 0, "--vocabulary", 5))

    def test_windows_line_ends_and_other_scripts(self):
        self.text = self.write("text.txt", ("ein schöner Tag 日本 \U0001f600\r\n" * 100).encode())
        out = self.train("--epochs", 1, "--tokens", "characters", "--sample", 5)
        self.assertIn(", vocabulary of 17", out)

    def test_texts_that_are_too_short_or_none(self):
        for content, expected in (
                ("", "[corpus] {file}: expected text, got none"),
                ("one\n", "expected at least two tokens each for training, validation and testing, got 2, 0 and 0"),
                ("one two\n" * 30, "[RunningText] tokens: expected at least 100, one more than "
                                   "batch_size, got 82"),
                (b"fine\nbad \xff\n", "expected text in UTF-8, got byte 0xff in line 2 (at 9)"),
                (b"\x1f\x8b\x08 not gzip", "damaged gzip data")):
            with self.subTest(content=content):
                file = self.write("bad.txt", content)
                out = self.run_program("--data", file, "--batch", 99, code=1)
                self.assertIn(expected.format(file=file), out)
        self.assertIn("none: expected a file, got none: there is no such file",
                      self.run_program("--data", self.folder / "none", code=1))
        for name in ("", "\n\n\n"):
            file = self.write("bad.txt", name)
            self.assertIn("expected", self.run_program("--data", file, "--sentences", code=1))

    def test_a_text_of_one_line(self):
        self.text = self.write("line.txt", text(1000).replace("\n", " ") + "ü" * 3)
        for options in ((), ("--tokens", "characters")):
            out = self.train("--epochs", 1, *options)
            train, valid, test = map(int, re.search(
                r"\((\d+) \w+ to train, (\d+) to validate, (\d+) to test\)", out).groups())
            self.assertGreater(min(valid, test), 0.03 * train)
            self.assertNotIn("nan", out)
        self.assertIn("--sentences: expected a vocabulary of",
                      self.train("--sentences", code=1))

    def test_a_short_text_is_read_once_and_a_long_one_a_few_times(self):
        def bytes_read(file):
            process = self.start("--data", file, *self.small("--max-steps", 1))
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            with open(f"/proc/{process.pid}/io") as counts:
                read = int(re.search(r"rchar: (\d+)", counts.read())[1])
            out, err = process.communicate()
            self.assertEqual(process.returncode, 0, out + err)
            return read

        line = "anna sees" + " " * (1 << 17) + "\n"
        small, large = (self.write(f"{n}.txt", n * line) for n in (40, 80))
        more = large.stat().st_size - small.stat().st_size
        before = bytes_read(small)
        self.assertLess(bytes_read(large) - before, 1.5 * more)
        large = self.write("long.txt", 600 * line)  # more than is kept in memory
        self.assertLess(bytes_read(large) - before, 7 * large.stat().st_size)

    def test_a_vocabulary_of_any_size_is_saved(self):
        self.text = self.write("large.txt", "".join(f"w{i} of large{i % 700}\n" for i in range(20000)))
        file = self.folder / "a.npz"
        options = ("--batch", 100, "--units", 4, "--max-steps")
        self.train(*options, 2, "--save", file)
        self.assertGreater(max(map(len, members(file).values())), 1 << 16)
        self.assertIn("test perplexity", self.train(*options, 4, "--resume", file))
        self.assertTrue(self.run_program("--model", file, "--prompt", "w5 of", "--length", 3, program=(
            PROGRAM.parent / "catena-predict")).startswith("w5 of"))

    def test_words_of_the_prompt_that_are_not_known_are_told(self):
        out = self.train("--epochs", 1, "--sample", 5, "--prompt", "anna sees zebra")
        self.assertIn("note: the vocabulary does not contain 'zebra' of the prompt", out)

    def test_training_that_has_failed_is_told(self):
        log = self.folder / "log"
        out = self.train("--epochs", 3, "--optimizer", "sgd", "--lr", 1e30, "--clip", 1e30,
                         "--log-file", log, code=1)
        self.assertIn("[Program] loss: expected a finite number", out)
        self.assertIn("[Program] loss: expected a finite number", log.read_text())

    def test_the_first_epoch_learns_at_the_full_rate(self):
        def first(*options):
            out = self.train("--epochs", 1, *options)
            return self.perplexity(out)
        self.assertEqual(first("--lr-decay", 1e-9), first())
        self.assertGreater(first("--lr-decay", 1e-9, "--lr-decay-after", 0), 1.2 * first())

    def test_wrong_options_are_told(self):
        for options, expected in ((("--units", 0), "--units: expected 1 or more, got 0"),
                                  (("--cell", "gru"), "expected lstm or rnn, got 'gru'"),
                                  (("--tokens", "syllables"), "got 'syllables'"),
                                  (("--prompt", "x"), "--prompt: expected --sample as well"),
                                  (("--plot=a.svg", "--resume", "b"),
                                   "--plot: expected --curves as well"),
                                  (("--curves=a.txt",), "--curves: expected a name that ends in"),
                                  (("--clip", -1), "--clip: expected a number above 0, got -1"),
                                  (("--optimizer", "sgdd"), "got sgdd"),
                                  (("--save-every", 3), "--save-every: expected --save as well")):
            with self.subTest(options=options):
                self.assertIn(expected, self.run_program(*options, code=2))

    def test_the_log_has_what_is_printed(self):
        log = self.folder / "log"
        out = self.train("--epochs", 1, "--log-file", log)
        lines = log.read_text().splitlines()
        self.assertEqual([line.split("  ", 1)[1] for line in lines], out.splitlines())
        self.assertRegex(lines[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  text: ")


class Transformers(LanguageCase):
    GPT = ("--net", "gpt", "--layers", 2, "--heads", 2, "--steps", 16)

    def test_every_layout_learns(self):
        for options in ((), ("--layout", "gpt2"), ("--kv-heads", 1),
                        ("--accumulate", 2, "--batch", 4), ("--dropout", 0.05), ("--bfloat16",),
                        ("--float16",), ("--ema", 0.9), ("--lr-warmup", 1, "--lr-cosine", 0.1)):
            with self.subTest(options=options):
                out = self.train("--epochs", 12, *self.GPT, *options)
                self.assertLess(self.perplexity(out), 2.2, out)

    def test_accumulated_minibatches_are_one_large_one(self):
        # An epoch has 8 windows; minibatches of 3 end with one of 2.
        lines = LINES * 2
        random.Random(1).shuffle(lines)
        for part in ("train", "valid", "test"):
            self.write(f"parts/{part}.txt", "".join(line + "\n" for line in lines))
        self.text = self.folder / "parts"
        perplexities = []
        for batch, accumulate in ((8, 1), (3, 3), (4, 2)):
            curves = self.folder / "curves.csv"
            self.train("--epochs", 6, *self.GPT, "--optimizer", "sgd", "--lr", 0.5, "--clip", 100,
                       "--batch", batch, "--accumulate", accumulate, "--curves", curves)
            lines = curves.read_text().splitlines()
            self.assertEqual(len(lines), 7)
            perplexities.append([float(line.split(",")[1]) for line in lines[1:]])
            for one, other in zip(perplexities[0], perplexities[-1]):
                self.assertAlmostEqual(one, other, delta=1e-4)

    def test_bytes_and_pairs_of_bytes(self):
        out = self.train("--epochs", 1, *self.GPT, "--tokens", "bytes")
        self.assertIn(" bytes to train", out)
        self.assertIn(", vocabulary of 256", out)
        out = self.train("--epochs", 2, *self.GPT, "--tokenizer", self.tokenizer(), "--sample", 9,
                         "--prompt", "anna sees")
        self.assertRegex(out, r"\d tokens to train")
        self.assertRegex(out, r"valid perplexity [\d.]+ \([\d.]+ nats\)")
        self.assertIn("sample: anna sees", out)

    def test_snapshots_generate(self):
        for options in ((), ("--tokens", "bytes"), ("--tokenizer", self.tokenizer()),
                        ("--layout", "gpt2"), ("--ema", 0.9)):
            with self.subTest(options=options):
                file = self.folder / "gpt.npz"
                out = self.train("--epochs", 1, *self.GPT, *options, "--save", file, "--sample", 20,
                                 "--temperature", 0)
                sample = out.split("sample: ")[1].split("test perplexity")[0]
                process = self.start("--model", file, "--length", 20, "--temperature", 0,
                                     program=PROGRAM.parent / "catena-predict")
                out, err = process.communicate()
                self.assertEqual(out, sample)
                self.assertRegex(err, r"^first token after [\d.]+ ms, [\d.]+ tokens/s\n$")

    def test_averages_are_evaluated_and_saved_beside_the_parameters(self):
        file = self.folder / "gpt.npz"
        out = self.train("--epochs", 1, *self.GPT, "--save", file)
        plain = members(file)
        self.train("--epochs", 1, *self.GPT, "--save", file, "--ema", 0.9)
        with_averages = members(file)
        # Training itself does not depend on the averages.
        for name in ("embed/W", "block0/up/W", "norm/gamma"):
            self.assertEqual(with_averages[f"trained/{name}.npy"], plain[f"model/{name}.npy"])
            self.assertNotEqual(with_averages[f"model/{name}.npy"], plain[f"model/{name}.npy"])
        late = self.train("--epochs", 1, *self.GPT, "--ema", 0.99999)  # nearly the initial weights
        self.assertEqual(self.perplexity(late, "train perplexity"),
                         self.perplexity(out, "train perplexity"))
        self.assertGreater(self.perplexity(late), 1.5 * self.perplexity(out))
        self.assertIn("options/ema", self.train("--epochs", 2, *self.GPT, "--resume", file,
                                                "--ema", 0.8, code=1))

    def test_a_pretrained_model_is_fine_tuned(self):
        file = self.folder / "gpt.npz"
        options = ("--model", self.pretrained(), "--sample", 20, "--temperature", 0, "--batch", 8,
                   "--steps", 16, "--lr", 0.01, "--data", self.text, "--prompt", "anna sees")
        first = self.run_program(*options, "--epochs", 0)
        self.assertIn("net: 1 x 16 gpt2, 9200 parameters", first)
        self.assertGreater(self.perplexity(first), 300)
        out = self.run_program(*options, "--epochs", 6, "--save", file)
        self.assertLess(self.perplexity(out), 1.6)
        sample = out.split("sample: ")[-1].split("test perplexity")[0]
        self.assertEqual(self.run_program("--model", file, "--length", 20, "--temperature", 0,
                                          "--prompt", "anna sees",
                                          program=PROGRAM.parent / "catena-predict"), sample)
        # Samples begin and end as catena-predict's do.
        self.write("pretrained/tokenizer_config.json", json.dumps(
            {"add_bos_token": True, "bos_token": "<|endof|>"}))
        still = (*(1e-12 if option == 0.01 else option for option in options), "--epochs", 1)
        predicted = ("--model", self.folder / "pretrained", "--length", 20, "--temperature", 0,
                     "--prompt", "anna sees")
        predict = PROGRAM.parent / "catena-predict"
        tokens = json.loads((self.folder / "pretrained/tokenizer.json").read_text())["model"]["vocab"]
        letters = {i for token, i in tokens.items() if token.isascii() and token.isalpha()}
        for kept in letters, ():  # any other token ends a sample
            self.write("pretrained/generation_config.json", json.dumps(
                {"eos_token_id": [i for i in range(410) if i not in kept]}))
            sample = self.run_program(*still).split("sample: ")[-1].split("test perplexity")[0]
            self.assertEqual(self.run_program(*predicted, program=predict), sample)
        self.assertEqual(sample.strip(), "anna sees")
        (self.folder / "pretrained/config.json").write_text(json.dumps({"model_type": "bert"}))
        self.assertIn("model_type: expected gpt2, llama, qwen2 or qwen3",
                      self.run_program(*options, code=1))

    def test_a_model_that_is_no_folder_of_hugging_face_is_told(self):
        folder = "expected a folder with config.json, model.safetensors and the tokenizer, got "
        for file, kind in ((self.folder / "none.npz", "none: there is no such file"),
                           (self.write("a.onnx", b"\x08\x08\x12\x07pytorch\x1a\x05"), "an ONNX model; "),
                           (self.write("a.gguf", b"GGUF\3\0\0\0"), "a GGUF model of llama.cpp; ")):
            self.assertIn(f"[train-lm] {file}: {folder}{kind}",
                          self.run_program("--model", file, code=1))
        self.assertIn(f"{self.folder / 'config.json'}: expected a file, got none: there is no such file",
                      self.run_program("--model", self.folder, code=1))
        file = self.write("a.onnx", b"\x08\x08\x12\x07pytorch\x1a\x05")
        self.assertIn(f"[tokenizer] {file}: file: expected a JSON object, got an ONNX model; ",
                      self.run_program("--tokenizer", file, code=1))

    def test_wrong_options_are_told(self):
        for options, expected in (
                (("--ema", 1), "--ema: expected above 0, below 1, got 1"),
                (("--model", "x", "--units", 3), "--model: expected no --units"),
                (("--model", "x", "--net", "recurrent"), "--model: expected --net gpt"),
                (("--float16", "--bfloat16"), "--float16: expected no --bfloat16"),
                (("--communicator", "mpi", "--float16", "--double-buffering"),
                 "--float16: expected no --double-buffering"),
                (("--net", "cnn"), "--net: expected recurrent or gpt, got cnn"),
                (("--heads", 2), "--heads: expected --net gpt, got recurrent"),
                (("--net", "gpt", "--cell", "rnn"), "--cell: expected --net recurrent, got gpt"),
                (("--net", "gpt", "--layout", "bert"), "expected gpt2 or llama, got 'bert'"),
                (("--net", "gpt", "--accumulate", 0), "--accumulate: expected 1 or more, got 0"),
                (("--tokenizer", "x", "--tokens", "words"), "--tokenizer: expected no --tokens")):
            with self.subTest(options=options):
                self.assertIn(expected, self.run_program(*options, code=2))
        self.assertIn("heads: expected a divisor of the 16 units, got 3",
                      self.train("--net", "gpt", "--heads", 3, code=1))
        self.assertIn("RandomWindows] tokens: expected at least",
                      self.train("--net", "gpt", "--steps", 10**6, code=1))


class Snapshots(LanguageCase):
    OPTIONS = ("--epochs", 12, "--dropout", 0.2, "--deterministic", "--save-every", 5)

    def test_twenty_kills_change_nothing(self):
        self.check_kills(20, ["--data", self.text, *self.small(*self.OPTIONS)])

    def test_nor_with_sentences(self):
        self.check_kills(3, ["--data", self.text, *self.small(*self.OPTIONS), "--sentences",
                             "--layers", 2])

    def test_nor_with_a_transformer(self):
        self.check_kills(3, ["--data", self.text, *self.small(*self.OPTIONS), "--net", "gpt",
                             "--layers", 1, "--accumulate", 3, "--lr-warmup", 2,
                             "--lr-cosine", 0.1, "--ema", 0.9, "--float16"])

    def test_nor_with_a_pretrained_model(self):
        self.check_kills(3, ["--data", self.text, "--batch", 8, "--steps", 16, "--seed", 3,
                             "--model", self.pretrained(), *self.OPTIONS])

    def test_ctrl_c_saves(self):
        file = self.folder / "a.safetensors"
        process = self.start("--data", self.text, *self.small(), "--epochs", 100000,
                             "--save", file)
        process.stdout.readline()
        process.stdout.readline()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, out + err)
        self.assertTrue(file.exists())
        epochs = int(re.search(r"interrupted (?:in|after) epoch (\d+)", out).group(1)) \
            if "interrupted" in out else 1
        self.train("--epochs", epochs, "--resume", file)

    def test_evaluation_can_be_stopped_and_made_up_for(self):
        for part, lines in (("train", 200), ("valid", 20000), ("test", 50)):
            self.write(f"parts/{part}.txt", text(lines))
        self.text = self.folder / "parts"
        file, curves = self.folder / "a.npz", self.folder / "a.csv"
        options = ("--epochs", 1, "--batch", 2, "--save", file, "--curves", curves)
        process = self.start("--data", self.text, *self.small(*options), "--save-every", 1)
        stopped = False
        while not stopped:  # until it validates
            time.sleep(0.02)
            if file.exists():
                snapshot = members(file)
                stopped = snapshot["text/epoch.npy"][-8:] == (1).to_bytes(8, "little")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("interrupted after epoch 1", out)
        self.assertFalse(curves.exists())
        out = self.train(*options, "--resume", file)
        self.assertEqual(len(re.findall("^epoch ", out, re.M)), 1, out)
        whole = self.train("--epochs", 1, "--batch", 2)
        self.assertEqual(self.perplexity(out, "train perplexity"),
                         self.perplexity(whole, "train perplexity"))

    def test_a_snapshot_of_another_kind_is_refused(self):
        file = self.folder / "a.npz"
        self.train("--epochs", 1, "--save", file)
        for options, expected in (
                (("--units", 17), "about/units: expected 17, got 16"),
                (("--cell", "rnn"), "about/cell: expected rnn, got lstm"),
                (("--tokens", "characters"), "vocabulary/tokens: expected characters, got words"),
                (("--min-count", 1000), "vocabulary/words: expected "),
                (("--steps", 11), "text/steps: expected 11, got 10")):
            with self.subTest(options=options):
                out = self.train("--epochs", 2, *options, "--resume", file, code=1)
                self.assertIn(expected, out)
                self.assertLess(len(out), 5000)
        file.write_bytes(file.read_bytes()[:-100])
        self.assertIn("a zip archive of arrays", self.train("--resume", file, code=1))


if __name__ == "__main__":
    unittest.main()
