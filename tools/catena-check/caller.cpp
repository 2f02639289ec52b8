// Everything that a callback is lent, put where the placement says; and the border that it crosses.
#include "caller.hpp"

#include <catena/testing/absent.hpp>
#include <catena/testing/device.hpp>
#include <catena/testing/exam_shapes.hpp>

#include <fmt/format.h>

#include <deque>

namespace catena::check {

using testing::Dims;

const char* name_of(Step step) {
    static constexpr const char* names[] = {"infer", "supports", "plan", "run", "gradient"};
    return names[static_cast<int>(step)];
}

std::string judge(const Reply& r, const catena_function& f) {
    const auto said = [&](const std::string& text) {
        return fmt::format("{}() {}", name_of(r.step), text);
    };
    if (!r.thrown.empty()) return said("lets an exception out: " + r.thrown);
    if (!r.misuse.empty()) return said("and the host: " + r.misuse);
    if (r.status == CATENA_OK)
        return r.failures == 0 ? "" : said("returns CATENA_OK after fail(\"" + r.text + "\")");
    if (r.step == Step::plan && r.status == CATENA_E_UNSUPPORTED) return {};
    if (r.failures == 0)
        return r.fired ? "" : said(fmt::format("returns status {} without fail()", r.status));
    if (r.text.empty()) return said("gives an empty text to fail()");
    if (r.status == CATENA_E_NOMEM) return {};  // where no text can be made
    const bool named = r.step != Step::infer || testing::detail::explains(f, r.text);
    if (r.text[0] != '[' || r.text.find("] ") == std::string::npos || !named)
        return said(
            fmt::format("says \"{}\": expected \"[{}] what: expected X, got Y\"", r.text, f.name));
    return {};
}

void set_clamped(Array& a, std::int64_t i, double value) {
    testing::detail::with_type(a.dtype(), [&]<class T>(T) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            constexpr auto low = std::numeric_limits<T>::min(),
                           high = std::numeric_limits<T>::max();
            a.data<T>()[i] = value != value                       ? T(0)
                             : value <= static_cast<double>(low)  ? low
                             : value >= static_cast<double>(high) ? high
                                                                  : static_cast<T>(value);
        } else {
            a.set(i, value);
        }
    });
}

Caller::Caller(testing::World& world, const Devices& devices, const catena_function& f,
               const OwnedAttrs& attrs, bool train)
    : world_(world), devices_(devices), f_(f), attrs_(attrs), train_(train), ctx_{&world, {}, {}} {
    ctx_.device = cpu;
}

const catena_value* Caller::attributes(Ground& ground) const {
    std::vector<catena_value> values;
    for (std::uint32_t i = 0; i < f_.n_attrs; ++i) {
        const catena_value* given = attrs_.find(f_.attrs[i]->name);
        catena_value v = given != nullptr ? *given : f_.attrs[i]->def;
        if (v.kind == CATENA_ATTR_STRING) v.v.s = ground.list(v.v.s, std::strlen(v.v.s) + 1);
        else if (v.kind == CATENA_ATTR_INTS) v.v.ints = ground.list(v.v.ints, v.n);
        else if (v.kind == CATENA_ATTR_FLOATS) v.v.floats = ground.list(v.v.floats, v.n);
        values.push_back(v);
    }
    return ground.list(values);
}

// The border: all that the plugin can do to its host is seen here.
template <class Body>
void Caller::enter(Reply& reply, Step step, bool last, const Body& body) {
    char thrown[200] = "";
    ctx_.error.clear();
    control.forget();
    if (last && arm) arm();
    ++control.entered;
    try {
        const Inside plugin(true);
        reply.status = body();
    } catch (const std::exception& e) {
        std::snprintf(thrown, sizeof thrown, "%s", e.what());
    } catch (...) {
        std::snprintf(thrown, sizeof thrown, "not even a std::exception");
    }
    reply.fired = allocation_failed() || control.fired;
    fail_allocation(0);
    control.failing_call = 0;
    reply.step = step;
    reply.thrown = thrown;
    reply.failures = control.failures;
    reply.text = control.text;
    reply.misuse = control.misuse;
}

Reply Caller::infer(const std::vector<std::optional<catena_meta>>& x) {
    Ground ground(placement);
    Reply reply;
    std::vector<const catena_meta*> in;
    for (const auto& meta : x) in.push_back(meta ? ground.lend(*meta) : nullptr);
    std::vector<catena_meta*> out;
    for (std::uint32_t i = 0; i < f_.n_outputs; ++i) {
        catena_meta meta;
        std::memset(&meta, 0xa7, sizeof meta);
        meta.ndim = -1;
        out.push_back(ground.lend_writable(meta));
    }
    const auto* in_list = ground.list(in);
    const auto* out_list = ground.list(out);
    const catena_value* attrs = attributes(ground);
    enter(reply, Step::infer, true, [&] {
        return f_.infer(&ctx_, attrs, in_list, static_cast<std::uint32_t>(in.size()), out_list,
                        f_.n_outputs);
    });
    for (const catena_meta* meta : out) {
        reply.metas.emplace_back();
        std::memcpy(&reply.metas.back(), meta,
                    std::min(sizeof *meta, ground.placement().release.meta));
    }
    return reply;
}

// The tensors of one call, with and without their data.
struct Caller::Lists {
    Lists(Ground& g, catena_ctx& c, const testing::detail::Device* d)
        : ground(g), ctx(c), device(d) {}

    catena_tensor* add(Array& a, bool read_only) {
        if (!a) return nullptr;
        catena_tensor t = a.tensor();
        const auto rank = static_cast<std::size_t>(t.dl.ndim);
        t.dl.shape = const_cast<std::int64_t*>(ground.list(t.dl.shape, rank));
        t.dl.strides = const_cast<std::int64_t*>(ground.list(t.dl.strides, rank));
        if (read_only) t.flags |= CATENA_TENSOR_READONLY;
        if (device != nullptr) {
            t.dl.data = places.emplace_back(*device, ctx, a).data();
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
        t.dl.data = nullptr;
        t.dl.byte_offset = 0;
        blind[lent] = ground.lend_writable(t);
        return lent;
    }
    std::byte* scratch(std::uint64_t bytes) {
        if (bytes == 0) return nullptr;
        if (device == nullptr) return ground.bytes(nullptr, bytes, 64, false);
        scratch_ = Array({static_cast<std::int64_t>(bytes)}, testing::dtype_of<std::uint8_t>());
        scratch_.fill(0xff);
        return places.emplace_back(*device, ctx, scratch_).data() + scratch_.shift();
    }
    // What the plugin wrote comes back into the arrays.
    void fetch() {
        if (device != nullptr) {
            device->sync(ctx);
            for (testing::detail::Placed& place : places) place.fetch();
            device->sync(ctx);
        }
        for (const auto& [array, from] : written)
            if (array->nbytes() > 0) std::memcpy(array->data<std::byte>(), from, array->nbytes());
    }
    template <class T>
    std::vector<T> without_data(std::vector<T> list) const {
        for (T& t : list)
            if (t != nullptr) t = blind.at(t);
        return list;
    }
    // The lists of a call.
    void bind(catena_call& call, bool with_data) {
        const auto of = [&](const auto& list) {
            return ground.list(with_data ? list : without_data(list));
        };
        call.x = of(x);
        call.y = of(y);
        call.gy = backward ? of(gy) : nullptr;
        call.gx = backward ? of(gx) : nullptr;
    }

    Ground& ground;
    catena_ctx& ctx;
    const testing::detail::Device* device;
    std::deque<testing::detail::Placed> places;
    Array scratch_;
    bool backward = false;
    std::vector<const catena_tensor*> x;
    std::vector<catena_tensor*> y;
    std::vector<const catena_tensor*> gy;
    std::vector<catena_tensor*> gx;
    std::vector<std::uint8_t> req;
    std::vector<std::uint64_t> targets;
    std::map<const catena_tensor*, catena_tensor*> blind;
    std::vector<std::pair<Array*, const std::byte*>> written;
};

bool Caller::kernel_call(const catena_kernel& k, Ground& ground, Lists& lists,
                         std::vector<Array>& saved, Step last, Reply& reply) {
    const bool forward = k.phase == CATENA_PHASE_FORWARD;
    catena_call call = {};
    ctx_.device = lists.device == nullptr ? cpu : k.device;
    if (lists.device != nullptr) {
        call.dev = lists.device->dev;
        call.stream = lists.device->stream;
    }
    call.flags = train_ ? +CATENA_CALL_TRAIN : 0u;
    call.phase = k.phase;
    call.n_saved = k.n_saved;
    call.function = &f_;
    call.attrs = attributes(ground);
    call.n_x = static_cast<std::uint32_t>(lists.x.size());
    call.n_y = static_cast<std::uint32_t>(lists.y.size());
    call.req = ground.list(lists.req);
    call.targets = forward ? nullptr : ground.list(lists.targets);
    lists.backward = !forward;
    // "Data pointers may be NULL in supports() and plan()": at the strictest, they are.
    lists.bind(call, !ground.strict());
    const catena_call* early = ground.lend(call);
    std::int32_t supported = 1;
    if (k.supports != nullptr)
        enter(reply, Step::supports, last == Step::supports, [&] {
            supported = k.supports(&ctx_, early);
            return CATENA_OK;
        });
    reply.failures = 0;  // a text for a call that is not supported is thrown away
    reply.served = supported != 0;
    if (!reply.served || last == Step::supports || !reply.thrown.empty()) return false;
    std::uint64_t scratch = 0;
    if (k.plan != nullptr) {
        std::vector<catena_meta*> metas;
        for (std::uint32_t i = 0; forward && i < k.n_saved; ++i) {
            catena_meta meta = {};
            meta.ndim = -1;
            metas.push_back(ground.lend_writable(meta));
        }
        catena_plan plan = {0, forward ? k.n_saved : 0, 0, ground.list(metas)};
        catena_plan* lent = ground.lend_writable(plan);
        enter(reply, Step::plan, last == Step::plan, [&] { return k.plan(&ctx_, early, lent); });
        reply.served = reply.status != CATENA_E_UNSUPPORTED;
        if (reply.status != CATENA_OK || last == Step::plan || !reply.thrown.empty()) return false;
        scratch = lent->scratch_bytes;
        std::uint64_t bytes = scratch;
        for (const catena_meta* m : metas) {
            if (m->ndim < 0 || m->ndim > CATENA_MAX_NDIM) {
                reply.misuse = fmt::format("plan() leaves {} axes to what it saves", m->ndim);
                return false;
            }
            double n = m->dtype.bits / 8.0;
            for (std::int32_t d = 0; d < m->ndim; ++d) n *= static_cast<double>(m->shape[d]);
            bytes += n > 1e12 ? most_bytes : static_cast<std::uint64_t>(n);
        }
        if (bytes > most_bytes || scratch > most_bytes) return reply.served = false;
        for (const catena_meta* m : metas) {
            saved.emplace_back(Dims(m->shape, m->shape + m->ndim), m->dtype);
            saved.back().fill(0xff);
        }
    }
    if (last == Step::plan) return false;
    lists.bind(call, true);
    std::vector<catena_tensor*> saved_list;
    for (Array& a : saved) saved_list.push_back(lists.add(a, !forward));
    call.saved = ground.list(saved_list);
    call.scratch = lists.scratch(scratch);
    call.scratch_bytes = scratch;
    const catena_call* late = ground.lend(call);
    enter(reply, Step::run, last == Step::run, [&] { return k.run(&ctx_, late); });
    lists.fetch();
    return reply.status == CATENA_OK && reply.thrown.empty();
}

Reply Caller::forward(const catena_kernel& k, const std::vector<Array>& inputs,
                      const std::vector<catena_meta>& metas, Step last, std::vector<Array>* kept) {
    Ground ground(placement);
    Lists lists(ground, ctx_, device_of(k));
    Reply reply;
    std::vector<Array> x = inputs;
    std::vector<Array> y;
    for (const catena_meta& m : metas) {
        y.emplace_back(Dims(m.shape, m.shape + m.ndim), m.dtype);
        y.back().fill(0xff);
    }
    for (std::size_t i = 0; i < x.size(); ++i)
        lists.x.push_back(
            lists.add(x[i], (testing::input_flags(f_, i) & CATENA_PORT_MUTATED) == 0));
    for (Array& a : y) lists.y.push_back(lists.add(a, false));
    lists.req.assign(y.size(), CATENA_REQ_WRITE);
    world_.drawn = 0;
    std::vector<Array> saved;
    if (!kernel_call(k, ground, lists, saved, last, reply)) return reply;
    reply.results = std::move(y);
    for (std::size_t i = 0; i < x.size(); ++i)
        if ((testing::input_flags(f_, i) & CATENA_PORT_MUTATED) != 0)
            reply.results.push_back(std::move(x[i]));
    if (kept != nullptr) *kept = std::move(saved);
    return reply;
}

Reply Caller::backward(const catena_kernel& k, const catena_kernel* before,
                       const testing::detail::Given& given, Step last) {
    Ground ground(placement);
    Lists lists(ground, ctx_, device_of(k));
    Reply reply;
    testing::detail::Given g = given;
    std::vector<Array> saved;
    if (k.variant != nullptr) {
        std::vector<catena_meta> metas;
        for (std::uint32_t i = 0; i < f_.n_outputs; ++i) metas.push_back(g.y[i].meta());
        const auto armed = std::exchange(arm, nullptr);
        reply.served = before != nullptr;
        if (before != nullptr) reply = forward(*before, g.x, metas, Step::run, &saved);
        arm = armed;
        if (!reply.served || reply.status != CATENA_OK || !reply.thrown.empty()) return reply;
        std::copy_n(reply.results.begin(), f_.n_outputs, g.y.begin());
        reply = {};
    }
    const std::uint64_t keep_x = k.variant != nullptr ? k.retain_x : f_.retain_x;
    const std::uint64_t keep_y = k.variant != nullptr ? k.retain_y : f_.retain_y;
    std::vector<Array> gx(g.x.size());
    lists.targets.assign((g.x.size() + 63) / 64, 0);
    for (std::size_t i = 0; i < g.x.size(); ++i) {
        lists.x.push_back(testing::retains(keep_x, i, f_.n_inputs) ? lists.add(g.x[i], true)
                                                                   : nullptr);
        if (testing::takes_gradient(f_, i, g.x[i])) {
            gx[i] = Array(g.x[i].shape(), g.x[i].dtype());
            gx[i].fill(0xff);
            lists.targets[i / 64] |= std::uint64_t{1} << i % 64;
        }
        lists.gx.push_back(lists.add(gx[i], false));
        lists.req.push_back(gx[i] ? CATENA_REQ_WRITE : CATENA_REQ_NONE);
    }
    for (std::size_t i = 0; i < f_.n_outputs; ++i) {
        lists.y.push_back((keep_y >> i & 1) != 0 ? lists.add(g.y[i], true) : nullptr);
        lists.gy.push_back(lists.add(g.gy[i], true));
    }
    world_.drawn = 0;
    catena_call lent = {};
    lists.backward = true;
    lists.bind(lent, true);
    lent.n_x = static_cast<std::uint32_t>(lists.x.size());
    lent.n_y = static_cast<std::uint32_t>(lists.y.size());
    const testing::detail::Absent in_call(f_, lent, keep_x, keep_y);
    if (kernel_call(k, ground, lists, saved, last, reply)) reply.results = std::move(gx);
    return reply;
}

Reply Caller::gradient(const testing::detail::Given& g) {
    Ground ground(placement);
    Reply reply;
    ctx_.vars.clear();
    ctx_.train = train_;
    const auto make = [&](const Array& a) -> catena_var* {
        return a ? ctx_.vars.emplace_back(new catena_var{a}).get() : nullptr;
    };
    std::vector<catena_var*> x, y, gy;
    std::vector<const catena_meta*> metas;
    std::vector<std::uint64_t> targets((g.x.size() + 63) / 64);
    for (std::size_t i = 0; i < g.x.size(); ++i) {
        x.push_back(testing::retains(f_.retain_x, i, f_.n_inputs) ? make(g.x[i]) : nullptr);
        metas.push_back(g.x[i] ? ground.lend(g.x[i].meta()) : nullptr);
        if (testing::takes_gradient(f_, i, g.x[i])) targets[i / 64] |= std::uint64_t{1} << i % 64;
    }
    for (std::size_t i = 0; i < f_.n_outputs; ++i) {
        y.push_back((f_.retain_y >> i & 1) != 0 ? make(g.y[i]) : nullptr);
        gy.push_back(make(g.gy[i]));
    }
    catena_var** gx = ground.writable_list(std::vector<catena_var*>(g.x.size()));
    const catena_gradient_call* call = ground.lend(catena_gradient_call{
        0, train_ ? +CATENA_CALL_TRAIN : 0u, &f_, attributes(ground),
        static_cast<std::uint32_t>(x.size()), static_cast<std::uint32_t>(y.size()), ground.list(x),
        ground.list(y), ground.list(gy), gx, ground.list(targets), ground.list(metas)});
    world_.drawn = 0;
    enter(reply, Step::gradient, true, [&] { return f_.gradient(&ctx_, call); });
    for (std::size_t i = 0; i < g.x.size(); ++i) {
        const bool wanted = (targets[i / 64] >> i % 64 & 1) != 0;
        reply.results.push_back(gx[i] != nullptr ? gx[i]->array
                                : wanted ? testing::detail::zeros_like(g.x[i])  // NULL is zero
                                         : Array());
    }
    return reply;
}

}  // namespace catena::check
