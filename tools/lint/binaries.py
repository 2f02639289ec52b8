"""Rules for built files. Each rule is a function (build folder) -> findings."""
import pathlib
import re
import subprocess

EXPORTS = {"catena_manifest_v1", "catena_plugin_entry_v1"}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def plugins(build):
    return sorted((pathlib.Path(build) / "lib" / "catena" / "plugins").glob("*.catena"))


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", str(path)))


def presence(build):
    """The build folder contains plugins."""
    if not plugins(build):
        yield f"{build}: expected *.catena in lib/catena/plugins, got none"


def links(build):
    """A plugin links no library of catena, no thread runtime and no BLAS."""
    for path in plugins(build):
        for library in needed(path):
            if library.startswith("libcatena"):
                yield f"{path.name}: a plugin may not link {library}"
            elif re.match(r"lib(gomp|omp|iomp5|tbb)\b", library):
                yield f"{path.name}: a plugin may not link the thread runtime {library}"
            elif re.match(r"lib(open)?blas\b", library):
                yield f"{path.name}: a plugin may not link a BLAS, it links {library}"


def exports(build):
    """A plugin exports exactly the symbols of the ABI."""
    for path in plugins(build):
        found = set()
        for line in output("nm", "-D", "--defined-only", str(path)).splitlines():
            kind, name = line.split()[-2:]
            name = name.split("@")[0]
            if kind == "u":
                yield f"{path.name}: {name} is unique in the process (STB_GNU_UNIQUE)"
            elif kind != "A":
                found.add(name)
        for name in sorted(found - EXPORTS):
            yield f"{path.name}: exports {name}, expected only the symbols of the ABI"
        for name in sorted(EXPORTS - found):
            yield f"{path.name}: does not export {name}"


def manifest(build):
    """The manifest is in the section that hosts read without loading the plugin."""
    for path in plugins(build):
        if not re.search(r"\s\.catena\s", output("readelf", "-SW", path)):
            yield f"{path.name}: expected the manifest in section .catena"


def layers(build):
    """The core library links no other library of catena."""
    for path in sorted((pathlib.Path(build) / "lib").glob("libcatena-core.so*")):
        for library in needed(path):
            if library.startswith("libcatena"):
                yield f"{path.name}: the core may not link {library}"


RULES = [presence, links, exports, manifest, layers]
