// Parses argument lists and checks formulas.
#include "formula.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace catena_jit {
namespace {

const char* or_empty(const char* text) { return text != nullptr ? text : ""; }

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_identifier(const std::string& text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
           std::ranges::all_of(text, is_word);
}

// Splits text into words; any other character is a token of its own.
std::vector<std::string> tokens_of(const std::string& text) {
    std::vector<std::string> tokens;
    for (std::size_t at = 0; at < text.size();) {
        if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
            ++at;
            continue;
        }
        std::size_t end = at + 1;
        if (is_word(text[at]))
            while (end < text.size() && is_word(text[end])) ++end;
        tokens.push_back(text.substr(at, end - at));
        at = end;
    }
    return tokens;
}

// Whether word is a keyword of C++20.
bool is_keyword(const std::string& word) {
    static constexpr const char* all =
        " alignas alignof and and_eq asm auto bitand bitor bool break case catch char "
        "char8_t char16_t char32_t class co_await co_return co_yield compl concept const "
        "const_cast consteval constexpr constinit continue decltype default delete do "
        "double dynamic_cast else enum explicit export extern false float for friend "
        "goto if inline int long mutable namespace new noexcept not not_eq nullptr "
        "operator or or_eq private protected public register reinterpret_cast requires "
        "return short signed sizeof static static_assert static_cast struct switch "
        "template this thread_local throw true try typedef typeid typename union "
        "unsigned using virtual void volatile wchar_t while xor xor_eq ";
    return std::string_view(all).find(" " + word + " ") != std::string_view::npos;
}

// Returns the index behind the bracket that closes the one at k.
std::size_t behind_bracket(const std::vector<std::string>& tokens, std::size_t k) {
    int open = 0;
    for (; k < tokens.size(); ++k) {
        if (tokens[k] == "(" || tokens[k] == "{") ++open;
        if ((tokens[k] == ")" || tokens[k] == "}") && --open == 0) return k + 1;
    }
    return k;
}

// Returns the index behind the lambda whose captures end at tokens[k], a "]"; k + 1 if none.
std::size_t behind_lambda(const std::vector<std::string>& tokens, std::size_t k) {
    const auto find = [&](std::size_t from, std::initializer_list<std::string_view> wanted) {
        while (from < tokens.size() && std::ranges::find(wanted, tokens[from]) == wanted.end())
            ++from;
        return from;
    };
    std::size_t at = k + 1;
    while (at < tokens.size() && tokens[at] != "{") {
        const bool arrow = tokens[at] == "-" && at + 1 < tokens.size() && tokens[at + 1] == ">";
        if (tokens[at] == "(") at = behind_bracket(tokens, at);
        else if (arrow) at = find(at, {"{", ";"});             // a return type
        else if (tokens[at] == "[") at = find(at, {"]"}) + 1;  // an attribute
        else if (tokens[at] == "]" || is_word(tokens[at][0])) ++at;
        else if (tokens[at] == "<" && at == k + 1) at = find(at, {">"}) + 1;  // template params
        else return k + 1;
    }
    return at < tokens.size() ? behind_bracket(tokens, at) : k + 1;
}

// Whether code contains a `return` outside of lambdas and comments.
bool returns(const std::string& code) {
    std::string bare;
    for (std::size_t at = 0; at < code.size();) {
        const bool line = code.compare(at, 2, "//") == 0;
        const bool block = code.compare(at, 2, "/*") == 0;
        if (!line && !block) {
            bare += code[at++];
            continue;
        }
        const std::size_t end = code.find(line ? "\n" : "*/", at + 2);
        at = end == std::string::npos ? code.size() : end + (line ? 0 : 2);
        bare += ' ';
    }
    const std::vector<std::string> tokens = tokens_of(bare);
    for (std::size_t k = 0; k < tokens.size();) {
        if (tokens[k] == "return") return true;
        k = tokens[k] == "]" ? behind_lambda(tokens, k) : k + 1;
    }
    return false;
}

}  // namespace

int type_by_name(const std::string& name) {
    static constexpr struct {
        const char* name;
        const char* known_as;
    } others[] = {{"float", "float32"}, {"double", "float64"},  {"int", "int32"},
                  {"long", "int64"},    {"long long", "int64"}, {"unsigned char", "uint8"},
                  {"half", "float16"},  {"bool8", "bool"}};
    std::string wanted = name;
    for (const auto& other : others)
        if (name == other.name) wanted = other.known_as;
    for (std::size_t i = 0; i < types.size(); ++i)
        if (wanted == types[i].name) return static_cast<int>(i);
    return -1;
}

void Formula::refuse(const std::string& text) const {
    throw Error{CATENA_E_INVALID, "[" + name + "] " + text};
}

Formula::Formula(const catena_formula& source)
    : kind(source.kind),
      name(or_empty(source.name)),
      has_identity(source.identity != nullptr),
      keep_source(keeps_source(source)) {
    if (!is_identifier(name) || name.size() > 100) {
        const std::string given = name;
        name = "kernel";
        refuse("name: expected an identifier of at most 100 characters, got '" + given + "'");
    }
    const auto code = [&](const char* part, const char* text) {
        return Code{*part != '\0' ? name + " (" + part + ")" : name, or_empty(text)};
    };
    operation = code("", source.operation);
    preamble = code("preamble", source.preamble);
    loop_prep = code("loop_prep", source.loop_prep);
    after_loop = code("after_loop", source.after_loop);
    reduce = code("reduce", source.reduce);
    finish = code("finish", source.finish);
    identity = code("identity", source.identity);
    reduce_type = or_empty(source.reduce_type);
    for (const char* const* o = source.options; o != nullptr && *o != nullptr; ++o)
        options.emplace_back(*o);

    parse(or_empty(source.inputs), false);
    n_x = parameters.size();
    parse(or_empty(source.outputs), true);
    n_y = parameters.size() - n_x;
    if (parameters.empty()) refuse("arguments: expected at least one, got none");
    if (parameters.size() > max_arguments)
        refuse("arguments: expected at most " + std::to_string(max_arguments) + ", got " +
               std::to_string(parameters.size()));
    if (operation.empty()) refuse("operation: expected code, got none");
    for (const Code* part : {&operation, &loop_prep, &after_loop, &finish})
        if (returns(part->text))
            refuse(
                "code: expected `continue` for the next element, got `return`, "
                "which would leave the others out");
    if (is_reduction()) {
        if (n_y == 0) refuse("outputs: expected at least one, got none");
        if (reduce.empty()) refuse("reduce: expected an expression of a and b, got none");
        if (has_identity && identity.empty()) refuse("identity: expected an expression, got none");
        if (finish.empty()) {
            if (n_y > 1) refuse("finish: expected code that makes the outputs of a, got none");
            finish.text = parameters[n_x].name + " = a";
        }
        for (const Parameter& p : parameters)
            if (p.writes)
                refuse(p.name +
                       ": expected an input that is only read, got a pointer "
                       "without const");
    } else if (n_y == 0 &&
               std::ranges::none_of(parameters, [](const Parameter& p) { return p.writes; })) {
        refuse(
            "arguments: expected an output, or a pointer without const, got none that is written");
    }
}

void Formula::parse(const std::string& list, bool output) {
    if (list.find_first_not_of(" \t\r\n") == std::string::npos) return;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        const std::string piece = list.substr(begin, end - begin);
        begin = end + 1;
        Parameter p;
        bool pointer = false;
        bool constant = false;
        std::string type;
        std::vector<std::string> words = tokens_of(piece);
        if (!words.empty()) {
            p.name = words.back();
            words.pop_back();
        }
        for (const std::string& word : words) {
            if (word == "raw") p.raw = true;
            else if (word == "const") constant = true;
            else if (word == "*" && !pointer) pointer = true;
            else type += (type.empty() ? "" : " ") + word;
        }
        if (!is_identifier(p.name) || is_keyword(p.name) || type.empty())
            refuse("arguments: expected a type and a name, got '" + piece + "'");
        p.type = type_by_name(type);
        if (p.type < 0 && type.size() == 1 && type[0] >= 'A' && type[0] <= 'Z') p.letter = type[0];
        else if (p.type < 0)
            refuse(p.name +
                   ": expected a dtype (float32, int64 ...) or a capital letter that stands "
                   "for one, got '" +
                   type + "'");
        if (output && (pointer || constant))
            refuse(p.name + ": expected an output as TYPE NAME or raw TYPE NAME, got '" + piece +
                   "'");
        const bool reserved = p.name == "i" || p.name.starts_with("catena_") ||
                              (is_reduction() && (p.name == "a" || p.name == "b" || p.name == "j"));
        if (reserved)
            refuse(p.name + ": expected another name, this one has a meaning in formulas");
        if (std::ranges::any_of(parameters, [&](const Parameter& q) { return q.name == p.name; }))
            refuse(p.name + ": expected a name for each argument, got it twice");
        p.raw = p.raw || pointer;
        p.writes = pointer && !constant;
        if (p.raw && output && is_reduction())
            refuse(p.name + ": expected a plain output, got a raw one");
        parameters.push_back(p);
    }
}

std::string Formula::signature() const {
    return listed([&](std::size_t i) {
        const Parameter& p = at(i);
        const std::string type = p.letter != 0 ? std::string(1, p.letter) : type_at(p.type).name;
        return (p.raw ? "raw " : "") + type + " " + p.name;
    });
}

}  // namespace catena_jit
