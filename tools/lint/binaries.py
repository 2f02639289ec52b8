"""Rules for built files, besides those of catena-check. Each is a function (build folder) -> findings."""
import pathlib
import re
import subprocess


def plugins(build):
    return sorted((pathlib.Path(build) / "lib" / "catena" / "plugins").glob("*.catena"))


def needed(path):
    dynamic = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic.stdout)


def presence(build):
    """The build folder contains plugins."""
    if not plugins(build):
        yield f"{build}: expected *.catena in lib/catena/plugins, got none"


def links(build):
    """A plugin links no BLAS."""
    for path in plugins(build):
        for library in needed(path):
            if re.match(r"lib(open)?blas\b", library):
                yield f"{path.name}: a plugin may not link a BLAS, it links {library}"


def layers(build):
    """The core library links no other library of catena."""
    for path in sorted((pathlib.Path(build) / "lib").glob("libcatena-core.so*")):
        for library in needed(path):
            if library.startswith("libcatena"):
                yield f"{path.name}: the core may not link {library}"


RULES = [presence, links, layers]
