// Support code of kernels: pieces on threads, and checks with their error messages.
#include "catena/plugin/kernel.hpp"

#include <cinttypes>

#include "catena/plugin/blas.hpp"
#include "catena/plugin/foreign.hpp"
#include "catena/plugin/tables.hpp"

namespace catena::plugin {

void Pieces::run(catena_ctx* ctx, std::int64_t n, std::int64_t grain) {
    host().parallel_for(ctx, n, grain, &guarded_piece, this);
    if (failed_.load(std::memory_order_relaxed)) [[unlikely]]
        std::rethrow_exception(thrown_);
}

void CATENA_CALL Pieces::guarded_piece(void* pieces, std::int64_t begin, std::int64_t end,
                                       std::int32_t slot) noexcept {
    Pieces& self = *static_cast<Pieces*>(pieces);
    if (self.failed_.load(std::memory_order_relaxed)) [[unlikely]]
        return;
    try {
        self.piece_(self.user_, begin, end, slot);
    } catch (...) {
        if (!self.failed_.exchange(true)) self.thrown_ = std::current_exception();
    }
}

catena_status check_gemm(catena_ctx* ctx, const catena_gemm& g, bool supported,
                         const char* dtypes) {
    if (!supported)
        return fail(ctx, CATENA_E_UNSUPPORTED,
                    "[gemm] product: expected %s and extents below 2^31, got code %d, %d bits, "
                    "%" PRId64 " x %" PRId64 " x %" PRId64,
                    dtypes, g.dtype.code, g.dtype.bits, g.m, g.n, g.k);
    if (g.m < 0 || g.n < 0 || g.k < 0)
        return fail(ctx, CATENA_E_SHAPE,
                    "[gemm] extents: expected none below 0, got %" PRId64 " x %" PRId64
                    " x %" PRId64,
                    g.m, g.n, g.k);
    const struct {
        const char* name;
        std::int64_t ld, columns;
    } sides[] = {{"lda", g.lda, g.transpose_a != 0 ? g.m : g.k},
                 {"ldb", g.ldb, g.transpose_b != 0 ? g.k : g.n},
                 {"ldc", g.ldc, g.n}};
    for (const auto& [name, ld, columns] : sides)
        if (ld < std::max<std::int64_t>(columns, 1))
            return fail(ctx, CATENA_E_INVALID,
                        "[gemm] %s: expected at least %" PRId64 ", got %" PRId64, name,
                        std::max<std::int64_t>(columns, 1), ld);
    const bool empty = g.m == 0 || g.n == 0;
    if (!empty && (g.c == nullptr || (g.k > 0 && (g.a == nullptr || g.b == nullptr))))
        return fail(ctx, CATENA_E_INVALID, "[gemm] data: expected a, b and c, got NULL");
    return CATENA_OK;
}

namespace detail {

void fail_unretained(const char* function, const char* what, char port, std::size_t i) {
    plugin::fail(
        CATENA_E_INTERNAL, function, what,
        std::string(port == 'x' ? "inputs" : "outputs") + " that retain_" + port + " names",
        std::string(1, port) + "(" + std::to_string(i) + ")");
}
void fail_missing(const char* function, const char* what, std::size_t i) {
    plugin::fail(CATENA_E_INTERNAL, function, what, "inputs that has() says are there",
                 "x(" + std::to_string(i) + ")");
}
void fail_type(const catena_function& f, const char* member, std::size_t i, catena_dtype wanted,
               catena_dtype got) {
    const bool input = std::string_view(member).ends_with('x') || *member == 'm';
    const std::size_t last = (input ? f.n_inputs : f.n_outputs) - std::size_t{1};  // may repeat
    std::string port = member;
    if (*member != 's') port = (input ? f.inputs : f.outputs)[i < last ? i : last]->name;
    plugin::fail(CATENA_E_INTERNAL, f.name, port.c_str(),
                 text_of(wanted) + " for call." + member + "<T>(" + std::to_string(i) + ")",
                 text_of(got));
}
void fail_axis(const char* function, const char* what, std::int64_t axis, std::int64_t ndim) {
    plugin::fail(CATENA_E_SHAPE, function, what,
                 ndim == 0 ? "none of a 0-d array"
                           : "from " + std::to_string(-ndim) + " to " + std::to_string(ndim - 1),
                 axis);
}
void fail_ndim(const char* function, const Port& input, const char* least, std::size_t expected,
               std::size_t got) {
    plugin::fail(CATENA_E_SHAPE, function, (std::string(input.name) + ".ndim").c_str(),
                 least + std::to_string(expected), got);
}
void fail_shape(const char* function, const Port& input, Shape expected, Shape got) {
    plugin::fail(CATENA_E_SHAPE, function, (std::string(input.name) + ".shape").c_str(), expected,
                 got);
}

void check_described(const Described& mine, const catena_function& f) {
    const std::size_t n_in = mine.inputs.size();
    const std::size_t n_out = mine.outputs.size();
    const std::size_t n_attrs = mine.attrs.size();
    const auto differ = [&](const std::string& what, const auto& got, const auto& expected) {
        plugin::fail(CATENA_E_INTERNAL, f.name, ("kernels_for(): " + what).c_str(), expected, got);
    };
    if (f.n_inputs != n_in) differ("inputs", n_in, f.n_inputs);
    if (f.n_outputs != n_out) differ("outputs", n_out, f.n_outputs);
    if (f.n_attrs != n_attrs) differ("attributes", n_attrs, f.n_attrs);
    for (std::size_t i = 0; i < n_attrs; ++i) {
        const std::string at = "attribute " + std::to_string(i);
        if (std::string_view(mine.attrs[i].name) != f.attrs[i]->name)
            differ(at, mine.attrs[i].name, f.attrs[i]->name);
        if (mine.attrs[i].kind != f.attrs[i]->kind)
            differ("the kind of " + at, mine.attrs[i].kind, f.attrs[i]->kind);
    }
    // Compares which ports share a type variable; the names of the variables may differ.
    const auto my_type = [&](std::size_t i) {
        return std::string_view(i < n_in ? mine.inputs[i].type_var
                                         : mine.outputs[i - n_in].type_var);
    };
    const auto its_type = [&](std::size_t i) {
        return std::string_view((i < n_in ? f.inputs[i] : f.outputs[i - n_in])->type_var);
    };
    for (std::size_t i = 0; i < n_in + n_out; ++i)
        for (std::size_t k = 0; k < i; ++k)
            if ((my_type(i) == my_type(k)) != (its_type(i) == its_type(k)))
                differ("type variables of ports " + std::to_string(k) + " and " + std::to_string(i),
                       "another", its_type(i) == its_type(k) ? "one" : "two");
    const auto kept = [&](const char* what, std::uint64_t mine_reads, std::uint64_t its) {
        if ((mine_reads & ~its) != 0)
            differ(std::string("backward reads ") + what, "others too", "those that it retains");
    };
    kept("inputs", mine.reads.x, f.retain_x);
    kept("outputs", mine.reads.y, f.retain_y);
}

}  // namespace detail
}  // namespace catena::plugin
