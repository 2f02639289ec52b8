// Worlds of the subject.
#include "plugin.hpp"

#include <table_rules.hpp>
#include <testing/resize.hpp>
#include <testing/types.hpp>

#include <limits>
#include <stdexcept>

namespace catena::check {

std::string damage(const catena_manifest& manifest, const catena_plugin& table) {
    try {
        check_table(
            table,
            {.complete = true, .known_headers = manifest.abi_minor_built <= CATENA_ABI_MINOR},
            Broken([](const std::string& text) { throw std::runtime_error(text); }));
    } catch (const std::runtime_error& broken) {
        return broken.what();
    }
    return {};
}

std::unique_ptr<testing::World> make_world(const Subject& subject) {
    std::vector<std::string> paths = {subject.file.string()};
    for (const auto& path : subject.with) paths.push_back(path.string());
    return std::make_unique<testing::World>(paths);
}

std::string absent_in(testing::World& world, const Subject& subject) {
    if (world.origin(world.function(subject.function)) == subject.id) return {};
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(subject.function, phase))
            if (world.origin(*k) == subject.id) return {};
    std::string text = "none of its kernels can run here";
    for (const std::string& line : world.skipped(subject.function)) text += "; " + line;
    return text;
}

std::optional<testing::Sample> longer(testing::World& world, const catena_function& f,
                                      const testing::Example& example, std::int64_t total,
                                      std::int64_t most, unsigned seed) {
    return testing::detail::longer_first(
        example, total, most, [&](const testing::Example& e) -> std::optional<testing::Sample> {
            try {
                doing("makes \"{}\" longer: \"{}\"", text_of(f, example), text_of(f, e));
                return make_sample(world, f, e, seed);
            } catch (const testing::Failure&) {
                return std::nullopt;  // not a call of this function
            }
        });
}

void set_clamped(testing::Array& a, std::int64_t i, double value) {
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

std::vector<catena_value> values_of(const catena_function& f, const testing::OwnedAttrs& attrs) {
    std::vector<catena_value> values;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_value* given = attrs.find(f.attrs[i]->name);
        values.push_back(given != nullptr ? *given : f.attrs[i]->def);
    }
    return values;
}

}  // namespace catena::check
