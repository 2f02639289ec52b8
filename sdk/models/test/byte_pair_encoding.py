#!/usr/bin/env python3
"""Writes byte_pair_encoding.json: small tokenizers, and the ids that the package tokenizers (PyPI) gives for texts.

usage: byte_pair_encoding.py TEXT, a text to train the tokenizers on
"""
import json
import pathlib
import sys

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = [
    "", " ", "a", "First Citizen:\nWe are accounted poor citizens, the patricians good.",
    "  two  spaces\t\tand tabs \n\n\n end   ", "I'll we've THEY'RE don't it's o'clock 'tis", "1234567890 3.14 x2",
    "na\u00efve \u00fcber \u4f60\u597d \U0001f600 e\u0301", "\u00a0no-break\u2003em\u3000ideographic",
    "<|endoftext|>begin<|endoftext|>", "a<|endof|>b<|endoftext|", "\x00\x01\x7f controls",
    "the " * 50, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "----====....!!!!????",
]


def train(pre_tokenizer, text, words):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=words, special_tokens=["<|endoftext|>", "<|endof|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")[:200000]
    split = [pre_tokenizers.Split(Regex(LLAMA), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizers = {
        "gpt2": train(pre_tokenizers.ByteLevel(add_prefix_space=False), text, 400),
        "prefix": train(pre_tokenizers.ByteLevel(add_prefix_space=True), text, 300),
        "llama3": train(pre_tokenizers.Sequence(split), text, 400),
    }
    result = {}
    for name, tokenizer in tokenizers.items():
        about = json.loads(tokenizer.to_str())
        if name == "llama3":
            about["model"]["ignore_merges"] = True
            tokenizer = Tokenizer.from_str(json.dumps(about))
        result[name] = {"tokenizer": about,
                        "cases": [{"text": t, "ids": tokenizer.encode(t).ids} for t in TEXTS]}
    file = pathlib.Path(__file__).with_suffix(".json")
    file.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
