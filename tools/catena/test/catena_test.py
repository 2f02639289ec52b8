"""Tests that run catena. PLUGINS, WISHED and FEW_INPUTS are folders of plugins. Usage:
catena_test.py PROGRAM PLUGINS WISHED FEW_INPUTS [unittest options]"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

import npz

PROGRAM, PLUGINS, WISHED, FEW_INPUTS = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(4))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, *arguments, **environment):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                              env=os.environ | environment)
        return done.returncode, done.stdout, done.stderr

    def work(self, command, name, arrays, *options, fortran_order=False, **environment):
        """Returns the output arrays."""
        npz.write(self.folder / "in.npz", arrays, fortran_order)
        code, out, err = self.run_program(command, name, "--npz", self.folder / "in.npz", "--out",
                                          self.folder / "out.npz", *options, **environment)
        self.assertEqual((code, out, err), (0, "", ""))
        return npz.read(self.folder / "out.npz")

    def refused(self, command, name, arrays, *options):
        """Returns the text of the error; checks that nothing is written."""
        npz.write(self.folder / "in.npz", arrays)
        code, out, err = self.run_program(command, name, "--npz", self.folder / "in.npz", "--out",
                                          self.folder / "none.npz", *options)
        self.assertEqual((code, out), (1, ""), err)
        self.assertFalse((self.folder / "none.npz").exists())
        return err


class Call(Case):
    def test_forward_and_gradients_of_both_orders(self):
        x0, x1, gy = ("<f8", (2,), [2, 3]), ("<f8", (2,), [5, 7]), ("<f8", (2,), [1, 10])
        arrays = {"in_x0": x0, "in_x1": x1, "gy_y": gy}
        self.assertEqual(self.work("call", "mul", arrays), {"out_y": ("<f8", (2,), [10, 21])})
        out = self.work("call", "catena.mul", arrays, "--backward")
        self.assertEqual(out["gx_x0"][2], [5, 70])
        self.assertEqual(out["gx_x1"][2], [2, 30])
        arrays |= {"ggx_x0": ("<f8", (2,), [1, 1]), "ggx_x1": ("<f8", (2,), [0, 1])}
        out = self.work("call", "mul", arrays, "--double-backward")
        self.assertEqual(out["gg_x0"][2], [0, 10])
        self.assertEqual(out["gg_x1"][2], [1, 10])
        self.assertEqual(out["ggy_y"][2], [5, 7 + 3])

    def test_what_is_not_taken_is_not_read(self):
        npz.write(self.folder / "in.npz", {"in_x": ("<f4", (1,), [2]), "param0": ("<f4", (1,), [2]),
                                           "grad1": ("<f4", (1,), [1])})
        with zipfile.ZipFile(self.folder / "in.npz", "a") as archive:
            archive.writestr("other.npy", b"no array")
        for command, name in (("call", "relu"), ("update", "sgd")):
            code, out, err = self.run_program(command, name, "--npz", self.folder / "in.npz", "--out",
                                              self.folder / "out.npz")
            self.assertEqual((code, out, err), (0, "", ""))

    def test_a_gradient_that_is_the_output_gradient_itself(self):
        one = ("<f4", (1,), [1])
        out = self.work("call", "add", {"in_x0": one, "in_x1": one, "gy_y": ("<f4", (1,), [4]),
                                        "ggx_x0": ("<f4", (1,), [2]), "ggx_x1": ("<f4", (1,), [3])},
                        "--double-backward")
        self.assertEqual(out["gx_x0"][2] + out["gx_x1"][2], [4, 4])
        self.assertEqual(out["ggy_y"][2], [5])
        self.assertEqual(out["gg_x0"][2] + out["gg_x1"][2], [0, 0])

    def test_a_scalar_starts_with_one(self):
        out = self.work("call", "sum", {"in_x": ("<f4", (2, 2), [1, 2, 3, 4])}, "--backward")
        self.assertEqual(out["out_y"], ("<f4", (), [10]))
        self.assertEqual(out["gx_x"][2], [1, 1, 1, 1])

    def test_optional_and_variadic_inputs(self):
        arrays = {"in_x": ("<f4", (1, 2), [1, 2]), "in_W": ("<f4", (1, 2), [3, 4])}
        self.assertEqual(self.work("call", "linear", arrays)["out_y"][2], [11])
        arrays["in_b"] = ("<f4", (1,), [5])
        self.assertEqual(self.work("call", "linear", arrays)["out_y"][2], [16])
        arrays = {f"in_x{i}": ("<f4", (1, 1), [i]) for i in range(11)}
        self.assertEqual(self.work("call", "concat", arrays)["out_y"][2], list(range(11)))

    def test_a_file_with_a_deep_header_is_refused(self):
        file, out = self.folder / "deep.safetensors", self.folder / "none.npz"
        for header in ('{"in_x":' + "[" * 100_000 + "]" * 100_000 + "}", '{"a":' * 40_000):
            file.write_bytes(len(header).to_bytes(8, "little") + header.encode())
            code, printed, err = self.run_program("call", "relu", "--npz", file, "--out", out)
            self.assertEqual((code, printed), (1, ""), err)
            self.assertIn(f"[safetensors] {file}: expected a header in JSON, at most 64 levels deep",
                          err)

    def test_a_function_without_inputs_needs_no_file(self):
        out = self.folder / "out.npz"
        done = self.run_program("call", "org.example.ramp", "--plugins", PLUGINS, "--plugins",
                                FEW_INPUTS, "--attr", "n=3", "--attr", "step=0.5", "--out", out)
        self.assertEqual(done, (0, "", ""))
        self.assertEqual(npz.read(out), {"out_y": ("<f4", (3,), [0, 0.5, 1])})
        self.assertEqual(self.run_program("call", "exp", "--out", out), (
            1, "", "catena: [catena.exp] in_x: expected in the file, got none\n"))

    def test_a_first_input_that_is_missing(self):
        b = ("<f8", (2,), [3, 4])
        plugins = ("--plugins", PLUGINS, "--plugins", FEW_INPUTS)
        self.assertEqual(self.work("call", "org.example.scaled", {"in_b": b, "gy_y": b},
                                   "--backward", *plugins), {"out_y": b, "gx_b": b})
        self.assertIn("[org.example.y_dtype] infer: y(0, shape): expected a dtype as well",
                      self.refused("call", "org.example.y_dtype", {"in_b": b}, *plugins))

    def test_dtypes(self):
        for dtype in ("<f2", "<f4", "<f8"):
            out = self.work("call", "exp", {"in_x": (dtype, (2,), [0, 1])})["out_y"]
            self.assertEqual(out[:2], (dtype, (2,)))
            self.assertAlmostEqual(out[2][1], 2.71828, delta=2e-3)

    def test_column_major_arrays(self):
        x = ("<f4", (2, 3), [0, 3, 1, 4, 2, 5])
        out = self.work("call", "identity", {"in_x": x}, fortran_order=True)
        self.assertEqual(out["out_y"], ("<f4", (2, 3), [0, 1, 2, 3, 4, 5]))

    def test_attributes_are_json_of_their_kind(self):
        x = {"in_x": ("<f4", (2, 3), [1, 2, 3, 4, 5, 6])}
        self.assertEqual(self.work("call", "sum", x, "--attr", "axis=[0]", "--attr",
                                   "keepdims=true")["out_y"], ("<f4", (1, 3), [5, 7, 9]))
        self.assertEqual(self.work("call", "sum", x, "--attr", "axis=1")["out_y"][2], [6, 15])
        self.assertEqual(self.work("call", "cast", x, "--attr", "dtype=float64")["out_y"][0], "<f8")
        for attr, text in (("axis=true", "expected [integers of 64 bits, ...] as JSON, got true"),
                           ("axis=1.5", "expected [integers"), ("axis=", "expected [integers"),
                           # would be -1 if it wrapped around
                           ("axis=18446744073709551615", "expected [integers of 64 bits"),
                           ("axis=[18446744073709551615]", "expected [integers of 64 bits"),
                           ("axis=9223372036854775808", "expected [integers of 64 bits"),
                           ("axes=1", "expected one of axis, keepdims, got axes"),
                           ("keepdims", "expected NAME=VALUE, got keepdims")):
            self.assertIn(text, self.refused("call", "sum", x, "--attr", attr))
        for deep in ("[" * 100_000, "[" * 50_000 + "]" * 50_000):
            self.assertIn("expected [integers of 64 bits, ...] as JSON",
                          self.refused("call", "sum", x, "--attr", "axis=" + deep))
        for function, attr in (("sum", "axis=" + "x" * 60_000), ("sum", "x" * 60_000),
                               ("sum", "x" * 60_000 + "=1"), ("cast", "dtype=" + "x" * 60_000)):
            text = self.refused("call", function, x, "--attr", attr)
            self.assertIn("x" * 100 + "...", text.replace("'", ""))
            self.assertLess(len(text), 1000)
        self.assertIn("expected once", self.refused("call", "sum", x, "--attr", "axis=1",
                                                    "--attr", "axis=0"))

    def test_what_is_missing_is_named(self):
        one = ("<f4", (2,), [1, 1])
        self.assertIn("[catena.add] in_x1: expected in the file, got none",
                      self.refused("call", "add", {"in_x0": one}))
        self.assertIn("[catena.concat] in_x0: expected in the file, got none",
                      self.refused("call", "concat", {}))
        self.assertIn("[catena.concat] in_x1: expected in the file, for there is in_x3, got none",
                      self.refused("call", "concat", {"in_x0": one, "in_x3": one}))
        self.assertIn("gradient: expected an output that has one",
                      self.refused("call", "accuracy", {"in_y": ("<f4", (1, 2), [1, 2]),
                                                        "in_t": ("<i4", (1,), [0])}, "--backward"))
        self.assertIn("gy_y: expected", self.refused("call", "exp", {"in_x": one}, "--backward"))
        self.assertIn("ggx_x: expected", self.refused("call", "exp", {"in_x": one, "gy_y": one},
                                                      "--double-backward"))
        self.assertIn("catena.no_such_thing", self.refused("call", "no_such_thing", {}))
        self.assertRegex(self.refused("call", "exp", {"in_x": one}, "--device", "abacus"),
                         r"\[device\] name: expected a device of (\w+ \(.*\), )?cpu \(")
        for name in ("ReLU_", "rleu"):
            self.assertIn("did you mean catena.relu?", self.refused("call", name, {"in_x": one}))
        self.assertIn("conv2d is called catena.convolution_2d here",
                      self.refused("call", "conv2d", {"in_x": one}))
        self.assertIn("did you mean catena.adam_update?",
                      self.refused("update", "Adam", {"param0": one, "grad1": one}))
        far = self.refused("call", "xylophone", {})
        self.assertNotIn("did you mean", far)
        self.assertEqual(len(far.splitlines()), 1)
        self.assertIn("[catena.embed_id] x: expected int32 or int64, got float32",
                      self.refused("call", "embed_id", {"in_x": one, "in_W": ("<f4", (1, 1), [0])}))

    def test_names_that_mean_nothing_are_refused(self):
        one, four = ("<f4", (1, 1, 1), [1]), ("<f4", (1, 4, 1), [1, 2, 3, 4])
        for name, arrays, text in (
                ("exp", {"in_x": one, "in_z": one}, "[catena.exp] arrays in_*: expected in_x, "
                                                    "got in_z"),
                ("concat", {"in_x0": one, "in_x01": one}, "expected in_x0, got in_x01"),
                ("concat", {"in_x0": one, "in_x99999999999999999999": one}, "expected in_x0, got"),
                ("lstm", {"in_c_prev": one, "in_x": four, "gy_c": one, "gy_hh": one},
                 "[catena.lstm] arrays gy_*: expected gy_c, gy_h, got gy_hh"),
                ("exp", {"in_x": one, "gy_y": one, "ggx_y": one}, "expected ggx_x, got ggx_y"),
                ("embed_id", {"in_x": ("<i4", (1,), [0]), "in_W": ("<f4", (1, 1), [0]),
                              "ggx_x": ("<f4", (1,), [0])}, "expected ggx_W, got ggx_x")):
            for mode in ((), ("--backward",), ("--double-backward",)):
                self.assertIn(text, self.refused("call", name, arrays, *mode))
        # The file may contain the results of another run.
        self.work("call", "exp", {"in_x": one, "out_y": one, "gx_x": one, "other": one})

    def test_random_functions_follow_the_seed(self):
        x = {"in_x": ("<f4", (1000,), [1] * 1000)}
        first = self.work("call", "dropout", x, "--seed", 5)
        self.assertEqual(first, self.work("call", "dropout", x, "--seed", 5, "--threads", 2))
        self.assertNotEqual(first, self.work("call", "dropout", x, "--seed", 6))
        self.assertEqual(self.work("call", "dropout", x, "--test")["out_y"][2], [1] * 1000)

    def test_nan_is_an_error_when_asked(self):
        x = {"in_x": ("<f4", (1,), [-1])}
        self.assertNotEqual(*2 * self.work("call", "log", x)["out_y"][2])
        self.assertIn("catena.log", self.refused("call", "log", x, "--debug"))


class Plugins(Case):
    x = {"in_x": ("<f4", (2,), [1, -1])}

    def value(self, *options, **environment):
        out = self.work("call", "relu", self.x, "--plugins", PLUGINS, "--plugins", WISHED, *options,
                        **environment)
        return out["out_y"][2]

    def test_a_pin_takes_effect(self):
        self.assertEqual(self.value(), [1, 0])
        self.assertEqual(self.value("--pin", "relu=org.example.wished"), [42, 42])
        self.assertEqual(self.value("--pin", "catena.relu=org.example.wished"), [42, 42])
        self.assertEqual(self.value("--pin", "relu=org.catena.activation"), [1, 0])
        for name in "relu", "catena.relu":
            self.assertEqual(self.value(CATENA_PIN=f"{name}=org.example.wished"), [42, 42])

    def test_a_pin_that_fits_nothing_is_refused(self):
        for pin, text in (
                ("exp", "expected FUNCTION=PLUGIN, got exp"),
                ("relu=", "expected FUNCTION=PLUGIN"),
                ("relu=org.catena.activatoin", "[pin] catena.relu: expected a plugin with kernels "
                 "for it (org.catena.activation), got org.catena.activatoin"),
                ("relu=org.catena.math", "got org.catena.math"),
                ("rellu=org.catena.activation", "did you mean catena.relu?"),
                ("catena.blas/1=nobody", "expected a loaded plugin (org.catena."),
                ("no.such/1=org.catena.cpu", "no plugin has the function or extension no.such/1")):
            self.assertIn(text, self.refused("call", "relu", self.x, "--pin", pin))
        self.work("call", "relu", self.x, "--pin", "catena.blas/1=org.catena.cpu")

    def test_plugins_are_left_out(self):
        code, out, err = self.run_program("functions", "--without", "org.catena.math",
                                          "--without", "org.catena.optimizer")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("catena.relu(x)", out)
        self.assertNotIn("catena.add(", out)
        self.assertNotIn("catena.sgd_update(", out)
        self.assertIn("expected a plugin with kernels", self.refused(
            "call", "relu", self.x, "--plugins", PLUGINS, "--plugins", WISHED,
            "--without", "org.example.wished", "--pin", "relu=org.example.wished"))
        self.assertIn("got org.catena.maths", self.refused("call", "relu", self.x,
                                                           "--without", "org.catena.maths"))


class Update(Case):
    def test_steps_go_on_from_saved_state(self):
        param, grad = ("<f8", (1,), [1]), ("<f8", (1,), [0.5])
        setting = ("--attr", "lr=0.1", "--attr", "momentum=0.5")
        out = self.work("update", "momentum_sgd", {"param0": param, "grad1": grad, "grad2": grad},
                        *setting)
        self.assertAlmostEqual(out["param1"][2][0], 0.95)
        self.assertAlmostEqual(out["param2"][2][0], 0.95 - 0.075)
        self.assertAlmostEqual(out["state_v"][2][0], -0.075)
        first = self.work("update", "momentum_sgd", {"param0": param, "grad1": grad}, *setting)
        again = self.work("update", "momentum_sgd", {
            "param0": first["param1"], "grad1": grad, "state_v": first["state_v"]}, *setting)
        self.assertEqual(again["param1"], out["param2"])

    def test_state_of_halves_is_wider(self):
        half = ("<f2", (2,), [1, 2])
        out = self.work("update", "adam", {"param0": half, "grad1": half, "grad2": half})
        self.assertEqual((out["param2"][0], out["state_m"][0]), ("<f2", "<f4"))
        self.work("update", "adam", {"param0": half, "grad1": half, "state_m": out["state_m"]})
        self.assertNotIn("state_vhat", out)
        out = self.work("update", "adam", {"param0": half, "grad1": half}, "--attr", "amsgrad=true")
        self.assertEqual(out["state_vhat"][0], "<f4")

    def test_what_is_missing_is_named(self):
        one = ("<f8", (1,), [1])
        self.assertIn("grad1: expected", self.refused("update", "sgd", {"param0": one}))
        self.assertIn("param0: expected", self.refused("update", "sgd", {"grad1": one}))
        self.assertIn("grad2: expected in the file, for there is grad3, got none",
                      self.refused("update", "adam",
                                   {"param0": one, "grad1": one, "grad3": one}))
        for name in "grad0", "grad", "grad02", "grads", "state_x":
            self.assertIn(f", got {name}\n", self.refused(
                "update", "adam", {"param0": one, "grad1": one, "grad2": one, name: one}))
        self.assertIn("catena.luck_update", self.refused("update", "luck", {"param0": one}))


class Listing(Case):
    def test_functions_are_listed_with_signatures(self):
        code, out, err = self.run_program("functions")
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertIn("catena.add(x0, x1)", lines)
        self.assertIn("catena.add_constant(x, value)", lines)
        place = lines[lines.index("catena.add(x0, x1)") + 2]
        for text in ("org.catena.math on cpu", "float32", "float64", "to any order"):
            self.assertIn(text, place)
        self.assertNotIn("catena.apply_dropout", out)
        place = lines[lines.index("catena.accuracy(y, t, ignore_label=-1)") + 2]
        self.assertIn("=float16|bfloat16|float32|float64, ", place)
        self.assertIn("=int32|int64;", place)

    def test_one_function_is_described_whole(self):
        code, out, _ = self.run_program("describe", "linear")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\n  input +b +T, optional")
        for text in ("catena.linear(x, W, b?, n_batch_axes=1)",
                     "forward cpu org.catena.connection: float32, float64 (priority ",
                     "forward cpu org.catena.connection, on float32 copies: float16, bfloat16 "
                     "(priority "):
            self.assertIn(text, out)
        self.assertEqual(out.count("forward cpu org.catena.connection"), 2)
        shapes = ["--input", "x=(64, 784):float16", "--input", "W=(10,784):float16"]
        code, out, err = self.run_program("describe", "linear", *shapes)
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.endswith("\noutputs\n    y (64, 10) float16\n"), out)
        for function, arguments, result in (  # a view, compositions
                ("expand_dims", ["--input", "x=(3,)", "--attr", "axis=0"], "y (1, 3) float32"),
                ("stack", ["--input", "xs0=()", "--input", "xs1=()", "--attr", "axis=0"],
                 "y (2,) float32"),
                ("max_pooling_3d", ["--input", "x=(1,2,4,4,4)", "--attr", "ksize=[2]"],
                 "y (1, 2, 2, 2, 2) float32")):
            code, out, err = self.run_program("describe", function, *arguments)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"outputs\n    {result}\n", out)
        for shape, message in (("x=3", "expected NAME=(2,3)"), ("y=(3)", "in_x: expected"),
                               ("x=(2,3)", "in_W: expected")):
            code, _, err = self.run_program("describe", "linear", "--input", shape)
            self.assertEqual(code, 1)
            self.assertIn(message, err)
        code, _, err = self.run_program("describe", "catena.no_such_thing")
        self.assertEqual(code, 1)
        self.assertIn("catena.no_such_thing", err)

    def test_other_plugins_alone(self):
        self.assertEqual(self.run_program("functions", "--plugins", self.folder), (0, "", ""))
        code, _, err = self.run_program("functions", "--plugins", self.folder / "none")
        self.assertEqual(code, 1)
        self.assertIn("expected a folder, got", err)
        (self.folder / "broken.catena").write_text("not a library")
        code, _, err = self.run_program("functions", "--plugins", PLUGINS, "--plugins", self.folder)
        self.assertEqual(code, 1)
        self.assertTrue(err.startswith(f"catena: [plugins] refused {self.folder}/broken.catena: "))
        self.assertEqual(len(err.splitlines()), 1)

    def test_plugins_are_shown_where_they_were_found(self):
        code, out, err = self.run_program("plugins", "--plugins", PLUGINS, "--without",
                                          "org.catena.math")
        self.assertEqual((code, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[0], f"1. {PLUGINS} (program)")
        self.assertRegex(out, r"\n   loaded +org.catena.cpu +\S+ +cpu.catena, 1 device backend\n")
        self.assertRegex(out, r"\n   left out +org.catena.math +\S+ +math.catena: as asked for\n")
        self.assertRegex(lines[-1], "^[0-9]+ loaded, 0 refused, 0 overridden, 1 left out(, [0-9]+ idle)?$")

    def test_output_that_is_lost_is_told(self):
        for arguments in (["describe", "relu"], ["plugins"], ["plugins", "--json"], ["functions"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([PROGRAM, *arguments, "--plugins", PLUGINS], stdout=full,
                                      stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("No space left on device", done.stderr)

    def test_no_file_is_taken_for_a_closed_stdout(self):
        npz.write(self.folder / "in.npz", {"in_x": ("<f4", (1,), [2])})
        out = self.folder / "out.npz"
        files = ["--npz", self.folder / "in.npz", "--out", out]
        done = subprocess.run(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", PROGRAM, "call", "exp",
                               *files], check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(list(npz.read(out)), ["out_y"])

    def test_usage(self):
        code, out, _ = self.run_program("--help")
        self.assertEqual(code, 0)
        self.assertIn("usage: catena COMMAND", out)
        files = ["--npz", "x", "--out", "y"]
        for arguments in ([], ["dance"], ["describe"], ["functions", "more"], ["call", "exp"],
                          ["call", "exp", "--npz", "x"], ["--what"],
                          ["call", "exp", *files, "--threads", "0"],
                          ["call", "exp", *files, "--threads", "1025"],
                          ["call", "exp", *files, "--seed", "-1"],
                          ["call", "exp", *files, "--seed", "18446744073709551616"],
                          ["call", "exp", *files, "--device", ""],
                          ["call", "exp", *files[2:], "--npz", ""],
                          ["update", "sgd", *files, "--backward"],
                          ["update", "sgd", *files, "--test"],
                          ["describe", "exp", "--attr", "a=1"], ["functions", "--pin", "a=b"],
                          ["functions", *files], ["describe", "exp", "--debug"],
                          ["functions", "--json"], ["plugins", "look"], ["plugins", *files],
                          ["plugins", "lock", "--hash"], ["plugins", "--out", "x"],
                          ["plugins", "lock", "--out", ""]):
            code, out, err = self.run_program(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertEqual(len(err.splitlines()), 1, arguments)
            self.assertIn("; see catena --help", err)


if __name__ == "__main__":
    unittest.main()
