// Functions of the host that golden_test calls by name. The *.py files define the cases.
#pragma once

#include <catena/catena.hpp>

#include <nlohmann/json.hpp>

#include <map>

namespace golden {

using Json = nlohmann::json;
using Variables = std::vector<catena::Variable>;
// x: the inputs of a case, a: its attributes. Returns the outputs.
using HostFunction = Variables (*)(const Variables& x, const Json& a);

extern const std::map<std::string, HostFunction> host_functions;

}  // namespace golden
