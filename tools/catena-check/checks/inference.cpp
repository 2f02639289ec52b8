// Checks infer() alone, also with shapes that no kernel could run on.
#include "rig.hpp"

#include <testing/functions.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace catena::check::inference {
namespace {

using namespace testing;

using detail::Metas;

constexpr std::int32_t host_memory = 1;  // kDLCPU, as set by detail::meta_of()

std::string text_of(const Metas& x) {
    std::vector<std::string> shapes;
    for (const auto& m : x)
        shapes.push_back(m ? fmt::format("({})", fmt::join(m->shape, m->shape + m->ndim, ","))
                           : "none");
    return fmt::format("{}", fmt::join(shapes, " "));
}

class Inference {
public:
    Inference(const Subject& subject, Findings& findings)
        : world_(make_world(subject)),
          f_(world_->function(subject.function)),
          subject_(subject),
          findings_(findings) {}

    // Calls body with attributes and inputs of each example, or of a call that examples_of() found.
    template <class Body>
    void each(const Body& body) {
        if (world_->origin(f_) != subject_.id)
            return findings_.skip("the function is another plugin's");
        const std::vector<Example> examples = examples_of(*world_, f_, example_seed).calls;
        if (examples.empty()) return findings_.skip("no call is known that it accepts");
        for (const Example& e : examples) {
            const auto values = values_of(f_, e.attrs);
            for (const detail::Row& row : detail::rows_of(*world_, f_)) {
                const Metas x = detail::metas_in(f_, e, row);
                example_ = e;
                if (ask(values, x).status != CATENA_OK) continue;
                body(values, x);
                break;  // dtypes make no difference here
            }
        }
    }

    // Calls infer(), or compose() without it. `before` is the initial value of each byte of the outputs.
    Reply ask(const std::vector<catena_value>& values, const Metas& x, int before = 0) const {
        doing("infer() of {} for {}", f_.name, text_of(x));
        Engine engine(*world_, f_, values, {});
        Reply reply;
        if (f_.infer != nullptr) {
            reply = engine.infer(x, before);
        } else {
            std::vector<Array> inputs;
            for (std::size_t i = 0; i < x.size(); ++i) inputs.push_back(input(x, i));
            reply = engine.shapes(inputs);
        }
        if (!reply.thrown.empty()) throw std::runtime_error(reply.thrown);
        return reply;
    }

    // Whether replies come from infer(), which gets metas, and not from compose(), which gets variables.
    bool reads_metas() const { return f_.infer != nullptr; }

    // Checks what holds for every reply.
    void sound(const Reply& a, const Metas& x) const {
        const auto fail = [&](const char* kind, const std::string& text) {
            findings_.fail_once(kind, "{}: {}", text_of(x), text);
        };
        if (!a.changed.empty()) fail("arguments", "it writes to its arguments");
        if (a.status != CATENA_OK) {
            const std::string start = fmt::format("[{}] ", f_.name);
            if (!a.text.starts_with(start) || a.text.size() < start.size() + 4)
                fail("refusal",
                     fmt::format("expected a refusal as in \"{}...\", got \"{}\"", start, a.text));
            return;
        }
        for (const catena_meta& m : a.metas) {
            if (m.ndim < 0 || m.ndim > CATENA_MAX_NDIM)
                return fail("axes", fmt::format("expected an output of 0 to {} axes, got {}",
                                                +CATENA_MAX_NDIM, m.ndim));
            for (std::int32_t d = 0; d < m.ndim; ++d)
                if (m.shape[d] < 0)
                    return fail("extents",
                                fmt::format("expected extents of 0 or more, got ({}): an overflow",
                                            fmt::join(m.shape, m.shape + m.ndim, ",")));
        }
    }

private:
    // Returns an input for compose(): with elements if it may read them, and if a host has as many.
    Array input(const Metas& x, std::size_t i) const {
        if (!x[i]) return {};
        Example e = example_;
        e.inputs[i].shape = detail::dims_of(*x[i]);
        const bool many = detail::elements(*x[i]) > most_elements;
        return many ? Array::without_memory(e.inputs[i].shape, x[i]->dtype)
                    : detail::draw_for_infer(f_, e, i, x[i]->dtype, subject_.seed32());
    }

    static constexpr double most_elements = 1e6;
    std::unique_ptr<World> world_;
    const catena_function& f_;
    const Subject& subject_;
    Findings& findings_;
    Example example_;
};

bool same(const Reply& a, const Reply& b) {
    if (a.status != b.status || a.text != b.text) return false;
    for (std::size_t i = 0; a.status == CATENA_OK && i < a.metas.size(); ++i) {
        const catena_meta &m = a.metas[i], &n = b.metas[i];
        if (m.ndim != n.ndim || !plugin::same(m.dtype, n.dtype) || m.ndim < 0 ||
            m.ndim > CATENA_MAX_NDIM || !std::equal(m.shape, m.shape + m.ndim, n.shape))
            return false;
    }
    return true;
}

void pure(const Subject& subject, Findings& findings) {
    Inference inference(subject, findings);
    inference.each([&](const std::vector<catena_value>& values, const Metas& x) {
        const Reply first = inference.ask(values, x);
        inference.sound(first, x);
        for (const catena_meta& m : first.metas)
            if (first.status == CATENA_OK && m.device_type != host_memory)
                findings.fail_once("device_type",
                                   "{}: device_type: expected it to stay on the device of the call "
                                   "({}), got {}",
                                   text_of(x), host_memory, m.device_type);
        for (const int before : {0xa5, 0x01})
            if (!same(first, inference.ask(values, x, before)))
                findings.fail_once("repeated",
                                   "{}: expected the same from the same arguments, got something "
                                   "else the second time",
                                   text_of(x));
    });
}
const Registered r1{{"inference", "pure",
                     "the result depends only on the arguments, and they are not modified", pure,
                     Each::function}};

void overflow(const Subject& subject, Findings& findings) {
    Inference inference(subject, findings);
    inference.each([&](const std::vector<catena_value>& values, const Metas& x) {
        constexpr std::int64_t one = 1;
        for (const std::int64_t huge :
             {one << 31, one << 32, one << 61, one << 62, INT64_MAX, (one << 32) - 1}) {
            Metas all = x;
            for (std::size_t i = 0; i < x.size(); ++i) {
                if (!x[i]) continue;
                Metas whole = x;
                for (std::int32_t d = 0; d < x[i]->ndim; ++d) {
                    Metas single = x;
                    single[i]->shape[d] = whole[i]->shape[d] = all[i]->shape[d] = huge;
                    inference.sound(inference.ask(values, single), single);
                    // Replaces equal extents in all inputs, so that shapes still match.
                    Metas equal = x;
                    for (auto& m : equal)
                        if (m) std::replace(m->shape, m->shape + m->ndim, x[i]->shape[d], huge);
                    inference.sound(inference.ask(values, equal), equal);
                }
                inference.sound(inference.ask(values, whole), whole);
            }
            inference.sound(inference.ask(values, all), all);
        }
    });
}
const Registered r2{
    {"inference", "overflow",
     "extents up to 2^63 - 1 are refused or inferred correctly: no crash, no negative extent",
     overflow, Each::function}};

// Changes the values before and after shape[0, ndim), which infer() must not read.
Metas surrounded(Metas x, std::int32_t before, std::int64_t behind) {
    for (auto& m : x) {
        if (!m) continue;
        m->device_type = before;  // at the address of shape[-1]
        std::fill(m->shape + m->ndim, m->shape + CATENA_MAX_NDIM, behind);
    }
    return x;
}

// Calls infer() with every number of axes, and extents of 0, 1, 2 and those of the example.
void ranks(const Subject& subject, Findings& findings) {
    Inference inference(subject, findings);
    inference.each([&](const std::vector<catena_value>& values, const Metas& x) {
        const auto ask = [&](const Metas& changed) {
            const Reply answer = inference.ask(values, changed);
            inference.sound(answer, changed);
            for (const catena_meta& m : answer.metas)
                if (m.ndim < 0 || m.ndim > CATENA_MAX_NDIM) return;
            if (!inference.reads_metas()) return;
            if (!same(answer, inference.ask(values, surrounded(changed, 2, 3))) ||
                !same(answer, inference.ask(values, surrounded(changed, 7, 5))))
                findings.fail_once("ndim",
                                   "{}: expected ndim to be looked at first, got a result that "
                                   "depends on axes which are not there",
                                   text_of(changed));
        };
        for (std::int32_t ndim = 0; ndim <= CATENA_MAX_NDIM; ++ndim)
            for (const std::int64_t extent : {-1, 0, 1, 2}) {  // -1: unchanged
                Metas all = x;
                for (std::size_t i = 0; i < x.size(); ++i) {
                    if (!x[i]) continue;
                    Metas single = x;
                    for (Metas* const change : {&all, &single}) {
                        catena_meta& m = *(*change)[i];
                        std::fill(m.shape + (extent < 0 ? std::min(m.ndim, ndim) : 0),
                                  m.shape + ndim, extent < 0 ? 2 : extent);
                        m.ndim = ndim;
                    }
                    ask(single);
                }
                ask(all);
            }
    });
}
const Registered r3{{"inference", "ranks",
                     "0 to 16 axes, extents of 0 and 1: outputs have at most 16 axes, and only "
                     "existing axes are read",
                     ranks, Each::function}};

}  // namespace
}  // namespace catena::check::inference
