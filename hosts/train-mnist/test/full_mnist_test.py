"""Trains on a whole data set. Usage: full_mnist_test.py PROGRAM DATASET

Exits with 77 if the data set is not installed.
"""
import re
import subprocess
import sys

PROGRAM, DATASET = sys.argv[1:3]
CNN = ("--model", "cnn", "--optimizer", "adam", "--epochs", "5")
RUNS = {
    "mnist": ((0.945, ("--optimizer", "sgd", "--epochs", "20")), (0.99, CNN)),
    "fashion-mnist": ((0.90, ("--model", "cnn", "--optimizer", "adam", "--epochs", "10",
                               "--units", "500", "--dropout", "0.4")),),
}


def run(*options):
    return subprocess.run([PROGRAM, "--dataset", DATASET, *options], text=True, capture_output=True, check=False)


if "(60000 images to train, 10000 to test)" not in run("--epochs", "0").stdout:
    print(f"{DATASET} is not here: tools/data {DATASET} gets it")
    sys.exit(77)
for least, options in RUNS[DATASET]:
    result = run(*options)
    print(result.stdout, result.stderr)
    accuracy = float(re.search(r"^test accuracy: ([\d.]+)$", result.stdout, re.M).group(1))
    if accuracy < least:
        sys.exit(f"expected a test accuracy of {least} or more, got {accuracy}")
