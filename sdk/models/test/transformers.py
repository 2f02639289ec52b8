"""Prints the values for transformer_golden_test.cpp. Needs PyTorch. Usage: transformers.py

The models are GPT-2 and Llama as Hugging Face stores them, and a vision transformer with catena's names,
written out in plain PyTorch and computed in float64. Weights come from the same generator as in the test, name by name in sorted order.
"""
import numpy
import torch
import torch.nn.functional as F


def draw(shapes):
    generator = numpy.random.RandomState(1)
    result = {}
    for name, shape in sorted(shapes.items()):
        bits = generator.randint(0, 1 << 32, shape, "uint32")
        values = bits.astype("f8") / 2147483648.0 - 1
        scale = name.endswith(("weight", "gamma")) and len(shape) == 1
        values = 1 + 0.1 * values if scale else 0.05 * values
        result[name] = torch.from_numpy(values.astype("f4").astype("f8"))
    return result


def attention(q, k, v, heads, causal=True, scale=None):
    n, t, _ = q.shape
    size = q.shape[2] // heads
    q, k, v = (a.view(n, t, -1, size).transpose(1, 2) for a in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True,
                                       scale=scale)
    return y.transpose(1, 2).reshape(n, t, heads * size)


def gpt2(words, context, units, layers, heads, x, *, other=False):
    """other: erf in GELU, scores without 1 / sqrt(size) but divided by 1 + layer, and an untied head."""
    shapes = {"wte.weight": (words, units), "wpe.weight": (context, units),
              "ln_f.weight": (units,), "ln_f.bias": (units,)}
    if other:
        shapes["lm_head.weight"] = (words, units)
    for i in range(layers):
        for name, *shape in (("ln_1", units), ("attn.c_attn", units, 3 * units),
                             ("attn.c_proj", units, units), ("ln_2", units),
                             ("mlp.c_fc", units, 4 * units), ("mlp.c_proj", 4 * units, units)):
            shapes[f"h.{i}.{name}.weight"] = tuple(shape)
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    p = draw(shapes)

    def norm(h, name):
        return F.layer_norm(h, (units,), p[name + ".weight"], p[name + ".bias"], 1e-5)

    def linear(h, name):
        return h @ p[name + ".weight"] + p[name + ".bias"]

    h = p["wte.weight"][x] + p["wpe.weight"][:x.shape[1]]
    for i in range(layers):
        q, k, v = linear(norm(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(units, 2)
        scale = 1 / (1 + i) if other else None
        h = h + linear(attention(q, k, v, heads, scale=scale), f"h.{i}.attn.c_proj")
        wide = linear(norm(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        h = h + linear(F.gelu(wide, approximate="none" if other else "tanh"), f"h.{i}.mlp.c_proj")
    return norm(h, "ln_f") @ p["lm_head.weight" if other else "wte.weight"].T


def llama(words, units, layers, heads, kv_heads, hidden, x, *, theta=10000.0, scaled=None, biases=(),
          size=0, normalized=False, tied=False):
    """size: units of a head. normalized: each head of queries and keys, as in Qwen 3."""
    size = size or units // heads
    wide = heads * size
    frequencies = theta ** (-torch.arange(0, size, 2) / size)
    if scaled:
        frequencies = scaled(frequencies)
    shapes = {"model.embed_tokens.weight": (words, units), "model.norm.weight": (units,),
              "lm_head.weight": (words, units)}
    if tied:
        del shapes["lm_head.weight"]
    for i in range(layers):
        for name in ("q_norm", "k_norm") if normalized else ():
            shapes[f"model.layers.{i}.self_attn.{name}.weight"] = (size,)
        for name, *shape in (("input_layernorm", units), ("self_attn.q_proj", wide, units),
                             ("self_attn.k_proj", kv_heads * size, units),
                             ("self_attn.v_proj", kv_heads * size, units),
                             ("self_attn.o_proj", units, wide), ("post_attention_layernorm", units),
                             ("mlp.up_proj", hidden, units), ("mlp.gate_proj", hidden, units),
                             ("mlp.down_proj", units, hidden)):
            shapes[f"model.layers.{i}.{name}.weight"] = tuple(shape)
            if biases and name.startswith(biases):
                shapes[f"model.layers.{i}.{name}.bias"] = shape[:1]
    p = draw(shapes)

    def norm(h, name):
        return F.rms_norm(h, h.shape[-1:], p[name + ".weight"], 1e-6)

    def norm_heads(h, name):
        return norm(h.unflatten(-1, (-1, size)), name).flatten(-2) if normalized else h

    def rotate(a):  # (N, T, heads * size)
        n, t, _ = a.shape
        a = a.view(n, t, -1, 2, size // 2)
        angles = torch.arange(t)[:, None] * frequencies
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        one, two = a[..., 0, :], a[..., 1, :]
        return torch.stack((one * cos - two * sin, two * cos + one * sin), -2).view(n, t, -1)

    h = p["model.embed_tokens.weight"][x]
    for i in range(layers):
        def linear(h, name):
            return F.linear(h, p[f"model.layers.{i}.{name}.weight"], p.get(f"model.layers.{i}.{name}.bias"))
        normal = norm(h, f"model.layers.{i}.input_layernorm")
        q, k, v = (linear(normal, f"self_attn.{c}_proj") for c in "qkv")
        q, k = (rotate(norm_heads(a, f"model.layers.{i}.self_attn.{c}_norm")) for a, c in ((q, "q"), (k, "k")))
        h = h + linear(attention(q, k, v, heads), "self_attn.o_proj")
        normal = norm(h, f"model.layers.{i}.post_attention_layernorm")
        h = h + linear(F.silu(linear(normal, "mlp.gate_proj")) * linear(normal, "mlp.up_proj"),
                       "mlp.down_proj")
    return norm(h, "model.norm") @ p["model.embed_tokens.weight" if tied else "lm_head.weight"].T


def llama3(frequencies):
    """Llama 3.1's scaling: a factor of 8 for texts of 8 tokens in training."""
    result = []
    for f in frequencies.tolist():
        length = 2 * torch.pi / f
        if length < 8 / 4:
            result.append(f)
        elif length > 8 / 1:
            result.append(f / 8)
        else:
            smooth = (8 / length - 1) / (4 - 1)
            result.append((1 - smooth) * f / 8 + smooth * f)
    return torch.tensor(result)


def vit(image, patch, units, layers, heads, classes, x):
    side = image // patch
    shapes = {"patches/W": (units, 3, patch, patch), "patches/b": (units,), "token": (1, 1, units),
              "position": (1 + side * side, units), "norm/gamma": (units,), "norm/beta": (units,),
              "head/W": (classes, units), "head/b": (classes,)}
    for i in range(layers):
        for name in "norm1", "norm2":
            shapes[f"block{i}/{name}/gamma"] = shapes[f"block{i}/{name}/beta"] = (units,)
        for name, out, n in (("attention/q", units, units), ("attention/k", units, units),
                             ("attention/v", units, units), ("attention/out", units, units),
                             ("up", 4 * units, units), ("down", units, 4 * units)):
            shapes[f"block{i}/{name}/W"], shapes[f"block{i}/{name}/b"] = (out, n), (out,)
    p = draw(shapes)

    def norm(h, name):
        return F.layer_norm(h, (units,), p[name + "/gamma"], p[name + "/beta"], 1e-6)

    def linear(h, name):
        return F.linear(h, p[name + "/W"], p[name + "/b"])

    h = F.conv2d(x, p["patches/W"], p["patches/b"], stride=patch).flatten(2).transpose(1, 2)
    h = torch.cat((p["token"].expand(len(x), 1, units), h), 1) + p["position"]
    for i in range(layers):
        normal = norm(h, f"block{i}/norm1")
        q, k, v = (linear(normal, f"block{i}/attention/{c}") for c in "qkv")
        h = h + linear(attention(q, k, v, heads, False), f"block{i}/attention/out")
        wide = linear(norm(h, f"block{i}/norm2"), f"block{i}/up")
        h = h + linear(F.gelu(wide), f"block{i}/down")
    return linear(norm(h[:, 0], "norm"), "head")


def show(name, scores, every):
    values = scores.flatten()[::every]
    print(name, ", ".join(f"{v:.6f}" for v in values.tolist()))


torch.set_default_dtype(torch.float64)
TOKENS = torch.arange(12).view(2, 6) * 7 % 13
show("gpt2", gpt2(13, 8, 16, 2, 4, TOKENS), 17)
show("llama", llama(13, 16, 2, 4, 2, 24, TOKENS), 17)
show("gpt2, other", gpt2(13, 8, 16, 2, 4, TOKENS, other=True), 17)
show("llama 3", llama(13, 16, 2, 4, 2, 24, TOKENS, theta=100.0, scaled=llama3, biases=("self_attn", "mlp")), 17)
show("llama, linear", llama(13, 16, 2, 4, 2, 24, TOKENS, scaled=lambda f: f / 4, biases=("mlp",)), 17)
QKV = tuple(f"self_attn.{c}_proj" for c in "qkv")
show("SmolLM2", llama(13, 16, 2, 4, 2, 24, TOKENS, theta=100000.0, tied=True), 17)
show("Qwen 2", llama(13, 16, 2, 4, 2, 24, TOKENS, theta=1e6, biases=QKV, tied=True), 17)
show("Qwen 3", llama(13, 16, 2, 4, 2, 24, TOKENS, theta=1e6, size=6, normalized=True), 17)
show("124M", gpt2(50257, 1024, 768, 12, 12, torch.arange(8)[None] * 5003 % 50257), 40009)
IMAGES = torch.arange(2 * 3 * 11 * 11).view(2, 3, 11, 11) * 37 % 101 / 50.0 - 1
show("vit", vit(11, 3, 16, 2, 4, 5, IMAGES), 1)
