"""Tests that run catena-inspect.

usage: inspect_test.py PROGRAM SAMPLE OTHER_MAJOR PAGE [unittest options]
  SAMPLE, OTHER_MAJOR  plugins built from sample.c
  PAGE                 the page that documents the JSON
"""
import hashlib
import json
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SAMPLE, OTHER_MAJOR, PAGE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(4))
ABI = {"catena_manifest_v1", "catena_plugin_entry_v1"}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ran = self.folder / "ran"  # written by code of the sample when it runs

    def run_tool(self, *arguments):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                              env={**os.environ, "SAMPLE_RAN": str(self.ran)})
        self.assertIn(done.returncode, (0, 1, 2), done)
        return done.returncode, done.stdout, done.stderr

    def out(self, *arguments):
        code, out, err = self.run_tool(*arguments)
        self.assertEqual((code, err), (0, ""), arguments)
        return out

    def json(self, *arguments):
        document = json.loads(self.out(*arguments, "--format", "json"))
        self.assertEqual(document.pop("format"), 1)
        return document

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path


class Files(Case):
    """Tests of what is read from a file without loading it."""

    def test_a_plugin(self):
        [m] = self.json(SAMPLE)["manifests"]
        self.assertEqual(m["file"], str(SAMPLE))
        self.assertEqual((m["id"], m["version"], m["vendor"], m["license"]),
                         ("org.example.sample", "1.2.3", "A third party", "MIT"))
        self.assertEqual(m["devices"], ["cpu", "nowhere"])
        self.assertEqual(m["abi"], {"major": 1, "built": 7, "needed": 0})
        self.assertEqual(m["size"], SAMPLE.stat().st_size)
        self.assertIn("libc.so.6", m["needs"])
        self.assertLessEqual(ABI, set(m["exports"]))
        self.assertNotIn("getenv", m["exports"])
        notes = subprocess.run(["readelf", "-nW", SAMPLE], capture_output=True, text=True).stdout
        self.assertIn(m["build_id"], notes)
        self.assertEqual(m["sha256"], hashlib.sha256(SAMPLE.read_bytes()).hexdigest())
        self.assertIsNone(m["refused"])
        text = self.out(SAMPLE)
        self.assertIn("  plugin      org.example.sample 1.2.3\n", text)
        self.assertIn("  ABI         needs 1.0, built with 1.7\n", text)
        self.assertIn("| licence | MIT |", self.out(SAMPLE, "-f", "markdown"))
        self.assertFalse(self.ran.exists(), "code of the plugin ran")

    def test_of_another_major_only_the_file_is_read(self):
        [m] = self.json(OTHER_MAJOR)["manifests"]
        self.assertEqual(m["abi"], {"major": 2})
        self.assertNotIn("id", m)
        self.assertLessEqual(ABI, set(m["exports"]))
        self.assertIn("expected 1, got 2", m["refused"])
        self.assertIn("loads here  no: ABI major: expected 1, got 2", self.out(OTHER_MAJOR))
        self.assertFalse(self.ran.exists(), "code of the plugin ran")

    def test_a_file_that_others_may_write_would_not_load(self):
        path = self.file("open.catena", SAMPLE.read_bytes())
        path.chmod(0o666)
        [m] = self.json(path)["manifests"]
        self.assertEqual(m["id"], "org.example.sample")
        self.assertIn("mode", m["refused"])

    def test_what_is_no_plugin_does_not_hide_the_others(self):
        text = self.file("text.catena", b"not a library, but as long as an ELF header " * 3)
        short = self.file("short.catena", b"\x7fELF")
        gone = self.folder / "gone.catena"
        wrong = {text: "does not begin as an ELF file", short: "too short",
                 gone: "there is no such file", self.folder: "no regular file",
                 PROGRAM: "no manifest"}
        code, out, err = self.run_tool(*wrong, SAMPLE)
        self.assertEqual(code, 1)
        self.assertIn("org.example.sample", out)
        for (path, reason), line in zip(wrong.items(), err.splitlines(), strict=True):
            self.assertTrue(line.startswith(f"catena-inspect: {path}: "), line)
            self.assertIn(reason, line)
        code, out, _ = self.run_tool(*wrong, SAMPLE, "-f", "json")
        self.assertEqual(code, 1)
        listed = json.loads(out)["manifests"]
        self.assertEqual([("error" in m, "id" in m) for m in listed],
                         [(True, False)] * len(wrong) + [(False, True)])

    def test_what_a_file_says_is_harmless(self):
        data = SAMPLE.read_bytes()
        self.assertEqual(data.count(b"A third party"), 1)
        path = self.file("rude.so", data.replace(b"A third party",
                                                    b"\x1b[31m\xff red\0\0\0"))
        out = subprocess.run([PROGRAM, path.name], cwd=self.folder, capture_output=True).stdout
        self.assertIn(b"vendor      ?[31m\xff red\n", out)
        [m] = self.json(path)["manifests"]
        self.assertEqual(m["vendor"], "\x1b[31m\ufffd red")

    def test_a_cut_file_is_refused(self):
        data = SAMPLE.read_bytes()
        lengths = [*range(0, 64, 7), *range(64, len(data), 311), len(data) - 1]
        cut = [self.file(f"cut{n}.catena", data[:n]) for n in lengths]
        code, out, err = self.run_tool(*cut)
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(len(err.splitlines()), len(cut))
        self.assertFalse(self.ran.exists(), "code of the plugin ran")

    def test_damaged_files_do_no_harm(self):
        data = SAMPLE.read_bytes()
        sections = int.from_bytes(data[40:48], "little")
        dice = random.Random(1)
        damaged = []
        for i in range(400):
            copy = bytearray(data)
            for _ in range(dice.choice((1, 4, 40))):
                start, end = dice.choice(((0, 64), (0, 4096), (sections, len(data))))
                copy[dice.randrange(start, end)] = dice.choice((0, 1, 255, dice.randrange(256)))
            damaged.append(self.file(f"damaged{i}.catena", copy))
        _, out, err = self.run_tool(*damaged, "-f", "json")
        listed = json.loads(out)["manifests"]
        self.assertEqual(len(listed), len(damaged))
        wrong = sum("error" in m for m in listed)
        self.assertEqual(len(err.splitlines()), wrong)
        self.assertGreater(wrong, 50)
        self.assertFalse(self.ran.exists(), "code of the plugin ran")


class Loaded(Case):
    """Tests of the contents of loaded plugins."""

    def test_functions(self):
        functions = self.json("functions", SAMPLE)["functions"]
        self.assertEqual(self.ran.read_text(), "constructor\nentry\n")
        self.assertEqual([f["name"].rsplit(".", 1)[1] for f in functions],
                         ["bump", "join", "mix", "mix_grad"])
        bump, join, mix, grad = functions
        self.assertEqual((mix["plugin"], mix["version"]), ("org.example.sample", 2))
        self.assertEqual(mix["doc"], "y = scale * x\n\nSecond paragraph.")
        self.assertEqual(mix["flags"], ["stochastic"])
        self.assertEqual(mix["inputs"][1], {
            "name": "labels", "type": "I", "flags": ["optional", "non_differentiable"], "doc": ""})
        self.assertEqual(mix["outputs"][1]["flags"], ["hidden"])
        self.assertEqual(mix["attributes"], [
            {"name": "scale", "kind": "float", "flags": ["required"], "doc": "how much"},
            {"name": "axis", "kind": "int", "flags": [], "default": -1, "range": [-3, 3],
             "doc": ""},
            {"name": "mode", "kind": "string", "flags": [], "default": "full",
             "choices": ["full", "valid"], "doc": ""},
            {"name": "stride", "kind": "ints", "flags": [], "default": [1, 2], "doc": ""},
            {"name": "fast", "kind": "bool", "flags": ["hint"], "default": True, "doc": ""},
            {"name": "dtype", "kind": "dtype", "flags": [], "default": "float32", "doc": ""}])
        self.assertEqual(mix["gradient"], {
            "order": "any", "routes": ["function"], "function": "org.example.sample.mix_grad",
            "keeps": ["x", "mask"]})
        self.assertEqual(mix["types"], ["T", "I", "M"])
        self.assertEqual(mix["dtypes"], {"nowhere": [["float32", "int32", "uint8"],
                                                     ["float64", "int32", "uint8"]]})
        self.assertEqual(mix["examples"], ["x=(2,3) scale=2", "x=(4)[0,1] scale=0.5 axis=0"])
        self.assertEqual(
            mix["cpp"],
            "Variable mix(const Variable& x, double scale, const Variable& labels = {}, "
            "std::int64_t axis = -1, std::string_view mode = \"full\", Ints stride = {1, 2}, "
            "bool fast = true, Dtype dtype = Dtype::float32)")
        self.assertEqual(join["gradient"], {"order": "first", "routes": ["kernel"], "keeps": []})
        self.assertEqual(join["attributes"][0]["default"], [0.5, 2.0])
        self.assertEqual(join["cpp"], "")
        self.assertEqual((bump["gradient"]["order"], bump["cpp"]), ("none", ""))
        self.assertEqual(grad["gradient"]["routes"], ["composition"])

    def test_functions_for_people(self):
        text = self.out("functions", SAMPLE)
        self.assertIn("  org.example.sample.join  y = x and more\n", text)
        self.assertNotIn("mix_grad", text)  # part of another function
        text = self.out("functions", SAMPLE, "mix")
        for line in ("  input      labels  I, optional, no gradient\n",
                     '  attribute  mode    string, default "full", one of full, valid\n',
                     "  gradient   any order by org.example.sample.mix_grad; keeps x, mask\n",
                     "  dtypes     nowhere: T=float32|float64, I=int32, M=uint8\n"):
            self.assertIn(line, text)
        self.assertNotIn("org.example.sample.join", text)
        self.assertIn("mix_grad(x, mask", self.out("functions", SAMPLE, "--all"))
        for command in ("functions", "kernels"):
            lines = self.out(command, "--all").splitlines()
            self.assertLessEqual(max(map(len, lines)), 120)

    def test_functions_in_markdown(self):
        page = self.out("functions", SAMPLE, "-f", "markdown")
        self.assertIn("- [sample](#sample): 3 functions\n", page)
        self.assertIn("full names `org.example.sample.NAME`: ", page)
        self.assertIn("[mix](#mix)", page)
        self.assertIn("\n### mix\n\n```cpp\nVariable mix(const Variable& x, double scale,", page)
        self.assertIn("- input `x` (T): values | any shape\n", page)
        self.assertIn("\n### bump\n\n`org.example.sample.bump(state)`\n", page)
        self.assertNotIn("### mix_grad", page)

    def test_what_is_chosen(self):
        everything = self.json("functions")["functions"]
        math = self.json("functions", "org.catena.math")["functions"]
        self.assertEqual({f["plugin"] for f in math}, {"org.catena.math"})
        self.assertEqual({f["name"] for f in math},
                         {f["name"] for f in everything if f["plugin"] == "org.catena.math"})
        [relu] = self.json("functions", "relu")["functions"]
        self.assertEqual(relu["name"], "catena.relu")
        self.assertEqual(relu["gradient"]["order"], "any")
        self.assertEqual(self.json("functions", "catena.relu")["functions"], [relu])
        code, out, err = self.run_tool("kernels", "dance")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("[kernels] expected a function, the id of a loaded plugin or a file, "
                      "got 'dance'", err)
        # If plugins are named, kernels of other plugins are not listed.
        without = "--without", "org.catena.onednn"
        if without[1] not in self.out("plugins"):
            without = ()
        [linear] = self.json("kernels", "convolution_2d", "org.catena.connection",
                             *without)["kernels"][:1]
        self.assertEqual(linear["plugin"], "org.catena.connection")

    def test_a_file_that_is_refused(self):
        for command in ("functions", "kernels", "devices", "header"):
            code, out, err = self.run_tool(command, OTHER_MAJOR)
            self.assertEqual((code, out), (1, ""))
            self.assertIn("ABI major: expected 1, got 2", err)

    def test_kernels_in_the_order_in_which_they_are_tried(self):
        listed = self.json("kernels", SAMPLE)["kernels"]
        self.assertEqual([(k["function"], k["priority"]) for k in listed],
                         [("org.example.sample.join", 0), ("org.example.sample.mix", 70),
                          ("org.example.sample.mix", 5), ("org.nobody.has_this", 0)])
        self.assertEqual(listed[1].pop("name"), "")
        self.assertEqual(listed[1], {
            "function": "org.example.sample.mix", "phase": "forward", "device": "nowhere",
            "isa": "", "priority": 70, "variant": "", "plugin": "org.example.sample",
            "versions": [1, 2], "flags": ["adds"], "types": ["T", "I", "M"],
            "dtypes": [["float32", "int32", "uint8"], ["float64", "int32", "uint8"]]})
        self.assertEqual(listed[0]["phase"], "backward")
        text = self.out("kernels", SAMPLE)
        self.assertIn("    70  baseline  org.example.sample  adds  T=float32|float64, I=int32, "
                      "M=uint8\n", text)
        self.assertIn("| `org.example.sample.mix` | forward | nowhere | 70 | baseline |",
                      self.out("kernels", SAMPLE, "-f", "markdown"))
        softmax = [k for k in self.json("kernels", "catena.softmax")["kernels"]
                   if k["phase"] == "forward"]
        order = [k["priority"] for k in softmax]
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertGreater(len(order), 1)

    def test_devices(self):
        document = self.json("devices", SAMPLE)
        self.assertEqual(document["backends"], [])
        self.assertEqual(document["extensions"], [{
            "id": "org.example.thing/1", "device": "nowhere", "priority": 30,
            "plugin": "org.example.sample"}])
        self.assertIn("  org.example.thing/1  nowhere  priority 30  org.example.sample\n",
                      self.out("devices", SAMPLE))
        [cpu] = self.json("devices", "org.catena.cpu")["backends"]
        self.assertEqual((cpu["name"], cpu["devices"][0]["name"]), ("cpu", "cpu:0"))
        self.assertGreaterEqual(cpu["devices"][0]["threads"], 1)
        self.assertIn("| `catena.blas/1` | cpu |", self.out("devices", "-f", "markdown"))

    def test_plugins_are_reported(self):
        self.assertIn("org.catena.math", self.out("plugins"))
        (self.folder / "broken.catena").write_text("not a library")
        (self.folder / "sample.catena").write_bytes(SAMPLE.read_bytes())
        document = self.json("plugins", "--plugins", self.folder)
        self.assertEqual([p["id"] for p in document["loaded"]], ["org.example.sample"])
        self.assertEqual((document["loaded"][0]["functions"], document["loaded"][0]["kernels"]),
                         (4, 4))
        self.assertEqual([p["file"] for p in document["refused"]],
                         [str(self.folder / "broken.catena")])
        self.assertEqual([s["folder"] for s in document["searched"]], [str(self.folder)])
        page = self.out("plugins", "--plugins", self.folder, "-f", "markdown",
                        "--without", "org.example.sample")
        self.assertIn("| `org.example.sample` | 1.2.3 | left out |", page)
        for arguments, reason in ((("--plugins", "/nowhere"), "expected a folder, got '/nowhere'"),
                                  (("--plugins", SAMPLE), f"expected a folder, got '{SAMPLE}'"),
                                  (("--without", "org.nobody"),
                                   "[without] expected a loaded plugin")):
            code, out, err = self.run_tool("plugins", *arguments)
            self.assertEqual((code, out), (1, ""), arguments)
            self.assertIn(reason, err)

    def test_every_member_of_the_json_is_documented(self):
        page = PAGE.read_text()
        members = set()

        def collect(value):
            if isinstance(value, dict):
                members.update(value)
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, (dict, list)):
                    collect(inner)

        collect(json.loads(self.out(SAMPLE, "-f", "json")))
        for command in ("functions", "kernels", "devices", "plugins"):
            words = [command] if command == "plugins" else [command, SAMPLE, "org.catena.cpu"]
            collect(json.loads(self.out(*words, "-f", "json")))
        devices = {"nowhere"}  # keys that are not members
        self.assertGreater(len(members), 40)
        self.assertEqual({m for m in members - devices if f"`{m}`" not in page}, set())


class Headers(Case):
    """Tests of catena/functions.hpp and similar headers."""

    def test_the_header_leaves_out_what_is_not_for_users(self):
        out = self.out("header")
        self.assertIn("inline Variable relu(const Variable& x) {", out)
        self.assertIn("inline Variable linear(const Variable& x, const Variable& W, "
                      "const Variable& b = {}, std::int64_t n_batch_axes = 1) {", out)
        self.assertNotIn("sgd_update", out)
        out = self.out("header", "--prefix", "org.nobody.", "--namespace", "nobody")
        self.assertNotIn("inline", out)
        self.assertIn("namespace nobody {", out)

    def test_classes_of_optimizers(self):
        out = self.out("optimizers", "adam_update", "ada_delta_update")
        self.assertIn("class Adam : public Optimizer {", out)
        self.assertIn('Optimizer(with_state(amsgrad_, "vhat", {"m", "v"}))', out)
        self.assertIn("class AMSGrad : public Adam {", out)
        self.assertIn("Adam(alpha_, beta1_, beta2_, eps_, eta_, 0.0, true, false, 0.1, 0.001)", out)
        self.assertIn("using All = std::tuple<AdaBound, AdaDelta, Adam, AdamW, AMSBound, AMSGrad>;",
                      out)
        self.assertEqual(out.count("set_rate"), 1)  # AdaDelta has no rate
        self.assertNotIn("SGD", out)
        out = self.out("python-optimizers", "adam_update")
        self.assertIn("class AMSGrad(Adam):", out)
        self.assertIn("def __init__(self, alpha: float = 0.001, beta1: float = 0.9, beta2: float = "
                      "0.999, eps: float = 1e-08, eta: float = 1.0) -> None:", out)
        compile(out, "optimizers.py", "exec")

    def test_a_header_of_some_functions(self):
        out = self.out("header", SAMPLE, "mix", "--prefix", "org.example.sample.",
                       "--namespace", "example")
        self.assertIn("namespace example {", out)
        self.assertEqual(out.count("inline Variable mix(const Variable& x, double scale,"), 1)
        self.assertNotIn("relu", out)
        self.assertIn("inline Variable relu(", self.out("header", "relu"))

    def test_what_no_wrapper_can_have_is_said(self):
        code, out, err = self.run_tool("header", SAMPLE, "--prefix", "org.example.sample.")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("attribute weights: expected a kind and default that C++ can write", err)
        code, out, err = self.run_tool("header", SAMPLE)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("[header] --prefix: expected the beginning of the functions' names "
                      "(org.example.sample.bump), got 'catena.'", err)

    def test_stubs_for_python(self):
        out = self.out("stubs", SAMPLE, "--prefix", "org.example.sample.")
        compile(out, "stubs.pyi", "exec")
        self.assertIn("def mix(x: ArrayLike, scale: float, labels: ArrayLike | None = None, "
                      "axis: int = -1, mode: ", out)
        self.assertNotIn("mix_grad", out)
        omitted = self.out("stubs", SAMPLE, "--prefix", "org.example.sample.", "--omit", "mix")
        self.assertNotIn("def mix(", omitted)
        self.assertIn("def join(", omitted)
        out = self.out("stubs", "relu")
        self.assertEqual(out.count("def "), 1)
        self.assertIn("def relu(x: ArrayLike) -> Variable:\n", out)

    def test_a_file_that_is_the_same_is_not_written_again(self):
        file = self.folder / "deep/functions.hpp"
        self.out("header", "--output", file)
        before = file.stat().st_mtime_ns
        self.out("header", "--output", file)
        self.assertEqual(file.stat().st_mtime_ns, before)

    def test_a_file_is_written_whole_or_not_at_all(self):
        file = self.folder / "functions.hpp"
        file.write_text("old")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        done = subprocess.run([PROGRAM, "header", "-o", file], capture_output=True, text=True,
                              preexec_fn=limit, restore_signals=False, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{file}: expected a file that can be written, got File too large", done.stderr)
        self.assertEqual(file.read_text(), "old")
        self.assertEqual(list(self.folder.iterdir()), [file])

    @unittest.skipIf(os.environ.get("CATENA_SANITIZE"), "sanitizers map more than any limit allows")
    def test_memory_that_runs_out_is_told_with_the_file(self):
        data = bytearray(SAMPLE.read_bytes())
        sections, = struct.unpack_from("<Q", data, 0x28)  # e_shoff and e_shstrndx of Elf64_Ehdr
        names, = struct.unpack_from("<H", data, 0x3e)
        struct.pack_into("<Q", data, sections + 64 * names + 0x20, 4 << 30)  # sh_size
        file = self.file("vast.catena", data)
        os.truncate(file, 5 << 30)  # a sparse file, which takes no disk space

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        for words, where in (([SAMPLE, file], "manifest"), (["functions", file], "load")):
            done = subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                                  preexec_fn=limit, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertEqual(done.stderr, f"catena-inspect: [{where}] {file}: expected enough "
                                          "memory, got too little\n")

    def test_devices_are_no_files(self):
        for words in (["/dev/zero"], ["header", "-o", "/dev/zero"], ["header", "-o", "/dev/full"],
                      ["header", "--compare", "/dev/zero"], ["functions", "/dev/zero"]):
            code, out, err = self.run_tool(*words)
            self.assertEqual(code, 1, words)
            self.assertIn("/dev/", out + err)

    def test_output_that_is_lost_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "functions"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No space left on device", done.stderr)

    def test_compare(self):
        file = self.folder / "page.md"
        words = ["functions", SAMPLE, "-f", "markdown"]
        self.out(*words, "-o", file)
        self.out(*words, "--compare", file)
        code, _, err = self.run_tool(*words, "--compare", self.folder / "gone.md")
        self.assertEqual(code, 1)
        self.assertIn("gone.md: expected a file, there is none", err)
        text = file.read_text()
        for changed, reason in (
                (text.replace("### mix", "### max"), "expected '### mix', got '### max'"),
                (text + "more\n", "expected its end, got 'more'"),
                ("", "expected '# Functions', got its end")):
            file.write_text(changed)
            code, out, err = self.run_tool(*words, "--compare", file)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(reason, err)
            self.assertEqual(file.read_text(), changed)

    def test_no_header_from_half_of_the_plugins(self):
        (self.folder / "broken.catena").write_text("not a library")
        code, _, err = self.run_tool("--plugins", self.folder, "header")
        self.assertEqual(code, 1)
        self.assertTrue(err.startswith(
            f"catena-inspect: [header] refused {self.folder}/broken.catena: "), err)
        self.out("--plugins", self.folder, "plugins")


class Usage(Case):
    def test_usage(self):
        text = self.out("--help")
        self.assertIn("usage: catena-inspect", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for arguments, reason in (([], "expected a COMMAND or a file"),
                                  (["dance"], "got 'dance'"),
                                  (["plugins", "more"], "expected no NAME, got 'more'"),
                                  (["functions", "--format", "xml"], "got 'xml'"),
                                  *[(["header", "--namespace", name], f"got '{name}'")
                                    for name in ("1x", "a::1x", "a:b", "a::", "int", "a b")],
                                  (["--what"], "--what")):
            code, out, err = self.run_tool(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn(reason, err)
            self.assertIn("catena-inspect --help", err)


if __name__ == "__main__":
    os.umask(0o022)  # files that a group can write to are refused
    unittest.main()
