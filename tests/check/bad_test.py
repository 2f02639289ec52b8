"""Tests that catena-check finds the faults of bad plugins, and nothing else.

usage: bad_test.py one CATENA_CHECK SOURCE PLUGIN      the faults that its row of SOURCE says it has
       bad_test.py complete CATENA_CHECK SOURCE...     every check has a plugin that fails it
"""
import json
import os
import re
import shlex
import subprocess
import sys


def rows(source):
    """Returns {name of a plugin: {word: text}} from comments, which CMakeLists.txt describes."""
    found = {}
    for line in open(source, encoding="utf-8"):
        comment = re.match(r"// (\w+)( fails)?: *(.*)", line)
        if comment and comment[2]:
            told = found[comment[1]] = {"expect": comment[3]}
        elif comment and found:
            told[comment[1]] = comment[3].strip()
    return found


def expected(told):
    return set(told["expect"].split()) - {"nothing"}


def one(program, source, plugin):
    all_told = rows(source)[os.path.basename(plugin).removesuffix(".catena")]

    def told(word):
        return all_told.get(word, "")

    report = run(program, *shlex.split(told("options")), plugin)
    failed = {c["check"] for c in report["checks"] if c["verdict"] == "failed"}
    want = expected(all_told)
    if failed != want:
        for check in report["checks"]:
            for problem in check.get("problems", []):
                print(check["check"], problem.get("function", ""), problem["text"])
        sys.exit(f"{source}: expected to fail: {sorted(want)}, got {sorted(failed)}")
    for word, verdict in (("skips", "skipped"), ("passes", "ok")):
        missing = set(told(word).split()) - {c["check"] for c in report["checks"]
                                                     if c["verdict"] == verdict}
        if missing:
            sys.exit(f"{source}: expected to be {verdict}: {sorted(missing)}")
    for check in report["checks"]:
        for problem in check.get("problems", []):
            if not problem["text"].strip():
                sys.exit(f"{check['check']}: expected a text, got none")
            if told("says") not in problem["text"]:
                sys.exit(f"expected '... {told('says')} ...', got '{problem['text']}'")
        if check["check"] in told("once").split() and len(check["problems"]) != 1:
            sys.exit(f"{check['check']}: expected one problem, got {check['problems']}")
    for word, lines in (("again", [line for line in lines_of(report)]),
                        ("notes", [note for c in report["checks"] for note in c.get("notes", [])])):
        if told(word) and not any(told(word) in line for line in lines):
            sys.exit(f"{source}: expected '... {told(word)} ...', got {lines}")
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
    told = [told for source in sources for told in rows(source).values()]
    caught = set().union(*map(expected, told))
    missing, unknown = sorted(checks - caught), sorted(caught - checks)
    if missing or unknown:
        sys.exit(f"no bad plugin fails {missing}; no check is called {unknown}")
    print(f"{len(told)} plugins for {len(checks)} checks")


if sys.argv[1] == "one":
    one(*sys.argv[2:])
else:
    complete(sys.argv[2], sys.argv[3:])
