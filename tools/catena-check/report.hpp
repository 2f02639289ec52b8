// What a user reads, and what a program reads.
#pragma once

#include "runner.hpp"

namespace catena::check {

std::string head_of(const PluginReport& report);
std::string text_of(const PluginReport& report, const Result& result);
std::string summary_of(const PluginReport& report);
// One object; `version` and `abi` are those of this program.
std::string json_of(const std::vector<PluginReport>& reports, const char* version, const char* abi);
// What runs a failed check again with the same numbers.
std::string again(const PluginReport& report, const Result& result, const Result::Problem& problem);

}  // namespace catena::check
