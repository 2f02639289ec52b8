"""Tests the architectures of the code in CUDA modules, and that catena-inspect reads the modules."""
import argparse
import json
import pathlib
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50  # of a fat binary: a header of 16 bytes, then entries


def architectures(data):
    """Returns {"sm_80", "ptx_90" ...} for a module's bytes. The header of a fat binary has a magic number,
    a version, its own size and the size of all entries. The header of an entry has its kind (1: PTX,
    2: code), its own size, the size of the data that follows, and at byte 28 the architecture."""
    found = set()
    at = data.find(struct.pack("<I", MAGIC))
    while at >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        if version == 1 and header == 16 and at + header + size <= len(data):
            place, end = at + header, at + header + size
            while place + 32 <= end:
                kind, _, entry, length = struct.unpack_from("<HHIQ", data, place)
                arch, = struct.unpack_from("<I", data, place + 28)
                if kind not in (1, 2) or entry < 32:
                    break
                found.add(f"{'ptx' if kind == 1 else 'sm'}_{arch}")
                place += entry + length
        at = data.find(struct.pack("<I", MAGIC), at + 4)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inspect", required=True)
    parser.add_argument("--expect", default="")
    parser.add_argument("modules", nargs="+")
    options = parser.parse_args()
    wrong = []
    for path in map(pathlib.Path, options.modules):
        got = architectures(path.read_bytes())
        print(f"{path.name}: {' '.join(sorted(got)) or 'no code for GPUs'}")
        if not got or (options.expect and got != set(options.expect.split())):
            wrong.append(f"{path.name}: expected code for {options.expect or 'some GPU'}, "
                         f"got {' '.join(sorted(got)) or 'none'}")
        result = subprocess.run([options.inspect, "--format", "json", str(path)], capture_output=True,
                                text=True)
        if result.returncode != 0 or not json.loads(result.stdout):
            wrong.append(f"{path.name}: catena-inspect: {result.stderr}")
    print("\n".join(wrong))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
