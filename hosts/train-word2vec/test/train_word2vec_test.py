"""Tests that run catena-train-word2vec. Usage: train_word2vec_test.py PROGRAM [unittest options]"""
import random
import unittest

from program_case import Case

ANIMALS = "cat dog fox owl".split()
FOODS = "bread rice soup cake".split()
CITIES = "rome oslo lima cairo".split()


def text(lines=1500):
    """Returns sentences in which the words of one kind are interchangeable."""
    generator = random.Random(1)
    pick = generator.choice
    kinds = (lambda: f"the hungry {pick(ANIMALS)} sleeps in its warm den",
             lambda: f"they cook fresh {pick(FOODS)} for our dinner tonight",
             lambda: f"a train goes from {pick(CITIES)} over high mountains")
    return "".join(pick(kinds)() + "\n" for _ in range(lines))


class Word2Vec(Case):
    OPTIONS = ("--units", 16, "--window", 3, "--batch", 100, "--lr", 0.01, "--subsample", 0,
               "--seed", 2)

    def setUp(self):
        super().setUp()
        self.text = self.write("text.txt", text())

    def train(self, *options, **how):
        return self.run_program("--data", self.text, *self.OPTIONS, *options, **how)

    def test_words_of_one_kind_are_near_each_other(self):
        for model in ("skip-gram", "cbow"):
            with self.subTest(model=model):
                nearest = [o for word in ("cat", "rice", "oslo") for o in ("--nearest", word)]
                out = self.train("--model", model, "--epochs", 10, "--top", 3, *nearest)
                for word, kind in (("cat", ANIMALS), ("rice", FOODS), ("oslo", CITIES)):
                    lines = out.split(f"\n{word}:\n")[1].splitlines()[:3]
                    self.assertEqual({line.split()[1] for line in lines}, set(kind) - {word}, out)

    def test_loss_falls_and_unknown_words_are_told(self):
        out = self.train("--epochs", 4)
        losses = [float(line.split()[3]) for line in out.splitlines() if line.startswith("epoch")]
        self.assertLess(losses[-1], losses[0] - 0.2)
        self.assertIn("--nearest: expected one of the 35 words, got 'unicorn'",
                      self.train("--nearest", "unicorn", code=1))

    def test_subsampling_leaves_out_frequent_words(self):
        places = [int(self.train_places("--subsample", share)) for share in (0, 0.05, 0.001)]
        self.assertEqual(sorted(places, reverse=True), places)
        self.assertLess(places[2], places[0] / 2)

    def train_places(self, *options):
        out = self.run_program("--data", self.text, "--epochs", 0, *options)
        return out.split(" positions")[0].split("(")[1]

    def test_vectors_are_written_as_text(self):
        file = self.folder / "vectors.txt"
        self.train("--epochs", 1, "--vectors", file)
        lines = file.read_text().splitlines()
        self.assertEqual(lines[0], "34 16")
        self.assertEqual(len(lines), 35)
        self.assertTrue(all(len(line.split(" ")) == 17 for line in lines[1:]))
        self.assertLess(abs(float(lines[1].split()[1])), 10)

    def test_kills_change_nothing(self):
        self.check_kills(5, ["--data", self.text, *self.OPTIONS, "--epochs", 6, "--deterministic",
                             "--save-every", 3])

    def test_bad_input_is_told(self):
        for options, expected in ((("--model", "glove"), "expected skip-gram or cbow, got 'glove'"),
                                  (("--window", 0), "--window: expected 1 or more, got 0"),
                                  (("--subsample", 2), "--subsample: expected 0 to 1, got 2"),
                                  (("--tokens", "characters"), "--tokens: expected words or spaces")):
            with self.subTest(options=options):
                self.assertIn(expected, self.run_program(*options, code=2))
        file = self.write("short.txt", "too short\n")
        self.assertIn("than twice the window of 5, got ",
                      self.run_program("--data", file, "--min-count", 1, code=1))


if __name__ == "__main__":
    unittest.main()
