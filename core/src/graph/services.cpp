// The host's side of the ABI: the table of services that every plugin gets.
#include "graph/call.hpp"

#include <catena/abi/ext/draws.h>

#include <cstring>

struct catena_var : catena::VariableNode {};

namespace catena {
namespace {

// Runs a service that may throw; an exception becomes the failure of the context.
template <class Body>
catena_status guarded(catena_ctx* ctx, Body&& body) noexcept {
    const auto failed = [&](catena_status status, const char* text) {
        if (ctx && ctx->status == CATENA_OK) ctx->exception = std::current_exception();
        return fail(ctx, status, text);
    };
    try {
        body();
        return CATENA_OK;
    } catch (const Error& error) {
        return failed(error.status(), error.what());
    } catch (const std::bad_alloc&) {
        return failed(CATENA_E_NOMEM, "out of host memory");
    } catch (const std::exception& error) {
        return failed(CATENA_E_INTERNAL, error.what());
    } catch (...) {
        return failed(CATENA_E_INTERNAL, "an exception of unknown type");
    }
}

void host_log(catena_ctx*, std::int32_t level, const char* text) { tell(level, text); }

void host_parallel_for(catena_ctx* ctx, std::int64_t n, std::int64_t grain, catena_range_fn fn,
                       void* user) {
    if (n <= 0) return;
    const DeviceState* device = ctx ? ctx->device : nullptr;
    if (device && device->threads && n > grain) {
        device->threads->parallel_for(device->dev, n, grain < 1 ? 1 : grain, fn, user);
    } else {
        fn(user, 0, n, 0);
    }
}

std::int32_t host_slots(catena_ctx* ctx) {
    const DeviceState* device = ctx ? ctx->device : nullptr;
    return device && device->threads ? std::max(1, device->threads->count(device->dev)) : 1;
}

catena_status host_philox(catena_ctx* ctx, std::uint64_t n, std::uint64_t* seed,
                          std::uint64_t* offset) {
    if (!ctx || !ctx->device) return fail(ctx, CATENA_E_INVALID, "philox: no device");
    if (current_queue(*ctx->device).recording.load(std::memory_order_relaxed)) {
        return fail(ctx, CATENA_E_UNSUPPORTED,
                    "random numbers: expected none while work is recorded: each launch would "
                    "draw the same");
    }
    return guarded(ctx, [&] {
        const bool again = ctx->draws_again && ctx->draws == 0;
        const RandomState state =
            again ? ctx->drawn : reserve_random(Device(draws_from ? draws_from : ctx->device), n);
        if (ctx->draws++ == 0) ctx->drawn = state;
        *seed = state.seed;
        *offset = state.offset;
    });
}

std::int64_t host_config(catena_ctx*, const char* key, std::int64_t otherwise) noexcept {
    const std::string_view name = key;
    const Config& now = read_config();
    if (name == "train") return now.train;
    if (name == "deterministic") return now.deterministic;
    if (name == "enable_backprop") return now.enable_backprop;
    if (name == "debug") return now.debug;
    const auto found = now.named.find(name);
    return found == now.named.end() ? otherwise : found->second;
}

const void* const* host_extensions(catena_ctx* ctx, const char* id) {
    return Registry::get().extensions(ctx && ctx->device ? &ctx->device->backend : nullptr, id);
}

catena_status host_find(catena_ctx* ctx, const char* function, const catena_callable** out) {
    return guarded(ctx, [&] {
        *out = reinterpret_cast<const catena_callable*>(&Registry::get().require(function));
    });
}

// Returns a handle that the context holds, because counting references of a new one takes longer than
// looking at the newest ones. Returns null if the context holds none.
const Variable* handle_of(const catena_ctx& ctx, const catena_var* var) noexcept {
    const auto& made = *ctx.variables;
    for (std::size_t i = made.size(); i > 0 && i + 8 > made.size(); --i)
        if (handle(&made[i - 1]) == var) return &made[i - 1];
    if (!ctx.composition) return nullptr;
    const auto all = ctx.composition->x;
    const auto x = all.first(std::min<std::size_t>(all.size(), 8));
    const auto found = std::ranges::find(x, var, handle);
    return found == x.end() ? nullptr : *found;
}

catena_status host_call(catena_ctx* ctx, const catena_callable* function,
                        const catena_named_value* attrs, std::uint32_t n_attrs,
                        catena_var* const* x, std::uint32_t n_x, catena_var** y,
                        std::uint32_t n_y) {
    return guarded(ctx, [&] {
        auto& entry = *const_cast<FunctionEntry*>(reinterpret_cast<const FunctionEntry*>(function));
        if (!ctx || !ctx->variables)
            raise<InvalidError>("call(): only within gradient() and compose()");
        if (n_y > entry.descriptor.n_outputs) {
            raise<InvalidError>("[{}] outputs: expected at most {}, got {}", entry.descriptor.name,
                                entry.descriptor.n_outputs, n_y);
        }
        SmallVector<Variable, 4> others;  // inputs of which the context has no handle
        SmallVector<const Variable*, 4> inputs;
        for (std::uint32_t i = 0; i < n_x; ++i) {
            inputs.push_back(handle_of(*ctx, x[i]));
            if (!inputs[i]) others.push_back(x[i] ? Variable(Ref<VariableNode>(x[i])) : Variable());
        }
        for (std::size_t i = 0, next = 0; i < n_x; ++i)
            if (!inputs[i]) inputs[i] = &others[next++];
        std::optional<using_device> scope;
        if (std::all_of(x, x + n_x, [](const catena_var* input) { return !input; }))
            scope.emplace(Device(ctx->device));
        Results results = [&] {
            try {
                const auto bound = BoundAttributes::recent(entry, std::span(attrs, n_attrs));
                return call_function(entry, *bound, inputs);
            } catch (const Error& error) {
                if (!ctx->composition) throw;
                throw_within(*ctx->composition, entry, inputs, error);
            }
        }();
        for (std::uint32_t i = 0; i < n_y; ++i) {
            y[i] = handle(&results[i]);
            ctx->variables->push_back(std::move(results[i]));
        }
    });
}

catena_status host_meta(catena_ctx*, const catena_var* var, catena_meta* out) {
    const catena_meta& meta = var->data.body()->meta;
    out->ndim = meta.ndim;
    out->dtype = meta.dtype;
    out->device_type = meta.device_type;
    std::memcpy(out->shape, meta.shape, sizeof(std::int64_t) * static_cast<std::size_t>(meta.ndim));
    return CATENA_OK;
}

catena_status host_read(catena_ctx* ctx, const catena_var* var, const void** elements) {
    Composition* const c = ctx ? ctx->composition : nullptr;
    std::size_t i = 0;
    while (c && i < c->x.size() && !(var && handle(c->x[i]) == var)) ++i;
    if (!c || i == c->x.size() || !(c->function.input_flags(i) & CATENA_PORT_HOST)) {
        return fail(ctx, CATENA_E_INVALID,
                    "read(): expected an input of CATENA_PORT_HOST within compose()");
    }
    return guarded(ctx, [&] {
        const ArrayBody& body = *c->x[i]->data().body();
        if (!has_memory(body)) {
            raise<InvalidError>("[{}] {}: expected elements, got only the shape {}",
                                c->function.descriptor.name, c->function.input_name(i),
                                c->x[i]->shape());
        }
        *elements = on_host(body, c->staging.emplace_back());
    });
}

// During a recording, returns memory that each launch fills before it begins. It is not from the
// recording's pool, because earlier recorded work may write to a block of that pool.
catena_status host_reserve(catena_ctx* ctx, std::uint64_t n, std::uint64_t* seed,
                           std::uint64_t* offset, const std::int64_t** where) {
    *where = nullptr;
    Recorder* const recorder =
        ctx && ctx->device ? current_queue(*ctx->device).recording.load(std::memory_order_acquire)
                           : nullptr;
    if (!recorder) return host_philox(ctx, n, seed, offset);
    if (keeps_draws()) {
        return fail(ctx, CATENA_E_UNSUPPORTED,
                    "random numbers: expected none in a recomputed call while work is recorded");
    }
    return guarded(ctx, [&] {
        const Array state = empty_on(ctx->device->main(), {2}, Dtype::int64);
        recorder->draws(state, draws_from ? *draws_from : *ctx->device, n);
        *where = static_cast<const std::int64_t*>(state.body()->tensor.dl.data);
    });
}

const catena_draws draws_table = {sizeof(catena_draws), 0, host_reserve};

const void* host_get_extension(const catena_host*, const char* id) {
    return std::strcmp(id, CATENA_DRAWS_1) == 0 ? &draws_table : nullptr;
}

}  // namespace

const catena_host& host_table() noexcept {
    static const catena_host table = {.struct_size = sizeof(catena_host),
                                      .abi_major = CATENA_ABI_MAJOR,
                                      .abi_minor = CATENA_ABI_MINOR,
                                      .name = "catena",
                                      .version = CATENA_VERSION,
                                      .log = host_log,
                                      .fail = fail,
                                      .parallel_for = host_parallel_for,
                                      .slots = host_slots,
                                      .philox = host_philox,
                                      .config = host_config,
                                      .extensions = host_extensions,
                                      .find = host_find,
                                      .call = host_call,
                                      .meta = host_meta,
                                      .get_extension = host_get_extension,
                                      .read = host_read};
    return table;
}

}  // namespace catena
