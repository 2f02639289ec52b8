"""Predicts the speed of each CUDA kernel on an A100 and an H100, and writes a page about it.

usage: predict.py PTXAS PTX_FOLDER COUNTS_FOLDER PAGE LAUNCHES

PTX_FOLDER has the modules' PTX (cuda-kernels --ptx). COUNTS_FOLDER has what the emulator counted while
kernels ran (CATENA_EMULATOR_COVERAGE and CATENA_EMULATOR_PROFILE). LAUNCHES is a section that launches.py
wrote.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

# Results per clock and multiprocessor, from the table of arithmetic throughput in NVIDIA's CUDA C++
# programming guide for compute capabilities 8.0 and 9.0; other numbers from NVIDIA's data sheets. The L2
# cache of an A100 delivers 5120 bytes per clock; the same is assumed for an H100.
GPUS = {
    "A100": dict(arch="sm_80", processors=108, clock=1.41e9, bandwidth=1.555e12, threads=2048, blocks=32,
                 registers=65536, shared=164 << 10, float32=64, float64=32, integer=64, special=16,
                 convert=16, convert64=16, memory=32, shuffle=32),
    "H100": dict(arch="sm_90", processors=132, clock=1.83e9, bandwidth=3.35e12, threads=2048, blocks=32,
                 registers=65536, shared=228 << 10, float32=128, float64=64, integer=64, special=16,
                 convert=64, convert64=16, memory=32, shuffle=32),
}

# How many machine instructions of which kind an instruction of PTX becomes: the first pattern that
# fits. Divisions and square roots are short programs. Parameters are operands, and moves mostly vanish.
COSTS = [
    (r"ld\.param|mov\.|cvta|ret|exit|call|bra\.uni|pack|unpack|cvt\.[us]64\.[us]32|cvt\.[us]32\.[us]64", []),
    (r"(ld|st|atom|red)\.", [("memory", 1)]),
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
FLOATING = re.compile(r"(add|sub|mul|fma)\..*f(32|64)")


def costs_of(name, known={}):
    if name not in known:
        known[name] = next(cost for pattern, cost in COSTS if re.match(pattern, name))
    return known[name]


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
        row = launches.get(kernel)
        text = [short(name)]
        registers = [code[gpu][kernel][0] for gpu in GPUS]
        spills = [code[gpu][kernel][1] for gpu in GPUS]
        text.append("/".join(map(str, registers)))
        text.append("/".join(map(str, spills)) if any(spills) else "0")
        if row is None:
            text += ["not executed"] + [""] * 9
        else:
            threads = row["block"][0] * row["block"][1] * row["block"][2]
            blocks = row["grid"][0] * row["grid"][1] * row["grid"][2]
            least = row["read"] + row["written"]
            warps = sum(w for w, _ in row["instructions"].values())
            text.append("/".join(f"{occupancy(gpu, code[name_][kernel][0], row['shared'], threads):.0%}"
                                 for name_, gpu in GPUS.items()))
            text.append(f"{row['coalesced'] / row['accesses']:.2f}" if row["accesses"] else "")
            text.append(f"{row['touched'] * 32 / least:.2f}" if least else "")
            text.append(f"{row['sectors'] * 32 / least:.2f}" if least else "")
            text.append(f"{row['lanes'] / least * 4:.1f}" if least else "")
            text.append(f"{1 - row['lanes'] / (warps * 32):.0%}")
            text.append(f"{row['conflicts'] / max(row['accesses'], 1):.1f}" if row["conflicts"] else "0")
            text.append(f"{row['barriers'] / blocks:.0f}")
            for gpu in GPUS.values():
                share, limit = predict(gpu, row)
                text.append(f"{share:.0%} {limit}" if least else "")
        rows[module_of[kernel]].append("| " + " | ".join(text) + " |")
    head = (pathlib.Path(__file__).parent / "page.md").read_text()
    table = ("| kernel | registers | spills | occupancy | coalesced | moved/least | L2/least | instructions | idle | "
             "conflicts | barriers | A100 | H100 |\n|" + "---|" * 13 + "\n")
    with open(page, "w") as out:
        out.write(head + pathlib.Path(section).read_text())
        for module, lines in rows.items():
            out.write(f"\n## {module}\n\n{table}" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
