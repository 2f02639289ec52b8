#!/usr/bin/env python3
"""Compares training with two processes of one thread each with PyTorch's DistributedDataParallel on gloo.

usage: tools/bench --ranks [OPTION...]

Runs catena-bench-ranks and ranks_torch.py alternately. Both sides' processes are bound to the same two
cores. Times are medians over the rounds of the median time on rank 0; "from" and "to" are the smallest
and the largest ratio of a round. Works that PyTorch also compiles are compared with its faster time.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETS = ("MLP 1000", "CNN", "GPT")
# The largest ratio of each work that has a goal.
GOALS = {net: 0.7 for net in NETS} | {f"allreduce {n}": 1.0 for n in (4, 100_000, 100_000_000)}
WORKS = [net + mode for net in NETS for mode in ("", ", no communication", ", shard", ", bfloat16")] + \
        [work for work in GOALS if work.startswith("allreduce")]
COMPILED = ", compiled"


def times_of(output):
    return {line["work"]: line["seconds"] for line in map(json.loads, output.splitlines())}


def on_cores(command):
    """Returns the command of each rank, on a core of its own."""
    cores = sorted(os.sched_getaffinity(0))
    return [["taskset", "-c", str(cores[rank % len(cores)]), *command] for rank in (0, 1)]


def run_catena(arguments, names):
    command = [arguments.program, "--filter", names, "--block", str(arguments.block)]
    if arguments.communicator == "threads":
        return times_of(subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout)
    first, second = on_cores([*command, "--communicator", arguments.communicator])
    environment = dict(os.environ)
    if os.geteuid() == 0:  # Open MPI asks for both
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    few = ["--oversubscribe"] if len(os.sched_getaffinity(0)) < 2 else []
    launcher = ["mpirun", *few, "--bind-to", "none", "-n", "1", *first, ":", "-n", "1", *second]
    return times_of(subprocess.run(launcher, check=True, text=True, stdout=subprocess.PIPE,
                                   env=environment).stdout)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_torch(arguments, names):
    environment = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1",
                                "MASTER_PORT": str(free_port())}
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if "avx512bw" in flags and "avx512vl" in flags:  # as catena-bench does for CPUs that it does not know
        environment.setdefault("ATEN_CPU_CAPABILITY", "avx512")
    commands = on_cores([arguments.torch, HERE / "ranks_torch.py", names, str(arguments.block)])
    ranks = [subprocess.Popen(command, env=environment | {"RANK": str(rank)}, text=True,
                              stdout=subprocess.PIPE) for rank, command in enumerate(commands)]
    outputs = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"bench: {HERE / 'ranks_torch.py'}: expected success, got "
                 f"{[rank.returncode for rank in ranks]}")
    return times_of(outputs[0])


def exactly(names):
    return "^(" + "|".join(map(re.escape, names)) + ")$"


def measure(arguments, works):
    """Returns {work: [catena's times, PyTorch's times]}."""
    result = {work: [[], []] for work in works}
    compiled = {work: [work, work + COMPILED] if work.startswith("GPT") else [work] for work in works}
    for _ in range(arguments.rounds):
        for work, seconds in run_catena(arguments, exactly(works)).items():
            result[work][0].append(seconds)
        if not arguments.torch:
            continue
        times = run_torch(arguments, exactly(sum(compiled.values(), [])))
        for work, names in compiled.items():
            fastest = min(names, key=times.get)
            result[work][1].append(times[fastest])
            compiled[work] = [fastest]
    return result


def text_of(seconds):
    unit, factor = ("ms", 1e3) if seconds >= 1e-4 else ("µs", 1e6)
    return f"{seconds * factor:.3f} {unit}"


def row_of(work, ours, theirs):
    row = {"work": work, "catena": statistics.median(ours), "goal": GOALS.get(work)}
    if theirs:
        ratios = [a / b for a, b in zip(ours, theirs)]
        row |= {"pytorch": statistics.median(theirs), "ratio": statistics.median(ratios),
                "from": min(ratios), "to": max(ratios)}
    return row


def print_table(rows):
    print("| work | catena | PyTorch | ratio | from | to | goal | ok |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        cells = [row["work"], text_of(row["catena"])] + [""] * 6
        if "ratio" in row:
            cells[2:6] = [text_of(row["pytorch"])] + [f"{row[key]:.2f}" for key in ("ratio", "from", "to")]
        if row["goal"]:
            cells[6] = f"≤ {row['goal']:.2f}"
            cells[7] = "" if "ratio" not in row else "yes" if row["ratio"] <= row["goal"] else "no"
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], prog="tools/bench --ranks")
    parser.add_argument("--program", required=True, help="catena-bench-ranks")
    parser.add_argument("--torch", default="", help="a Python with PyTorch; without it catena alone")
    parser.add_argument("--communicator", default="mpi", choices=("mpi", "threads"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--block", type=float, default=1, help="seconds of each measurement")
    parser.add_argument("--filter", default="", help="only works whose name matches this regex")
    parser.add_argument("--json", help="write all results to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    arguments = parser.parse_args()
    works = [work for work in WORKS if re.search(arguments.filter, work)]
    if not works or arguments.rounds < 1:
        parser.error("--filter, --rounds: expected at least one work and round")
    times = measure(arguments, works)
    rows = [row_of(work, *times[work]) for work in works]
    print_table(rows)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows, "times": times}, indent=1) + "\n")
    if arguments.check:
        sys.exit(any(row["goal"] and not row.get("ratio", 0) <= row["goal"] for row in rows))


main()
