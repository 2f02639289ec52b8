// Runs the cases of each file in cases/: instructions with known results. README.md describes the notation.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "launch.hpp"

namespace {

using namespace machine_test;
using Words = std::vector<std::string>;

Words split(const std::string& text) {
    std::istringstream in(text);
    Words words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}
std::string trim(const std::string& text) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

bool is_half(const std::string& type) { return type == "f16" || type == "bf16"; }
bool is_float(const std::string& type) { return type == "f32" || type == "f64"; }
std::string register_of(const std::string& type) { return is_half(type) ? "b16" : type; }
unsigned bytes_of(const std::string& type) {
    if (type == "pred") return 4;  // stored as u32
    return unsigned(std::stoi(type.substr(type.find_first_of("136")))) / 8;
}
std::uint64_t mask_of(const std::string& type) {
    return ~std::uint64_t(0) >> (64 - 8 * bytes_of(type));
}

// The bits of a value of a case.
std::uint64_t parse(const std::string& word, const std::string& type) {
    const char* const begin = word.c_str();
    char* end = nullptr;
    std::uint64_t value = 0;
    const Words names = {"0", "-0.0", "inf", "-inf", "nan", "true", "false"};
    const auto name = std::find(names.begin(), names.end(), word) - names.begin();
    if (word.starts_with("0f") || word.starts_with("0d")) {
        value = std::strtoull(begin + 2, &end, 16);
    } else if (type == "f32") {
        value = std::bit_cast<std::uint32_t>(std::strtof(begin, &end));
    } else if (type == "f64") {
        value = std::bit_cast<std::uint64_t>(std::strtod(begin, &end));
    } else if (is_half(type) && name < 5) {
        const std::uint64_t infinity = type == "f16" ? 0x7c00 : 0x7f80;
        const std::uint64_t values[] = {0, 0x8000, infinity, infinity | 0x8000, 0x7fff};
        value = values[name];
        end = const_cast<char*>(begin + word.size());
    } else if (type == "pred" && name >= 5) {
        value = name == 5 ? 1 : 0;
        end = const_cast<char*>(begin + word.size());
    } else if (word[0] == '-') {
        value = std::uint64_t(std::strtoll(begin, &end, 0)) & mask_of(type);
    } else if (type != "pred") {
        value = std::strtoull(begin, &end, 0);
    }
    if (end != begin + word.size() || (value & ~mask_of(type)) != 0) {
        throw std::runtime_error("expected a value of " + type + ", got '" + word + "'");
    }
    return value;
}

double number(std::uint64_t value, const std::string& type) {
    return type == "f32" ? double(std::bit_cast<float>(std::uint32_t(value)))
                         : std::bit_cast<double>(value);
}

bool is_nan(std::uint64_t value, const std::string& type) {
    if (is_float(type)) return std::isnan(number(value, type));
    const std::uint64_t infinity = type == "f16" ? 0x7c00 : 0x7f80;
    return is_half(type) && (value & 0x7fff) > infinity;
}

std::string show(std::uint64_t value, const std::string& type) {
    char text[64];
    if (type == "pred") return value == 1 ? "true" : value == 0 ? "false" : std::to_string(value);
    if (is_float(type)) {
        std::snprintf(text, sizeof(text), type == "f32" ? "%.9g (0f%08llx)" : "%.17g (0d%016llx)",
                      number(value, type), static_cast<unsigned long long>(value));
    } else {
        std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
        const unsigned unused = 64 - 8 * bytes_of(type);
        if (type[0] == 's') return std::to_string(std::int64_t(value << unused) >> unused);
        if (type[0] == 'u') return std::to_string(value) + " (" + text + ")";
    }
    return text;
}

// The largest error of an approximate result: "2 ulp", "2^-22 relative" or, absolute, "2^-20.5".
struct Tolerance {
    double amount = 0;
    std::string kind;
    explicit Tolerance(const std::string& text) {
        const auto words = split(text);
        if (words.empty()) return;
        const bool is_power = words[0].starts_with("2^");
        amount = std::stod(words[0].substr(is_power ? 2 : 0));
        if (is_power) amount = std::exp2(amount);
        kind = words.size() > 1 ? words[1] : "absolute";
        if (words.size() > 2 || (kind != "ulp" && kind != "relative" && kind != "absolute")) {
            throw std::runtime_error("expected a tolerance, got '" + text + "'");
        }
    }
    double at(double expected, const std::string& type) const {
        if (kind == "absolute") return amount;
        if (kind == "relative") return amount * std::fabs(expected);
        const int digits = type == "f32" ? 24 : 53, smallest = type == "f32" ? -149 : -1074;
        return amount * std::ldexp(1, std::max(std::ilogb(expected) - digits + 1, smallest));
    }
};

bool matches(std::uint64_t got, const std::string& word, const std::string& type,
             const Tolerance& tolerance) {
    if (word == "any") return true;
    if (word == "nan") return is_nan(got, type);
    if (is_float(type) && tolerance.amount > 0 && !word.starts_with("0f") &&
        !word.starts_with("0d")) {
        double expected = std::strtod(word.c_str(), nullptr);
        if (tolerance.kind == "ulp") expected = number(parse(word, type), type);  // rounded
        if (std::isfinite(expected) && (expected != 0 || tolerance.kind == "absolute")) {
            return std::fabs(number(got, type) - expected) <= tolerance.at(expected, type);
        }
    }
    return got == parse(word, type);
}

struct Case {
    int line;
    Words operands, results;
    std::string tolerance;
};
struct Section {
    int line;
    std::string code, tolerance;  // code: an instruction, or several with their operands
    Words results, operands;      // types
    std::vector<Case> cases;
};

std::vector<Section> read(const std::filesystem::path& file) {
    std::vector<Section> sections;
    std::ifstream in(file);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.empty() || line[0] == '#') continue;
        const auto place = file.filename().string() + ":" + std::to_string(number) + ": ";
        std::string tolerance;
        if (line.back() == ']') line.pop_back();
        if (const auto at = line.find(" +- "); at != std::string::npos) {
            tolerance = line.substr(at + 4);
            line.resize(at);
        }
        const bool is_section = line[0] == '[';
        const auto colon = is_section ? line.find(" : ") : 0;
        const auto middle = line.find(is_section ? " =" : "->", colon);
        if (middle == std::string::npos) throw std::runtime_error(place + line);
        const auto before =
            split(line.substr(is_section ? colon + 3 : 0, middle - (is_section ? colon + 3 : 0)));
        const auto after = split(line.substr(middle + 2));
        if (is_section) {
            sections.push_back(
                {number, trim(line.substr(1, colon - 1)), tolerance, before, after, {}});
            continue;
        }
        auto& section = sections.back();
        if (before.size() != section.operands.size() || after.size() != section.results.size()) {
            throw std::runtime_error(place + "wrong number of values");
        }
        section.cases.push_back(
            {number, before, after, tolerance.empty() ? section.tolerance : tolerance});
    }
    return sections;
}

// The text of an operand of a case as an immediate; empty: it cannot be one.
std::string immediate(const std::string& word, const std::string& type) {
    if (type == "pred" || is_half(type)) return "";
    char text[32];
    const auto value = static_cast<unsigned long long>(parse(word, type));
    if (type[0] == 's')
        return std::to_string(std::int64_t(value << (64 - 8 * bytes_of(type))) >>
                              (64 - 8 * bytes_of(type)));
    std::snprintf(text, sizeof(text),
                  type == "f32"   ? "0f%08llX"
                  : type == "f64" ? "0d%016llX"
                                  : "0x%llx",
                  value);
    return text;
}

// Each value of a case has 8 bytes: first the results, then the operands.
std::string instruction(const Section& section, const Case* immediates) {
    std::string code = section.code;
    if (code.find(' ') == std::string::npos) {
        for (std::size_t i = 0; i < section.results.size(); ++i) {
            code += " %d" + std::to_string(i) + (i + 1 < section.results.size() ? "," : "");
        }
        for (std::size_t i = 0; i < section.operands.size(); ++i)
            code += ", %a" + std::to_string(i);
        code += ";";
    }
    for (std::size_t i = 0; immediates != nullptr && i < section.operands.size(); ++i) {
        const auto text = immediate(immediates->operands[i], section.operands[i]);
        const auto name = "%a" + std::to_string(i);
        for (auto at = code.find(name); !text.empty() && at != std::string::npos;
             at = code.find(name, at)) {
            code.replace(at, name.size(), text);
        }
    }
    return code;
}

std::string loads(const Section& section, std::size_t offset) {
    std::string code;
    for (std::size_t i = 0; i < section.operands.size(); ++i) {
        const auto& type = section.operands[i];
        const auto name = "%a" + std::to_string(i);
        const auto place =
            "[%base+" + std::to_string(offset + 8 * (section.results.size() + i)) + "];\n";
        code += type == "pred"
                    ? "ld.global.u32 %flag, " + place + "setp.ne.u32 " + name + ", %flag, 0;\n"
                    : "ld.global." + register_of(type) + " " + name + ", " + place;
    }
    return code;
}

std::string stores(const Section& section, std::size_t offset) {
    std::string code;
    for (std::size_t i = 0; i < section.results.size(); ++i) {
        const auto& type = section.results[i];
        const auto name = "%d" + std::to_string(i);
        const auto place = "[%base+" + std::to_string(offset + 8 * i) + "], ";
        code += type == "pred"
                    ? "selp.u32 %flag, 1, 0, " + name + ";\nst.global.u32 " + place + "%flag;\n"
                    : "st.global." + register_of(type) + " " + place + name + ";\n";
    }
    return code;
}

// Two kernels: in `lanes` each thread loads the operands of one case; in `immediates` one thread executes
// all cases, with operands that are written in the instruction.
std::string text_of(const Section& section) {
    std::string declared = ".reg .u64 %base, %place;\n.reg .u32 %lane, %flag;\n";
    for (std::size_t i = 0; i < section.results.size(); ++i) {
        declared += ".reg ." + register_of(section.results[i]) + " %d" + std::to_string(i) + ";\n";
    }
    for (std::size_t i = 0; i < section.operands.size(); ++i) {
        declared += ".reg ." + register_of(section.operands[i]) + " %a" + std::to_string(i) + ";\n";
    }
    const auto bytes = 8 * (section.results.size() + section.operands.size());
    const std::string load =
        declared + "ld.param.u64 %base, [buffer];\ncvta.to.global.u64 %base, %base;\n";
    const auto begin = [](const char* name) {
        return std::string("\n.visible .entry ") + name + "(.param .u64 buffer)\n{\n";
    };
    std::string text = header + begin("lanes") + load +
                       "mov.u32 %lane, %tid.x;\nmad.wide.u32 %base, %lane, " +
                       std::to_string(bytes) + ", %base;\n" + loads(section, 0) +
                       instruction(section, nullptr) + "\n" + stores(section, 0) + "ret;\n}\n";
    text += begin("immediates") + load;
    for (std::size_t i = 0; i < section.cases.size(); ++i) {
        text += loads(section, i * bytes) + instruction(section, &section.cases[i]) + "\n" +
                stores(section, i * bytes);
    }
    return text + "ret;\n}\n";
}

void run(const std::string& file, const Section& section, const std::string& kernel) {
    const auto values = section.results.size() + section.operands.size();
    constexpr std::uint64_t untouched = 0xcccccccccccccccc;
    std::vector<std::uint64_t> memory(values * section.cases.size(), untouched);
    for (std::size_t i = 0; i < section.cases.size(); ++i) {
        for (std::size_t k = 0; k < section.operands.size(); ++k) {
            memory[i * values + section.results.size() + k] =
                parse(section.cases[i].operands[k], section.operands[k]);
        }
    }
    Buffer buffer(memory);
    Setup setup;
    setup.block.x = kernel == "lanes" ? unsigned(section.cases.size()) : 1;
    const auto place =
        file + ":" + std::to_string(section.line) + ": " + section.code + " (" + kernel + ")";
    std::string error;
    try {
        const auto fault = launch(text_of(section), kernel, setup, {&buffer});
        if (fault.error != 0) error = fault.text;
    } catch (const std::runtime_error& refused) {
        error = refused.what();
    }
    CHECK_MESSAGE(error.empty(), place << ": " << error);
    if (!error.empty()) return;
    memory = buffer.get<std::uint64_t>();
    for (std::size_t i = 0; i < section.cases.size(); ++i) {
        const auto& one = section.cases[i];
        const Tolerance tolerance(one.tolerance);
        std::string message =
            file + ":" + std::to_string(one.line) + ": " + section.code + " (" + kernel + "):";
        for (const auto& word : one.operands) message += " " + word;
        bool good = true;
        for (std::size_t k = 0; k < section.results.size(); ++k) {
            const auto& type = section.results[k];
            const auto mask = mask_of(type);
            const auto got = memory[i * values + k];
            good = good && matches(got & mask, one.results[k], type, tolerance) &&
                   (got & ~mask) == (untouched & ~mask);
            message += "\n  expected " + one.results[k] + ", got " + show(got & mask, type);
        }
        if (!one.tolerance.empty()) message += "\n  tolerance " + one.tolerance;
        CHECK_MESSAGE(good, message);
    }
}

TEST_CASE("instructions have known results") {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(CATENA_MACHINE_CASES)) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::size_t cases = 0;
    for (const auto& file : files) {
        for (const auto& section : read(file)) {
            cases += section.cases.size();
            run(file.filename().string(), section, "lanes");
            run(file.filename().string(), section, "immediates");
        }
    }
    CHECK(cases >= 400);
}

}  // namespace
