"""A formula that is compiled at run time keeps up with a plugin, and is faster than functions one after
the other.

usage: formula_test.py CATENA_BENCH

Each side's time in an attempt is the least of many short blocks, which alternate with the others': what
other programs take away makes no block faster. Over the attempts it is the median, for the place that
arrays get in memory makes a whole attempt faster or slower.

The floors are those of the memory traffic. Of 1M floats each array is larger than a core's cache, so a
fused muladd moves 4 arrays (x, y, z, w) and the composed one 6: two plain loops without calls take 1.5 to
1.6 times as long as one. By rows it is 2 arrays to 4, for norm 1 to 3."""
import collections
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

# The time of the composed functions, or of the plugin, by the formula's.
FLOORS = {("muladd 1M", "composed"): 1.5, ("muladd 1M, by rows", "composed"): 1.8,
          ("norm 1M", "composed"): 1.8, ("norm 1M, by rows", "composed"): 1.8,
          ("muladd 1M", "plugin"): 0.91}
LEAST, MOST = 2, 6  # attempts


def measure(program, times):
    """Adds to times the least seconds of each (work, side)."""
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


main(sys.argv[1])
