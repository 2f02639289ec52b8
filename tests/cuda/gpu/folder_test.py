"""tools/gpu-tests makes a folder that runs elsewhere: here it is moved, and told nothing by the
environment. Without a GPU every test in it is skipped and says why.

usage: folder_test.py TOOL BUILD
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROW = re.compile(r"\| (\S+)\s+\| (ok|skipped|FAILED)\s*\|\s*([\d.]+) \| (.*)")


def run(folder, *arguments, status=None):
    """The rows of the table. The status says by itself what they say."""
    done = subprocess.run(["env", "-i", "PATH=/usr/bin:/bin", folder / "run", *arguments],
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


main(*sys.argv[1:])
