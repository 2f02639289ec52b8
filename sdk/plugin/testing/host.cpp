// World's services: the functions of catena_host.
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "testing/state.hpp"

struct catena_callable {
    const catena_function* function;
};

namespace catena::testing {
namespace {

World& of(catena_ctx* ctx) { return *ctx->world; }

// Returns a function's callable, which is never freed, because plugins keep the pointer.
const catena_callable* callable(const catena_function& f) {
    static std::map<const catena_function*, catena_callable> all;
    static std::mutex mutex;  // worlds may be in different threads
    const std::lock_guard lock(mutex);
    return &all.try_emplace(&f, catena_callable{&f}).first->second;
}

void parallel_for(catena_ctx* ctx, std::int64_t n, std::int64_t grain, catena_range_fn fn,
                  void* user) {
    grain = std::max<std::int64_t>(grain, 1);
    const std::int64_t pieces = (n + grain - 1) / grain;
    const std::int64_t team_size = std::min<std::int64_t>(of(ctx).threads, pieces);
    std::mutex mutex;
    // Exceptions cannot pass through a plugin in C: the end of the call reports them.
    const auto run = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
        const std::string thrown = detail::thrown_by([&] { fn(user, begin, end, slot); });
        if (thrown.empty()) return;
        const std::lock_guard lock(mutex);
        if (ctx->thrown.empty()) ctx->thrown = thrown;
    };
    if (team_size <= 1) return run(0, n, 0);
    std::vector<std::thread> team;
    for (std::int64_t t = 0; t < team_size; ++t)
        team.emplace_back([=, &run] {
            const std::int64_t begin = pieces * t / team_size * grain;
            const std::int64_t end = std::min(pieces * (t + 1) / team_size * grain, n);
            run(begin, end, static_cast<std::int32_t>(t));
        });
    for (std::thread& thread : team) thread.join();
}

catena_status call(catena_ctx* ctx, const catena_callable* callable,
                   const catena_named_value* attrs, std::uint32_t n_attrs, catena_var* const* x,
                   std::uint32_t n_x, catena_var** y, std::uint32_t n_y) {
    try {
        RecordedCall step = {callable->function,
                             OwnedAttrs(Attrs(attrs, attrs + n_attrs)),
                             std::vector<catena_var*>(x, x + n_x),
                             {}};
        step.x.resize(std::max<std::size_t>(n_x, callable->function->n_inputs));
        std::vector<Array> inputs;
        for (const catena_var* var : step.x)
            inputs.push_back(var == nullptr ? Array() : var->array);
        Options options;
        options.train = ctx->train;
        for (Array& a :
             of(ctx).forward(callable->function->name, inputs, step.attrs.list(), options))
            step.y.push_back(ctx->vars.emplace_back(new catena_var{std::move(a)}).get());
        std::copy_n(step.y.begin(), n_y, y);
        if (ctx->tape != nullptr) ctx->tape->push_back(std::move(step));
        return CATENA_OK;
    } catch (const Failure& e) {
        return World::host().fail(ctx, e.status(), e.what());
    }
}

catena_host make_host() {
    catena_host h = {};
    h.struct_size = sizeof h;
    h.abi_major = CATENA_ABI_MAJOR;
    h.abi_minor = CATENA_ABI_MINOR;
    h.name = "catena::testing";
    h.version = "0";
    h.log = [](catena_ctx*, std::int32_t, const char*) {};
    h.fail = [](catena_ctx* ctx, catena_status status, const char* text) {
        if (ctx->error.empty()) ctx->error = text;
        return status;
    };
    h.parallel_for = parallel_for;
    h.slots = [](catena_ctx* ctx) -> std::int32_t { return of(ctx).threads; };
    h.philox = [](catena_ctx* ctx, std::uint64_t n, std::uint64_t* key, std::uint64_t* offset) {
        *key = of(ctx).seed;
        *offset = of(ctx).drawn;
        of(ctx).drawn += n;
        return catena_status{CATENA_OK};
    };
    h.config = [](catena_ctx*, const char*, std::int64_t otherwise) { return otherwise; };
    h.extensions = [](catena_ctx* ctx, const char* id) -> const void* const* {
        static const void* const none[] = {nullptr};
        return ctx == nullptr ? none : of(ctx).state().extensions(ctx->device, id);
    };
    h.find = [](catena_ctx* ctx, const char* name, const catena_callable** out) -> catena_status {
        try {
            *out = callable(of(ctx).function(name));
            return CATENA_OK;
        } catch (const Failure& e) {
            return World::host().fail(ctx, e.status(), e.what());
        }
    };
    h.call = call;
    h.meta = [](catena_ctx*, const catena_var* var, catena_meta* out) -> catena_status {
        const catena_meta m = var->array.meta();
        out->ndim = m.ndim;  // only these: the plugin's struct may be an older, shorter one
        out->dtype = m.dtype;
        out->device_type = m.device_type;
        std::copy_n(m.shape, m.ndim, out->shape);
        return CATENA_OK;
    };
    h.get_extension = [](const catena_host*, const char*) -> const void* { return nullptr; };
    return h;
}

}  // namespace

const catena_host& World::host() {
    static const catena_host only = make_host();
    return only;
}

}  // namespace catena::testing
