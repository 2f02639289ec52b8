#!/usr/bin/env python3
"""Prints a header of the ABI with its comments converted to doxygen's. Usage: filter.py HEADER

A comment documents the code before it on its line, or else the code on the next line and, in a
struct, the fields after that up to a blank line that have no comment of their own. At the head of
the file or between blank lines it documents the file. A field without a comment is documented by
its name, or by its struct's comment if that names it; else doxygen reports it as undocumented.
Constants are shown with their values.
"""
import os
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
STRUCT = re.compile(r"(?:/\*\*(?!<)((?:(?!\*/).)*)\*/\n)?(?:typedef )?struct (\w+) \{\n(.*?)^\}",
                    re.S | re.M)
FIELD = re.compile(r"^    (?! )[^/{};]*;(?P<own> */\*\*<)?", re.M)
ENUM = re.compile(r"(?P<about>\*/\n)?^enum \{(?P<body>.*?)\};", re.S | re.M)
CONSTANT = re.compile(r"(\b(CATENA_\w+)\s*=\s*([^,\s/}]+),?)( */\*\*< )?")
NAME = re.compile(r"(\w+)(?:\[\w+\])?;|\*(\w+)\)\(")
PHRASES = {"struct_size": "Size of the struct that its writer was compiled with.",
           "reserved": "0, and not to be read.", "name": "Its name.",
           "doc": "What it is, for people.", "dtype": "Type of its elements.",
           "ndim": "Number of its axes."}


def prose(comment):
    """Converts the text of a comment to doxygen's Markdown."""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment.strip().split("\n")]
    text = re.sub(r"[\\@<>*#%]", r"\\\g<0>", "\n".join(lines))
    text = re.sub(r"\b(i\.e|e\.g)\. ", r"\1.\\ ", text)  # not the end of a sentence
    text = re.sub(r"^ +(\[\w+\]) +", r"- **\1** ", text, flags=re.M)  # the list of thread tags
    return re.sub(r"^(- .*)\n(?!- )", r"\1\n\n", text, flags=re.M)


def converted(text):
    """Converts each comment to a doxygen comment on the code before or after it, or on the file."""
    result, position = [], 0
    for match in COMMENT.finditer(text):
        before = text[:match.start()].rpartition("\n")[2]
        after = text[match.end():].split("\n", 2)
        if before.strip():
            mark = "/**< "
        elif match.start() == 0 or len(after) < 2 or not after[1].strip():
            mark = "/** @file\n"
        else:
            mark = "/** "
        result += [text[position:match.start()], mark, prose(match.group(1)), " */"]
        position = match.end()
    return "".join(result) + text[position:]


def fields(struct):
    """Returns the struct with comments added to fields that have none and can be described."""
    about, name, body = struct.group(1) or "", struct.group(2), struct.group(3)
    result, position = [], 0
    for field in FIELD.finditer(body):
        above = body[:field.start()].rpartition("\n\n")[2]  # since the blank line
        blocks = re.findall(r"^ *(/\*\*(?!<).*?\*/)\n", above, re.S | re.M)
        if field["own"] or re.search(r"/\*\*(?!<)(?:(?!\*/).)*\*/\n\Z", above, re.S):
            continue
        called = next(filter(None, NAME.search(field.group()).groups()))
        if blocks:
            phrase = re.sub(r"^/\*\*|\*/$", "", blocks[-1]).strip()
        elif called in PHRASES:
            phrase = PHRASES[called]
        elif called.startswith("n_"):
            phrase = f"Length of {called[2:]}."
        elif re.search(rf"\b{called}\b", about, re.I):
            phrase = f"See {name}."
        else:
            continue
        result += [body[position:field.end()], f" /**< {phrase} */"]
        position = field.end()
    body = "".join(result) + body[position:]
    start, end = struct.span(3)
    return struct.string[struct.start():start] + body + struct.string[end:struct.end()]


def constants(enum):
    """Adds the values of the constants to their comments, because doxygen does not show them."""
    names = [match[1] for match in CONSTANT.findall(enum["body"])]
    prefix = os.path.commonprefix(names).rpartition("_")[0] + "_..."
    about = enum["about"] or f"/** {names[0] if len(names) == 1 else prefix} */\n"
    body = CONSTANT.sub(lambda m: f"{m[1]} /**< `{m[3].rstrip('u')}`" + (": " if m[4] else " */"),
                        enum["body"])
    return f"{about}enum {{{body}}};"


def documented(text):
    return ENUM.sub(constants, STRUCT.sub(fields, converted(text)))


if __name__ == "__main__":
    sys.stdout.write(documented(pathlib.Path(sys.argv[1]).read_text()))
