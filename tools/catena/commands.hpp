// The commands of catena.
#pragma once

#include <catena/array_file.hpp>
#include <catena/core.hpp>
#include <catena/loader/plugins.hpp>
#include <catena/plugin_lock.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace catena::command {

using Arrays = std::map<std::string, Array>;
// NAME=VALUE as on the command line; VALUE is JSON.
using Settings = std::vector<std::string>;

// Finds a function by full name or without "catena.". Throws PluginError with a suggestion.
const catena_function& find_function(std::string_view name);

enum class Order { forward, backward, double_backward };

// Calls a function on the arrays "in_INPUT" (variadic: in_INPUT0, in_INPUT1 ...) and returns
// "out_OUTPUT". backward also reads "gy_OUTPUT" and returns "gx_INPUT". An output without gy has no
// gradient; a single output with one element has gradient 1. double_backward also reads "ggx_INPUT"
// and returns "gg_INPUT" and "ggy_OUTPUT", the gradients of sum(gx * ggx). Throws InvalidError if
// an array is missing, or if the function has no array of a name that begins with "in_", "gy_" or
// "ggx_". Ignores other arrays.
Arrays call(const std::string& function, const Settings& settings, const Arrays& given,
            Order order);

// The shapes and dtypes of the outputs, a line for each, without computing them. inputs:
// "NAME=(2,3)" or "NAME=(2,3):DTYPE", float32 by default. Throws InvalidError, and what a call throws.
std::string infer(const std::string& function, const Settings& settings,
                  const std::vector<std::string>& inputs);

// Updates "param0" with "grad1", "grad2" ... by the function catena.OPTIMIZER_update; state starts
// as "state_NAME" or at zero. Returns "param1", "param2" ... and the state after the last update.
// Throws InvalidError for a missing array or an unknown name that begins with "grad" or "state_".
Arrays update(const std::string& optimizer, const Settings& settings, const Arrays& given);

// Describes each loaded function, except internal ones, in three lines: its call, the first line of
// its doc, and its plugins, devices, dtypes and order of differentiation.
std::string list_functions();
// Lists the searched folders in order, each with the plugins found in it. `hash` adds SHA-256.
std::string list_plugins(const PluginReport& report, bool hash);
std::string list_plugins_as_json(const PluginReport& report, bool hash);
// Locks the plugins in the folders, without running their code: writes the file `out` or, if it is
// "", a lock in each folder. Without folders, uses the default ones, but the system's only with
// `out`. Prints the name of each written file. Throws PluginError before it writes anything if a
// plugin would be refused.
void lock_plugins(const std::vector<std::string>& folders, const std::string& out);
// Describes a function and its kernels in full. Throws PluginError if there is no such function.
std::string describe(const std::string& function);

}  // namespace catena::command
