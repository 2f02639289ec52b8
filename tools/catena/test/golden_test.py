"""Runs every reference case with catena, of both orders, with all plugins and without the optional
ones, with 1 and 2 threads. Usage: golden_test.py PROGRAM GOLDEN PLUGINS"""
import json
import pathlib
import subprocess
import sys
import tempfile

import npz

PROGRAM, GOLDEN, PLUGINS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
OPTIONAL = {"onednn.catena"}  # faster kernels of other plugins' functions


def run(case, file, out, options):
    command = [PROGRAM]
    if "optimizer" in case:
        command += ["update", case["optimizer"]]
    else:
        command += ["call", case["function"]]
        if case["differentiable"]:
            command.append("--double-backward" if case["double"] else "--backward")
    for name, value in case["attrs"].items():
        command += ["--attr", f"{name}={json.dumps(value)}"]
    return subprocess.run(command + ["--npz", file, "--out", out] + options, text=True,
                          capture_output=True)


def difference(actual, expected, atol, rtol):
    (_, shape, values), (_, expected_shape, expected_values) = actual, expected
    if shape != expected_shape:
        return f"shape: expected {expected_shape}, got {shape}"
    for i, (a, e) in enumerate(zip(values, expected_values)):
        if not (a == e or abs(a - e) <= atol + rtol * abs(e)):
            return f"element {i}: expected {e}, got {a}"
    return None


def problems(case, folder, options):
    file, out = GOLDEN / (case["case"] + ".npz"), folder / "out.npz"
    out.unlink(missing_ok=True)
    done = run(case, file, out, options)
    if done.returncode != 0:
        return [done.stderr.strip()]
    actual, found = npz.read(out), []
    for name, expected in npz.read(file).items():
        if name.startswith(("in_", "gy_", "ggx_", "grad", "param0")):
            continue
        wide = 10 if name.startswith(("gg_", "ggy_")) else 1
        if name not in actual:
            found.append(f"{name}: missing")
        elif text := difference(actual[name], expected, wide * case["atol"], wide * case["rtol"]):
            found.append(f"{name}: {text}")
    return found


def main():
    cases = [json.loads(line) for line in (GOLDEN / "MANIFEST.jsonl").read_text().splitlines()]
    failed = runs = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        portable = folder / "portable"
        portable.mkdir()
        for module in PLUGINS.glob("*.catena"):
            if module.name not in OPTIONAL:
                (portable / module.name).symlink_to(module)
        sets = [portable] + ([PLUGINS] if any((PLUGINS / o).exists() for o in OPTIONAL) else [])
        for plugins in sets:
            for threads in ("1", "2"):
                for case in cases:
                    runs += 1
                    for text in problems(case, folder, ["--plugins", plugins,
                                                        "--threads", threads]):
                        failed += 1
                        print(f"{case['case']} ({plugins.name}, {threads} threads): {text}")
    print(f"golden: {len(cases)} cases, {runs} runs, {failed} problems")
    sys.exit(1 if failed or not cases else 0)


main()
