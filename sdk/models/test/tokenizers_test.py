#!/usr/bin/env python3
"""Compares ids and decoded texts of BytePairEncoding with those of PyPI's package tokenizers, for the
pre-tokenizers, normalizers and post-processors of real models. Is skipped without PyPI.

usage: tokenizers_test.py TOKENIZE BUILD_FOLDER
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

SOURCE = pathlib.Path(__file__).resolve().parents[3]
STRINGS = 5000

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex=True, prefix=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def split(regex, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: regex}, "behavior": behavior, "invert": invert}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


SMOLLM = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<file_sep>", "<jupyter_code>"]
QWEN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|vision_pad|>"]
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}]}

# The sections of the models' tokenizer.json: pre_tokenizer, normalizer, special tokens, others.
MODELS = {
    "gpt2": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
             "special": ["<|endoftext|>"]},
    "llama3": {"pre_tokenizer": sequence(split(LLAMA3), byte_level(False)), "ignore_merges": True,
               "special": ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>"],
               "template": "<|begin_of_text|>"},
    "smollm2": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": True}, byte_level()), "special": SMOLLM},
    "qwen2": {"pre_tokenizer": sequence(split(QWEN2), byte_level(False)), "normalizer": {"type": "NFC"}, "special": QWEN},
    "qwen3": {"pre_tokenizer": sequence(split(QWEN2), byte_level(False)), "normalizer": {"type": "NFC"}, "special": QWEN,
              "plain": ["<think>", "</think>", "<tool_call>", "</tool_call>"]},
}
# Other rules. Some added tokens are found in the normalized text.
RULES = {
    "prefix": {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, byte_level(prefix=True))},
    "words": {"pre_tokenizer": sequence({"type": "Whitespace"}, byte_level(False))},
    "spaces": {"pre_tokenizer": sequence({"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Contiguous"},
                                         byte_level(False))},
    "forms": {"pre_tokenizer": byte_level(), "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "NFKC"}]},
              "normalized": ["\ufb01n"]},
    "nfkd": {"pre_tokenizer": byte_level(), "normalizer": {"type": "NFKD"}, "normalized": ["e\u0301x"]},
    "delimiter": {"pre_tokenizer": sequence({"type": "CharDelimiterSplit", "delimiter": "."}, byte_level(False))},
    "few bytes": {"pre_tokenizer": byte_level(), "alphabet": False},
    "unknown": {"pre_tokenizer": byte_level(), "alphabet": False, "unknown": False},
    "joined unknown": {"pre_tokenizer": byte_level(), "alphabet": False, "unknown": True},
    "capitals": {"pre_tokenizer": sequence(split(r"(?=[A-Z])"), split(r"[^\S\n]+|\W\d|\h{3}[[:space:]]"), byte_level(False))},
    "text": {"pre_tokenizer": sequence(split("e.", "MergedWithNext", kind="String"), byte_level(False))},
}
for _behavior in "Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext":
    for _invert in False, True:
        RULES[f"{_behavior} {_invert}"] = {"pre_tokenizer": sequence(split(r"[\s\d]|\w", _behavior, _invert), byte_level(False))}


def training_texts():
    texts = [(SOURCE / name).read_text() for name in ("README.md", "CONTRIBUTING.md", "tools/venv", "sdk/models/src/gpt.cpp")]
    return texts + ["\n".join(PIECES) * 3]


PIECES = [
    "The quick brown fox", "It's", "they'll", "WE'VE", "don't", "I'M", "\u017ft 'S '\u017f", "na\u00efve", "cafe\u0301", "\u00fcber", "e\u0301x", "\ufb01n",
    "\u0130stanbul", "\u1e9e\u00df", "\u4f60\u597d\u4e16\u754c", "\u3053\u3093\u306b\u3061\u306f", "\u30ab\u3099", "\u30ac", "\ud55c\uad6d\uc5b4",
    "\u1112\u1161\u11ab", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\u0393\u03b5\u03b9\u03ac", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u0561\u0580\u0587", "\u1200\u120e", "\u0f66\u0f90\u0f74",
    "\u1820\u180e\u1821", "\u180e", " \u180e ", "\u0d2e\u0d32\u0d2f\u0d3e\u0d33\u0d02", "\U00010330\U00010331", "\U0001d538\U0001d7d8",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\U0001f44d\U0001f3fd",
    "0", "1234567", "3.14159", "\u0661\u0662\u0663", "\u00b2\u00bd\u2168", "\u3007\u4e09", "\U00011366", "1,000,000", "0x1F", "x2",
    " ", "  ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029",
    "\u202f", "\u205f", "\u3000", "\u200b", "\u200c", "\u200d", "\ufeff", "\x00", "\x01\x02", "\x7f", "\x80\x9f", "\u00ad",
    "\u0301", "a\u0323\u0307", "\u0344", "\u1e69", "q\u0307\u0323", "\u212b", "\u2126", "\uf900", "\U0002f800", "\ufffd", "\ufffe", "\U0010ffff",
    "def f(x):\n    return x ** 2  # square\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }", "std::vector<std::pair<int, T>>",
    "https://example.org/a?b=c&d=%20", "{\"key\": [1, null, true]}", "<p class=\"x\">&nbsp;</p>", "SELECT * FROM t WHERE a != 'b';",
    "!!!", "...", "----", "\u2014", "\u00ab\u00bb", "\u3002", "$100", "50%", "a_b", "_", "__init__", "@user", "#tag", "`", "~", "^", "|",
    "<|endoftext|>", "<|im_start|>user\n", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<think>", "</think>", "<|endoftext", "|>",
    "<tool_call>", "<repo_name>", "<|", ">", "<left>", "<right>", "<word>", "<both>",
]


def strings():
    random.seed(1)
    # Every code point that Unicode 3.2 has: the tables of the libraries have different versions.
    old = [c for c in map(chr, range(0x110000)) if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co")]
    result = []
    for i in range(0, len(old), 60):
        result.append("".join(f"{c} a{c}1{c}" for c in old[i:i + 60]))
    while len(result) < STRINGS:
        parts = []
        for _ in range(random.randint(1, 12)):
            kind = random.random()
            if kind < 0.75:
                parts.append(random.choice(PIECES))
            elif kind < 0.85:
                start = random.randrange(len(old))
                parts.append("".join(random.choices(old[start:start + 80], k=random.randint(1, 6))))
            else:
                parts.append("".join(random.choices(" \n\r\t\u00a0\u3000\u180eaA1'.\u0301", k=random.randint(1, 8))))
        result.append(random.choice(("", " ")).join(parts))
    return result


def make(model, texts):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
    begin = Tokenizer(models.BPE()).to_str()
    about = json.loads(begin) | {"pre_tokenizer": model["pre_tokenizer"], "normalizer": model.get("normalizer"),
                                 "decoder": byte_level(), "post_processor": byte_level()}
    tokenizer = Tokenizer.from_str(json.dumps(about))
    alphabet = pre_tokenizers.ByteLevel.alphabet() if model.get("alphabet", True) else []
    texts = texts if alphabet else ["the that this"]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1500, show_progress=False, initial_alphabet=alphabet))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in model.get("special", ["<|endoftext|>"])])
    if "special" not in model:
        tokenizer.add_special_tokens([AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True),
                                      AddedToken("<word>", single_word=True), AddedToken("<both>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t in model.get("plain", [])])
    tokenizer.add_tokens([AddedToken(t, normalized=True) for t in model.get("normalized", [])])
    about = json.loads(tokenizer.to_str())
    about["model"]["ignore_merges"] = model.get("ignore_merges", False)
    if "unknown" in model:
        about["model"] |= {"unk_token": "t", "fuse_unk": model["unknown"]}
    if "template" in model:
        name = model["template"]
        ids = {"id": name, "ids": [tokenizer.token_to_id(name)], "tokens": [name]}
        about["post_processor"] = {"type": "Sequence", "processors": [byte_level(), TEMPLATE | {"special_tokens": {name: ids}}]}
    return json.dumps(about)


def main():
    program, build = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = build / "tokenizers-venv"
    if not sys.prefix.endswith("tokenizers-venv"):
        made = subprocess.run([SOURCE / "tools/venv", folder, "tokenizers==0.23.*"])
        if made.returncode:
            sys.exit(77)
        os.execv(folder / "bin/python", [folder / "bin/python", __file__, *sys.argv[1:]])
    from tokenizers import Tokenizer
    texts, training, wrong = strings(), training_texts(), 0
    with tempfile.TemporaryDirectory() as temporary:
        for name, model in (MODELS | RULES).items():
            file = pathlib.Path(temporary) / "tokenizer.json"
            file.write_text(make(model, training))
            judge = Tokenizer.from_str(file.read_text())
            own = texts if name in MODELS else texts[-1500:]
            out = subprocess.run([program, file], input=json.dumps(own), capture_output=True, text=True)
            if out.returncode:
                sys.exit(f"{name}: {out.stderr}")
            got = json.loads(out.stdout)
            if [e.ids for e in judge.encode_batch(own)] != [got["beginning"] + ids for ids, _ in got["texts"]]:
                print(f"{name}: other tokens before a text, or others")
                wrong += 1
            shown = 0
            for text, (ids, decoded) in zip(own, got["texts"]):
                expected = judge.encode(text, add_special_tokens=False).ids
                words = judge.decode(expected, skip_special_tokens=False)
                if ids != expected or bytes.fromhex(decoded).decode("utf-8", "replace") != words:
                    wrong += 1
                    shown += 1
                    if shown <= 3:
                        print(f"{name}: {text!r}: expected {expected}, {words!r}, got {ids}, {bytes.fromhex(decoded)!r}")
            print(f"{name}: {len(own)} texts, {shown} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
