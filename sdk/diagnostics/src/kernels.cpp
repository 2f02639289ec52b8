// Lists of kernels, and the errors for calls that no kernel takes and for names that nothing has.
#include "diagnostics.hpp"

#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <ids.hpp>

#include <map>
#include <ranges>
#include <set>

namespace catena {
namespace {

// A set of rows: for each type variable the dtypes that it may have, independently of the others.
using Block = std::vector<std::vector<std::string>>;

// Sorts names of dtypes in the order of Dtype.
void sort_dtypes(std::vector<std::string>& names) {
    std::ranges::sort(names, {}, [](const std::string& wanted) {
        int i = 0;
        while (i < dtype_count && name(static_cast<Dtype>(i)) != wanted) ++i;
        return i;
    });
}

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

using Row = std::vector<std::string>;

// "a", "a or b", "a, b or c".
std::string any_of(const Row& words) {
    return fmt::format("{}{}{}", fmt::join(words.begin(), words.end() - 1, ", "),
                       words.size() > 1 ? " or " : "", words.back());
}

// The first tensor of a type variable.
std::string port_of(const FunctionInfo& f, int type, std::span<ArrayBody* const> x) {
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (x[i] && f.input_type[f.port(i)] == type) return f.input_name(i);
    }
    const auto y = std::find(f.output_type.begin(), f.output_type.end(), type);
    return y == f.output_type.end() ? "dtype"
                                    : f.descriptor.outputs[y - f.output_type.begin()]->name;
}

// Throws if the dtype of one type variable is in no row, naming those that go with the others.
void check_dtypes(const FunctionInfo& f, std::span<ArrayBody* const> x,
                  const std::vector<Row>& rows, const Row& wanted) {
    for (std::size_t t = 0; t < wanted.size() && !rows.empty(); ++t) {
        Row all, fitting;
        for (const Row& row : rows) {
            const auto add = [&](Row& list) {
                if (std::ranges::count(list, row[t]) == 0) list.push_back(row[t]);
            };
            add(all);
            Row same = row;
            same[t] = wanted[t];
            if (same == wanted) add(fitting);
        }
        if (std::ranges::count(all, wanted[t]) > 0) continue;
        Row& expected = fitting.empty() ? all : fitting;
        sort_dtypes(expected);
        raise<DtypeError>("[{}] {}: expected {}, got {}{}", f.descriptor.name,
                          port_of(f, static_cast<int>(t), x), any_of(expected), wanted[t],
                          wanted[t] == "bool" ? ": cast it" : "");
    }
}

// "catena.Adam_Update" -> "adamupdate": what people mix up.
std::string folded(std::string_view name) {
    if (name.starts_with("catena.")) name.remove_prefix(7);
    std::string text;
    for (const char c : name) {
        if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return text;
}

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// The functions of the plugins that are loaded now, with their flags.
std::map<std::string_view, std::uint32_t> functions() {
    std::map<std::string_view, std::uint32_t> all;
    for (const PluginTable& plugin : plugin_tables(/*search=*/false))
        for (const auto* function : std::span(plugin.table->functions, plugin.table->n_functions))
            all.try_emplace(function->name, function->flags);
    return all;
}

std::string nearest(std::string_view name, bool internal) {
    const std::string wanted = folded(name);
    const bool bare = wanted.find('.') == wanted.npos;  // whose it is was left out
    std::size_t least = last_word(wanted).size() / 3 + 1;
    std::string guess;
    for (const auto& [candidate, flags] : functions()) {
        if (!internal && (flags & CATENA_FUNCTION_INTERNAL)) continue;
        const std::string known = folded(candidate);
        std::size_t d = edit_distance(wanted, known);
        if (bare) d = std::min(d, edit_distance(wanted, last_word(known)));
        if (d < least) guess = candidate;
        least = std::min(least, d);
    }
    return guess;
}

// When the library is loaded, the core gets its hooks.
constinit CoreDiagnostics installed;
[[maybe_unused]] const bool registered = (registered_diagnostics.store(&installed), true);

}  // namespace

std::vector<KernelInfo> kernels_of(std::string_view function) {
    const auto type_vars =
        static_cast<std::uint32_t>(FunctionInfo(function_descriptor(function)).type_vars);
    std::vector<KernelInfo> list;
    for (const auto& [plugin, k] : kernel_tables(function)) {
        const auto text = [](const char* given) { return given ? given : ""; };
        KernelInfo info{plugin,        k->device, text(k->isa), text(k->variant),
                        text(k->name), k->phase,  k->priority,  {}};
        for (std::uint32_t row = 0; row < k->n_types; ++row) {
            std::vector<std::string>& types = info.dtypes.emplace_back();
            for (std::uint32_t t = 0; t < type_vars; ++t)
                types.push_back(name(k->types[row * type_vars + t]));
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
            if (std::ranges::count(names, port->type_var) == 0) names.push_back(port->type_var);
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

// DtypeError where one dtype fits no kernel of the device, else UnsupportedError that lists the kernels.
void CoreDiagnostics::no_kernel(const FunctionInfo& f, std::span<ArrayBody* const> x, Device device,
                                std::uint64_t key, bool declined) {
    Row wanted;
    for (int t = 0; t < f.type_vars; ++t)
        wanted.emplace_back(name(static_cast<Dtype>(key >> (4 * t) & 15)));
    std::vector<Row> rows;
    // Variants and instruction sets of a plugin are one entry.
    std::vector<std::vector<KernelInfo>> places;
    for (KernelInfo& k : kernels_of(f.descriptor.name)) {
        if (k.phase != CATENA_PHASE_FORWARD) continue;
        if (k.device == device.backend()) rows.insert(rows.end(), k.dtypes.begin(), k.dtypes.end());
        const auto place = std::find_if(places.begin(), places.end(), [&](const auto& p) {
            return p[0].device == k.device && p[0].plugin == k.plugin;
        });
        if (place == places.end()) places.push_back({std::move(k)});
        else place->push_back(std::move(k));
    }
    if (!declined) check_dtypes(f, x, rows, wanted);
    std::string have;
    for (const auto& place : places) {
        Row needs;  // what every kernel of it asks of the device
        for (const KernelInfo& k : place) needs.push_back(k.isa);
        const bool anywhere = std::ranges::count(needs, "") > 0;
        have += fmt::format("\n  {} {}: {}{}", place[0].device, place[0].plugin,
                            dtypes_to_string(f.descriptor, place),
                            anywhere ? "" : fmt::format(" (needs {})", any_of(needs)));
    }
    // A kernel that was meant for this function has a name with a slip in it.
    for (const KernelsWithoutFunction& k : kernels_without_function()) {
        if (k.guess == f.descriptor.name) {
            have += fmt::format("\n  {} has kernels for {}, a function that no plugin has",
                                k.plugin, k.function);
        }
    }
    if (rows.empty() && !places.empty()) {
        have += fmt::format("\n  CATENA_FALLBACK={} or using_fallback runs such calls there",
                            places[0][0].device);
    }
    raise<UnsupportedError>("[{}] kernel: expected one for {} on {}, got none{}; there is:{}",
                            f.descriptor.name, describe_inputs(f, x), device.name(),
                            declined ? " whose supports() says yes" : "",
                            have.empty() ? " nothing" : have);
}

// ---- names that nothing has: functions, devices, pins; and what was meant

std::string CoreDiagnostics::suggestion(std::string_view function) {
    const std::string_view bare = function.substr(function.starts_with("catena.") ? 7 : 0);
    if (const std::string_view here = name_here(bare); !here.empty()) {
        const std::string full = "catena." + std::string(here);
        if (functions().contains(full)) return fmt::format("{} is called {} here", bare, full);
    }
    const std::string guess = nearest(function, false);
    return guess.empty() ? "" : "did you mean " + guess + "?";
}

std::vector<KernelsWithoutFunction> CoreDiagnostics::kernels_without_function() {
    const auto known = functions();
    std::vector<KernelsWithoutFunction> list;
    for (const PluginTable& plugin : plugin_tables(/*search=*/false)) {
        std::set<std::string_view> seen;
        for (const auto* kernel : std::span(plugin.table->kernels, plugin.table->n_kernels)) {
            const std::string_view name = kernel->function;
            if (!known.contains(name) && seen.insert(name).second)
                list.push_back({plugin.id, std::string(name), catena::nearest(name, true)});
        }
    }
    return list;
}

void CoreDiagnostics::report_pins() {
    const auto known = functions();
    for (const PinWish& wish : take_pin_wishes()) {
        bool has_function = known.contains(wish.name), has_extension = false;
        bool loaded = false, offered = false;
        for (const auto& [id, table] : plugin_tables(/*search=*/false)) {
            const bool own = id == wish.plugin;
            loaded = loaded || own;
            for (const auto* kernel : std::span(table->kernels, table->n_kernels))
                offered = offered || (own && has_function && kernel->function == wish.name);
            for (const auto* each : std::span(table->extensions, table->n_extensions)) {
                if (each->id != wish.name) continue;
                has_extension = true;
                offered = offered || own;
            }
        }
        if (offered) continue;
        const char* why = "that plugin has nothing for it so far";
        if (wish.plugin.empty()) why = "expected FUNCTION=PLUGIN or EXTENSION=PLUGIN";
        else if (!has_function && !has_extension)
            why = "no plugin so far has a function or an extension of that name";
        else if (!loaded) why = "no plugin of that id is loaded so far";
        tell(CATENA_LOG_WARNING, fmt::format("CATENA_PIN: {}: {}", wish.item, why));
    }
}

void CoreDiagnostics::no_device(std::string_view name, std::string_view backend) {
    std::string there;
    std::vector<std::string> names;
    for (const BackendInfo& b : Device::backends()) {
        there += fmt::format("{}{} ({} device{})", there.empty() ? "" : ", ", b.name,
                             b.devices == 0 ? "no" : std::to_string(b.devices),
                             b.devices > 1 ? "s" : "");
        names.push_back(b.name);
    }
    const std::string guess = nearest_name(backend, names, backend.size() / 2 + 1);
    raise<DeviceError>(
        "[device] name: expected a device of {}, got '{}'{}{}\nplugins bring backends; 'catena "
        "plugins' or to_string(plugin_report()) has the details",
        there, name, guess.empty() ? "" : fmt::format("; did you mean {}?", guess),
        plugin_refusals());
}

std::string function_suggestion(std::string_view name) {
    (void)plugin_tables();  // searches the usual folders
    return diagnostics().suggestion(name);
}

// ---- names that functions have in PyTorch, TensorFlow and NumPy

namespace {

struct OtherName {
    std::string_view there, here;
};
constexpr OtherName other_names[] = {
    {"affine_grid", "spatial_transformer_grid"},
    {"amax", "max"},
    {"amin", "min"},
    {"atanh", "arctanh"},
    {"avg_pool1d", "average_pooling_1d"},
    {"avg_pool2d", "average_pooling_2d"},
    {"avg_pool3d", "average_pooling_3d"},
    {"batch_norm", "batch_normalization"},
    {"batch_norm1d", "batch_normalization"},
    {"batch_norm2d", "batch_normalization"},
    {"batch_norm3d", "batch_normalization"},
    {"bce_with_logits_loss", "sigmoid_cross_entropy"},
    {"binary_cross_entropy_with_logits", "sigmoid_cross_entropy"},
    {"bmm", "matmul"},
    {"cat", "concat"},
    {"chunk", "split_axis"},
    {"clamp", "clip"},
    {"concatenate", "concat"},
    {"conv1d", "convolution_1d"},
    {"conv2d", "convolution_2d"},
    {"conv2d_transpose", "deconvolution_2d"},
    {"conv3d", "convolution_3d"},
    {"conv_transpose1d", "deconvolution_1d"},
    {"conv_transpose2d", "deconvolution_2d"},
    {"conv_transpose3d", "deconvolution_3d"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"cross_entropy_loss", "softmax_cross_entropy"},
    {"ctc_loss", "connectionist_temporal_classification"},
    {"dense", "linear"},
    {"embedding", "embed_id"},
    {"embedding_lookup", "embed_id"},
    {"grid_sample", "spatial_transformer_sampler"},
    {"group_norm", "group_normalization"},
    {"hardsigmoid", "hard_sigmoid"},
    {"index_select", "take"},
    {"instance_norm", "instance_normalization"},
    {"interpolate", "resize_images"},
    {"layer_norm", "layer_normalization"},
    {"local_response_norm", "local_response_normalization"},
    {"masked_fill", "where"},
    {"max_pool1d", "max_pooling_1d"},
    {"max_pool2d", "max_pooling_2d"},
    {"max_pool3d", "max_pooling_3d"},
    {"mm", "matmul"},
    {"movedim", "moveaxis"},
    {"mse_loss", "mean_squared_error"},
    {"permute", "transpose"},
    {"pixel_shuffle", "depth2space"},
    {"pixel_unshuffle", "space2depth"},
    {"reduce_max", "max"},
    {"reduce_mean", "mean"},
    {"reduce_min", "min"},
    {"reduce_sum", "sum"},
    {"repeat_interleave", "repeat"},
    {"rms_norm", "rms_normalization"},
    {"sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy"},
    {"softmax_cross_entropy_with_logits", "softmax_cross_entropy"},
    {"split", "split_axis"},
    {"triplet_margin_loss", "triplet"},
    {"unfold", "im2col"},
    {"unsqueeze", "expand_dims"},
    {"view", "reshape"},
};

// Compares names without underscores and the case of letters: BatchNorm is batch_norm.
bool alike(std::string_view a, std::string_view b) noexcept {
    const auto letters = [](std::string_view name) {
        return name | std::views::filter([](char c) { return c != '_'; }) |
               std::views::transform(
                   [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    };
    return std::ranges::equal(letters(a), letters(b));
}

}  // namespace

std::string_view name_here(std::string_view other) noexcept {
    const auto* found = std::ranges::find_if(
        other_names, [&](const OtherName& each) { return alike(each.there, other); });
    return found != std::ranges::end(other_names) ? found->here : "";
}

}  // namespace catena
