// MultiHeadAttention: projections, and attention with (N, T, heads, D) in memory, which needs no transposition.
#include "../support.hpp"

#include <catena/core/config.hpp>
#include <catena/functions.hpp>
#include <catena/links.hpp>

#include <mutex>

namespace catena::links {
namespace F = functions;
namespace {

constexpr std::string_view heads_last = "BTHD";

using Options = MultiHeadAttention::Options;

std::int64_t checked_head_size(std::int64_t units, std::int64_t heads, std::int64_t head_size) {
    if (units < 1 || heads < 1 || (head_size == 0 && units % heads != 0))
        fail<ShapeError>("[MultiHeadAttention] heads: expected a divisor of the {} units, got {}",
                         units, heads);
    if (head_size < 0)
        fail<ShapeError>("[MultiHeadAttention] head_size: expected 0 or more, got {}", head_size);
    return head_size > 0 ? head_size : units / heads;
}
std::int64_t checked_kv_heads(std::int64_t heads, std::int64_t kv_heads) {
    if (kv_heads < 0 || (kv_heads > 0 && heads % kv_heads != 0))
        fail<ShapeError>(
            "[MultiHeadAttention] kv_heads: expected a divisor of the {} heads, got {}", heads,
            kv_heads);
    return kv_heads > 0 ? kv_heads : heads;
}
Linear projection(std::int64_t units, std::int64_t heads, std::int64_t n, const Options& options) {
    return {units, checked_head_size(units, heads, options.head_size) * n, options.wscale, 0,
            !options.bias};
}

// Sets array[:, begin:end] = value, in place.
void write_tokens(const Array& array, std::int64_t begin, std::int64_t end, const Array& value) {
    thread_local constinit ThreadFunction update("catena.item_update", {"begin", "end"});
    const std::int64_t first[] = {0, begin}, last[] = {array.shape()[0], end};
    const Array inputs[] = {array, value};
    update({Ints(first), Ints(last)}).forward(inputs);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(std::int64_t units, std::int64_t heads,
                                       const Options& options)
    : q(projection(units, heads, heads, options)),
      k(projection(units, heads, checked_kv_heads(heads, options.kv_heads), options)),
      v(projection(units, heads, checked_kv_heads(heads, options.kv_heads), options)),
      out(q.W.shape()[0], units, options.wscale, 0, !options.bias),
      heads_(heads),
      options_(options) {
    options_.kv_heads = checked_kv_heads(heads, options.kv_heads);
    options_.head_size = checked_head_size(units, heads, options.head_size);
    if (!(options.norm_eps >= 0))
        fail<InvalidError>("[MultiHeadAttention] norm_eps: expected 0 or more, got {}",
                           options.norm_eps);
    if (options.norm_eps > 0) {
        q_norm.emplace(options_.head_size, options.norm_eps);
        k_norm.emplace(options_.head_size, options.norm_eps);
    }
    if (options.rotary && options_.head_size % 2 != 0)
        fail<ShapeError>(
            "[MultiHeadAttention] heads: expected an even number of units for each head with "
            "rotary positions, got {}",
            options_.head_size);
    // Checks the other options.
    (void)F::handles::scaled_dot_product_attention(options.causal, 0.0, options.dropout,
                                                   options.window, 0, heads_last);
}

Variable MultiHeadAttention::operator()(const Variable& x, const Variable& context,
                                        const Variable& mask, const Variable& lengths) const {
    return attend(queries_of(x, 0), keys_of(context, 0), split(v(context, 2), options_.kv_heads),
                  mask, lengths, options_.causal, 0);
}

Variable MultiHeadAttention::operator()(const Variable& x, Cache& cache,
                                        const Variable& mask) const {
    const std::int64_t begin = cache.length, end = begin + (x.ndim() == 3 ? x.shape()[1] : 0);
    const Shape kept = cache.k.shape();
    if (x.ndim() == 3 && x.shape()[0] != kept[0])
        fail<ShapeError>("[MultiHeadAttention] x: expected ({}, T, units) as the cache has, got {}",
                         kept[0], to_string(x.shape()));
    if (end > kept[1])
        fail<ShapeError>(
            "[MultiHeadAttention] x: expected at most {} tokens, for which the cache "
            "has places, got {}",
            kept[1] - begin, end - begin);
    const Variable queries = queries_of(x, begin), keys = keys_of(x, begin);
    write_tokens(cache.k, begin, end, keys.data());
    write_tokens(cache.v, begin, end, split(v(x, 2), options_.kv_heads).data());
    const Array lengths =
        Array::full({kept[0]}, static_cast<double>(end), Dtype::int64, x.device());
    const Variable y = attend(queries, as_variable(cache.k), as_variable(cache.v), mask,
                              as_variable(lengths), true, -1);
    cache.length = end;
    return y;
}

MultiHeadAttention::Cache MultiHeadAttention::make_cache(std::int64_t n,
                                                         std::int64_t places) const {
    if (n < 1 || places < 1)
        fail<ShapeError>("[MultiHeadAttention] cache: expected positive sizes, got {} and {}", n,
                         places);
    const auto zeros = [&] {
        return Array::zeros({n, places, options_.kv_heads, options_.head_size}, q.W.dtype(),
                            q.W.device());
    };
    return {zeros(), zeros()};
}

Variable MultiHeadAttention::queries_of(const Variable& x, std::int64_t offset) const {
    const Variable heads = split(q(x, 2), heads_);
    return options_.rotary(q_norm ? (*q_norm)(heads) : heads, offset);
}
Variable MultiHeadAttention::keys_of(const Variable& x, std::int64_t offset) const {
    const Variable heads = split(k(x, 2), options_.kv_heads);
    return options_.rotary(k_norm ? (*k_norm)(heads) : heads, offset);
}

void MultiHeadAttention::visit(Visitor& visitor) {
    visitor("q", q)("k", k)("v", v)("out", out);
    if (q_norm) visitor("q_norm", *q_norm)("k_norm", *k_norm);
}

// (N, T, heads * D) as (N, T, heads, D), the same memory.
Variable MultiHeadAttention::split(const Variable& x, std::int64_t heads) const {
    const Shape shape = x.shape();
    return F::reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads});
}

Variable MultiHeadAttention::attend(const Variable& queries, const Variable& keys,
                                    const Variable& values, const Variable& mask,
                                    const Variable& lengths, bool causal,
                                    std::int64_t offset) const {
    const bool adds = mask && is_floating(mask.dtype());
    const Variable bias = !adds                             ? Variable()
                          : mask.dtype() == queries.dtype() ? mask
                                                            : F::cast(mask, queries.dtype());
    const Variable y = F::scaled_dot_product_attention(
        queries, keys, values, bias, adds ? Variable() : mask, lengths, causal, 0.0,
        options_.dropout, options_.window, offset, heads_last);
    const Shape shape = y.shape();
    return out(F::reshape(y, Shape{shape[0], shape[1], shape[2] * shape[3]}), 2);
}

// ---- RotaryPositions

struct RotaryPositions::Tables {
    // Tables for vectors of one size, on one device: (positions, D / 2).
    struct Entry {
        Array cos, sin;
    };
    Entry make(std::int64_t length, std::int64_t size, Dtype dtype, Device device) const {
        auto [cos, sin] = F::rotary_tables(length, size, base, dtype, scaling.factor, scaling.low,
                                           scaling.high, scaling.context, device);
        return {std::move(cos), std::move(sin)};
    }

    const double base;
    const RotaryScaling scaling;
    std::mutex mutex;
    std::vector<Entry> entries;
};

RotaryPositions::RotaryPositions(double base, const RotaryScaling& scaling) {
    if (base == 0) return;
    tables_ = std::make_shared<Tables>(base, scaling);
    (void)tables_->make(1, 2, Dtype::float32, {});  // checks base and scaling
}

Variable RotaryPositions::operator()(const Variable& x, std::int64_t offset) const {
    if (!tables_) return x;
    const std::int64_t length = offset + x.shape()[1], size = x.shape()[3];
    // Tables of halves are float32.
    const Dtype wide = x.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32;
    const auto fitting = [&] {
        const std::lock_guard lock(tables_->mutex);
        auto& entries = tables_->entries;
        auto found = std::ranges::find_if(entries, [&](const Tables::Entry& entry) {
            return entry.cos.shape()[1] == size / 2 && entry.cos.dtype() == wide &&
                   entry.cos.device() == x.device();
        });
        if (found != entries.end() && found->cos.shape()[0] >= length) return *found;
        const auto places =
            static_cast<std::int64_t>(std::bit_ceil(static_cast<std::size_t>(length)));
        Tables::Entry larger = tables_->make(places, size, wide, x.device());
        if (found == entries.end()) found = entries.emplace(found);
        *found = std::move(larger);
        return *found;
    }();
    return F::rotary_embedding(x, as_variable(fitting.cos), as_variable(fitting.sin), {}, false,
                               offset, false, heads_last);
}

}  // namespace catena::links
