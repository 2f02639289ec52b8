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

// By full name, or without "catena.". Throws PluginError that guesses what was meant.
const catena_function& find_function(std::string_view name);

enum class Order { forward, backward, double_backward };

// Calls a function on the arrays "in_INPUT" (of a variadic input: in_INPUT0, in_INPUT1 ...) and
// gives "out_OUTPUT". backward takes "gy_OUTPUT" (an output without one gets no gradient; the only
// output, of one element, gets 1) and gives "gx_INPUT" as well; double_backward takes "ggx_INPUT"
// and gives "gg_INPUT" and "ggy_OUTPUT", the gradients of sum(gx * ggx). Throws InvalidError that
// says what is missing, and for names that begin with "in_", "gy_" or "ggx_" and mean nothing to
// the function; other arrays are ignored.
Arrays call(const std::string& function, const Settings& settings, const Arrays& given,
            Order order);

// Updates "param0" with "grad1", "grad2" ... by the function catena.OPTIMIZER_update; state starts
// as "state_NAME" or at zero. Gives "param1", "param2" ... and the state after the last update.
// Throws InvalidError that says what is missing, and for other names that begin with "grad" or
// "state_".
Arrays update(const std::string& optimizer, const Settings& settings, const Arrays& given);

// A line for each function that is loaded: signature, plugin, devices, dtypes, how often it can be
// differentiated, and the first line of its text.
std::string list_functions();
// Folders in the order in which they were searched, each with what was found in it.
std::string list_plugins(const PluginReport& report, bool hash);
std::string list_plugins_as_json(const PluginReport& report, bool hash);
// Writes the lock of what lies in the folders, none of which is run: one file, or in each folder
// its own where `out` is "". Without folders: the usual ones, but the system's only for the one
// file. Prints what was written as it is; nothing is if a plugin would be refused. Throws
// PluginError.
void lock_plugins(const std::vector<std::string>& folders, const std::string& out);
// All that is known of one function and of its kernels. Throws PluginError if there is none.
std::string describe(const std::string& function);

}  // namespace catena::command
