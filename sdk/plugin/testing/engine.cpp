// One call: its arguments, the sequence of callbacks, and checks for writes out of bounds.
#include "testing/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <new>
#include <span>

#include "testing/state.hpp"

namespace catena::testing::detail {

std::atomic<const char*> absent = nullptr;

const char* name_of(Step step) {
    static constexpr const char* names[] = {"infer", "supports", "plan",
                                            "run",   "gradient", "compose"};
    return names[static_cast<int>(step)];
}

namespace {

// Sets `absent` to the names of the NULL arguments during a backward pass, for reports of crashes.
class Absent {
public:
    Absent(const catena_function& f, const std::vector<const catena_tensor*>& x,
           const std::vector<catena_tensor*>& y, const std::vector<const catena_tensor*>& gy,
           const std::vector<catena_tensor*>& gx, std::uint64_t kept_x, std::uint64_t kept_y) {
        const auto add = [&](const std::string& what, bool retained = true, const char* set = "") {
            text_ += (text_.empty() ? "" : ", ") + what +
                     (retained ? "" : std::string(" (not in ") + set + ")");
        };
        for (std::size_t i = 0; i < x.size(); ++i)
            if (x[i] == nullptr)
                add("x " + input_name(f, i), retains(kept_x, i, f.n_inputs), "retain_x");
        for (std::size_t i = 0; i < y.size(); ++i)
            if (y[i] == nullptr)
                add(std::string("y ") + f.outputs[i]->name, (kept_y >> i & 1) != 0, "retain_y");
        for (std::size_t i = 0; i < gy.size(); ++i)
            if (gy[i] == nullptr) add(std::string("gy ") + f.outputs[i]->name);
        for (std::size_t i = 0; i < gx.size(); ++i)
            if (gx[i] == nullptr) add("gx " + input_name(f, i));
        if (!text_.empty()) absent = text_.c_str();
    }
    Absent(const Absent&) = delete;
    Absent& operator=(const Absent&) = delete;
    ~Absent() {
        const char* mine = text_.c_str();
        absent.compare_exchange_strong(mine, nullptr);
    }

private:
    std::string text_;
};

// Reports the first array with a write out of bounds.
template <class Name>
void look_beside(Reply& reply, std::span<const Array> arrays, const Name& name) {
    for (std::size_t i = 0; i < arrays.size() && reply.damage.empty(); ++i)
        if (const std::string text = arrays[i] ? arrays[i].damage() : ""; !text.empty())
            reply.damage = name(i) + ": written out of bounds: " + text;
}
template <class Name>
void look_unchanged(Reply& reply, const Arrays& now, const Arrays& before, const Name& name) {
    look_beside(reply, now, name);
    const std::size_t n = std::min(now.size(), before.size());
    for (std::size_t i = 0; i < n && reply.changed.empty(); ++i)
        if (!(now[i] == before[i])) reply.changed = name(i) + ": changed";
}

// Returns an array in place of one that is not retained: NaN, or 0 for integers.
Array garbage_like(const Array& a) {
    Array garbage(a.shape(), a.dtype());
    if (!a.floating()) garbage.fill(0);
    return garbage;
}
void fill_ones(Array& a) {
    for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, 1);
}

}  // namespace

Engine::Engine(World& world, const catena_function& f, const std::vector<catena_value>& attrs,
               const Options& options)
    : owner(&world),
      ctx{&world, {}, {}, options.train},
      world_(world),
      f_(f),
      attrs_(attrs),
      options_(options) {
    ctx.device = options.device == nullptr ? "cpu" : options.device;
}

const catena_value* Engine::attributes(Ground& ground) const {
    std::vector<catena_value> values = attrs_;
    for (catena_value& v : values)
        if (v.kind == CATENA_ATTR_STRING) v.v.s = ground.list(v.v.s, std::strlen(v.v.s) + 1);
        else if (v.kind == CATENA_ATTR_INTS) v.v.ints = ground.list(v.v.ints, v.n);
        else if (v.kind == CATENA_ATTR_FLOATS) v.v.floats = ground.list(v.v.floats, v.n);
    return ground.list(values);
}

std::vector<std::uint64_t> Engine::targets(const Arrays& x) const {
    std::vector<std::uint64_t> words((x.size() + 63) / 64);
    for (std::size_t i = 0; i < x.size(); ++i)
        if (takes_gradient(f_, i, x[i]) && (i >= 64 || (options_.targets >> i & 1) != 0))
            words[i / 64] |= std::uint64_t{1} << i % 64;
    return words;
}

Array Engine::unwritten(const Dims& shape, catena_dtype dtype) const {
    Array a(shape, dtype);  // floats are 0xff bytes
    if (options_.fill != 0xff || !a.floating()) a.fill(options_.fill);
    return a;
}

Unretained Engine::lends(bool retained, std::size_t port) const {
    const bool given = options_.spoilt >= 0 && static_cast<std::size_t>(options_.spoilt) != port;
    return retained || given ? Unretained::given : options_.unretained;
}

// Calls the plugin and records the outcome in `reply`.
void Engine::enter(Reply& reply, Step step, bool last,
                   const std::function<catena_status(catena_ctx*)>& body) {
    char thrown[200] = "";
    ctx.error.clear();
    ctx.thrown.clear();
    catena_ctx* lent = &ctx;
    if (watch != nullptr) {
        if (step != Step::gradient && step != Step::compose) watch->forget_handles();
        lent = watch->handle(&ctx);
        watch->begin(step, last && armed_);
    }
    try {
        reply.status = body(lent);
    } catch (const std::exception& e) {
        std::snprintf(thrown, sizeof thrown, "%s", e.what());
    } catch (...) {
        std::snprintf(thrown, sizeof thrown, "not even a std::exception");
    }
    reply.text = ctx.error;
    if (watch != nullptr) watch->end(reply);
    reply.step = step;
    reply.thrown = thrown;
    reply.piece_thrown = ctx.thrown;
}

// Begins a callback with variables, whose handles are made before enter().
void Engine::begin_variables() {
    if (watch != nullptr) watch->forget_handles();
}
std::vector<catena_var*> Engine::handles(const std::vector<catena_var*>& vars) const {
    std::vector<catena_var*> result = vars;
    for (catena_var*& var : result)
        if (var != nullptr && watch != nullptr) var = watch->handle(var);
    return result;
}

Reply Engine::infer(const Metas& x, int before) {
    Ground ground(placement);
    Reply reply;
    std::vector<const catena_meta*> in;
    for (const auto& meta : x) in.push_back(meta ? ground.lend(*meta) : nullptr);
    std::vector<catena_meta*> out;
    for (std::uint32_t i = 0; i < f_.n_outputs; ++i) {
        catena_meta meta;
        std::memset(&meta, before, sizeof meta);
        meta.device_type = 1;  // a function without inputs does not set it
        out.push_back(ground.lend_writable(meta));
    }
    const auto* in_list = ground.list(in);
    const auto* out_list = ground.list(out);
    const catena_value* attrs = attributes(ground);
    const auto bytes_of = [](const auto* items, std::size_t n) {
        return std::string(reinterpret_cast<const char*>(items), n);
    };
    const auto lent = [&] {
        std::string bytes = bytes_of(attrs, attrs_.size() * sizeof *attrs);
        for (const catena_meta* meta : in)
            if (meta != nullptr) bytes += bytes_of(meta, size_in(placement.release, meta));
        return bytes;
    };
    const std::string given = lent();
    enter(reply, Step::infer, true, [&](catena_ctx* lent_ctx) {
        return f_.infer(lent_ctx, attrs, in_list, static_cast<std::uint32_t>(in.size()), out_list,
                        f_.n_outputs);
    });
    if (lent() != given) reply.changed = "its arguments: changed";
    for (const catena_meta* meta : out) {
        reply.metas.emplace_back();
        std::memcpy(&reply.metas.back(), meta,
                    std::min(sizeof *meta, ground.placement().release.meta));
    }
    return reply;
}

// The tensors and lists of one call of a kernel.
struct Engine::Call {
    Call(Engine& e, const catena_kernel& k)
        : engine(e), kernel(k), ground(e.placement), device(e.owner->state().device_of(k)) {}

    // `ones`: with all extents and strides 1.
    catena_tensor* add(Array& a, bool read_only, bool ones = false) {
        if (!a) return nullptr;
        catena_tensor t = a.tensor();
        const auto rank = static_cast<std::size_t>(t.dl.ndim);
        const std::vector<std::int64_t> one(rank, 1);
        t.dl.shape = const_cast<std::int64_t*>(ground.list(ones ? one.data() : t.dl.shape, rank));
        t.dl.strides =
            const_cast<std::int64_t*>(ground.list(ones ? one.data() : t.dl.strides, rank));
        if (read_only) t.flags |= CATENA_TENSOR_READONLY;
        if (device != nullptr) {
            t.dl.data = nullptr;  // set by place(): supports() and plan() must not use it
            t.dl.device_type = device->table.dlpack_type;
        } else if (ground.fenced()) {
            std::byte* data =
                ground.bytes(a.data<std::byte>(), a.nbytes(), a.dtype().bits / 8u, read_only);
            t.dl.data = ground.last_page();
            t.dl.byte_offset = static_cast<std::uint64_t>(data - ground.last_page());
            t.align_log2 = static_cast<std::uint32_t>(
                __builtin_ctzll(reinterpret_cast<std::uintptr_t>(data) | 4096));
            if (!read_only) written.push_back({&a, data});
        }
        catena_tensor* lent = ground.lend_writable(t);
        if (device != nullptr) later.push_back({lent, &a});
        if (ground.strict()) {
            t.dl.data = nullptr;
            t.dl.byte_offset = 0;
            blind[lent] = ground.lend_writable(t);
        }
        return lent;
    }
    std::byte* scratch(std::uint64_t bytes) {
        if (bytes == 0) return nullptr;
        if (device == nullptr && ground.fenced()) return ground.bytes(nullptr, bytes, 64, false);
        room = Array::room(static_cast<std::int64_t>(bytes), engine.options_.fill);
        if (device == nullptr) return room.data<std::byte>();
        return places.emplace_back(*device, engine.ctx, room).data() + room.shift();
    }
    void place() {
        for (const auto& [tensor, array] : later)
            tensor->dl.data = places.emplace_back(*device, engine.ctx, *array).data();
    }
    // Copies what the plugin wrote back into the arrays.
    void fetch() {
        if (device != nullptr) {
            device->sync(engine.ctx);
            for (Placed& place : places) place.fetch();
            device->sync(engine.ctx);
        }
        for (const auto& [array, from] : written)
            if (array->nbytes() > 0) std::memcpy(array->data<std::byte>(), from, array->nbytes());
    }
    // Data pointers may be NULL in supports() and plan(); with strict placement, they are.
    template <class T>
    const T* list(std::vector<T> tensors, bool early) {
        if (early && ground.strict())
            for (T& t : tensors)
                if (t != nullptr) t = blind.at(t);
        return ground.list(tensors);
    }
    catena_call lists(bool early) {
        const bool forward = is_forward(kernel);
        catena_call call = {};
        call.flags = (engine.options_.train ? +CATENA_CALL_TRAIN : 0u) | engine.options_.flags;
        call.phase = kernel.phase;
        call.n_saved = kernel.n_saved;
        call.function = &engine.f_;
        call.attrs = engine.attributes(ground);
        call.n_x = static_cast<std::uint32_t>(x.size());
        call.n_y = static_cast<std::uint32_t>(y.size());
        call.x = list(x, early);
        call.y = list(y, early);
        call.gy = forward ? nullptr : list(gy, early);
        call.gx = forward ? nullptr : list(gx, early);
        call.req = ground.list(req);
        call.targets = forward ? nullptr : ground.list(targets);
        if (device != nullptr) {
            call.dev = device->dev;
            call.stream = device->stream;
        }
        return call;
    }

    Engine& engine;
    const catena_kernel& kernel;
    Ground ground;
    const Device* device;  // null: host memory
    std::deque<Placed> places;
    Array room;
    std::vector<const catena_tensor*> x;
    std::vector<catena_tensor*> y;
    std::vector<const catena_tensor*> gy;
    std::vector<catena_tensor*> gx;
    std::vector<std::uint8_t> req;
    std::vector<std::uint64_t> targets;
    std::map<const catena_tensor*, catena_tensor*> blind;
    std::vector<std::pair<catena_tensor*, Array*>> later;
    std::vector<std::pair<Array*, const std::byte*>> written;
    std::deque<Array> garbage;  // in place of arrays that are not retained
};

// Calls plan(). Returns false if no further callback is to be called.
bool Engine::plan(Call& call, const catena_call* early, Arrays& saved, std::uint64_t& scratch,
                  Step last, Reply& reply) {
    const catena_kernel& k = call.kernel;
    Ground& ground = call.ground;
    std::vector<catena_meta*> metas;
    for (std::uint32_t i = 0; is_forward(k) && i < k.n_saved; ++i) {
        catena_meta meta = {};
        meta.ndim = -1;
        metas.push_back(ground.lend_writable(meta));
    }
    catena_plan plan = {0, is_forward(k) ? k.n_saved : 0, 0, ground.list(metas)};
    catena_plan* lent = ground.lend_writable(plan);
    enter(reply, Step::plan, last == Step::plan,
          [&](catena_ctx* c) { return k.plan(c, early, lent); });
    reply.served = reply.status != CATENA_E_UNSUPPORTED;
    if (reply.status != CATENA_OK || last == Step::plan || !reply.thrown.empty()) return false;
    scratch = lent->scratch_bytes;
    double bytes = static_cast<double>(scratch);
    for (const catena_meta* m : metas) {
        if (m->ndim < 0 || m->ndim > CATENA_MAX_NDIM) {
            reply.misuse = "plan() leaves " + std::to_string(m->ndim) + " axes to what it saves";
            return false;
        }
        bytes += m->dtype.bits / 8.0 * elements(*m);
    }
    if (bytes > static_cast<double>(options_.most_bytes)) return reply.served = false;
    for (const catena_meta* m : metas) saved.push_back(unwritten(dims_of(*m), m->dtype));
    return true;
}

// Calls the kernel's callbacks up to `last`. Returns false if there is no result.
bool Engine::kernel_call(Call& call, Arrays& saved, Step last, Reply& reply) {
    const catena_kernel& k = call.kernel;
    ctx.device = call.device == nullptr ? "cpu" : k.device;
    const catena_call* early = call.ground.lend(call.lists(true));
    std::int32_t supported = 1;
    if (k.supports != nullptr)
        enter(reply, Step::supports, last == Step::supports, [&](catena_ctx* c) {
            supported = k.supports(c, early);
            return CATENA_OK;
        });
    reply.failures = 0;  // texts about an unsupported call are discarded
    reply.served = supported != 0;
    if (!reply.served || last == Step::supports || !reply.thrown.empty()) return false;
    std::uint64_t scratch = 0;
    if (k.plan != nullptr && !plan(call, early, saved, scratch, last, reply)) return false;
    if (last == Step::plan) return false;
    std::vector<catena_tensor*> saved_list;
    for (Array& a : saved) saved_list.push_back(call.add(a, !is_forward(k)));
    call.place();
    catena_call late = call.lists(false);
    late.saved = call.ground.list(saved_list);
    late.scratch = call.scratch(scratch);
    late.scratch_bytes = scratch;
    const catena_call* lent = call.ground.lend(late);
    ++world_.state().n_runs;
    world_.state().kernels_run.insert(&k);
    enter(reply, Step::run, last == Step::run, [&](catena_ctx* c) { return k.run(c, lent); });
    call.fetch();
    if (reply.status != CATENA_OK || !reply.thrown.empty()) return false;
    look_beside(reply, {&call.room, 1}, [](std::size_t) { return std::string("its scratch"); });
    look_beside(reply, saved, [](std::size_t i) { return "what it saves, " + std::to_string(i); });
    return true;
}

Reply Engine::forward(const catena_kernel& k, const Arrays& given,
                      const std::vector<catena_meta>& metas, Step last, Arrays& saved) {
    Call call(*this, k);
    Reply reply;
    Arrays x = given;
    x.resize(std::max<std::size_t>(x.size(), f_.n_inputs));
    Arrays y;
    for (const catena_meta& m : metas) y.push_back(unwritten(dims_of(m), m.dtype));
    const auto updated = [&](std::size_t i) {
        return (input_flags(f_, i) & CATENA_PORT_MUTATED) != 0;
    };
    for (std::size_t i = 0; i < x.size(); ++i) call.x.push_back(call.add(x[i], !updated(i)));
    for (Array& a : y) {
        const bool add = options_.add && a.floating();
        if (add) fill_ones(a);
        call.y.push_back(call.add(a, false));
        call.req.push_back(add ? CATENA_REQ_ADD : CATENA_REQ_WRITE);
    }
    if (!kernel_call(call, saved, last, reply)) return reply;
    look_beside(reply, y,
                [&](std::size_t i) { return std::string("output ") + f_.outputs[i]->name; });
    reply.results = std::move(y);
    for (Array& a : reply.results) a.settle();
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!updated(i)) continue;
        look_beside(reply, {&x[i], 1},
                    [&](std::size_t) { return "updated input " + input_name(f_, i); });
        reply.results.push_back(std::exchange(x[i], i < given.size() ? given[i] : Array()));
    }
    look_unchanged(reply, x, given, [&](std::size_t i) { return "input " + input_name(f_, i); });
    return reply;
}

// Runs a forward kernel of the variant for the state and the outputs that a backward kernel reads.
Reply Engine::save(const std::vector<const catena_kernel*>& kernels, Given& given,
                   std::uint64_t drawn, Arrays& saved) {
    std::vector<catena_meta> metas;
    for (const Array& a : given.y) metas.push_back(a.meta());
    const Options options = std::exchange(options_, Options());
    options_.train = options.train;
    options_.flags = options.flags;
    options_.fill = options.fill;
    armed_ = false;
    Reply reply;
    reply.served = false;
    for (std::size_t i = 0; i < kernels.size() && !reply.served; ++i) {
        saved.clear();
        world_.drawn = drawn;
        reply = forward(*kernels[i], given.x, metas, Step::run, saved);
    }
    armed_ = true;
    options_ = options;
    if (reply.ok()) std::copy_n(reply.results.begin(), f_.n_outputs, given.y.begin());
    return reply;
}

// Fills the lists of a backward call: the retained values and the wanted gradients.
void Engine::lend(Call& call, Given& now, Arrays& gx, std::uint64_t kept_x, std::uint64_t kept_y) {
    const auto lent = [&](Array& a, bool retained, std::size_t port) -> catena_tensor* {
        const Unretained how = lends(retained, port);
        if (!a || how == Unretained::missing) return nullptr;
        if (how == Unretained::given) return call.add(a, true);
        return call.add(call.garbage.emplace_back(garbage_like(a)), true, true);
    };
    call.targets = targets(now.x);
    for (std::size_t i = 0; i < now.x.size(); ++i) {
        call.x.push_back(lent(now.x[i], retains(kept_x, i, f_.n_inputs), i));
        if ((call.targets[i / 64] >> i % 64 & 1) != 0) {
            gx[i] = unwritten(now.x[i].shape(), now.x[i].dtype());
            if (options_.add) fill_ones(gx[i]);
        }
        call.gx.push_back(call.add(gx[i], false));
        call.req.push_back(!gx[i]         ? CATENA_REQ_NONE
                           : options_.add ? CATENA_REQ_ADD
                                          : CATENA_REQ_WRITE);
    }
    for (std::size_t i = 0; i < f_.n_outputs; ++i) {
        call.y.push_back(lent(now.y[i], (kept_y >> i & 1) != 0, now.x.size() + i));
        call.gy.push_back(call.add(now.gy[i], true));
    }
}

Reply Engine::backward(const catena_kernel& k, const std::vector<const catena_kernel*>& before,
                       const Given& given, std::uint64_t drawn, Step last) {
    Given now = given;
    now.x.resize(std::max<std::size_t>(now.x.size(), f_.n_inputs));
    now.y.resize(f_.n_outputs);
    now.gy.resize(f_.n_outputs);
    Arrays saved, saved_y;
    const bool own = k.variant != nullptr;
    if (own) {
        if (Reply reply = save(before, now, drawn, saved); !reply.ok()) return reply;
        saved_y = now.y;
    }
    const std::uint64_t kept_x = own ? k.retain_x : f_.retain_x;
    const std::uint64_t kept_y = own ? k.retain_y : f_.retain_y;
    Arrays gx(now.x.size());
    Call call(*this, k);
    lend(call, now, gx, kept_x, kept_y);
    Reply reply;
    const Absent in_call(f_, call.x, call.y, call.gy, call.gx, kept_x, kept_y);
    if (!kernel_call(call, saved, last, reply)) return reply;
    const auto input = [&](const char* what) {
        return [this, what](std::size_t i) { return what + input_name(f_, i); };
    };
    const auto output = [&](const char* what) {
        return [this, what](std::size_t i) { return std::string(what) + f_.outputs[i]->name; };
    };
    look_beside(reply, gx, input("gradient of "));
    look_unchanged(reply, now.x, given.x, input("input "));
    look_unchanged(reply, now.y, own ? saved_y : given.y, output("output "));
    look_unchanged(reply, now.gy, given.gy, output("gradient of output "));
    reply.results = std::move(gx);
    for (Array& a : reply.results) a.settle();
    return reply;
}

Engine::Vars Engine::make(const Given& given) {
    const auto each = [&](const Arrays& arrays) {
        std::vector<catena_var*> vars;
        for (const Array& a : arrays)
            vars.push_back(a ? ctx.vars.emplace_back(new catena_var{a}).get() : nullptr);
        return vars;
    };
    Vars vars = {each(given.x), each(given.y), each(given.gy), {}};
    vars.y.resize(f_.n_outputs);
    vars.gy.resize(f_.n_outputs);
    vars.gx.resize(given.x.size());
    return vars;
}

Engine::Vars Engine::lend(const Vars& vars, const Given& given) {
    const auto lent = [&](catena_var* var, bool retained, std::size_t port) -> catena_var* {
        const Unretained how = lends(retained, port);
        if (var == nullptr || how == Unretained::missing) return nullptr;
        if (how == Unretained::given) return var;
        return ctx.vars.emplace_back(new catena_var{garbage_like(var->array)}).get();
    };
    Vars result = vars;
    for (std::size_t i = 0; i < vars.x.size(); ++i)
        result.x[i] = lent(vars.x[i], retains(f_.retain_x, i, f_.n_inputs), i);
    for (std::size_t i = 0; i < vars.y.size(); ++i)
        result.y[i] = lent(vars.y[i], (f_.retain_y >> i & 1) != 0, given.x.size() + i);
    return result;
}

Reply Engine::gradient(const Given& given, Vars& vars) {
    Ground ground(placement);
    Reply reply;
    begin_variables();
    const Vars lent = lend(vars, given);
    std::vector<const catena_meta*> metas;
    for (const Array& a : given.x) metas.push_back(a ? ground.lend(a.meta()) : nullptr);
    const std::vector<std::uint64_t> wanted = targets(given.x);
    catena_var** gx = ground.writable_list(lent.gx);
    const catena_gradient_call* call = ground.lend(catena_gradient_call{
        0, options_.train ? +CATENA_CALL_TRAIN : 0u, &f_, attributes(ground),
        static_cast<std::uint32_t>(lent.x.size()), static_cast<std::uint32_t>(lent.y.size()),
        ground.list(handles(lent.x)), ground.list(handles(lent.y)), ground.list(handles(lent.gy)),
        gx, ground.list(wanted), ground.list(metas)});
    enter(reply, Step::gradient, true, [&](catena_ctx* c) { return f_.gradient(c, call); });
    for (std::size_t i = 0; i < vars.gx.size(); ++i) {
        vars.gx[i] = watch != nullptr && gx[i] != nullptr ? watch->variable(gx[i]) : gx[i];
        if (vars.gx[i] == nullptr && gx[i] != nullptr && reply.misuse.empty())
            reply.misuse = "gradient of " + input_name(f_, i) +
                           ": expected a variable of this callback, got another one";
    }
    for (std::size_t i = 0; i < vars.gx.size(); ++i)
        reply.results.push_back(vars.gx[i] != nullptr ? vars.gx[i]->array
                                : (wanted[i / 64] >> i % 64 & 1) != 0
                                    ? zeros_like(given.x[i])  // NULL is zero
                                    : Array());
    return reply;
}

}  // namespace catena::testing::detail
