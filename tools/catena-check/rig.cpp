// The two instances of the subject, and the calls that are known of it.
#include "rig.hpp"

#include <catena/testing/device.hpp>
#include <catena/testing/exam_kernels.hpp>

#include <fmt/format.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

namespace catena::check {

using testing::Example;
using testing::Failure;
using testing::Sample;

Module second_copy(const std::filesystem::path& file) {
    const int fd = memfd_create("copy.catena", 0);  // stays open: its name must not come again
    const std::string path = fmt::format("/proc/self/fd/{}", fd);
    std::ofstream copy(path, std::ios::binary);
    copy << std::ifstream(file, std::ios::binary).rdbuf();
    copy.close();
    if (fd < 0 || !copy) throw Failure(CATENA_E_INTERNAL, "it could not be copied into memory");
    return Module(path);
}

Rig::Rig(const Subject& subject, const catena_host& host)
    : subject_(subject), world_(make_world(subject)) {
    doing("loads the plugin once more");
    const Module copy = second_copy(subject.file);
    catena_ctx ctx{world_.get(), {}, {}};
    table_ = copy.entry(&host, &ctx);
    if (table_ == nullptr)
        throw Failure(CATENA_E_INVALID, "catena_plugin_entry_v1() returned NULL: " + ctx.error);
    if (table_->init != nullptr && table_->init(&host, &ctx) != CATENA_OK)
        throw Failure(CATENA_E_INVALID, "init() failed: " + ctx.error);
    for (std::uint32_t i = 0; i < table_->n_functions; ++i)
        functions_.emplace(table_->functions[i]->name, table_->functions[i]);
    for (std::uint32_t i = 0; i < table_->n_backends; ++i)
        if (const catena_backend& b = *table_->backends[i]; std::strcmp(b.name, cpu) != 0)
            if (const auto* device = testing::detail::Device::find(b, *world_))
                devices_.emplace(b.name, device);
    std::uint32_t next = 0;
    for (const catena_kernel* k : world_->kernels())
        if (world_->origin(*k) == subject.id && next < table_->n_kernels) {
            const catena_kernel* mine = table_->kernels[next++];
            if (std::strcmp(mine->device, cpu) == 0 || devices_.contains(mine->device))
                kernels_.emplace(k, mine);
        }
}

const catena_function& Rig::function(const std::string& name) {
    const auto own = functions_.find(name);
    return own != functions_.end() ? *own->second : world_->function(name);
}

std::vector<Example> Rig::examples(const std::string& name) {
    return testing::examples_of(*world_, function(name), example_seed).calls;
}

std::vector<Play> Rig::plays(const std::string& name) {
    const catena_function& f = function(name);
    std::vector<Play> result;
    for (const Example& e : examples(name)) {
        std::optional<Sample> first;
        for (const bool train : {true, false}) try {
                doing(fmt::format("runs \"{}\"", testing::text_of(f, e)));
                Sample s = testing::make_sample(*world_, world_->function(name), e,
                                                subject_.seed32(), train);
                if (first && s.y == first->y) continue;
                first = s;
                result.push_back(play(f, std::move(s)));
            } catch (const Failure&) {
                // Of another check.
            }
    }
    return result;
}

Play Rig::play(const catena_function& f, Sample sample) {
    const catena_function& known = world_->function(f.name);
    testing::Report report;
    testing::Settings settings;
    settings.seed = subject_.seed32();
    testing::detail::Exam exam(*world_, known, sample, report, settings);
    Play p;
    p.base = exam.base();
    p.y = metas_of(sample.y, f.n_outputs);
    const bool differentiable = exam.differentiable();
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
        if (phase == CATENA_PHASE_BACKWARD && !differentiable) continue;
        for (testing::detail::Use& u : exam.uses(phase)) {
            const auto mine = kernels_.find(u.kernel);
            if (mine == kernels_.end()) continue;
            const bool repeats = testing::detail::KernelChecks(exam).repeats(u);
            Use use = {mine->second, nullptr, std::move(u), repeats};
            use.before = forward_of(use, f);
            p.uses.push_back(std::move(use));
        }
    }
    if (differentiable && brings(f.name) && f.gradient != nullptr) try {
            p.gx = exam.gradient(p.base);
            p.composed = true;
        } catch (const Failure&) {
            // Of another check.
        }
    p.sample = std::move(sample);
    return p;
}

std::vector<const catena_kernel*> Rig::kernels(const std::string& name, int phase) {
    std::vector<const catena_kernel*> result;
    for (const catena_kernel* k : world_->kernels(name, phase))
        if (const auto mine = kernels_.find(k); mine != kernels_.end())
            result.push_back(mine->second);
    return result;
}

const catena_kernel* Rig::forward_of(const Use& use, const catena_function& f) const {
    const catena_kernel& k = *use.kernel;
    if (k.phase != CATENA_PHASE_BACKWARD || k.variant == nullptr) return nullptr;
    for (std::uint32_t i = 0; i < table_->n_kernels; ++i) {
        const catena_kernel& other = *table_->kernels[i];
        if (other.phase == CATENA_PHASE_FORWARD && other.variant != nullptr &&
            std::strcmp(other.function, k.function) == 0 &&
            std::strcmp(other.variant, k.variant) == 0 && std::strcmp(other.isa, k.isa) == 0 &&
            std::strcmp(other.device, k.device) == 0 &&
            fits(f, other, use.of.given.x, metas_of(use.of.given.y, f.n_outputs)))
            return &other;
    }
    return nullptr;
}

void skip_if_idle(Findings& findings) {
    if (control.entered == 0)
        findings.skip("no function and no kernel of the plugin can be called here");
}

bool fits(const catena_function& f, const catena_kernel& k, const std::vector<Array>& x,
          const std::vector<catena_meta>& y) {
    const testing::TypeVars vars(f);
    for (std::uint32_t r = 0; r < k.n_types; ++r) {
        const catena_dtype* row = k.types + r * vars.size();
        bool all = true;
        for (std::size_t i = 0; i < x.size(); ++i)
            all = all && (!x[i] || plugin::same(row[vars.input(i)], x[i].dtype()));
        for (std::size_t i = 0; i < y.size(); ++i)
            all = all && plugin::same(row[vars.output(i)], y[i].dtype);
        if (all) return true;
    }
    return false;
}

std::vector<catena_meta> metas_of(const std::vector<Array>& arrays, std::size_t n) {
    std::vector<catena_meta> metas;
    for (std::size_t i = 0; i < n; ++i) metas.push_back(arrays[i].meta());
    return metas;
}

}  // namespace catena::check
