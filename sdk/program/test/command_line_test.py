"""Tests the command line of any program. Usage: command_line_test.py PROGRAM [unittest options]"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
NO_SPACE, CLOSED = "No space left on device", "Bad file descriptor"


def shell(command, *arguments):
    """Runs the program by a command of sh, in which "$@" is the program and its arguments."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(["sh", "-c", command, "sh", PROGRAM, *arguments], cwd=folder, text=True,
                              capture_output=True, check=False, env=dict(os.environ))


def options_with_values():
    """Returns options that --help lists with a value: --out FILE, --epochs arg (=3), --plot [=FILE]."""
    text = shell('"$@"', "--help").stdout
    return re.findall(r"^ +(?:-\w \[ )?--([\w-]+)(?: \])? (?=[^\s\]])", text, re.M)


class CommandLine(unittest.TestCase):
    def test_no_option_takes_an_empty_value(self):
        options = options_with_values()
        self.assertGreater(len(options), 0)
        for option in options:
            for words in ((f"--{option}", ""), (f"--{option}=",)):
                with self.subTest(words=words):
                    done = shell('"$@"', *words)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertIn(f"--{option}", done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1)

    def test_nor_is_a_word_empty(self):
        done = shell('"$@"', "")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)

    def test_output_that_is_lost_is_told(self):
        for option in ("--help", "--version"):
            if option == "--version" and "--version" not in shell('"$@"', "--help").stdout:
                continue
            for command, reason in (('"$@" >/dev/full', NO_SPACE), ('"$@" >&-', CLOSED)):
                with self.subTest(option=option, command=command):
                    done = shell(command, option)
                    self.assertIn(done.returncode, (1, 2))
                    self.assertIn(f"{PROGRAM.name}: ", done.stderr)
                    self.assertIn(reason, done.stderr)

    def test_reasons_that_cannot_be_told_are_no_crash(self):
        for command in ('"$@" 2>/dev/full', '"$@" 2>&-', '"$@" >/dev/full 2>/dev/full'):
            with self.subTest(command=command):
                self.assertEqual(shell(command, "--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main()
