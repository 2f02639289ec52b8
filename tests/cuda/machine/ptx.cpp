// Reads PTX: words, declarations, literals, and the declarations of a module.
#include "ptx.hpp"

#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <stdexcept>

namespace catena_machine {

void refuse(std::uint32_t line, const std::string& why) {
    throw std::runtime_error("PTX, line " + std::to_string(line) + ": " + why);
}

void Reader::skip() {
    while (at_ < text_.size()) {
        const std::string_view rest = text_.substr(at_, 2);
        if (std::strchr(" \t\r\n", rest[0]) != nullptr) {
            step();
        } else if (rest == "//") {
            while (at_ < text_.size() && text_[at_] != '\n') step();
        } else if (rest == "/*") {
            const std::size_t end = text_.find("*/", at_);
            while (at_ < text_.size() && at_ < end + 2) step();
        } else {
            return;
        }
    }
}
bool Reader::at_end() { return peek() == 0; }
char Reader::peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
}
bool Reader::take(char c) {
    if (peek() != c) return false;
    step();
    return true;
}
void Reader::expect(char c) {
    if (!take(c)) refuse(line_, std::string("expected '") + c + "'");
}
std::string_view Reader::word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::strchr(" \t\r\n(){}[];,=", text_[at_]) == nullptr) ++at_;
    return text_.substr(begin, at_ - begin);
}
std::string_view Reader::until(char end) {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != end) step();
    if (at_ == text_.size()) refuse(line_, std::string("expected '") + end + "'");
    step();
    return trimmed(text_.substr(begin, at_ - 1 - begin));
}
std::string_view Reader::rest_of_line() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    return trimmed(text_.substr(begin, at_ - begin));
}
std::string_view Reader::enclosed() {
    skip();
    const std::size_t begin = at_ + 1;
    int depth = 0;
    for (; at_ < text_.size(); step()) {
        if (text_.substr(at_, 2) == "//") {
            skip();
            if (at_ == text_.size()) break;
        }
        const char c = text_[at_];
        if (c == '(' || c == '{' || c == '[') ++depth;
        if ((c == ')' || c == '}' || c == ']') && --depth == 0) {
            step();
            return text_.substr(begin, at_ - 1 - begin);
        }
    }
    refuse(line_, "expected a closing bracket");
}

std::string_view trimmed(std::string_view text) {
    const char* const space = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(space);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

std::vector<std::string_view> split(std::string_view list) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        const char c = i < list.size() ? list[i] : ',';
        if (c == '(' || c == '{' || c == '[') ++depth;
        if (c == ')' || c == '}' || c == ']') --depth;
        if (c != ',' || (depth != 0 && i < list.size())) continue;
        const std::string_view part = trimmed(list.substr(begin, i - begin));
        if (!part.empty()) parts.push_back(part);
        begin = i + 1;
    }
    return parts;
}

std::vector<std::string_view> split_name(std::string_view name) {
    std::vector<std::string_view> parts;
    while (!name.empty()) {
        const std::size_t dot = std::min(name.find('.'), name.size());
        if (dot > 0) parts.push_back(name.substr(0, dot));
        name.remove_prefix(std::min(dot + 1, name.size()));
    }
    return parts;
}

namespace {

constexpr std::string_view type_names[] = {"pred", "b8",  "b16",  "b32", "b64", "u8",
                                           "u16",  "u32", "u64",  "s8",  "s16", "s32",
                                           "s64",  "f16", "bf16", "f32", "f64"};

std::size_t number(std::string_view text, std::uint32_t line) {
    const auto value = literal(text, Type::u64);
    if (!value) refuse(line, "expected a number, got '" + std::string(text) + "'");
    return *value;
}

// Whether an operand of the type may be a literal with a fraction.
bool takes_float(Type type) {
    return type == Type::f32 || type == Type::f64 || type == Type::b32 || type == Type::b64;
}

}  // namespace

Type type_named(std::string_view text) {
    for (std::size_t i = 0; i < std::size(type_names); ++i)
        if (type_names[i] == text) return static_cast<Type>(i);
    return Type::none;
}
std::string_view name_of(Type type) {
    return type == Type::none ? "" : type_names[static_cast<std::size_t>(type)];
}
std::size_t size_of(Type type) {
    constexpr std::size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 0};
    return sizes[static_cast<std::size_t>(type)];
}
bool is_float(Type type) { return type >= Type::f16 && type <= Type::f64; }

Declaration declaration(std::string_view text, std::uint32_t line) {
    Declaration d;
    Reader reader(text, line);
    while (reader.peek() == '.') {
        const std::string_view word = reader.word().substr(1);
        if (word == "align") d.alignment = number(reader.word(), line);
        else if (const Type type = type_named(word); type != Type::none) d.type = type;
        else if (word != "param" && word != "ptr" && word != "global" && word != "shared" &&
                 word != "const" && word != "local" && word != "reg")
            refuse(line, "unknown attribute ." + std::string(word));
    }
    d.name = reader.word();
    if (d.type == Type::none || d.name.empty())
        refuse(line, "expected a declaration, got '" + std::string(text) + "'");
    while (reader.peek() == '[') {
        const std::string_view extent = trimmed(reader.enclosed());
        d.elements *= extent.empty() ? 0 : number(extent, line);
    }
    if (reader.take('=')) d.values = reader.peek() == '{' ? reader.enclosed() : reader.word();
    d.alignment = std::max(d.alignment, size_of(d.type));
    return d;
}

std::optional<std::uint64_t> literal(std::string_view text, Type type) {
    const bool negative = !text.empty() && text[0] == '-';
    if (negative) text.remove_prefix(1);
    if (text.empty() || text[0] < '0' || text[0] > '9') return {};
    const char second = text.size() > 1 && text[0] == '0' ? text[1] : ' ';
    std::uint64_t bits = 0;
    const auto read = [&](std::size_t prefix, int base) {  // all of the text
        const char* const end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data() + prefix, end, bits, base);
        return stop == end && error != std::errc::invalid_argument;
    };
    const bool is_hexadecimal = second == 'x' || second == 'X';
    const bool is_bits = std::strchr("fFdD", second) != nullptr;  // of a float or double
    if (is_bits || (!is_hexadecimal && text.find_first_of(".eE") != std::string_view::npos)) {
        double value = 0;
        if (is_bits) {
            const bool is_double = second == 'd' || second == 'D';
            if (text.size() != (is_double ? 18 : 10) || negative || !read(2, 16)) return {};
            value = is_double ? std::bit_cast<double>(bits)
                              : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
            if (is_double == (size_of(type) == 8) && takes_float(type))
                return bits;  // of a NaN, too
        } else {
            const std::string digits(text);
            char* end = nullptr;
            value = (negative ? -1 : 1) * std::strtod(digits.c_str(), &end);
            if (*end != '\0') return {};
        }
        if (!takes_float(type)) return {};
        if (size_of(type) == 8) return std::bit_cast<std::uint64_t>(value);
        return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
    if (is_float(type)) return {};
    if (text.back() == 'U' || text.back() == 'u') text.remove_suffix(1);
    const bool is_binary = second == 'b' || second == 'B';
    if (!read(is_hexadecimal || is_binary ? 2 : 0, is_hexadecimal   ? 16
                                                   : is_binary      ? 2
                                                   : text[0] == '0' ? 8
                                                                    : 10))
        return {};
    return negative ? ~bits + 1 : bits;
}

namespace {

// Reads the declarations of a module.
void read_module(Module::Parsed& module) {
    Reader reader(module.text);
    while (!reader.at_end()) {
        const std::uint32_t line = reader.line();
        std::string_view word = reader.word();
        if (word == ".version" || word == ".target" || word == ".address_size") {
            reader.rest_of_line();
            continue;
        }
        if (word == ".file") {
            const std::size_t index = number(reader.word(), line);
            const std::string_view rest = reader.rest_of_line();
            if (module.files->size() <= index) module.files->resize(index + 1);
            const std::size_t begin = rest.find('"') + 1;
            (*module.files)[index] =
                std::filesystem::path(rest.substr(begin, rest.find('"', begin) - begin))
                    .lexically_normal()
                    .string();
            continue;
        }
        if (word == ".section") {
            reader.word();
            reader.enclosed();
            continue;
        }
        bool is_extern = false;
        for (; word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
             word = reader.word())
            is_extern = is_extern || word == ".extern";
        if (word == ".entry" || word == ".func") {
            Declared f;
            f.is_kernel = word == ".entry";
            if (reader.peek() == '(') f.results = reader.enclosed();
            while (reader.peek() == '.') reader.word();  // .noreturn
            f.name = reader.word();
            if (reader.peek() == '(') f.parameters = reader.enclosed();
            while (reader.peek() == '.') {
                word = reader.word();
                if (word == ".maxntid" || word == ".reqntid") {
                    f.maximum_threads = 1;
                    do f.maximum_threads *= number(reader.word(), line);
                    while (reader.take(','));
                } else if (word == ".pragma") {
                    reader.until(';');
                } else if (word != ".noreturn") {
                    reader.word();
                }
            }
            if (reader.take(';')) continue;  // only declared
            f.line = reader.line();
            f.body = reader.enclosed();
            module.functions[f.name] = f;
            continue;
        }
        if (word != ".global" && word != ".const" && word != ".shared")
            refuse(line, "expected a directive, got '" + std::string(word) + "'");
        const Declaration d = declaration(reader.until(';'), line);
        Variable v = {Space::shared, 0, d.bytes(), d.alignment, false};
        if (word == ".shared") {
            v.is_dynamic = is_extern;
        } else {
            v.space = word == ".const" ? Space::constant : Space::global;
            // Accesses are noted for words. The space between variables belongs to none of them.
            constexpr std::size_t space = 64;
            const std::size_t alignment = std::max<std::size_t>(d.alignment, 4);
            std::size_t at = (module.memory.size() + space + alignment - 1) / alignment * alignment;
            const std::size_t end = at + d.bytes();
            v.offset = at;
            module.memory.resize(end);
            for (const std::string_view value : split(d.values)) {
                const auto bits = literal(value, d.type);
                if (!bits || at + size_of(d.type) > end)
                    refuse(line, "expected a list of numbers, got '" + std::string(value) + "'");
                std::memcpy(&module.memory[at], &*bits, size_of(d.type));
                at += size_of(d.type);
            }
        }
        module.variables[d.name] = v;
    }
    module.touched.resize(module.memory.size() / 4 + 1);
}

std::mutex& translation() {
    static auto* const m = new std::mutex;
    return *m;
}

}  // namespace

Module::Module(std::string ptx) : parsed_(std::make_shared<Parsed>()) {
    parsed_->text = std::move(ptx);
    while (!parsed_->text.empty() && parsed_->text.back() == '\0') parsed_->text.pop_back();
    read_module(*parsed_);
}

const Kernel* Module::find(std::string_view name) const {
    const std::lock_guard lock(translation());
    const auto function = parsed_->functions.find(name);
    if (function == parsed_->functions.end() || !function->second.is_kernel) return nullptr;
    auto& kernel = parsed_->kernels[function->first];
    if (kernel == nullptr) {
        auto made = std::make_unique<Kernel>();
        made->code = translate(*parsed_, function->second);
        kernel = std::move(made);
    }
    return kernel.get();
}

const std::string& Module::text() const { return parsed_->text; }

std::vector<std::string> Module::names() const {
    std::vector<std::string> names;
    for (const auto& [name, function] : parsed_->functions)
        if (function.is_kernel) names.emplace_back(name);
    return names;
}

const std::string& Kernel::name() const { return code->name; }
const std::vector<Parameter>& Kernel::parameters() const { return code->parameters; }
std::size_t Kernel::argument_bytes() const { return code->argument_bytes; }
std::size_t Kernel::shared_bytes() const { return code->shared_bytes; }
std::size_t Kernel::maximum_threads() const { return code->maximum_threads; }

}  // namespace catena_machine
