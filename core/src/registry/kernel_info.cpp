// What is known of kernels, for messages and listings.
#include "registry/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace catena {
namespace {

// A set of rows: for each type variable the dtypes that it may have, independently of the others.
using Block = std::vector<std::vector<std::string>>;

// Joins two blocks that differ in one type variable alone.
bool join(Block& a, const Block& b) {
    std::size_t odd = a.size();
    for (std::size_t t = 0; t < a.size(); ++t) {
        if (a[t] == b[t]) continue;
        if (odd != a.size()) return false;
        odd = t;
    }
    if (odd == a.size()) return true;
    for (const auto& dtype : b[odd]) {
        if (std::ranges::count(a[odd], dtype) == 0) a[odd].push_back(dtype);
    }
    sort_dtypes(a[odd]);
    return true;
}

}  // namespace

void sort_dtypes(std::vector<std::string>& names) {
    std::ranges::sort(names, {}, [](const std::string& wanted) {
        int i = 0;
        while (i < dtype_count && name(static_cast<Dtype>(i)) != wanted) ++i;
        return i;
    });
}

std::vector<KernelInfo> Registry::kernels_of(std::string_view name) {
    FunctionEntry& entry = require(name);
    const std::lock_guard lock(mutex_);
    std::vector<KernelInfo> list;
    for (const KernelEntry& k : entry.kernels_) {
        KernelInfo info{k.plugin->id,
                        k.kernel->device,
                        k.kernel->isa ? k.kernel->isa : "",
                        k.kernel->variant ? k.kernel->variant : "",
                        k.kernel->name ? k.kernel->name : "",
                        k.kernel->phase,
                        k.kernel->priority,
                        {}};
        for (std::uint32_t row = 0; row < k.kernel->n_types; ++row) {
            std::vector<std::string> types;
            for (int t = 0; t < entry.type_vars; ++t) {
                types.push_back(
                    catena::name(k.kernel->types[row * static_cast<std::uint32_t>(entry.type_vars) +
                                                 static_cast<std::uint32_t>(t)]));
            }
            info.dtypes.push_back(std::move(types));
        }
        list.push_back(std::move(info));
    }
    return list;
}

std::string dtypes_to_string(const catena_function& f, std::span<const KernelInfo> kernels) {
    std::vector<Block> blocks;
    for (const KernelInfo& kernel : kernels) {
        for (const auto& row : kernel.dtypes) {
            Block block;
            for (const auto& dtype : row) block.push_back({dtype});
            if (std::ranges::count(blocks, block) == 0) blocks.push_back(std::move(block));
        }
    }
    for (std::size_t i = 0; i < blocks.size();) {
        const auto same = [&](const Block& b) { return &b != &blocks[i] && join(blocks[i], b); };
        const auto found = std::find_if(blocks.begin(), blocks.end(), same);
        if (found == blocks.end()) ++i;
        else {
            blocks.erase(found);
            i = 0;
        }
    }
    std::vector<std::string_view> names;
    for (const auto ports : {std::span(f.inputs, f.n_inputs), std::span(f.outputs, f.n_outputs)}) {
        for (const auto* port : ports) {
            if (std::find(names.begin(), names.end(), port->type_var) == names.end()) {
                names.push_back(port->type_var);
            }
        }
    }
    std::vector<std::string> words;
    for (const Block& block : blocks) {
        if (block.size() == 1) {
            words.push_back(fmt::format("{}", fmt::join(block[0], ", ")));
            continue;
        }
        std::vector<std::string> columns;
        for (std::size_t t = 0; t < block.size(); ++t) {
            columns.push_back(fmt::format("{}={}", names[t], fmt::join(block[t], "|")));
        }
        words.push_back(fmt::format("{}", fmt::join(columns, ", ")));
    }
    return fmt::format("{}", fmt::join(words, " or "));
}

std::vector<KernelInfo> kernels_of(std::string_view function) {
    return Registry::get().kernels_of(function);
}

}  // namespace catena
