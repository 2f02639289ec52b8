"""The code blocks of Chainer's documents: reading, changing and running them.

``python blocks.py`` writes the table in README.md. ``python blocks.py FOLDER`` also compares the blocks
with the documents in the folder: they differ in white space alone.
"""
import doctest
import hashlib
import pathlib
import re
import sys

from changes import CHANGES, NOTES, NOT_CODE
from names import ABSENT

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENTS = {"manual": "chainer-1.0.1-manual.txt", "define": "define-your-own-function.txt"}


def hash_of(code):
    """A hash of the code without white space, which documents lose."""
    return hashlib.sha256("".join(code.split()).encode()).hexdigest()[:16]


class Block:
    """A block of a document: its number, section, code as printed, and what the test runs."""

    def __init__(self, document, number, digest, section, code):
        self.key = document, number
        self.digest = digest
        self.section = section
        self.code = code
        self.why, self.replacements = CHANGES.get(self.key, (None, {}))

    @property
    def runs(self):
        return self.key not in NOT_CODE

    @property
    def first_line(self):
        return next(line.strip() for line in self.code.splitlines() if line.strip())

    @property
    def state(self):
        if not self.runs:
            return "not code: " + NOT_CODE[self.key]
        text = "changed: " + self.why if self.why else "unchanged"
        return text + ("; " + NOTES[self.key] if self.key in NOTES else "")

    def changed_code(self):
        code = self.code
        for old, new in self.replacements.items():
            assert old in code, f"block {self.key}: no {old!r}"
            code = code.replace(old, new)
        return code


def read(document):
    """The blocks of a document, by number."""
    text = (HERE / DOCUMENTS[document]).read_text()
    parts = re.split(r"^#### (\d+) ([0-9a-f]{16}) (.*)\n", text, flags=re.M)[1:]
    return {int(number): Block(document, int(number), digest, section, code.rstrip() + "\n")
            for number, digest, section, code in zip(*[iter(parts)] * 4)}


BLOCKS = {name: read(name) for name in DOCUMENTS}
RAN = set()  # the keys of blocks that Session.run() has run


class Session:
    """Runs blocks in one namespace.

    Args:
        document: "manual" or "define".
        names: what the blocks expect to be defined.
    """

    def __init__(self, document, **names):
        self.document = document
        self.names = {"__name__": "session", **names}
        self.run(1)

    def __getitem__(self, name):
        return self.names[name]

    def run(self, *numbers, compare=None):
        """Runs blocks that belong together as one program.

        For lines after ``>>>``, compare(value, printed) checks the value of an expression against what
        the document prints.
        """
        blocks = [BLOCKS[self.document][number] for number in numbers]
        code = "\n".join(block.changed_code() for block in blocks)
        where = f"<{self.document} {', '.join(map(str, numbers))}>"
        if code.startswith(">>>"):
            for example in doctest.DocTestParser().get_examples(code):
                if example.want:
                    value = eval(compile(example.source.strip(), where, "eval"), self.names)
                    compare(value, example.want.strip())
                else:
                    exec(compile(example.source, where, "exec"), self.names)
        else:
            exec(compile(code, where, "exec"), self.names)
        RAN.update(block.key for block in blocks)


def table():
    """The tables of README.md, and the totals."""
    lines = []
    for document, blocks in BLOCKS.items():
        lines += ["", f"## {DOCUMENTS[document]}", "", "| | section | block | state |", "|-|-|-|-|"]
        for (_, number), block in ((block.key, block) for block in blocks.values()):
            first = block.first_line.replace("|", "\\|")
            lines.append(f"| {number} | {block.section} | `{first}` | {block.state} |")
    every = [block for blocks in BLOCKS.values() for block in blocks.values()]
    changed = sum(block.why is not None for block in every)
    other = sum(not block.runs for block in every)
    lines[:0] = [f"Of {len(every)} blocks, {len(every) - changed - other} run unchanged, {changed} run "
                 f"with changes, and {other} are not code."]
    reasons = {why: [name for name in ABSENT if ABSENT[name] == why] for why in ABSENT.values()}
    lines += ["", "## Names of the manual that catena does not have", "", "| name | why |", "|-|-|"]
    lines += [f"| {', '.join(f'`{name}`' for name in found)} | {why} |" for why, found in reasons.items()]
    return "\n".join(lines) + "\n"


def readme():
    """README.md as it should be: the text up to the totals, and the tables."""
    text = (HERE / "README.md").read_text()
    return text[:text.index("\nOf ") + 1] + table()


def different(folder):
    """The blocks that differ from the documents in the folder."""
    found = []
    for document, file in DOCUMENTS.items():
        text = (pathlib.Path(folder) / file).read_text()
        printed = re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
        blocks = BLOCKS[document]
        assert len(printed) == len(blocks), f"{file}: expected {len(blocks)} blocks, got {len(printed)}"
        found += [block.key for block, code in zip(blocks.values(), printed)
                  if hash_of(code) != hash_of(block.code)]
    return found


if __name__ == "__main__":
    text = readme()
    (HERE / "README.md").write_text(text)
    if len(sys.argv) > 1:
        differ = different(sys.argv[1])
        sys.exit(f"different: {differ}" if differ else 0)
