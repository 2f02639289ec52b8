"""Makes a small set of images: patterns of several kinds, whose colours are random."""
import random
import struct
import zlib


def png(width, height, rows):
    """Returns a PNG file of RGB rows."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + \
            struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"".join(b"\0" + bytes(row) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + \
        chunk(b"IEND", b"")


KINDS = {
    "bars": lambda y, x, n: y % n < n // 2,
    "columns": lambda y, x, n: x % n < n // 2,
    "checks": lambda y, x, n: (y % n < n // 2) != (x % n < n // 2),
}


def picture(kind, generator, width=72, height=64):
    """Returns the bytes of a PNG file with a random picture of this kind."""
    inside = KINDS[kind]
    colours = [[generator.randrange(256) for _ in range(3)] for _ in range(2)]
    while sum(abs(a - b) for a, b in zip(*colours)) < 200:
        colours[1] = [generator.randrange(256) for _ in range(3)]
    n, dy, dx = generator.randrange(12, 20), generator.randrange(20), generator.randrange(20)
    rows = [[min(255, max(0, c + generator.randrange(-20, 20)))
             for x in range(width) for c in colours[inside(y + dy, x + dx, n)]]
            for y in range(height)]
    return png(width, height, rows)


def write_set(folder, each, seed=1):
    """Writes a folder for each kind, with this many images in each."""
    generator = random.Random(seed)
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for i in range(each):
            (folder / kind / f"{i:03}.png").write_bytes(picture(kind, generator))
