"""Tests that the ABI's reference documents everything, and that missing comments are found.

usage: doc_test.py DOXYGEN DOXYFILE [unittest options]
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import filter

DOXYGEN, DOXYFILE = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
SETTINGS = DOXYFILE.read_text()
HEADERS = pathlib.Path(re.search(r'STRIP_FROM_INC_PATH *= "(.*)"', SETTINGS)[1])


class Reference(unittest.TestCase):
    def write(self, headers=HEADERS):
        """Returns (exit status, doxygen's errors, text of the pages by name)."""
        with tempfile.TemporaryDirectory() as folder:
            settings = SETTINGS.replace(f'"{HEADERS}"', f'"{headers}"')
            settings = re.sub("(OUTPUT_DIRECTORY *=).*", rf'\1 "{folder}"', settings)
            done = subprocess.run([DOXYGEN, "-"], input=settings, capture_output=True, text=True)
            pages = pathlib.Path(folder).glob("html/*.html")
            return done.returncode, done.stderr, {p.name: p.read_text() for p in pages}

    def test_everything_is_documented(self):
        code, errors, pages = self.write()
        self.assertEqual((code, errors), (0, ""))
        words = re.sub("<.*?>", "", "".join(pages.values()))
        text = "".join(header.read_text() for header in HEADERS.rglob("*.h"))
        names = set(re.findall(r"\bCATENA_(?!ABI_\w*H\b)\w+[a-zA-Z0-9]\b|\bcatena_\w+\b", text))
        self.assertGreater(len(names), 100)
        self.assertEqual({name for name in names if name not in words}, set())

    def test_what_is_not_documented_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, line in (("field", "struct planted {\n    int32_t bare;\n};\n"),
                               ("function", "void catena_planted(void);\n"),
                               ("macro", "#define CATENA_PLANTED 1\n"),
                               ("type", "typedef int32_t catena_planted;\n")):
                file = pathlib.Path(folder, "planted.h")
                file.write_text(f"/* A header. */\n\n{line}\n")
                code, errors, _ = self.write(folder)
                self.assertNotEqual(code, 0, name)
                self.assertIn("is not documented", errors, name)


class Filter(unittest.TestCase):
    def test_comments_belong_to_something(self):
        text = filter.documented(
            "/* The file. */\n\n/* A struct with a width. */\ntypedef struct s {\n"
            "    uint32_t struct_size;\n    int32_t x; /* own */\n    int32_t width;\n"
            "    int32_t bare;\n\n    /* Shared. */\n    void(*f)(int32_t a,\n"
            "             int32_t b);\n    int32_t y;\n} s;\n\n"
            "enum {\n    CATENA_A_B = 1u, /* b */\n    CATENA_A_C = 2\n};\n\n/* Apart. */\n\n")
        for part in ("/** @file\nThe file. */", "/** A struct with a width. */\ntypedef",
                     "struct_size; /**< Size of", "int32_t x; /**< own */",
                     "int32_t width; /**< See s. */", "int32_t bare;\n",
                     "/** Shared. */\n    void(*f)(int32_t a,\n             int32_t b);\n",
                     "int32_t y; /**< Shared. */", "/** CATENA_A_... */\nenum",
                     "CATENA_A_B = 1u, /**< `1`: b */", "CATENA_A_C = 2 /**< `2` */",
                     "/** @file\nApart. */"):
            self.assertIn(part, text)

    def test_words_are_no_markup(self):
        self.assertEqual(filter.prose(" a * b <c.h> # @ x, i.e. y "),
                         r"a \* b \<c.h\> \# \@ x, i.e.\ y")


if __name__ == "__main__":
    unittest.main()
