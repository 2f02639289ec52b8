"""Tests the installed wheel: files and metadata, what it loads, how long it takes to import."""
import importlib.metadata
import re
import subprocess
import sys

import pytest

try:
    PACKAGE = importlib.metadata.distribution("catena")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("catena is not installed, it is in a build folder", allow_module_level=True)

# The libraries that every Linux with the wheel's glibc has; so do the wheels of others assume.
SYSTEM = r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z))\.so(\.[\d.]+)?"
# A library whose name is not that of its Debian package.
PACKAGES = {"libcrypto": "libssl"}

TRAIN = """
import numpy as np
import catena
import catena.functions as F
import catena.links as L

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (64, 2)).astype(np.float32)
t = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
net = catena.Sequential(L.Linear(2, 32), F.tanh, L.Linear(32, 2))
optimizer = catena.optimizers.Adam(0.05).setup(net)
losses = []
for _ in range(100):
    loss = F.softmax_cross_entropy(net(x), t)
    net.cleargrads()
    loss.backward()
    optimizer.update()
    losses.append(float(loss.array))
images = np.ones((2, 3, 8, 8), np.float32)
F.convolution_2d(images, np.ones((4, 3, 3, 3), np.float32))
"""


def run(code):
    """Runs code in a new interpreter that finds no other catena. Returns its output."""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files():
    return {str(path): path.locate() for path in PACKAGE.files}


def test_metadata():
    metadata = PACKAGE.metadata
    assert metadata["Name"] == "catena"
    assert run("import catena; print(catena.__version__)").strip() == metadata["Version"]
    assert metadata["License-Expression"] == "BSD-2-Clause"
    assert metadata["Requires-Python"] == ">=3.10"
    assert PACKAGE.requires[0].startswith("numpy")
    assert metadata.get_all("Provides-Extra") == ["hdf5", "images", "plot"]
    assert "Tag: cp310-abi3-manylinux_2_" in PACKAGE.read_text("WHEEL")
    assert "Chainer" in (metadata.get_payload() or metadata["Description"])


def test_files():
    names = files()
    assert {"catena/py.typed", "catena/_core.pyi", "catena/__init__.py",
            "catena/functions/__init__.py", "catena/_core.abi3.so",
            "catena/share/digits/README.md",
            "catena/lib/catena/private/libopenblas.so.0"} <= names.keys()
    assert all(re.match(r"catena(\.libs|-[\drc.]+\.dist-info)?/", name) for name in names)
    modules = [name for name in names if name.endswith(".catena")]
    assert len(modules) >= 15
    assert not [name for name in modules if "cuda" in name or "mpi" in name]


def test_licenses():
    names = files()
    licenses = {name.rpartition("/")[2].lower(): path for name, path in names.items()
                if "/licenses/" in name}
    assert "Redistribution" in licenses["license"].read_text()
    libraries = [name.rpartition("/")[2] for name in names
                 if re.match(r"catena(\.libs|/lib/catena/private)/", name)]
    assert len(libraries) > 5
    for library in libraries:
        stem = re.match(r"lib[a-zA-Z]+", library)[0]
        stem = PACKAGES.get(stem, stem).lower()
        assert any(stem in name for name in licenses), f"{library}: no licence"
    # Debian's files refer to common licences, which have to be there.
    for path in licenses.values():
        text = path.read_text("utf-8", "replace")
        for name in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text):
            assert name.lower() in licenses, f"{path}: no {name}"


def test_training_and_what_it_loads():
    """A small network learns, with the wheel's plugins, libraries and OpenBLAS."""
    output = run(TRAIN + """
assert losses[-1] < losses[0] / 3, losses
print(*{line.split()[-1] for line in open("/proc/self/maps") if "/" in line}, sep="\\n")
""")
    folder = str(PACKAGE.locate_file("catena"))
    own = [path for path in output.split()
           if path.startswith((folder + "/lib/", folder + ".libs/"))]
    assert f"{folder}/lib/catena/private/libopenblas.so.0" in own
    assert len([path for path in own if path.endswith(".catena")]) >= 15
    assert not [path for path in output.split() if "/libcatena-" in path and path not in own]


def test_needed_libraries():
    """Every library that a file of the wheel needs is in the wheel, or every Linux has it."""
    folder = str(PACKAGE.locate_file("catena"))
    modules = [str(path) for name, path in files().items() if re.search(r"\.(so|catena)\b", name)]
    output = subprocess.run(["ldd", *modules], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"^\t(\S+) => (.*?)(?: \(0x\w+\))?$", output, re.M))
    assert len(needed) > 15
    outside = {name for name, path in needed
               if not path.startswith((folder + "/", folder + ".libs/"))}
    assert not [name for name in outside if not re.fullmatch(SYSTEM, name)]
    assert not [name for name, path in needed if path == "not found"]


def test_no_plugin_is_refused():
    report = run("import catena, numpy; catena.functions.relu(numpy.ones(2))\n"
                 "print(catena.plugin_report())")
    assert "loaded org.catena.cpu" in report
    assert "refused" not in report


def test_import_is_lazy():
    modules = run("import sys, catena; print(*sys.modules)").split()
    lazy = {"scipy", "matplotlib", "PIL", "h5py", "torch", "pytest", "concurrent.futures"}
    assert not lazy.intersection(modules)
