"""Training programs print the same on a GPU as on the CPU, and each resumes the other's snapshots;
catena-predict gives the same answers with both. Replicas and a net over two devices need two GPUs.

usage: programs_test.py TRAIN-MNIST TRAIN-LM TRAIN-WORD2VEC TRAIN-IMAGES PREDICT DIGITS PICTURES.PY
"""
import importlib.util
import pathlib
import random
import re
import subprocess
import sys
import tempfile

MNIST, LM, WORDS, IMAGES, PREDICT, DIGITS = map(pathlib.Path, sys.argv[1:7])
GPU, CPU = "cuda:0", "cpu:0"


def load(path):
    spec = importlib.util.spec_from_file_location("pictures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, (command, done.stdout)
    return done.stdout


def numbers(out):
    """Returns the losses, perplexities and accuracies that a program prints, in order."""
    reports = re.sub(r"(?m)^.* \d+/\d+ .*/s$", "", out)  # without lines of progress
    return [(name, float(value)) for name, value in
            re.findall(r"(loss|perplexity|accuracy):? +([\d.]+)", reports)]


def compare(what, expected, got, off=0.03):
    assert [name for name, _ in expected] == [name for name, _ in got] and expected, (what, expected, got)
    for (name, a), (_, b) in zip(expected, got):
        assert abs(a - b) <= off * max(abs(a), abs(b)) + 2e-3, f"{what}: {name}: CPU {a}, GPU {b}"


def pairs(devices, train):
    """Runs train(device, epochs, device of the snapshot) on both, and resumes each on the other."""
    first = {device: train(device, 1, None) for device in devices}
    whole = {device: train(device, 2, None) for device in devices}
    for one, other in (devices, devices[::-1]):
        compare(f"{one}, then {other}", whole[one][len(first[one]):], train(other, 2, one))
    compare("one epoch", first[devices[0]], first[devices[1]])
    compare("two epochs", whole[devices[0]], whole[devices[1]])


def trains(folder, name, program, *options):
    """Trains on both devices; the snapshots after one epoch are folder/NAME-DEVICE.npz."""
    def train(device, epochs, after):
        file = folder / f"{name}-{device}.npz"
        snapshots = ["--save", file] if epochs == 1 else ["--resume", folder / f"{name}-{after}.npz"]
        if epochs == 2 and after is None:
            snapshots = []
        out = run(program, *options, "--epochs", epochs, "--device", device, *snapshots)
        assert f" on {device}" in out, out
        return numbers(re.sub(r"^(test|valid) (perplexity|accuracy): .*$", "", out, flags=re.M))
    pairs((CPU, GPU), train)
    print(f"measured: {name} learns the same on {CPU} and {GPU}, and goes on on the other", flush=True)


def predicts(folder, name, *question):
    """Compares the answers of both snapshots on the GPU, and of the GPU's snapshot on the CPU."""
    def answer(saved, device):
        return run(PREDICT, "--model", folder / f"{name}-{saved}.npz", "--device", device, *question)
    expected = answer(CPU, CPU)
    words = re.findall(r"[a-z]\w+", expected)
    assert len(words) >= 3, expected
    for saved, device in ((CPU, GPU), (GPU, CPU), (GPU, GPU)):
        got = answer(saved, device)
        assert re.findall(r"[a-z]\w+", got) == words, (name, saved, device, expected, got)
    print(f"measured: {name}: answers are the same", flush=True)


def text(lines, seed):
    generator = random.Random(seed)
    things = ("red ball", "blue ball", "old cat", "young dog", "house", "tree")
    return "".join(f"{generator.choice(('anna sees', 'bruno has'))} the {generator.choice(things)} .\n"
                   for _ in range(lines))


def two_gpus():
    try:
        run(LM, "--help")
        run(MNIST, "--epochs", 0, "--data", DIGITS, "--device", "cuda:1")
        return True
    except AssertionError as error:
        assert "cuda:1" in str(error), error
        return False


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        words = folder / "text.txt"
        words.write_text(text(400, 1))
        load(sys.argv[7]).write_set(folder / "set", 10)

        small = ["--data", words, "--seed", 3, "--units", 16, "--batch", 8]
        trains(folder, "lm", LM, *small, "--steps", 10, "--lr", 0.01, "--layers", 2, "--dropout", 0.1)
        predicts(folder, "lm", "--prompt", "anna sees the", "--length", 20, "--temperature", 0.05,
                 "--seed", 1)
        gpt = ["--net", "gpt", "--layers", 1, "--heads", 2, "--steps", 10, "--lr", 0.01]
        trains(folder, "gpt", LM, *small, *gpt, "--dropout", 0.1)
        predicts(folder, "gpt", "--prompt", "anna sees the", "--length", 20, "--temperature", 0.05)
        trains(folder, "sentences", LM, *small, "--sentences", "--cell", "rnn")
        for model in ("skip-gram", "cbow"):
            trains(folder, model, WORDS, *small, "--model", model)
            predicts(folder, model, "--prompt", "anna", "--top", 3)
        trains(folder, "images", IMAGES, folder / "set", "--net", "alexnet-bn", "--width", 0.1, "--size",
               64, "--side", 64, "--batch", 12, "--held-out", 0.2, "--seed", 1, "--optimizer", "adam")
        predicts(folder, "images", folder / "set/bars/000.png", folder / "set/checks/001.png")

        if not two_gpus():
            print("one GPU: no replicas, no net over two")
            return
        digits = [MNIST, "--data", DIGITS, "--epochs", 1, "--batch", 200, "--seed", 5, "--optimizer", "adam"]
        for model in ("mlp", "two-column"):
            expected, got = (run(*digits, "--model", model, "--device", devices)
                             for devices in (CPU, "cuda:0,cuda:1"))
            assert "cuda:0 and cuda:1" in got, got
            compare(model, numbers(expected), numbers(got), 0.02)
        print("measured: two GPUs learn what one CPU does")


main()
