"""Attention: layers of transformers."""
from typing import Any

from catena import functions as F
from catena.configuration import no_backprop_mode
from catena.initializers import LeCunNormal
from catena.link import Chain
from catena.links.connection import Linear

__all__ = ["MultiHeadAttention", "RotaryPositions"]


class RotaryPositions:
    """Rotates vectors of tokens by their positions. Layers with one object share its tables.

    Args:
        base: the angles of position p are p base^(-2 i / size).
        scaling: more arguments of F.rotary_tables().
    """

    def __init__(self, base=10000.0, **scaling) -> None:
        self.base = base
        self.scaling = scaling
        self._tables = {}

    def __call__(self, x, offset=0) -> Any:
        """Rotates x (N, T, heads, size), whose first token has the position ``offset``."""
        n, size = offset + x.shape[1], x.shape[3]
        dtype = "float64" if x.dtype == "float64" else "float32"
        key = size, dtype, x.device.name
        if key not in self._tables or self._tables[key][0].shape[0] < n:
            length = 1 << max(n - 1, 1).bit_length()
            self._tables[key] = F.rotary_tables(length, size, self.base, dtype,
                                                device=x.device, **self.scaling)
        cos, sin = self._tables[key]
        return F.rotary_embedding(x, cos, sin, offset=offset, layout="BTHD")


class MultiHeadAttention(Chain):
    """Each token looks up values of others, in several heads: "Attention Is All You Need" (2017).

    y = out(attention(q(x), k(context), v(context))) for x (N, T, units).

    Args:
        units: the size of tokens.
        heads: the number of heads, which divides units.
        kv_heads: the heads of keys and values, which heads of q share; by default ``heads``.
        bias: whether the four layers have biases.
        causal: whether no token sees later ones.
        window: a token sees the last ``window`` ones up to itself; 0: all.
        dropout: in training, the ratio of weights of attention that become 0.
        rotary: None, or a RotaryPositions for q and k.
        wscale: the scale of the initial weights, as of LeCunNormal.
    """

    def __init__(self, units, heads, *, kv_heads=None, bias=True, causal=False, window=0,
                 dropout=0.0, rotary=None, wscale=1.0) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        if units < 1 or heads < 1 or units % heads or kv_heads < 1 or heads % kv_heads:
            raise ValueError("[MultiHeadAttention] expected heads that divide units and kv_heads "
                             f"that divide heads, got units={units}, heads={heads}, "
                             f"kv_heads={kv_heads}")
        if rotary is not None and units // heads % 2:
            raise ValueError("[MultiHeadAttention] heads: expected an even number of units for "
                             f"each head with rotary positions, got {units // heads}")
        self.heads = heads
        self.kv_heads = kv_heads
        self.causal = causal
        self.window = window
        self.dropout = dropout
        self.rotary = rotary
        kv_units = units // heads * kv_heads
        with self.init_scope():
            for name, n_out in [("q", units), ("k", kv_units), ("v", kv_units), ("out", units)]:
                setattr(self, name, Linear(units, n_out, not bias, LeCunNormal(wscale)))

    def make_cache(self) -> Any:
        """An empty cache of keys and values for generation, which forward() extends."""
        return {}

    def forward(self, x, context=None, mask=None, lengths=None, cache=None) -> Any:
        """Attention of x to the context, or to itself.

        Args:
            x: tokens (N, T, units).
            context: tokens (N, S, units); by default x.
            mask: bool, true where a token of x sees one of the context, or numbers to add to the
                scores. It broadcasts to (N, heads, T, S).
            lengths: the numbers of tokens of the contexts (N,), after which there is padding.
            cache: keys and values of earlier tokens, which x follows; those of x are appended.
        """
        if cache is not None and context is not None:
            raise ValueError("[MultiHeadAttention] cache: expected no context, got both")
        context = x if context is None else context
        offset = cache["k"].shape[1] if cache else 0
        q, k, v = (F.reshape(layer(tokens, 2), (*tokens.shape[:2], heads, -1)) for layer, tokens, heads in [
            (self.q, x, self.heads), (self.k, context, self.kv_heads),
            (self.v, context, self.kv_heads)])
        if self.rotary is not None:
            q, k = self.rotary(q, offset), self.rotary(k, offset)
        if cache is not None:
            with no_backprop_mode():
                if cache:
                    k, v = F.concat([cache["k"], k], axis=1), F.concat([cache["v"], v], axis=1)
                cache.update(k=k.array, v=v.array)
        adds = mask is not None and mask.dtype != "bool"
        y = F.scaled_dot_product_attention(
            q, k, v, F.cast(mask, q.dtype) if adds else None, None if adds else mask, lengths,
            causal=self.causal or cache is not None, dropout=self.dropout, window=self.window,
            offset=offset, layout="BTHD")
        return self.out(F.reshape(y, (*y.shape[:2], -1)), 2)
