"""Tests that catena-check finds the faults of bad plugins, and nothing else.

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
    report = run(program, *shlex.split(told(source, "options")), plugin)
    failed = {c["check"] for c in report["checks"] if c["verdict"] == "failed"}
    want = expected(source)
    if failed != want:
        for check in report["checks"]:
            for problem in check.get("problems", []):
                print(check["check"], problem.get("function", ""), problem["text"])
        sys.exit(f"{source}: expected to fail: {sorted(want)}, got {sorted(failed)}")
    for word, verdict in (("skips", "skipped"), ("passes", "ok")):
        missing = set(told(source, word).split()) - {c["check"] for c in report["checks"]
                                                     if c["verdict"] == verdict}
        if missing:
            sys.exit(f"{source}: expected to be {verdict}: {sorted(missing)}")
    for check in report["checks"]:
        for problem in check.get("problems", []):
            if not problem["text"].strip():
                sys.exit(f"{check['check']}: expected a text, got none")
            if told(source, "says") not in problem["text"]:
                sys.exit(f"expected '... {told(source, 'says')} ...', got '{problem['text']}'")
        if check["check"] in told(source, "once").split() and len(check["problems"]) != 1:
            sys.exit(f"{check['check']}: expected one problem, got {check['problems']}")
    for word, lines in (("again", [line for line in lines_of(report)]),
                        ("notes", [note for c in report["checks"] for note in c.get("notes", [])])):
        if told(source, word) and not any(told(source, word) in line for line in lines):
            sys.exit(f"{source}: expected '... {told(source, word)} ...', got {lines}")
    for again, (check, function) in lines_of(report).items():
        if (check, function) not in lines_of(run(program, *shlex.split(again)[1:])).values():
            sys.exit(f"expected a failure of {check} again, got none: {again}")


def run(program, *arguments):
    result = subprocess.run([program, "--format", "json", *arguments],
                            capture_output=True, text=True)
    if result.returncode not in (0, 1):
        sys.exit(f"exit code {result.returncode}: {result.stderr}")
    report = json.loads(result.stdout)["plugins"][0]
    failed = report["failed"] > 0 or report["problem"] is not None
    if result.returncode != int(failed):
        sys.exit(f"expected exit code {int(failed)}, got {result.returncode}")
    return report


def lines_of(report):
    """Returns {command that repeats a failure: (check, function)}."""
    return {problem["again"]: (check["check"], problem.get("function"))
            for check in report["checks"] for problem in check.get("problems", [])}


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
