"""Predicts the speed of each CUDA kernel on an A100 and an H100, and writes a page about it.

usage: predict.py PTXAS PTX_FOLDER COUNTS_FOLDER PAGE LAUNCHES

PTX_FOLDER has the modules' PTX (cuda-kernels --ptx). COUNTS_FOLDER has what the emulator counted while
kernels ran (CATENA_EMULATOR_COVERAGE and CATENA_EMULATOR_PROFILE). LAUNCHES is a section that launches.py
wrote.
"""
import collections
import concurrent.futures
import functools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

# Results per clock and multiprocessor, from the table of arithmetic throughput in NVIDIA's CUDA C++
# programming guide for compute capabilities 8.0 and 9.0; other numbers from NVIDIA's data sheets. The L2
# cache of an A100 delivers 5120 bytes per clock; the same is assumed for an H100.
GPUS = {
    "A100": dict(arch="sm_80", processors=108, clock=1.41e9, bandwidth=1.555e12, threads=2048, blocks=32,
                 registers=65536, shared=164 << 10, float32=64, float64=32, integer=64, special=16,
                 convert=16, convert64=16, loads=32, shuffle=32),
    "H100": dict(arch="sm_90", processors=132, clock=1.83e9, bandwidth=3.35e12, threads=2048, blocks=32,
                 registers=65536, shared=228 << 10, float32=128, float64=64, integer=64, special=16,
                 convert=64, convert64=16, loads=32, shuffle=32),
}

# How many machine instructions of which kind an instruction of PTX becomes: the first pattern that
# fits. Divisions and square roots are short programs. Parameters are operands, and moves mostly vanish.
COSTS = [
    (r"ld\.param|mov\.|cvta|ret|exit|call|bra\.uni|pack|unpack|cvt\.[us]64\.[us]32|cvt\.[us]32\.[us]64", []),
    (r"(ld|st|atom|red)\.", [("loads", 1)]),
    (r"bar\.|shfl|vote|redux|match", [("shuffle", 1)]),
    (r"(div|rcp)\.rn\.f64", [("float64", 20), ("special", 1)]),
    (r"sqrt\.rn\.f64", [("float64", 20), ("special", 1)]),
    (r"rsqrt\.approx.*f64|rcp\.approx.*f64", [("special", 2)]),
    (r"div\.rn\.f32", [("float32", 8), ("special", 1)]),
    (r"(rcp|sqrt)\.rn\.f32", [("float32", 6), ("special", 1)]),
    (r"(ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh|div)\.(approx|full)", [("special", 1)]),
    (r"setp.*f64|min.*f64|max.*f64", [("float64", 1)]),
    (r"(add|sub|mul|fma|abs|neg)\..*f64", [("float64", 1)]),
    (r"(add|sub|mul|fma)\..*f32", [("float32", 1)]),
    (r"cvt\..*64", [("convert64", 1)]),
    (r"cvt\.", [("convert", 1)]),
    (r"(div|rem)\.[us]64", [("integer", 80), ("convert64", 2)]),
    (r"(div|rem)\.[us](32|16)", [("integer", 16), ("special", 1)]),
    (r"(mul\.lo|mad\.lo|mul\.hi|mad\.hi)\.[us]64", [("integer", 4)]),
    (r".*[usb]64", [("integer", 2)]),
    (r"", [("integer", 1)]),
]


@functools.cache
def costs_of(name):
    return next(cost for pattern, cost in COSTS if re.match(pattern, name))


def machine_code(ptxas, file, arch):
    """Returns {kernel: (registers, bytes of spills)} of a PTX file, compiled for an architecture."""
    out = subprocess.run([ptxas, "-v", "-arch=" + arch, "-o", os.devnull, str(file)], check=True,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    found = {}
    kernel = None
    for line in out.splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            kernel, spills = match[1], 0
        elif match := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spills = int(match[1]) + int(match[2])
        elif (match := re.search(r"Used (\d+) registers", line)) and kernel:
            found[kernel] = (int(match[1]), spills)
            kernel = None
    return found


def occupancy(gpu, registers, shared, threads):
    """Returns the share of a multiprocessor's threads that can be resident."""
    warps = (threads + 31) // 32
    by_registers = gpu["registers"] // ((registers * 32 + 255) // 256 * 256 * warps)
    by_shared = gpu["shared"] // (shared + 1024)  # the system takes 1 KiB of each block
    blocks = min(gpu["blocks"], by_registers, by_shared, gpu["threads"] // (warps * 32))
    return blocks * warps * 32 / gpu["threads"]


def largest_launches(folder):
    largest = {}
    for file in pathlib.Path(folder).rglob("*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            if "instructions" not in row:
                continue
            row["lanes"] = sum(lanes for _, lanes in row["instructions"].values())
            if row["lanes"] > largest.get(row["kernel"], {}).get("lanes", -1):
                largest[row["kernel"]] = row
    return largest


def predict(gpu, row):
    """Returns (share of the limit, "memory" or a kind of arithmetic)."""
    slots = collections.Counter()
    for name, (warps, _) in row["instructions"].items():
        for kind, n in costs_of(name):
            slots[kind] += n * warps * 32
    seconds = {kind: n / gpu[kind] / gpu["processors"] / gpu["clock"] for kind, n in slots.items()}
    # A scheduler issues one instruction of a warp per clock, and there are four.
    issue = sum(slots.values()) / 32 / 4 / gpu["processors"] / gpu["clock"]
    least = row["read"] + row["written"]
    memory = max(row["touched"] * 32, least) / gpu["bandwidth"]
    seconds["L2"] = row["sectors"] * 32 / 5120 / gpu["clock"]
    busiest, longest = max(seconds.items(), key=lambda item: item[1], default=("issue", 0))
    if issue > longest:
        busiest, longest = "issue", issue
    if memory >= longest:
        return least / gpu["bandwidth"] / memory, "memory"
    return least / gpu["bandwidth"] / longest, busiest


def short(name):
    for gone in ("catena::plugin::cuda::", "catena::plugins::", "catena::plugin::", "(anonymous namespace)::",
                 "detail::", "void "):
        name = name.replace(gone, "")
    return re.sub(r"\(.*", "", name).replace("|", "\\|")


class Row:
    """A kernel: registers and spills by GPU, and the counts of a launch, or None."""

    def __init__(self, name, code, counts):
        self.name, self.code, self.counts = name, code, counts
        self.spills = max(spills for _, spills in code.values())
        self.coalesced = self.moved = self.shares = None
        if counts is not None:
            self.least = counts["read"] + counts["written"]
            if counts["accesses"]:
                self.coalesced = counts["coalesced"] / counts["accesses"]
            if self.least:
                self.moved = counts["touched"] * 32 / self.least
                self.shares = [predict(gpu, counts) for gpu in GPUS.values()]

    def text(self):
        spills = "/".join(str(spills) for _, spills in self.code.values()) if self.spills else "0"
        cells = [self.name, "/".join(str(registers) for registers, _ in self.code.values()), spills]
        if self.counts is None:
            return f"| {' | '.join(cells + ['not executed'] + [''] * 9)} |\n"
        counts = self.counts
        threads, blocks = math.prod(counts["block"]), math.prod(counts["grid"])
        warps = sum(w for w, _ in counts["instructions"].values())
        cells.append("/".join(f"{occupancy(GPUS[gpu], registers, counts['shared'], threads):.0%}"
                              for gpu, (registers, _) in self.code.items()))
        cells.append("" if self.coalesced is None else f"{self.coalesced:.2f}")
        cells += [""] * 3 if self.moved is None else [
            f"{self.moved:.2f}", f"{counts['sectors'] * 32 / self.least:.2f}",
            f"{counts['lanes'] / self.least * 4:.1f}"]
        cells.append(f"{1 - counts['lanes'] / (warps * 32):.0%}")
        conflicts = counts["conflicts"] / max(counts["accesses"], 1)
        cells.append(f"{conflicts:.1f}" if conflicts else "0")
        cells.append(f"{counts['barriers'] / blocks:.0f}")
        cells += ["", ""] if self.shares is None else [f"{share:.0%} {limit}" for share, limit in self.shares]
        return f"| {' | '.join(cells)} |\n"


TABLE = ("| kernel | registers | spills | occupancy | coalesced | moved/least | L2/least | instructions | "
         "idle | conflicts | barriers | A100 | H100 |\n|" + "---|" * 13 + "\n")
ENOUGH = 4096  # bytes: launches of less are not counted, because they fill few sectors


def summary(rows):
    """Returns a table with a row for each module. Launches of little data say nothing about memory."""
    text = ("\n## Modules\n\nThe columns about memory count kernels whose launch reads and writes at least "
            f"{ENOUGH:,} bytes.\n\n| module | kernels | spills | coalesced below 0.9 | moved above 1.1 | "
            "median share, A100 | H100 |\n|" + "---|" * 7 + "\n")
    for module, lines in rows.items():
        large = [row for row in lines if row.counts is not None and row.least >= ENOUGH]
        shares = [row.shares for row in large]
        cells = [module, len(lines), sum(row.spills > 0 for row in lines),
                 sum(row.coalesced < 0.9 for row in large), sum(row.moved > 1.1 for row in large)]
        cells += [f"{statistics.median(pair[i][0] for pair in shares):.0%}" if shares else ""
                  for i in range(len(GPUS))]
        text += f"| {' | '.join(map(str, cells))} |\n"
    return text


def main():
    ptxas, ptx, counts, page, section = sys.argv[1:]
    files = sorted(pathlib.Path(ptx).glob("*.ptx"))
    code = {gpu: {} for gpu in GPUS}
    module_of = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {(gpu, file): pool.submit(machine_code, ptxas, file, GPUS[gpu]["arch"])
                 for gpu in GPUS for file in files}
        for (gpu, file), task in tasks.items():
            for kernel, values in task.result().items():
                code[gpu][kernel] = values
                module_of[kernel] = file.stem.split(".")[0].split("-")[0]
    launches = largest_launches(counts)
    kernels = sorted(module_of, key=lambda k: (module_of[k], k))
    names = subprocess.run(["c++filt"], input="\n".join(kernels), check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    rows = collections.defaultdict(list)
    for kernel, name in zip(kernels, names):
        of_gpu = {gpu: code[gpu][kernel] for gpu in GPUS}
        rows[module_of[kernel]].append(Row(short(name), of_gpu, launches.get(kernel)))
    with open(page, "w") as out:
        out.write((pathlib.Path(__file__).parent / "page.md").read_text())
        out.write(summary(rows) + pathlib.Path(section).read_text())
        for module, lines in rows.items():
            out.write(f"\n## {module}\n\n{TABLE}" + "".join(row.text() for row in lines))


if __name__ == "__main__":
    main()
