"""Tests of catena-inspect from outside: usage: inspect_test.py PROGRAM [unittest options]"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class Inspect(unittest.TestCase):
    def test_plugins_are_reported(self):
        code, out, _ = run("plugins")
        self.assertEqual(code, 0)
        self.assertIn("org.catena.math", out)

    def test_the_header_leaves_out_what_is_not_for_users(self):
        code, out, _ = run("header")
        self.assertEqual(code, 0)
        self.assertIn("inline Variable relu(const Variable& x) {", out)
        self.assertIn("inline Variable linear(const Variable& x, const Variable& W, "
                      "const Variable& b = {}) {", out)
        self.assertNotIn("sgd_update", out)
        code, out, _ = run("header", "--prefix", "org.nobody.", "--namespace", "nobody")
        self.assertEqual(code, 0)
        self.assertNotIn("inline", out)
        self.assertIn("namespace nobody {", out)

    def test_a_header_that_is_the_same_is_not_written_again(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "deep/functions.hpp")
            self.assertEqual(run("header", "--output", file)[0], 0)
            before = file.stat().st_mtime_ns
            self.assertEqual(run("header", "--output", file)[0], 0)
            self.assertEqual(file.stat().st_mtime_ns, before)

    def test_no_header_from_half_of_the_plugins(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "broken.catena").write_text("not a library")
            code, _, err = run("--plugins", folder, "header")
            self.assertEqual(code, 1)
            self.assertIn("broken.catena", err)
            self.assertEqual(run("--plugins", folder, "plugins")[0], 0)

    def test_usage(self):
        self.assertEqual(run("--help")[0], 0)
        for arguments in ([], ["dance"], ["plugins", "more"], ["--what"]):
            code, out, err = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("usage: catena-inspect", err)


if __name__ == "__main__":
    unittest.main()
