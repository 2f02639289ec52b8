// What catena-inspect can show: a document in JSON, and from it text and Markdown.
#pragma once

#include <catena/abi/function.h>
#include <catena/loader/plugins.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena::inspect {

// The documents' members are those that sdk/doc/inspect.md names.
using Json = nlohmann::ordered_json;

// What files say of themselves; none of their code runs. Those that are no plugins have an "error".
Json manifests(const std::vector<std::filesystem::path>& files);

// Loads the files, then the plugins in the folders or, without folders, in the usual ones; not
// those whose ids are in `without`, of which each has to be there.
PluginReport load_plugins_of(const std::vector<std::string>& files,
                             const std::vector<std::string>& folders,
                             const std::vector<std::string>& without);

// What to show of all that is loaded; empty: everything.
struct Choice {
    std::vector<std::string> plugins;  // ids
    std::vector<std::string> functions;
};
// With plugins chosen, kernels of others are left out: the answer depends on nothing else that is
// loaded.
Json functions(const Choice& choice);
Json kernels(const Choice& choice);
// By function, dtypes and device.
Json coverage(const Choice& choice);
Json devices(const Choice& choice);
Json plugins();

// For people. Of functions `all` shows everything, else a line each.
std::string to_text(const Json& document, bool all);
std::string to_markdown(const Json& document);

struct HeaderOptions {
    std::string prefix = "catena.";           // of the functions' names; cut off
    std::string space = "catena::functions";  // the namespace
    std::vector<std::string> functions;       // full names; empty: all
};
// A C++ header with a typed inline wrapper for each function whose name has the prefix. Left out:
// functions that update an input in place and those that are there for the gradients of others.
std::string write_header(const HeaderOptions& options);
// Whether namespaces may be called so: a::b, without words that C++ keeps for itself.
bool is_namespace(std::string_view name);
// "Variable relu(const Variable& x)", as write_header() does it; empty if it leaves it out.
std::string cpp_signature(const catena_function& f);

// What text and Markdown say in the same words.
std::string text(const Json& json, const char* member);  // a string
bool is(const Json& json, const char* flag);             // among its "flags"

using Row = std::vector<std::string>;
// What a manifest says: a name and words each, none of them empty.
std::vector<Row> manifest_rows(const Json& manifest);
// Inputs, attributes, outputs: "input", name, "T, optional", doc.
std::vector<Row> port_rows(const Json& function);

std::string broken(std::string call);              // "f(a, b)" on several lines if it is long
std::string call(const Json& function);            // "catena.softmax(x, axis=1) -> y"
std::string short_name(const std::string& name);   // behind the last dot
std::string summary(const Json& function);         // the first line of its doc
std::string gradient_words(const Json& function);  // "any order by a composition; keeps y"
std::string function_words(const Json& function);  // "draws random numbers"
std::vector<std::string> dtypes_words(const Json& function);  // "cpu: float32, float64" ...
// "float32, float64" from the rows of a function's kernels.
std::string dtypes_text(const std::string& function, const Json& rows);
std::string kernel_isa(const Json& kernel);    // "x86-64-v4"
std::string kernel_words(const Json& kernel);  // "variant mask, adds"

inline bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }
inline std::span<const catena_port_spec* const> inputs(const catena_function& f) {
    return {f.inputs, f.n_inputs};
}
inline std::span<const catena_port_spec* const> outputs(const catena_function& f) {
    return {f.outputs, f.n_outputs};
}
inline std::span<const catena_attr_spec* const> attributes(const catena_function& f) {
    return {f.attrs, f.n_attrs};
}

}  // namespace catena::inspect
