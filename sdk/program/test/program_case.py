"""Case: the base class of tests that run a program, in a folder and an environment of its own."""
import functools
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
# Seconds. A run that takes half of its test's time limit counts as hung.
LIMIT = int(os.environ.get("CATENA_TEST_TIMEOUT", 1800)) / 2
# An error message with one of these reports a lack of memory.
SHORT = ("memory", "alloc", "Cannot allocate", "failed to map")


def safetensors(arrays):
    """Returns a .safetensors file of float32 arrays: names with a shape and the bytes."""
    header, data = {}, b""
    for name, (shape, values) in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def gpt2_shapes(words, context, units, layers, hidden):
    """Returns the shapes of a GPT-2 by Hugging Face's names."""
    shapes = {"wte.weight": (words, units), "wpe.weight": (context, units),
              "ln_f.weight": (units,), "ln_f.bias": (units,)}
    for i in range(layers):
        for name, *shape in (("ln_1", units), ("attn.c_attn", units, 3 * units),
                             ("attn.c_proj", units, units), ("ln_2", units),
                             ("mlp.c_fc", units, hidden), ("mlp.c_proj", hidden, units)):
            shapes[f"h.{i}.{name}.weight"] = tuple(shape)
            shapes[f"h.{i}.{name}.bias"] = tuple(shape[-1:])
    return shapes


def npy(header, data=b""):
    """Returns an .npy member with this header, which tests can format as they like."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def with_members(snapshot, to, **changed):
    """Copies an .npz file and replaces the given members; their names have __ in place of /."""
    changed = {name.replace("__", "/") + ".npy": data for name, data in changed.items()}
    with zipfile.ZipFile(to, "w") as archive:
        for name, data in {**members(snapshot), **changed}.items():
            archive.writestr(name, data)
    return to


def members(snapshot):
    """Returns the members of an .npz file as {name: bytes}, including the .npy headers."""
    with zipfile.ZipFile(snapshot) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ("CATENA_DATA", "CATENA_PLUGIN_PATH", "CATENA_PLUGINS")}
        self.env.update(HOME=str(self.folder), XDG_CACHE_HOME=str(self.folder / "cache"))

    def start(self, *options, program=PROGRAM, **how):
        return subprocess.Popen([program, *map(str, options)], env=self.env, text=True,
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **how)

    def run_program(self, *options, code=0, program=PROGRAM):
        """Returns stdout or, if an error code is expected, stdout and stderr."""
        process = self.start(*options, program=program)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"{process.args} still ran after {LIMIT} seconds:\n{out}{err}")
        self.assertEqual(process.returncode, code, out + err)
        return out if code == 0 else out + err

    def check_limits(self, limits, *options):
        """Checks that for each limit of `ulimit -v` (MiB) the program succeeds or reports a lack of
        memory. Returns its exit codes."""
        codes = []
        for limit in limits:
            with self.subTest(limit=limit):
                code, out = self.end_within(limit << 20, *options)
                self.assertIn(code, (0, 1, 127), out)  # 127: the dynamic loader lacks memory
                if code != 0:
                    self.assertTrue(any(word in out for word in SHORT), out)
                codes.append(code)
        return codes

    def end_within(self, limit, *options):
        """Returns the exit code and the output of a program with a limit on its address space, in
        bytes."""
        set_limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
        process = self.start(*options, preexec_fn=set_limit)
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"it still ran after {LIMIT} seconds with {limit >> 20} MiB")
        return process.returncode, out + err

    def until_it_catches(self, process, number):
        """Waits until a process has a handler for the signal."""
        status = pathlib.Path(f"/proc/{process.pid}/status")
        while not int(re.search(r"^SigCgt:\s*(\w+)", status.read_text(), re.M).group(1), 16) \
                >> (number - 1) & 1:
            self.assertIsNone(process.poll())
            time.sleep(0.005)

    def check_kills(self, kills, options, at_last=()):
        """Checks that runs that signals end at random times and that are resumed give the same final
        state as an uninterrupted run, and the same curves except for the last column, the rate.
        CATENA_TEST_KILLS overrides the number of kills."""
        kills = int(os.environ.get("CATENA_TEST_KILLS", kills))
        whole, file = self.folder / "whole.npz", self.folder / "killed.npz"
        curves = [self.folder / f"{name}.csv" for name in ("whole", "killed")]

        def told(table):
            return [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]

        began = time.monotonic()
        self.run_program(*options, "--save", whole, "--curves", curves[0])
        seconds = time.monotonic() - began
        done = resumed = caught = 0
        generator = random.Random(int(os.environ.get("CATENA_TEST_SEED", 7)))
        ends = dict.fromkeys((signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), 0)
        while done < kills or resumed == 0:
            resume = ("--resume", file) if file.exists() else ()
            process = self.start(*options, "--save", file, "--curves", curves[1], *resume)
            pause = generator.uniform(0, seconds)
            time.sleep(pause)
            how = list(ends)[done % len(ends)]
            process.send_signal(how)
            _, err = process.communicate()
            if process.returncode == 0:  # it had already ended: start again
                seconds = pause  # the first run took longer: the machine was busy
                self.assertEqual(members(file), members(whole))
                file.unlink()
                curves[1].unlink()
                continue
            # Caught and saved (128 + how), or not caught: too early, too late or too slow (-how).
            self.assertIn(process.returncode, (-how, 128 + how), err)
            ends[how] += 1
            done += 1
            resumed += bool(resume)
            caught += process.returncode == 128 + how
        resume = ("--resume", file) if file.exists() else ()
        self.run_program(*options, "--save", file, "--curves", curves[1], *resume, *at_last)
        self.assertEqual(members(file), members(whole))
        self.assertEqual(told(curves[1]), told(curves[0]))
        self.assertEqual([f.name for f in self.folder.glob("killed.npz*")], ["killed.npz"])
        if "CATENA_TEST_KILLS" in os.environ:
            print(f"{PROGRAM.name}: {', '.join(f'{n} {how.name}' for how, n in ends.items())}; "
                  f"{resumed} of resumed runs, {caught} were caught and saved")

    def write(self, name, content):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content, encoding="utf-8")
        return file
