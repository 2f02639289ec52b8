"""Trains on all of MNIST, where it is: full_mnist_test.py PROGRAM; exits with 77 where it is not."""
import re
import subprocess
import sys

PROGRAM = sys.argv[1]


def run(*options):
    return subprocess.run([PROGRAM, *options], check=True, text=True, stdout=subprocess.PIPE).stdout


if "(60000 images to train, 10000 to test)" not in run("--epochs", "0"):
    print("MNIST is not here: tools/data mnist gets it")
    sys.exit(77)
out = run("--epochs", "20", "--optimizer", "sgd")
print(out)
accuracy = float(re.search(r"^test accuracy: ([\d.]+)$", out, re.M).group(1))
if accuracy < 0.945:
    sys.exit(f"expected a test accuracy of 0.945 or more, got {accuracy}")
