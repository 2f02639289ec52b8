// The text of PTX: statements, declarations and literals.
#pragma once

#include <map>
#include <optional>

#include "warp.hpp"

namespace catena_machine {

// Reads PTX from a text. Comments are skipped, lines are counted.
class Reader {
public:
    explicit Reader(std::string_view text, std::uint32_t line = 1) : text_(text), line_(line) {}

    bool at_end();
    char peek();        // the next character that is not space; 0 at the end
    bool take(char c);  // skips c if it is next
    void expect(char c);
    std::string_view word();           // up to space or one of (){}[];,=
    std::string_view until(char end);  // up to end, which is skipped
    std::string_view rest_of_line();
    std::string_view enclosed();  // what is between the bracket that is next and its partner
    std::uint32_t line() const { return line_; }

private:
    void skip();
    void step() { line_ += text_[at_++] == '\n' ? 1 : 0; }

    std::string_view text_;
    std::size_t at_ = 0;
    std::uint32_t line_;
};

std::string_view trimmed(std::string_view text);
// Splits at commas that are not within brackets.
std::vector<std::string_view> split(std::string_view list);

// A declaration without its state space, such as ".align 8 .b8 name[16] = {1, 2}".
struct Declaration {
    Type type = Type::none;
    std::string_view name;
    std::size_t alignment = 1, elements = 1;
    std::string_view values;
    std::size_t bytes() const { return elements * size_of(type); }
};
Declaration declaration(std::string_view text, std::uint32_t line);

// Returns the bits of a literal as a value of the type; nothing if it is no literal.
std::optional<std::uint64_t> literal(std::string_view text, Type type);

struct Module::Parsed {
    std::string text;
    std::shared_ptr<std::vector<std::string>> files = std::make_shared<std::vector<std::string>>();
    std::map<std::string_view, Declared> functions;
    std::map<std::string_view, Variable> variables;
    std::vector<std::byte> memory;         // of the module's variables
    mutable std::vector<Touched> touched;  // of each 4 bytes of it
    std::map<std::string_view, std::unique_ptr<Kernel>> kernels;
};

std::shared_ptr<Code> translate(const Module::Parsed& module, const Declared& kernel);

}  // namespace catena_machine
