// Functions of the host that golden_test calls by name. GROUP.py defines the cases of GROUP.cpp, which has
// lines such as
//
//     const golden::Rows rows = {
//         {"flip", [](const auto& x, const auto& attrs) { return golden::Variables{F::flip(x[0])}; }},
//     };
#pragma once

#include <catena/catena.hpp>

#include <nlohmann/json.hpp>

#include <map>

namespace golden {

using Variables = std::vector<catena::Variable>;
// x: the inputs of a case. Returns the outputs.
using HostFunction = Variables (*)(const Variables& x, const nlohmann::json& attrs);

inline std::map<std::string, HostFunction>& host_functions() {
    static std::map<std::string, HostFunction> functions;
    return functions;
}
struct Rows {
    Rows(std::initializer_list<std::pair<const std::string, HostFunction>> rows) {
        host_functions().insert(rows.begin(), rows.end());
    }
};

}  // namespace golden
