"""Reference cases of functions/indexing.hpp.

The attribute `index` of get_item and set_item is a list of items: an integer, [begin, end, step] for a slice,
"..." for an ellipsis, "new" for a new axis, and "i", "j" for the inputs with these names.
"""
import numpy as np
import torch
from generate import integers, uniform


def torch_index(index, inputs):
    """Returns the index of a tensor for an attribute."""
    items = []
    for item in index:
        if isinstance(item, list):
            items.append(slice(*item))
        elif isinstance(item, str):
            items.append({"...": ..., "new": None}[item] if item in ("...", "new") else inputs[item])
        else:
            items.append(item)
    return tuple(items)


def cases(case):
    def get(name, shape, index, **indices):
        case(f"get_item_{name}", "get_item", {"x": uniform(-1, 1, shape), **indices},
             lambda x, **inputs: x[torch_index(index, inputs)], {"index": index})

    ids = np.array([2, 0, 2, -1], "int64")
    get("basic", (4, 3, 5), [1, [None, None, 2], "new", "...", -1])
    get("slices", (4, 5), [[1, 4, 2], [None, 3, 1]])
    get("array", (3, 2, 4), [[None, None, None], "new", [0, 2, None], "i"], i=ids)
    get("first", (3, 4), ["i"], i=np.array([[0, 2], [2, 2]], "int32"))
    get("two", (3, 2, 4), ["i", [None, None, None], "j"], i=ids, j=np.array([[3], [1]], "int64"))
    get("adjacent", (2, 3, 4), [[None, None, None], "i", "j"], i=ids, j=integers(0, 4, (4,), "int32"))
    get("integer", (2, 3, 4), ["i", 1], i=np.array([1, 1, 0], "int64"))
    get("mask", (3, 4), ["i"], i=np.arange(12).reshape(3, 4) % 3 == 1)
    get("mask_axis", (2, 3, 4), [[None, None, None], "i", [1, None, None]],
        i=np.array([True, False, True]))

    def set_item(x, v, index, **inputs):
        y = x.clone()
        y[torch_index(index, inputs)] = v
        return y
    for name, index, v, indices in [
            ("basic", [[None, None, None], 1, [0, 4, 2]], (2, 2), {}),
            ("broadcast", [1, "..."], (4,), {}),
            ("array", [[None, None, None], "i"], (2, 2, 4), {"i": np.array([2, 0], "int64")}),
            ("mask", ["i"], (), {"i": np.arange(24).reshape(2, 3, 4) % 5 == 1})]:
        case(f"set_item_{name}", "set_item",
             {"x": uniform(-1, 1, (2, 3, 4)), "v": uniform(-1, 1, v), **indices},
             lambda x, v, index=index, **inputs: set_item(x, v, index, **inputs), {"index": index})

    x = uniform(-1, 1, (3, 4))
    case("take", "take", {"x": uniform(-1, 1, (2, 4, 3)), "indices": integers(-4, 4, (2, 3))},
         lambda x, indices: x[:, indices], {"axis": 1})
    case("take_along_axis", "take_along_axis",
         {"x": x, "indices": np.array([[2, 0, 1, 1], [0, 0, 2, 1]], "int32")},
         lambda x, indices: x.take_along_dim(indices.long(), 0), {"axis": 0})
    case("gather", "gather", {"x": x, "indices": integers(0, 4, (2, 6))},
         lambda x, indices: x.gather(1, indices), {"axis": 1})
    # PyTorch's gradient of scatter needs distinct indices.
    distinct = np.array([[0, 2, 1, 2], [2, 1, 0, 0]], "int64")
    case("scatter", "scatter", {"x": x, "indices": distinct, "src": uniform(-1, 1, (2, 4))},
         lambda x, indices, src: x.scatter(0, indices, src), {"axis": 0})
    case("scatter_add", "scatter_add",
         {"x": x, "indices": integers(0, 3, (5, 4)), "src": uniform(-1, 1, (5, 4))},
         lambda x, indices, src: x.scatter_add(0, indices, src), {"axis": 0})
    case("index_add", "index_add",
         {"x": x, "indices": integers(0, 4, (6,)), "src": uniform(-1, 1, (3, 6))},
         lambda x, indices, src: x.index_add(1, indices, src), {"axis": 1})
    case("put", "put", {"x": x, "indices": np.array([11, 0, 5], "int64"), "v": uniform(-1, 1, (3,))},
         lambda x, indices, v: x.put(indices, v))
    case("select_item", "select_item", {"x": x, "t": integers(0, 4, (3,), "int32")},
         lambda x, t: x[torch.arange(3), t.long()])
    order = np.array([2, 0, 3, 1], "int64")
    case("permutate", "permutate", {"x": x, "indices": order},
         lambda x, indices: x[:, indices], {"axis": 1, "inv": False})
    case("permutate_inv", "permutate", {"x": x, "indices": order},
         lambda x, indices: x[:, torch.argsort(indices)], {"axis": 1, "inv": True})
    case("nonzero", "nonzero", {"x": integers(-1, 2, (3, 4))}, lambda x: x.nonzero())
    case("nonzero_bool", "nonzero", {"x": integers(0, 2, (2, 3, 2), "bool")}, lambda x: x.nonzero())
    case("nonzero_floats", "nonzero",
         {"x": np.array([0, -0.0, 2, np.nan, -np.inf], "float32")}, lambda x: x.nonzero())
    case("nonzero_none", "nonzero", {"x": np.zeros((2, 2), "float32")}, lambda x: x.nonzero())
