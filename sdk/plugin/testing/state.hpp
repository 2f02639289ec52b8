// What a World knows: the plugins that it loaded.
#pragma once

#include <map>

#include "testing/device.hpp"
#include "testing/functions.hpp"
#include "testing/library.hpp"

namespace catena::testing {

struct World::State {
    explicit State(World& w) : world(w) {}

    void load(const std::string& path, bool given);
    // `given`: it is one of the plugins to test.
    void add(const detail::Library& library, bool given);
    bool runs(const catena_kernel& k) const;
    // Null: host memory.
    const detail::Device* device_of(const catena_kernel& k) const {
        const auto found = devices.find(k.device);
        return found == devices.end() ? nullptr : found->second;
    }
    // The values of all attributes, those that are not given by default.
    std::vector<catena_value> bind(const catena_function& f, const Attrs& attrs) const;
    // Kernels for these dtypes, best first.
    std::vector<const catena_kernel*> candidates(const catena_function& f, int phase,
                                                 const detail::Metas& x, const detail::Metas& y,
                                                 const Options& options) const;
    // The forward kernels that save what a backward kernel reads; none if it reads nothing.
    std::vector<const catena_kernel*> before(const catena_kernel& backward, const detail::Metas& x,
                                             const detail::Metas& y) const;
    const void* const* extensions(const std::string& device, const std::string& id) const;

    World& world;
    std::string own;  // the folder of catena's own plugins
    std::map<std::string, const catena_function&> functions;
    std::set<std::string> names;
    std::map<std::string, std::string> paths;  // by id
    // By name; null where the backend has no device.
    std::map<std::string, const detail::Device*> devices;
    std::vector<const catena_extension*> all_extensions;
    std::vector<const catena_kernel*> kernels;
    std::map<std::pair<std::string, int>, std::vector<const catena_kernel*>> by_phase;
    std::map<const void*, std::string> origins;
    std::set<std::string> given;  // the plugins to test, by id
    std::string ran;
    std::size_t n_runs = 0;
    std::set<const catena_kernel*> kernels_run;
    std::uint64_t began = 0;  // `drawn` when the last forward() began
};

}  // namespace catena::testing
