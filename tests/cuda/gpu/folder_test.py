"""Tests that the folder of tools/gpu-tests runs elsewhere: it is moved and has an empty environment.
Without a GPU every test in it is skipped and prints the reason. With the emulated modules in place of
the genuine ones it runs the programs that call CUDA only through modules.

usage: folder_test.py TOOL BUILD
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROW = re.compile(r"\| (\S+)\s+\| (ok|skipped|FAILED)\s*\|\s*([\d.]+) \| (.*)")

# Appends its arguments to the file "said" and runs the command.
SANITIZER = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/said"
while [ "${1#--}" != "$1" ]; do shift 2; done
exec "$@"
"""
# One quick test of each kind.
ON_EMULATOR = "^gpu-(check-loss.cuda.catena|families-loss|golden|host)$"


def run(folder, *arguments, status=None, settings=()):
    """Returns the rows of the table. Without status, the exit status must agree with the rows."""
    done = subprocess.run(["env", "-i", "PATH=/usr/bin:/bin", *settings, folder / "run", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    rows = ROW.findall(done.stdout)
    if status is None:
        status = 77 if all(row[1] == "skipped" for row in rows) else 0
    assert done.returncode == status, f"expected status {status}, got {done.returncode}:\n{done.stdout}"
    return rows


def main(tool, build):
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch, "made")
        subprocess.run([tool, "--build", build, "-o", made], check=True)
        again = subprocess.run([tool, "--build", build, "-o", scratch], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        assert again.returncode != 0 and "expected no folder" in again.stdout, again.stdout
        script = (made / "run").read_text()
        source = pathlib.Path(tool).parent.parent.as_posix()
        for place in (build, source):
            assert place not in script, f"run: expected no path of this machine, got {place}"
        folder = made.rename(pathlib.Path(scratch, "moved"))

        rows = run(folder)
        wanted = script.count("\ntry ")
        assert len(rows) == wanted > 3, f"expected {wanted} rows, got {rows}"
        for name, result, _, note in rows:
            assert result in ("ok", "skipped"), f"{name}: {result}: {note}"
            assert result == "ok" or "cuda" in note or "GPU" in note, f"{name}: no reason: {note}"
        first = rows[0][0]
        assert [row[0] for row in run(folder, f"^{first}$")] == [first]
        assert run(folder, "^no such test$", status=1) == []
        assert run(folder, "--mnist", "/none", status=2) == []
        assert run(folder, "--what", "x", status=2) == []
        usage = subprocess.run([folder / "run", "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
        assert "usage: ./run [--help]" in usage and "set -u" not in usage and "#" not in usage, usage
        needed = max(int(minor) for file in folder.rglob("*") if file.is_file()
                      for minor in re.findall(rb"\0GLIBC_2\.(\d+)\b", file.read_bytes()))
        assert f"glibc 2.{needed} or newer" in usage, f"expected 2.{needed}: {usage}"

        tools = pathlib.Path(scratch, "tools")
        tools.mkdir()
        (tools / "compute-sanitizer").write_text(SANITIZER)
        (tools / "compute-sanitizer").chmod(0o755)
        settings = [f"PATH={tools}:/usr/bin:/bin"]
        options = "--target-processes all --error-exitcode 99 "
        for tool, more in (("memcheck", "--report-api-errors no "), ("racecheck", "")):
            [row] = run(folder, "--sanitizer", tool, "^gpu-host$", settings=settings)
            assert row[1] in ("ok", "skipped"), row
            said = (tools / "said").read_text().splitlines()[-1]
            assert said.startswith(f"--tool {tool} {options}{more}{folder}/bin/"), said

        emulated = pathlib.Path(build, "tests/cuda")
        for module in (emulated / "plugins").glob("*.catena"):
            shutil.copy2(module, folder / "lib/catena/plugins")
        for library in pathlib.Path(build, "lib").glob("libemulated-cudart.so*"):
            shutil.copy2(library, folder / "lib")
        settings = [f"CATENA_CUBLAS={emulated}/vendor/libcublas.so.13",
                    f"CATENA_CUDNN_LIBRARY={emulated}/vendor/libcudnn.so.9",
                    f"CATENA_NVRTC={emulated}/vendor/libnvrtc.so.13",
                    "CATENA_EMULATOR_DEVICES=1", "CATENA_EMULATOR_GUARD=0"]
        rows = run(folder, ON_EMULATOR, settings=settings)
        assert len(rows) == 4 and all(row[1] == "ok" for row in rows), rows
        assert rows[-1][3].startswith("skipped: cases that expect 2 GPUs"), rows
        [row] = run(folder, "--mnist", scratch, "^gpu-mnist-mlp$", status=1, settings=settings)
        assert row[1] == "FAILED" and scratch in row[3], row  # it searched there


main(*sys.argv[1:])
