#!/usr/bin/env python3
"""Writes byte_pair_encoding.json: small tokenizers, and the ids that the package tokenizers (PyPI) gives for texts.

usage: byte_pair_encoding.py [TEXT], a text to train the tokenizers on; default: those in the file
"""
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, processors, trainers

LLAMA = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = [
    "", " ", "a", "First Citizen:\nWe are accounted poor citizens, the patricians good.",
    "  two  spaces\t\tand tabs \n\n\n end   ", "I'll we've THEY'RE don't it's o'clock 'tis", "1234567890 3.14 x2",
    "na\u00efve \u00fcber \u4f60\u597d \U0001f600 e\u0301", "\u00a0no-break\u2003em\u3000ideographic",
    "<|endoftext|>begin<|endoftext|>", "a<|endof|>b<|endoftext|", "\x00\x01\x7f controls",
    "a \u00a0<left>\u00a0 b", " <left>  <right> \t<right>c <left><right>", "<word> <word>,x<word> <word>x \u00e9<word> _<word>",
    "<word><right>", "<plain><plain>>< both ><both>", "<left>", "  <left>  ", "<wide>er<wide>r",
    "\u1820\u180e\u1821 \u180e x\x85y\u2028z\u200bw", "cafe\u0301 \u30ab\u3099 \u1112\u1161\u11ab a\u0307\u0323 \u212b \U0002f800",
    "'S '\u017f It'LL 12345 \u0661\u0662 \u00b2\u00bd\u2168", "f(x) {\r\n\treturn x; }\r\n\r\n  // \u2764\ufe0f\u200d\U0001f525",
    "the " * 50, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "----====....!!!!????",
]


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
# Sections of tokenizer.json that replace those of "gpt2".
SECTIONS = {
    "smollm2": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, BYTES | {"use_regex": True}]}},
    "qwen2": {"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": LLAMA.replace("{1,3}", "")}, "behavior": "Isolated", "invert": False}, BYTES]}},
} | {behavior: {"normalizer": {"type": "NFKD"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"[\se]|\w\d"}, "behavior": behavior, "invert": behavior == "Contiguous"}, BYTES]}}
     for behavior in ("Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")}


def train(pre_tokenizer, text, words):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=words, special_tokens=["<|endoftext|>", "<|endof|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def with_added_tokens(tokenizer):
    """Returns the tokenizer with added tokens of every kind, two of which begin a text."""
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True),
                                  AddedToken("<word>", single_word=True), AddedToken("< both >", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("<plain>", normalized=True), AddedToken("n><pl", normalized=True),
                          AddedToken("<wide>", normalized=True), AddedToken("<wide>er", normalized=True)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
        single="<left> <|endoftext|> $A <right>",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("<left>", "<|endoftext|>", "<right>")])])
    return tokenizer


def trained(text):
    split = [pre_tokenizers.Split(Regex(LLAMA), "isolated"),
             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    tokenizers = {
        "gpt2": train(pre_tokenizers.ByteLevel(add_prefix_space=False), text, 400),
        "prefix": train(pre_tokenizers.ByteLevel(add_prefix_space=True), text, 300),
        "llama3": train(pre_tokenizers.Sequence(split), text, 400),
    }
    about = json.loads(tokenizers["llama3"].to_str())
    about["model"]["ignore_merges"] = True
    return tokenizers | {"llama3": Tokenizer.from_str(json.dumps(about))}


def cases(tokenizer):
    return [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in TEXTS]


def main():
    file = pathlib.Path(__file__).with_suffix(".json")
    if len(sys.argv) > 1:
        tokenizers = trained(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")[:200000])
    else:
        tokenizers = {name: Tokenizer.from_str(json.dumps(of["tokenizer"]))
                      for name, of in json.loads(file.read_text()).items() if "tokenizer" in of}
    tokenizers["added"] = with_added_tokens(tokenizers["gpt2"])
    result = {}
    for name, tokenizer in tokenizers.items():
        result[name] = {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases(tokenizer)}
    for name, sections in SECTIONS.items():
        whole = result["gpt2"]["tokenizer"] | sections
        result[name] = {"sections": sections, "cases": cases(Tokenizer.from_str(json.dumps(whole)))}
    file.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
