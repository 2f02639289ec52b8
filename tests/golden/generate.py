#!/usr/bin/env python3
"""Computes the reference values FAMILY.npz in this folder with PyTorch, in float64.

The cases are defined beside the functions: plugins/FAMILY/test/golden.py for the functions of a plugin, and
sdk/host/test/golden/GROUP.py for functions of the host. Each file defines cases(case), which calls
case(...) for each case; see Case below. README.md describes the arrays.

usage: generate.py [--check] [NAME...]
  NAME     the families or groups to compute; default: all whose cases have changed
  --check  compute nothing; fail if cases have changed since their values were computed. Needs no PyTorch.

Needs NumPy and PyTorch 2.15 (tools/bench installs them: build/torch/bin/python).
"""
import hashlib
import importlib.util
import json
import pathlib
import sys
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent


def sources():
    """Returns the files with cases by name; those of the host are named host_GROUP."""
    found = {f.parent.parent.name: f for f in sorted(ROOT.glob("plugins/*/test/golden.py"))}
    found |= {f"host_{f.stem}": f for f in sorted(ROOT.glob("sdk/host/test/golden/*.py"))}
    return found


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def is_current(name, file):
    """Tells whether the values of these cases were computed from the present file."""
    values = FOLDER / f"{name}.npz"
    if not values.exists():
        return False
    with zipfile.ZipFile(values) as archive:
        return digest(file).encode() in archive.read("manifest.npy")


# The inputs of a case depend only on its own calls of these functions.
_generator = None


def uniform(low, high, shape):
    """Returns float32 numbers from [low, high)."""
    import numpy
    return numpy.asarray(_generator.uniform(low, high, shape), "float32")


def integers(low, high, shape, dtype="int64"):
    """Returns integers from [low, high)."""
    import numpy
    return numpy.asarray(_generator.integers(low, high, shape), dtype)


class Cases:
    """Collects the cases of a file, and computes their values."""

    def __init__(self, host):
        self.host = host
        self.manifest = []
        self.arrays = {}
        self._restart()

    def _restart(self):
        global _generator
        import numpy
        _generator = numpy.random.default_rng(1)

    def __call__(self, name, function, inputs, torch_function, attrs={}, outputs=("y",),
                 double=True, rtol=1e-4, atol=1e-5, constants=()):
        """Adds a case.

        function: without "catena.", or the name of a row of sdk/host/test/golden/GROUP.cpp
        inputs: names and NumPy arrays of float32, int32, int64 or bool, in the order of the ports
        rtol, atol: for float32, and for float64 values that are stored as float32
        torch_function: takes the inputs by name as tensors, floating ones in float64, and returns the
            outputs, without hidden ones
        double: also store second-order gradients
        constants: names of floating inputs that take no gradient
        """
        import numpy
        import torch
        if any(case["case"] == name for case in self.manifest):
            sys.exit(f"generate.py: {name}: expected one case of this name, got two")
        generator = numpy.random.default_rng(2)
        tensors = {key: torch.from_numpy(numpy.array(value)) for key, value in inputs.items()}
        tensors = {key: t.double().requires_grad_() if t.is_floating_point() else t
                   for key, t in tensors.items()}
        results = torch_function(**tensors)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        if len(results) != len(outputs):
            sys.exit(f"generate.py: {name}: expected {len(outputs)} outputs, got {len(results)}")

        def store(key, value):
            value = value.detach().numpy() if isinstance(value, torch.Tensor) else numpy.array(value)
            if key.startswith(("in_", "gy_", "ggx_")) and value.dtype == numpy.float64:
                value = value.astype(numpy.float32)  # is exact
            self.arrays[f"{name}/{key}"] = numpy.ascontiguousarray(value).reshape(value.shape)

        def random(like):
            values = generator.uniform(-1, 1, tuple(like.shape)).astype(numpy.float32)
            return torch.from_numpy(values).double().reshape(like.shape).requires_grad_()

        def gradients(of, by):
            if not of.requires_grad:
                return [torch.zeros_like(t) for t in by]
            found = torch.autograd.grad(of, by, create_graph=True, allow_unused=True)
            return [torch.zeros_like(t) if g is None else g for t, g in zip(by, found)]

        for key, value in inputs.items():
            store("in_" + key, value)
        for key, result in zip(outputs, results):
            store("out_" + key, result)
        by = [key for key, t in tensors.items() if t.requires_grad and key not in constants]
        smooth = [i for i, r in enumerate(results) if r.requires_grad]
        by = by if smooth else []
        if by:
            leaves = [tensors[key] for key in by]
            gy = [random(results[i]) for i in smooth]
            total = sum((results[i] * g).sum() for i, g in zip(smooth, gy))
            gx = gradients(total, leaves)
            for i, g in zip(smooth, gy):
                store("gy_" + outputs[i], g)
            for key, g in zip(by, gx):
                store("gx_" + key, g)
        if by and double:
            ggx = [random(g) for g in gx]
            second = gradients(sum((g * w).sum() for g, w in zip(gx, ggx)), leaves + gy)
            for key, w in zip(by, ggx):
                store("ggx_" + key, w)
            for key, g in zip(by, second):
                store("gg_" + key, g)
            for i, g in zip(smooth, second[len(by):]):
                store("ggy_" + outputs[i], g)
        self.manifest.append({
            "case": name, "function": function, "host": self.host, "attrs": dict(attrs),
            "inputs": list(inputs), "outputs": list(outputs), "rtol": rtol, "atol": atol,
            "differentiable": by, "double": bool(by) and double})
        self._restart()

    def update(self, name, optimizer, make, attrs={}, steps=3, rtol=1e-4, atol=1e-6):
        """Adds a case of the function catena.{optimizer}_update, whose state starts at 0.

        make: takes a parameter, a tensor in float64, and returns an object whose step() updates it by its
            gradient, such as a torch.optim.Optimizer
        attrs: without t
        """
        import torch
        param = torch.from_numpy(uniform(-1, 1, (3, 5))).double().requires_grad_()
        rule = make(param)
        for step in range(steps + 1):
            if step > 0:
                grad = uniform(-1, 1, (3, 5))
                self.arrays[f"{name}/grad{step}"] = grad
                param.grad = torch.from_numpy(grad).double()
                with torch.no_grad():
                    rule.step()
            self.arrays[f"{name}/param{step}"] = param.detach().numpy().copy()
        self.manifest.append({"case": name, "optimizer": optimizer, "attrs": dict(attrs),
                              "steps": steps, "rtol": rtol, "atol": atol})
        self._restart()


def generate(name, file):
    import numpy
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = Cases(name.startswith("host_"))
    module.cases(cases)
    manifest = json.dumps({"sha256": digest(file), "cases": cases.manifest}).encode()
    arrays = {"manifest": numpy.frombuffer(manifest, numpy.uint8), **cases.arrays}
    # numpy.savez() would write the time, too.
    with zipfile.ZipFile(FOLDER / f"{name}.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in arrays.items():
            info = zipfile.ZipInfo(key + ".npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as member:
                numpy.lib.format.write_array(member, value)
    print(f"{name}.npz: {len(cases.manifest)} cases")


def main():
    arguments = sys.argv[1:]
    if "-h" in arguments or "--help" in arguments:
        print(__doc__)
        return
    found = sources()
    if arguments == ["--check"]:
        values = {f.stem for f in FOLDER.glob("*.npz")
                  if "manifest.npy" in zipfile.ZipFile(f).namelist()}
        old = sorted([n for n, f in found.items() if not is_current(n, f)] + list(values - set(found)))
        if old:
            sys.exit(f"generate.py: {', '.join(old)}: expected values of the present cases, got others; "
                     f"run tests/golden/generate.py")
        print(f"{len(found)} files of cases, values are up to date")
        return
    unknown = [name for name in arguments if name not in found]
    if unknown:
        sys.exit(f"generate.py: expected names among {', '.join(found)}; got {', '.join(unknown)}")
    for name in arguments or [n for n, f in found.items() if not is_current(n, f)]:
        generate(name, found[name])


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    sys.modules["generate"] = sys.modules["__main__"]  # cases import uniform() from here
    main()
