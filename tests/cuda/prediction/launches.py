"""Counts the launches of a training step, and the operations of PyTorch for the same step, as a table.

usage: launches.py PROGRAM FILE PAGE [--list]
  PROGRAM  gpu-speed, with the environment of the emulator
  FILE     where the table is written, for predict.py
  PAGE     the page of predict.py, from which the numbers of PyTorch are kept if it is not installed
  --list   prints the launches by kernel, and the operations of PyTorch
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))

# Title, work, sizes, further environment of catena.
WORKS = (
    ("MLP of 3 layers, 100 images", "mlp", dict(images=100, units=100), {}),
    ("CNN of 2 convolutions, 20 images", "cnn", dict(images=20), {}),
    ("the same CNN without cuDNN", "cnn", dict(images=20), {"CATENA_CUDNN": "0"}),
    ("GPT of 2 blocks, 256 tokens", "gpt", dict(words=200, units=64, layers=2, heads=4, length=64, texts=4), {}),
)
TEXT = (
    "In small nets the launches of kernels take longer than the kernels. The table counts the launches of "
    "one step with SGD, call by call, after the first steps: kernels, and calls of cuBLAS and cuDNN as "
    "one launch each. A recorded step (`RecordedStep`) is one launch of a graph. The last columns count "
    "the operations of PyTorch {version} that do work on a GPU (no views, no empty allocations), with an "
    "optimizer that updates all parameters together (`foreach`, the default on CUDA). PyTorch runs on the "
    "CPU for this count. An operation makes at least one launch on a GPU, and some make several: a "
    "convolution with a bias makes two, and its gradients one each. Copies and fills are counted apart.")
TABLE = """| net | kernels | cuBLAS, cuDNN | launches | copies, fills | PyTorch: operations | copies, fills |
|---|---|---|---|---|---|---|
"""


def executed(program, samples, work, sizes, settings):
    """Returns {name: launches} of a process that takes this many samples, of one step each."""
    request = " ".join([work, "eager", *(f"{name}={value}" for name, value in sizes.items())])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--samples", str(samples), "--least", "0"], input=request, text=True,
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **settings, "CATENA_EMULATOR_COVERAGE": folder})
        rows = [json.loads(line) for file in pathlib.Path(folder).glob("*.jsonl")
                for line in file.read_text().splitlines()]
    return collections.Counter({row["kernel"]: row["launches"] for row in rows})


def launches_of_step(program, *arguments):
    return executed(program, 2, *arguments) - executed(program, 1, *arguments)


def operations_of_step(work, sizes):
    """Returns {name: calls} of PyTorch's operations that do work on a GPU."""
    import speed_torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found = collections.Counter()

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function._schema.name.removeprefix("aten::")
            returned = function._schema.returns
            is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in returned)
            works = not re.match(r"empty|new_empty|_unsafe_view$|profiler::", name)
            if works and not is_view:
                found[name] += 1
            return function(*args, **(kwargs or {}))

    step = speed_torch.WORKS[work]("foreach", **sizes)
    step()
    with Count():
        step()
    return found


def moves_of(counts):
    """Returns the number of launches or operations that only copy or fill memory."""
    moves = r"(copy|fill|.*Filled.*|clone|copy_|_to_copy|(new_)?(zeros|ones|full)(_like)?|zero_|fill_)$"
    return sum(n for name, n in counts.items() if re.match(moves, name))


def names_of(counts):
    shown = subprocess.run(["c++filt"], input="\n".join(counts), check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return zip(shown, counts.values())


def show(title, counts):
    print(title, *(f"{n:4} {name}" for name, n in sorted(counts)), sep="\n", flush=True)


def kept(page, title):
    """Returns PyTorch's cells of a row of the page."""
    found = re.search(rf"^\| {re.escape(title)} \|.*\|( [^|]* \| [^|]* )\|$", page, re.M)
    return [cell.strip() for cell in found[1].split("|")] if found else ["", ""]


def main():
    program, file, page = sys.argv[1:4]
    page = pathlib.Path(page).read_text() if pathlib.Path(page).is_file() else ""
    try:
        import torch
        version = torch.__version__.split("+")[0]
    except ImportError:
        torch = None
        found = re.search(r"operations of PyTorch ([\d.]+)", page)
        version = found[1] if found else "(not counted)"
    table = f"\n## Launches of a training step\n\n{TEXT.format(version=version)}\n\n{TABLE}"
    for title, work, sizes, settings in WORKS:
        counts = launches_of_step(program, work, sizes, settings)
        moves = moves_of(counts)
        calls = sum(n for name, n in counts.items() if name.startswith(("cublas", "cudnn")))
        launches = counts.total() - moves
        cells = [title, launches - calls, calls, launches, moves]
        if torch is None:
            cells += kept(page, title)
        else:
            operations = operations_of_step(work, sizes)
            moved = moves_of(operations)
            cells += [operations.total() - moved, moved]
        table += "| " + " | ".join(map(str, cells)) + " |\n"
        if "--list" in sys.argv:
            show(f"{title}: catena", names_of(counts))
            if torch is not None:
                show(f"{title}: PyTorch", operations.items())
    pathlib.Path(file).write_text(table)


main()
