"""Reads and writes arrays of .npz files as (dtype, shape, list of numbers), without NumPy."""
import ast
import itertools
import math
import operator
import struct
import zipfile

FORMATS = {"<f2": "e", "<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?"}


def read(file):
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.namelist():
            data = archive.read(member)
            length, start = struct.unpack_from("<H", data, 8)[0], 10
            header = ast.literal_eval(data[start:start + length].decode())
            shape = header["shape"]
            values = struct.unpack_from(f"<{math.prod(shape)}{FORMATS[header['descr']]}", data,
                                        start + length)
            if header["fortran_order"]:
                strides = [math.prod(shape[:d]) for d in range(len(shape))]
                values = [values[sum(map(operator.mul, index, strides))]
                          for index in itertools.product(*map(range, shape))]
            arrays[member.removesuffix(".npy")] = (header["descr"], shape, list(values))
    return arrays


def write(file, arrays, fortran_order=False):
    with zipfile.ZipFile(file, "w") as archive:
        for name, (descr, shape, values) in arrays.items():
            header = str({"descr": descr, "fortran_order": fortran_order, "shape": tuple(shape)})
            header += " " * (-(len(header) + 11) % 64) + "\n"
            data = struct.pack(f"<{len(values)}{FORMATS[descr]}", *values)
            archive.writestr(name + ".npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) +
                             header.encode() + data)
