"""Whether catena-check finds what it should, and nothing else.

usage: bad_test.py one CATENA_CHECK SOURCE PLUGIN      the faults that SOURCE says it has
       bad_test.py complete CATENA_CHECK SOURCE...     every check has a plugin that fails it
"""
import json
import re
import shlex
import subprocess
import sys


def told(source, word):
    for line in open(source, encoding="utf-8"):
        found = re.match(rf"// {word}: *(.*)", line)
        if found:
            return found.group(1).strip()
    return ""


def expected(source):
    words = told(source, "expect").split()
    if not words:
        sys.exit(f"{source}: expected a line '// expect: GROUP/CHECK ...'")
    return set() if words == ["nothing"] else set(words)


def one(program, source, plugin):
    command = [program, "--format", "json", *shlex.split(told(source, "options")), plugin]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode not in (0, 1):
        sys.exit(f"exit code {result.returncode}: {result.stderr}")
    report = json.loads(result.stdout)[0]
    failed = {c["check"] for c in report["checks"] if c["verdict"] == "failed"}
    want = expected(source)
    if failed != want:
        for check in report["checks"]:
            for problem in check.get("problems", []):
                print(check["check"], problem.get("function", ""), problem["text"])
        sys.exit(f"{source}: expected to fail: {sorted(want)}, got {sorted(failed)}")
    skipped = {c["check"] for c in report["checks"] if c["verdict"] == "skipped"}
    missing = set(told(source, "skips").split()) - skipped
    if missing:
        sys.exit(f"{source}: expected to be skipped: {sorted(missing)}")
    if result.returncode != (1 if want else 0):
        sys.exit(f"expected exit code {1 if want else 0}, got {result.returncode}")
    for check in report["checks"]:
        for problem in check.get("problems", []):
            if not problem["text"].strip():
                sys.exit(f"{check['check']}: expected a text, got none")
            if told(source, "says") not in problem["text"]:
                sys.exit(f"expected '... {told(source, 'says')} ...', got '{problem['text']}'")
        for problem in check.get("problems", [])[:1]:  # its seed leads there again
            again = [program, *shlex.split(problem["again"])[1:]]
            if check["check"].startswith("fuzz/") and subprocess.run(
                    again, capture_output=True, timeout=300).returncode != 1:
                sys.exit(f"expected the same failure again, got none: {problem['again']}")


def complete(program, sources):
    listing = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    checks, group = set(), ""
    for line in listing.splitlines():
        if line and not line.startswith(" "):
            group = line
        elif line:
            checks.add(f"{group}/{line.split()[0]}")
    caught = set().union(*(expected(source) for source in sources))
    missing, unknown = sorted(checks - caught), sorted(caught - checks)
    if missing or unknown:
        sys.exit(f"no bad plugin fails {missing}; no check is called {unknown}")
    print(f"{len(sources)} plugins for {len(checks)} checks")


if sys.argv[1] == "one":
    one(*sys.argv[2:])
else:
    complete(sys.argv[2], sys.argv[3:])
