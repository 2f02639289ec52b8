"""Reference cases of function_forms.hpp."""
from generate import uniform


def cases(case):
    case("split_axis", "split_axis", {"x": uniform(-1, 1, (2, 5, 2))},
         lambda x: x.tensor_split((2, 3), 1), {"indices": [2, 3], "axis": 1}, ["y0", "y1", "y2"])
