// What text and Markdown say in the same words.
#pragma once

#include "inspect.hpp"

namespace catena::inspect {

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

}  // namespace catena::inspect
