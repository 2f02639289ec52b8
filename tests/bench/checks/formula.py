"""Checks that a formula compiled at run time is as fast as a plugin, and faster than a sequence of
functions.

usage: formula.py BIN

The time of each side in an attempt is the minimum of many short blocks, which alternate with those of the
other sides: other programs only make blocks slower. Over the attempts it is the median, because the
addresses of the arrays make a whole attempt faster or slower.

The floors follow from the memory traffic. An array of 1M floats is larger than a core's cache, so a fused
muladd moves 4 arrays (x, y, z, w) and the composed one 6: two plain loops without calls take 1.5 to 1.6
times as long as one. By rows the numbers are 2 and 4 arrays, and for norm 1 and 3."""
import collections
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

# Minimum ratio of the time of the composed functions, or of the plugin, to that of the formula.
FLOORS = {("muladd 1M", "composed"): 1.5, ("muladd 1M, by rows", "composed"): 1.8,
          ("norm 1M", "composed"): 1.8, ("norm 1M, by rows", "composed"): 1.8,
          ("muladd 1M", "plugin"): 0.91}
LEAST, MOST = 2, 6  # attempts


def measure(program, times):
    """Adds the minimum seconds of each (work, side) to times."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "table.json")
        subprocess.run([program, "--no-torch", "--rounds", "20", "--block", "0.002", "--json", path,
                        "--filter", "^(muladd|norm) 1M"], check=True)
        rows = json.loads(path.read_text())
    least = {}
    for row in rows["works"]:
        for side, seconds in (("formula", row["catena_seconds"]), (row["peer"], row["peer_seconds"])):
            key = row["work"], side
            least[key] = min([least.get(key, math.inf), *seconds])
    for key, seconds in least.items():
        times[key].append(seconds)


def main(program):
    times = collections.defaultdict(list)
    for attempt in range(1, MOST + 1):
        measure(program, times)
        seconds = {key: statistics.median(values) for key, values in times.items()}
        ratios = {(work, side): seconds[work, side] / seconds[work, "formula"] for work, side in FLOORS}
        for key, ratio in ratios.items():
            print(f"attempt {attempt}: {' / '.join(key)}: {ratio:.2f}, expected {FLOORS[key]:.2f}")
        if attempt >= LEAST and all(ratios[key] >= floor for key, floor in FLOORS.items()):
            return
    sys.exit(f"expected at least {FLOORS} times the speed, got {ratios}")


main(pathlib.Path(sys.argv[1], "catena-bench"))
