// The rules for a plugin's table. The core refuses a plugin that breaks one; catena-check reports all of
// them, and has stricter ones of its own.
#pragma once

#include <catena/abi/plugin.h>

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <values.hpp>
#include <vector>

namespace catena {

// Receives the text of each broken rule.
class Broken {
public:
    explicit Broken(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
    template <class... Args>
    void operator()(fmt::format_string<Args...> text, Args&&... args) const {
        tell_(fmt::format(text, std::forward<Args>(args)...));
    }

private:
    std::function<void(const std::string&)> tell_;
};

// Whether the table can be read: sizes, counts, kinds, and no NULL where something must be. `broken` has
// to throw, because what follows a wrong count cannot be read.
struct TableChecks {
    bool complete = false;       // also what hosts can do without: docs, known flags, listed dtypes
    bool known_headers = false;  // structs are no larger than in these headers
};
void check_table(const catena_plugin& table, TableChecks checks, const Broken& broken);

// The other rules, for tables that can be read: all of them, and one by one.
// known: a function of another plugin, or null.
using KnownFunction = std::function<const catena_function*(std::string_view name)>;
void check_rules(const catena_plugin& table, const KnownFunction& known, const Broken& broken);
void check_id(const char* name, std::string_view what, const Broken& broken);  // org.example.thing
// Checks the name of a device, port, attribute or extension.
void check_name(const char* name, std::string_view what, const Broken& broken);
void check_version(const catena_function& f, const Broken& broken);
void check_versions(const catena_kernel& k, const Broken& broken);
void check_ports(const catena_function& f, const Broken& broken);  // also retained sets, flags
void check_attributes(const catena_function& f, const Broken& broken);
void check_examples(const catena_function& f, const Broken& broken);
// One gradient at most, with a valid name.
void check_gradient(const catena_function& f, const Broken& broken);
// g can be the grad_function of f: its inputs are retained inputs, retained outputs and all gy; its
// outputs the gx of each differentiable input.
void check_grad_function(const catena_function& f, const catena_function& g, const Broken& broken);
void check_kernel_of(const catena_function& f, const catena_kernel& k, const Broken& broken);
// Kernels of one variant save the same tensors, and others none.
void check_variants(const catena_plugin& table, const Broken& broken);

// ---- values of attributes

// Converts a value that a caller gives, and checks its kind, range and choices; broken has to throw. A
// number is converted where nothing is lost: 2 to 2.0, 2.0 to 2 and 1 to true. A number and a list of
// integers can be a list of numbers: these keep their kind.
void fit_value(const catena_attr_spec& a, catena_value& value, const Broken& broken);

// The names of the type variables in order of first use: the columns of a kernel's table of dtypes.
std::vector<std::string> type_vars(const catena_function& f);

inline bool is_number(std::int32_t kind) {
    return kind == CATENA_ATTR_INT || kind == CATENA_ATTR_FLOAT;
}
inline bool is_list(std::int32_t kind) {
    return kind == CATENA_ATTR_INTS || kind == CATENA_ATTR_FLOATS;
}
inline bool is_variadic(const catena_function& f) {
    return f.n_inputs && (f.inputs[f.n_inputs - 1]->flags & CATENA_PORT_VARIADIC);
}

}  // namespace catena
