"""Reference cases of functions/shapes.hpp."""
import numpy
import torch

from generate import integers, uniform


def cases(case):
    x = lambda *shape: {"x": uniform(-1, 1, shape)}
    three = lambda shape: {"a": uniform(-1, 1, shape), "b": uniform(-1, 1, shape),
                           "c": uniform(-1, 1, shape)}
    listed = lambda f, *args, **named: lambda **xs: f(list(xs.values()), *args, **named)

    def concat(a, b, **rest):
        return torch.cat([a, b.to(a.dtype)], 1)
    case("concat", "concat", {"a": uniform(-1, 1, (2, 3)), "b": uniform(-1, 1, (2, 1))}, concat,
         {"axis": 1})
    case("concat_integers", "concat",
         {"a": uniform(-1, 1, (2, 3)), "b": integers(-3, 3, (2, 2), "int32")}, concat, {"axis": -1})
    for axis in (0, 1, -1):
        case(f"stack_{axis}", "stack", three((2, 3)), listed(torch.stack, dim=axis), {"axis": axis})
    case("stack_0d", "stack", three(()), listed(torch.stack), {"axis": 0})
    for name, function in (("vstack", torch.vstack), ("hstack", torch.hstack),
                           ("dstack", torch.dstack)):
        for shape in ((), (2,), (2, 3), (2, 3, 2)):
            case(f"{name}_{len(shape)}d", name, three(shape), listed(function))
    for axis in (0, 1, -1):
        n = (2, 3, 2)[axis]
        case(f"separate_{axis}", "separate", x(2, 3, 2), lambda x: x.unbind(axis), {"axis": axis},
             [f"y{i}" for i in range(n)])
    case("broadcast", "broadcast", {"a": uniform(-1, 1, (3, 1)), "b": uniform(-1, 1, (2,)),
                                    "c": uniform(-1, 1, (1, 3, 2))},
         lambda a, b, c: torch.broadcast_tensors(a, b, c), outputs=["y0", "y1", "y2"])
    sequences = {"a": uniform(-1, 1, (2, 2)), "b": uniform(-1, 1, (4, 2)),
                 "c": uniform(-1, 1, (1, 2))}
    case("pad_sequence", "pad_sequence", sequences,
         listed(torch.nn.utils.rnn.pad_sequence, batch_first=True))
    case("pad_sequence_length", "pad_sequence", sequences,
         lambda **xs: torch.nn.functional.pad(
             torch.nn.utils.rnn.pad_sequence(list(xs.values()), True, -1.5), (0, 0, 0, 1),
             value=-1.5), {"length": 5, "padding": -1.5})
    case("expand_dims", "expand_dims", x(2, 3), lambda x: x[:, None, :, None], {"axis": [1, -1]})
    case("squeeze", "squeeze", x(1, 3, 1), lambda x: x.squeeze())
    case("squeeze_axis", "squeeze", x(1, 3, 1), lambda x: x.squeeze(2), {"axis": [-1]})
    case("flatten", "flatten", x(2, 3), lambda x: x.flatten())
    case("moveaxis", "moveaxis", x(2, 3, 4), lambda x: x.movedim((0, 1), (-1, 0)),
         {"source": [0, 1], "destination": [-1, 0]})
    case("swapaxes", "swapaxes", x(2, 3, 4), lambda x: x.swapaxes(0, -1), {"axis1": 0, "axis2": -1})
    case("rollaxis", "rollaxis", x(2, 3, 4), lambda x: x.permute(2, 0, 1), {"axis": 2, "start": 0})
    case("rollaxis_start", "rollaxis", x(2, 3, 4), lambda x: x.permute(1, 0, 2),
         {"axis": 0, "start": 2})
    case("flip", "flip", x(2, 3), lambda x: x.flip((1,)), {"axis": [-1]})
    case("flip_all", "flip", x(2, 3), lambda x: x.flip((0, 1)), {"axis": [0, 1]})
    case("fliplr", "fliplr", x(2, 3), lambda x: x.fliplr())
    case("flipud", "flipud", x(2, 3), lambda x: x.flipud())
    case("roll", "roll", x(2, 3), lambda x: x.roll(4), {"shift": [4]})
    case("roll_axis", "roll", x(2, 3), lambda x: x.roll(-1, 1), {"shift": [-1], "axis": [1]})
    case("roll_axes", "roll", x(3, 4), lambda x: x.roll((1, -6), (0, 1)),
         {"shift": [1, -6], "axis": [0, -1]})
    case("tile", "tile", x(2, 3), lambda x: x.tile((2, 1, 3)), {"reps": [2, 1, 3]})
    case("tile_last", "tile", x(2, 3), lambda x: x.tile((2,)), {"reps": [2]})
    case("repeat", "repeat", x(2, 3), lambda x: x.repeat_interleave(2), {"repeats": [2]})
    case("repeat_axis", "repeat", x(2, 3), lambda x: x.repeat_interleave(3, 0),
         {"repeats": [3], "axis": 0})
    case("repeat_each", "repeat", x(2, 4),
         lambda x: x.repeat_interleave(torch.tensor([2, 0, 0, 3]), 1),
         {"repeats": [2, 0, 0, 3], "axis": -1})

    def indexed(mode, widths):
        """numpy.pad as an index, which PyTorch can differentiate."""
        def function(x):
            for axis, width in enumerate(widths):
                index = numpy.pad(numpy.arange(x.shape[axis]), width, mode)
                x = x.index_select(axis, torch.from_numpy(index))
            return x
        return function
    widths = [(1, 2), (2, 0)]
    flat = [1, 2, 2, 0]
    case("pad", "pad", x(2, 3), lambda x: torch.nn.functional.pad(x, (2, 0, 1, 2)),
         {"pad_width": flat, "mode": "constant", "value": 0.0})
    case("pad_value", "pad", x(2, 3), lambda x: torch.nn.functional.pad(x, (1, 2, 1, 2), value=2.5),
         {"pad_width": [1, 2], "mode": "constant", "value": 2.5})
    for mode in ("edge", "reflect", "symmetric", "wrap"):
        case(f"pad_{mode}", "pad", x(2, 3), indexed(mode, widths),
             {"pad_width": flat, "mode": mode, "value": 0.0})
        case(f"pad_{mode}_far", "pad", x(3), indexed(mode, [(7, 8)]),
             {"pad_width": [7, 8], "mode": mode, "value": 0.0})
        case(f"pad_{mode}_one", "pad", x(1, 2), indexed(mode, [(2, 2), (2, 2)]),
             {"pad_width": [2], "mode": mode, "value": 0.0})
    for k in (-1, 0, 2):
        case(f"tril_{k}", "tril", x(2, 3, 4), lambda x: x.tril(k), {"k": k})
        case(f"triu_{k}", "triu", x(2, 3, 4), lambda x: x.triu(k), {"k": k})
