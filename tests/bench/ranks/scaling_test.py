"""Tests that tools/scaling reproduces the committed figures, and its largest error. Usage: scaling_test.py SCALING"""
import re
import subprocess
import sys

result = subprocess.run([sys.executable, "-B", sys.argv[1], "--compare"], text=True, stdout=subprocess.PIPE)
largest = float(re.search(r"largest error of a step: ([\d.]+)%", result.stdout).group(1))
sys.exit(result.returncode or largest > 15)
