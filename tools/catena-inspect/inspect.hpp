// The documents that catena-inspect shows: JSON, and text and Markdown made from it.
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

// sdk/doc/inspect.md describes the members of the documents.
using Json = nlohmann::ordered_json;

// Reads manifests of files without running their code. Files that are no plugins get an "error".
Json manifests(const std::vector<std::filesystem::path>& files);

// Loads the files, then the plugins in the folders or, without folders, in the default ones. Leaves
// out the ids in `without`; throws InvalidError if one of them was not found.
PluginReport load_plugins_of(const std::vector<std::string>& files,
                             const std::vector<std::string>& folders,
                             const std::vector<std::string>& without);

// Selects what to show of all that is loaded. An empty list selects everything.
struct Choice {
    std::vector<std::string> plugins;  // ids
    std::vector<std::string> functions;
};
// If plugins are chosen, kernels of others are left out: the result depends only on those chosen.
Json functions(const Choice& choice);
Json kernels(const Choice& choice);
// Returns the kernels by function, dtypes and device.
Json coverage(const Choice& choice);
Json devices(const Choice& choice);
Json plugins(const Choice& all);

// Format a document. For functions, `all` shows everything, else one line for each.
std::string to_text(const Json& document, bool all);
std::string to_markdown(const Json& document);

struct HeaderOptions {
    std::string prefix = "catena.";           // of functions; wrappers' names omit it
    std::string space = "catena::functions";  // the namespace
    std::vector<std::string> functions;       // full names; empty: all
    std::vector<std::string> omitted;         // names without the prefix
};
// Returns a C++ header with a typed inline wrapper for each function whose name has the prefix.
// Leaves out functions that update an input in place, and functions for the gradients of others.
std::string write_header(const HeaderOptions& options);
// Returns stubs for Python's type checkers, of the same functions as they are in the package catena.
std::string write_stubs(const HeaderOptions& options);
// Return the classes of optimizers, one for each line of the docs of update functions that declares
// one: a C++ header, and a module of the package catena.
std::string write_optimizers(const HeaderOptions& options);
std::string write_python_optimizers(const HeaderOptions& options);
// The names of the functions that header and stubs write.
std::vector<std::string> wrapped_functions(const HeaderOptions& options);
// Whether this is a valid name of a namespace, as a::b, without C++ keywords.
bool is_namespace(std::string_view name);
// Returns "Variable relu(const Variable& x)", as in write_header(), or "" if that leaves it out.
std::string cpp_signature(const catena_function& f);

// Functions that both text and Markdown use.
std::string text(const Json& json, const char* member);  // a string
bool is(const Json& json, const char* flag);             // among its "flags"

// The type and the default of an attribute in C++; in Python, with its name: "axis: int = 1".
struct CppType {
    std::string_view name;
    std::string def;
};
CppType cpp_type(const catena_attr_spec& attribute);
std::string python_parameter(const catena_attr_spec& attribute);
std::string cpp_comment(std::string_view text);  // as lines of comments

// Returns the name as an identifier; one of the keywords, which have spaces around them, gets an
// underscore.
std::string as_identifier(std::string_view name, std::string_view keywords);
std::string literal(std::string_view text);  // a literal in C++ and Python
std::string decimal(double value);           // with a point or an exponent
// Joins the results of make() for the items of a list.
template <class List, class Make>
std::string joined(const List& list, const Make& make, std::string_view between = ", ") {
    std::string text;
    for (const auto& item : list)
        (text += text.empty() ? std::string_view() : between) += make(item);
    return text;
}

using Row = std::vector<std::string>;
// Returns the name and the text of each field of a manifest that is not empty.
std::vector<Row> manifest_rows(const Json& manifest);
// Returns rows for inputs, attributes and outputs: "input", name, "T, optional", doc.
std::vector<Row> port_rows(const Json& function);

std::string broken(std::string call);              // "f(a, b)" on several lines if it is long
std::string call(const Json& function);            // "catena.softmax(x, axis=1) -> y"
std::string short_name(const std::string& name);   // after the last dot
std::string summary(const Json& function);         // the first line of its doc
std::string gradient_words(const Json& function);  // "any order by a composition; keeps y"
std::string function_words(const Json& function);  // "draws random numbers"
std::vector<std::string> dtypes_words(const Json& function);  // "cpu: float32, float64" ...
// Returns "float32, float64" from the rows of dtypes of a function's kernels.
std::string dtypes_text(const std::string& function, const Json& rows);
std::string kernel_isa(const Json& kernel);    // "x86-64-v4"
std::string kernel_words(const Json& kernel);  // "variant mask, adds"

inline bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }
// The attribute that an optional state of an update rule depends on, from a doc that ends with
// ", if ATTRIBUTE"; empty for other docs.
inline std::string_view condition(const catena_port_spec& state) {
    constexpr std::string_view before = ", if ";
    const std::string_view doc = state.doc;
    const auto at = doc.rfind(before);
    return at == doc.npos ? "" : doc.substr(at + before.size());
}
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
