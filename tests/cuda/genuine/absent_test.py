"""Tests that without a GPU the plugin loads without a device, and errors appear only on request."""
import os
import shutil
import subprocess
import sys


def run(command, **environment):
    return subprocess.run(command, capture_output=True, text=True,
                          env={**os.environ, **environment})


def main():
    inspect, catena, train, plugins = sys.argv[1:]
    if shutil.which("nvidia-smi") and "GPU 0" in run(["nvidia-smi", "-L"]).stdout:
        print("skipped: expected no GPU, got one")
        return 77
    result = run([inspect, "devices", "--format", "json"], CATENA_PLUGIN_PATH=plugins)
    print(result.stdout, result.stderr)
    assert result.returncode == 0, result.returncode
    assert result.stderr == "", result.stderr
    assert "cpu:0" in result.stdout
    assert "cuda:0" not in result.stdout
    why = "[cuda count] cudaGetDeviceCount: cudaError"
    assert why in result.stdout

    result = run([catena, "plugins", "--plugins", plugins])
    assert (result.returncode, result.stderr) == (0, ""), result
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith(f"cuda: no device ({why}")], result.stdout
    # nccl has a communicator and no kernels, so it is loaded without a GPU too.
    families = [name for name in os.listdir(plugins)
                if name.endswith(".cuda.catena") and name != "nccl.cuda.catena"]
    assert len(families) > 3, families
    for name in families:  # listed, but not loaded
        row = [line for line in lines if f" {name}: cuda has no device" in line]
        assert len(row) == 1 and row[0].split()[0] == "idle", result.stdout

    result = run([train, "--plugins", plugins, "--device", "cuda:0"])
    assert result.returncode == 1, result
    first = result.stderr.splitlines()[0]
    assert first.startswith("catena-train-mnist: [device] cuda") and why in first, first
    return 0


if __name__ == "__main__":
    sys.exit(main())
