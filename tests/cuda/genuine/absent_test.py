"""Without a GPU the plugin is there, no device is, and programs say so only where they are asked."""
import os
import subprocess
import sys


def run(command, **environment):
    return subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment})


def main():
    inspect, plugins = sys.argv[1:]
    if run(["nvidia-smi", "-L"] if os.path.exists("/usr/bin/nvidia-smi") else ["true"]).stdout:
        print("there is a GPU: nothing to see here")
        return 0
    result = run([inspect, "devices", "--format", "json"], CATENA_PLUGIN_PATH=plugins)
    print(result.stdout, result.stderr)
    assert result.returncode == 0, result.returncode
    assert result.stderr == "", result.stderr
    assert "cpu:0" in result.stdout
    assert "cuda:0" not in result.stdout
    assert "[cuda count] cudaGetDeviceCount: cudaError" in result.stdout  # why
    return 0


if __name__ == "__main__":
    sys.exit(main())
