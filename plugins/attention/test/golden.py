"""Cases of attention; PyTorch's definition of it ("math") has second derivatives."""
import numpy
import torch
import torch.nn.functional as F

from generate import uniform


def attention(q, k, v, bias=None, mask=None, lengths=None, layout="BHTD", dropout=0, **options):
    """F.scaled_dot_product_attention with masks for the options that it lacks."""
    if layout == "BTHD":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    T, S = q.shape[2], k.shape[2]
    keys = torch.full((q.shape[0],), S) if lengths is None else lengths
    offset = options.get("offset", 0)
    place = torch.arange(T) + (offset if offset >= 0 else keys[:, None] - T)
    place = place.expand(q.shape[0], T)[:, None, :, None]
    j = torch.arange(S)
    seen = (j < keys[:, None, None, None]).expand(-1, 1, T, -1)
    if options.get("causal"):
        seen = seen & (j <= place)
    if options.get("window"):
        seen = seen & (j > place - options["window"])
    if mask is not None:
        seen = seen & mask
    if bias is not None:
        seen = torch.where(seen, bias, -torch.inf)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = F.scaled_dot_product_attention(q, k, v, seen, scale=options.get("scale"),
                                           enable_gqa=True)
    return y.transpose(1, 2) if layout == "BTHD" else y


def cases(case):
    def add(name, q, k, v, bias=None, mask=None, lengths=None, **attrs):
        inputs = {"q": uniform(-1, 1, q), "k": uniform(-1, 1, k), "v": uniform(-1, 1, v)}
        if bias is not None:
            inputs["bias"] = uniform(-1, 1, bias)
        if mask is not None:
            inputs["mask"] = mask
        if lengths is not None:
            inputs["lengths"] = numpy.asarray(lengths, "int64")
        case(name, "scaled_dot_product_attention", inputs,
             lambda **x: attention(**x, **attrs), attrs=attrs)

    add("attention", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3))
    # PyTorch's own is_causal, whose first query sees one key.
    causal = {name: uniform(-1, 1, (1, 2, 4, 3)) for name in "qkv"}
    case("attention_is_causal", "scaled_dot_product_attention", causal,
         lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
         attrs={"causal": True}, double=False)
    add("attention_causal", (1, 2, 4, 3), (1, 2, 4, 3), (1, 2, 4, 3), causal=True, scale=0.7)
    add("attention_offset", (1, 2, 3, 2), (1, 2, 6, 2), (1, 2, 6, 2), causal=True, offset=2)
    add("attention_last", (2, 1, 2, 3), (2, 1, 5, 3), (2, 1, 5, 2), causal=True, offset=-1)
    add("attention_window", (1, 1, 6, 2), (1, 1, 6, 2), (1, 1, 6, 2), causal=True, window=2)
    add("attention_grouped", (2, 4, 3, 2), (2, 2, 4, 2), (2, 2, 4, 3))
    add("attention_one_head_of_keys", (1, 3, 1, 2), (1, 1, 5, 2), (1, 1, 5, 2), causal=True,
        offset=-1)
    add("attention_layout", (2, 3, 4, 2), (2, 5, 2, 2), (2, 5, 2, 3), causal=True, layout="BTHD")
    add("attention_bias", (2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 2), (2, 2, 3, 4))
    add("attention_bias_broadcast", (2, 2, 3, 2), (2, 1, 4, 2), (2, 1, 4, 2), (2, 1, 4),
        causal=True)
    seen = uniform(0, 1, (2, 1, 3, 4)) < 0.6
    seen[..., 1] = True
    add("attention_mask", (2, 2, 3, 2), (2, 2, 4, 2), (2, 2, 4, 2), (2, 1, 4), seen)
    everything = numpy.ones((1,), bool)
    add("attention_lengths", (2, 2, 3, 2), (2, 2, 5, 2), (2, 2, 5, 2), (5,), everything, [3, 5])
    add("attention_lengths_last", (2, 2, 2, 2), (2, 2, 5, 2), (2, 2, 5, 2), (2, 1, 1, 5),
        everything, [3, 5], causal=True, offset=-1)

    def rotate(x, cos, sin, positions=None, interleaved=False, offset=0, inverse=False,
               layout="BHTD"):
        """Multiplies pairs as complex numbers."""
        if layout == "BTHD":
            x = x.transpose(1, 2)
        half = cos.shape[1]
        angles = torch.complex(cos, -sin if inverse else sin)
        if positions is None:
            turn = angles[offset:offset + x.shape[2]]
        else:
            turn = angles[positions][:, None]
        pairs, rest = x[..., :2 * half], x[..., 2 * half:]
        if interleaved:
            z = torch.view_as_real(torch.view_as_complex(
                pairs.unflatten(-1, (half, 2)).contiguous()) * turn).flatten(-2)
        else:
            z = torch.complex(pairs[..., :half], pairs[..., half:]) * turn
            z = torch.cat([z.real, z.imag], -1)
        y = torch.cat([z, rest], -1)
        return y.transpose(1, 2) if layout == "BTHD" else y

    def rotary(name, x, half, positions=None, **attrs):
        angles = uniform(-3, 3, (8, half))
        inputs = {"x": uniform(-1, 1, x), "cos": numpy.cos(angles), "sin": numpy.sin(angles)}
        if positions is not None:
            inputs["positions"] = numpy.asarray(positions, "int64")
        case(name, "rotary_embedding", inputs,
             lambda **x: rotate(**x, **attrs), attrs=attrs, constants=("cos", "sin"))

    rotary("rotary", (2, 3, 4, 6), 3)
    rotary("rotary_interleaved", (2, 3, 4, 6), 3, interleaved=True, offset=4)
    rotary("rotary_part", (1, 4, 3, 7), 2, layout="BTHD", inverse=True)
    rotary("rotary_positions", (2, 3, 4, 5), 2, [[7, 0, 3, 3], [1, 2, 6, 5]], interleaved=True)
