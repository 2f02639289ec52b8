// World's services: the functions of catena_host.
#include <algorithm>
#include <mutex>
#include <thread>
#include <within.hpp>

#include "testing/engine.hpp"
#include "testing/state.hpp"

namespace catena::testing {
namespace {

World& of(catena_ctx* ctx) { return *ctx->world; }

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

catena_status failed(catena_ctx* ctx, const Failure& e, const std::string& text) {
    return World::host().fail(ctx, e.status(), text.empty() ? e.what() : text.c_str());
}

// Returns the text of a failed call as an error of the composition that makes it.
std::string within_composition(const catena_ctx& ctx, const catena_function& callee,
                               const std::vector<catena_var*>& x, const Failure& e) {
    if (ctx.composes == nullptr || dynamic_cast<const Violation*>(&e) != nullptr) return {};
    InputNames names;
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t k = 0; k < ctx.x.size(); ++k)
            if (x[i] != nullptr && x[i] == ctx.x[k])
                names.emplace_back(detail::input_name(callee, i),
                                   detail::input_name(*ctx.composes, k));
    return within(ctx.composes->name, callee.name, e.what(), names);
}

catena_status call(catena_ctx* ctx, const catena_callable* callable,
                   const catena_named_value* attrs, std::uint32_t n_attrs, catena_var* const* x,
                   std::uint32_t n_x, catena_var** y, std::uint32_t n_y) {
    const auto& f = *reinterpret_cast<const catena_function*>(callable);
    RecordedCall step = {&f, {}, std::vector<catena_var*>(x, x + n_x), {}, of(ctx).drawn};
    try {
        if (n_y > f.n_outputs)
            detail::refuse(f, CATENA_E_INVALID, "outputs", "at most " + std::to_string(f.n_outputs),
                           n_y);
        step.attrs = OwnedAttrs(Attrs(attrs, attrs + n_attrs));
        step.x.resize(std::max<std::size_t>(n_x, f.n_inputs));
        Arrays inputs;
        for (const catena_var* var : step.x)
            inputs.push_back(var == nullptr ? Array() : var->array);
        Options options;
        options.train = ctx->train;
        options.within = true;
        if (std::strcmp(ctx->device, "cpu") != 0) options.device = ctx->device;
        if (ctx->options != nullptr) {
            options.flags = ctx->options->flags;
            options.threads = ctx->options->threads;
            options.fill = ctx->options->fill;
            options.most_bytes = ctx->options->most_bytes;
        }
        const bool shapes = ctx->composes != nullptr && ctx->shapes;
        Arrays results =
            shapes ? detail::shapes_of(of(ctx), f, inputs, step.attrs.list(), options, true)
                   : of(ctx).forward(f.name, inputs, step.attrs.list(), options);
        for (Array& a : results)
            step.y.push_back(ctx->vars.emplace_back(new catena_var{std::move(a)}).get());
        std::copy_n(step.y.begin(), n_y, y);
        if (ctx->tape != nullptr) ctx->tape->push_back(std::move(step));
        return CATENA_OK;
    } catch (const Failure& e) {
        return failed(ctx, e, within_composition(*ctx, f, step.x, e));
    }
}

catena_status read(catena_ctx* ctx, const catena_var* var, const void** elements) {
    const auto fail = [&](const std::string& text) {
        return World::host().fail(ctx, CATENA_E_INVALID, text.c_str());
    };
    const catena_function* const f = ctx->composes;
    const std::string start = f == nullptr ? std::string() : std::string("[") + f->name + "] ";
    const auto found = std::find(ctx->x.begin(), ctx->x.end(), var);
    const auto i = static_cast<std::size_t>(found - ctx->x.begin());
    if (f == nullptr || var == nullptr || i == ctx->x.size() ||
        (detail::input_flags(*f, i) & CATENA_PORT_HOST) == 0)
        return fail(start + "read(): expected an input of CATENA_PORT_HOST within compose()");
    if (!var->array.has_memory())
        return fail(start + detail::input_name(*f, i) + ": expected elements, got only the shape " +
                    plugin::text_of(var->array.shape()));
    *elements = var->array.data<std::byte>();
    return CATENA_OK;
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
            *out = reinterpret_cast<const catena_callable*>(&of(ctx).function(name));
            return CATENA_OK;
        } catch (const Failure& e) {
            return failed(ctx, e, {});
        }
    };
    h.call = call;
    h.read = read;
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
