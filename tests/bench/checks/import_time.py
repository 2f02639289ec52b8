"""Checks the time that Python needs to import catena, with NumPy. Usage: import_time.py BIN"""
import os
import pathlib
import subprocess
import sys

MOST = 0.150  # seconds; NumPy takes most of them
CODE = "import time; start = time.perf_counter(); import catena; print(time.perf_counter() - start)"

package = pathlib.Path(sys.argv[1], "../lib/python").resolve()
# The least of several: other programs only add to it.
seconds = min(float(subprocess.run([sys.executable, "-c", CODE], check=True, text=True, capture_output=True,
                                   env={**os.environ, "PYTHONPATH": str(package)}).stdout)
              for _ in range(10))
print(f"import catena: {seconds:.3f} s")
if seconds > MOST:
    sys.exit(f"expected at most {MOST} s, got {seconds:.3f} s")
