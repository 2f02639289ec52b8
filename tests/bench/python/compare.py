#!/usr/bin/env python3
"""Compares the Python package catena with PyTorch in Python, and with catena's own C++.

usage: tools/bench --python [OPTION...]

Each side runs in processes of its own, one after the other in each round. Times are medians over the
rounds of the smallest time of a block. "overhead" is the time that a call of two variables takes beyond
the same call in C++ (catena-bench).
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ADD, ADD_GRAPH, CHAIN, MLP = ("add of 1 element", "add of 1 element, graph",
                              "chain of 1000 additions, both ways", "MLP step, 100 units")
# The largest ratio to PyTorch.
GOALS = {ADD: 0.35, ADD_GRAPH: 0.35, CHAIN: 0.2, MLP: 0.55}
CPP = {ADD: "add, no graph", MLP: MLP}  # the names in catena-bench


def run(python, side, threads):
    command = [python, HERE / "worker.py", side, str(threads)]
    output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def two_processes(python):
    """The throughput of two processes relative to one, which the machine limits."""
    command = [python, HERE / "worker.py", "steps", "1"]
    start = lambda: subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    rate = lambda process: json.loads(process.communicate()[0])
    alone = rate(start())
    pair = [start(), start()]
    return sum(map(rate, pair)) / alone


def run_cpp(program, threads):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        names = "|".join(map(re.escape, CPP.values()))
        subprocess.run([program, "--no-torch", "--filter", f"^({names})$", "--rounds", "3",
                        "--threads", str(threads), "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        results = json.loads(pathlib.Path(file.name).read_text())
    times = {each["work"]: statistics.median(each["catena_seconds"]) for each in results["works"]}
    return {work: times[name] for work, name in CPP.items() if name in times}


def text(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def prepare(threads):
    """Selects the best kernels of OpenBLAS and PyTorch, as catena-bench does, for CPUs that they do not know."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if "avx512bw" in flags and "avx512vl" in flags:
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
        os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="catena-bench")
    parser.add_argument("--catena", default=sys.executable, help="a Python with the package catena")
    parser.add_argument("--torch", help="a Python with PyTorch; without it only catena is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    prepare(arguments.threads)
    sides = {"catena": [], "torch": [], "cpp": []}
    processes = []
    for _ in range(arguments.rounds):
        sides["catena"].append(run(arguments.catena, "catena", arguments.threads))
        processes.append(two_processes(arguments.catena))
        if arguments.torch:
            sides["torch"].append(run(arguments.torch, "torch", arguments.threads))
        sides["cpp"].append(run_cpp(arguments.program, arguments.threads))

    def median(side, work):
        found = [each[work] for each in sides[side] if work in each]
        return statistics.median(found) if found else None

    print(f"| {'work':35} | {'catena':>9} | {'PyTorch':>9} | ratio | goal | {'C++':>9} | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for work, goal in GOALS.items():
        ours, theirs, cpp = (median(side, work) for side in sides)
        row = [work.ljust(35), text(ours).rjust(9)]
        row += ([text(theirs).rjust(9), f"{ours / theirs:5.2f}"] if theirs else ["", ""])
        row += [f"{goal:4}"] + ([text(cpp).rjust(9), f"{ours / cpp:5.2f}"] if cpp else ["", ""])
        print("| " + " | ".join(row) + " |")
    overhead = median("catena", ADD) - median("cpp", ADD)
    print(f"\noverhead of a call of two variables: {overhead * 1e9:.0f} ns (goal: 150 ns)")
    threads = median("catena", "two threads")
    print(f"two threads that train two networks: {threads:.2f} times one (goal: 1.7); "
          f"two processes: {statistics.median(processes):.2f} times one")


if __name__ == "__main__":
    main()
