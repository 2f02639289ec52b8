// Reads normalizers, with utf8proc, and pre-tokenizers, with PCRE2, of a tokenizer.json.
#include "tokenizer_text.hpp"

#include <catena/data_error.hpp>
#include <catena/fail.hpp>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace catena::models {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// GPT-2's pattern: words with the space before them, numbers, other marks, and spaces.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The complement of space_class.
constexpr const char* no_space_class =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

const std::string latin1_numbers = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// Translates an expression of Oniguruma to PCRE2. What has no counterpart is in `unknown`.
std::string translated(std::string_view text, std::string& unknown) {
    std::string result;
    bool in_class = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::string_view rest = text.substr(i);
        if (rest.starts_with('\\') && rest.size() > 1) {
            const char name = rest[1];
            const bool negative = name == 'S' || name == 'W' || name == 'H';
            const std::string members = name == 's' || name == 'S'   ? space_class
                                        : name == 'w' || name == 'W' ? word_class + latin1_numbers
                                        : name == 'h' || name == 'H' ? "0-9A-Fa-f"
                                                                     : "";
            if (members.empty()) result += rest.substr(0, 2);
            else if (!in_class) result += (negative ? "[^" : "[") + members + "]";
            else if (!negative) result += members;
            else if (name == 'S') result += no_space_class;
            else unknown = std::string(rest.substr(0, 2)) + " in a class";
            ++i;
        } else if (in_class && rest.starts_with("[:space:]")) {
            result += space_class;
            i += 8;
        } else if (in_class && (rest.starts_with("&&") || rest.starts_with('['))) {
            if (!rest.starts_with("[:")) unknown = "a class in a class";
            result += rest[0];
        } else if (!in_class && rest.starts_with("(?")) {
            const std::size_t flags = rest.find_first_not_of("imxadu-", 2);
            if (flags > 2 && rest.substr(0, flags).find('m') != rest.npos) unknown = "the flag m";
            result += rest[0];
        } else {
            if (!in_class && rest[0] == '[') {
                in_class = true;
                result += rest[0];
                // A bracket that is the first member does not end the class.
                if (rest.substr(1).starts_with('^')) result += text[++i];
                if (text.substr(i + 1).starts_with(']')) result += text[++i];
                continue;
            }
            if (rest[0] == ']') in_class = false;
            result += rest[0];
        }
    }
    return result;
}

// Each thread needs one match at a time.
pcre2_match_data* match_data() {
    struct Free {
        void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    };
    thread_local const std::unique_ptr<pcre2_match_data, Free> data(
        pcre2_match_data_create(1, nullptr));
    if (data == nullptr) throw std::bad_alloc();
    return data.get();
}

std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x80 &&
            std::isalnum(static_cast<unsigned char>(c)) == 0)
            result += '\\';
        result += c;
    }
    return result;
}

}  // namespace

void bad_tokenizer(const fs::path& file, const std::string& what, const std::string& expected,
                   const std::string& got) {
    fail<DataError>("[tokenizer] {}: {}: expected {}, got {}", file.string(), what, expected, got);
}

Pattern::Pattern(const fs::path& file, std::string_view text) {
    std::string unknown;
    const std::string own = translated(text, unknown);
    if (!unknown.empty())
        bad_tokenizer(file, "pre_tokenizer", "a regular expression that PCRE2 has too",
                      fmt::format("'{}', with {}", text, unknown));
    int error = 0;
    PCRE2_SIZE at = 0;
    // In Oniguruma, ^ and $ match at all lines.
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(own.data()), own.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &at, nullptr));
    if (code_ == nullptr) {
        std::array<PCRE2_UCHAR, 256> message{};
        pcre2_get_error_message(error, message.data(), message.size());
        bad_tokenizer(
            file, "pre_tokenizer", "a regular expression of PCRE2",
            fmt::format("'{}', {} at {}", text, reinterpret_cast<const char*>(message.data()), at));
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, std::size_t from,
                                            bool only_here) const {
    pcre2_match_data* const data = match_data();
    const auto match = [&](std::uint32_t options) {
        return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                           from, options | (only_here ? PCRE2_ANCHORED : 0), data, nullptr);
    };
    int found = match(PCRE2_NO_UTF_CHECK);
    // A group that repeats over a long word needs more stack than compiled patterns have.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0)
        fail<InvalidError>(
            "[tokenizer] text: expected one that the pattern can split, got error {} of PCRE2 at "
            "byte {}",
            found, from);
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data);
    return Match{ends[0], ends[1]};
}

void Normalizer::read(const fs::path& file, const Json& json) {
    if (json.is_null()) return;
    const std::string type = json.is_object() ? json.value("type", "none") : "none";
    if (type == "Sequence") {
        for (const Json& part : json.at("normalizers")) read(file, part);
    } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
        forms_.push_back(type);
    } else {
        bad_tokenizer(file, "normalizer", "NFC, NFD, NFKC or NFKD", json.dump());
    }
}

std::string Normalizer::operator()(std::string text) const {
    const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (forms_.empty() || std::ranges::all_of(text, is_ascii)) return text;
    for (const std::string& form : forms_) {
        const int options = UTF8PROC_STABLE |
                            (form.ends_with('C') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                            (form.starts_with("NFK") ? UTF8PROC_COMPAT : 0);
        utf8proc_uint8_t* result = nullptr;
        const utf8proc_ssize_t size =
            utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), std::ssize(text),
                         &result, static_cast<utf8proc_option_t>(options));
        const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(result, &std::free);
        if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
        if (size < 0)
            fail<InvalidError>("[tokenizer] text: expected one that has {}, got an error: {}", form,
                               utf8proc_errmsg(size));
        text.assign(reinterpret_cast<const char*>(result), static_cast<std::size_t>(size));
    }
    return text;
}

PreTokenizer::PreTokenizer(const fs::path& file, const Json& json) {
    read(file, json);
    if (!ended_) bad_tokenizer(file, "pre_tokenizer", "ByteLevel as the last one", json.dump());
}

void PreTokenizer::read(const fs::path& file, const Json& json) {
    constexpr std::pair<std::string_view, Behavior> behaviors[] = {
        {"Removed", Behavior::removed},          {"Isolated", Behavior::isolated},
        {"Contiguous", Behavior::contiguous},    {"MergedWithPrevious", Behavior::with_previous},
        {"MergedWithNext", Behavior::with_next},
    };
    const auto behavior_of = [&](const std::string& name) {
        const auto* const found =
            std::ranges::find(behaviors, name, [](const auto& known) { return known.first; });
        if (found == std::end(behaviors))
            bad_tokenizer(file, "pre_tokenizer", "a behavior such as Isolated", json.dump());
        return found->second;
    };
    const auto add = [&](std::string_view pattern, Behavior behavior, bool inverted = false) {
        rules_.push_back({Pattern(file, pattern), behavior, inverted});
    };
    const std::string type = json.is_object() ? json.value("type", "none") : "none";
    // In Hugging Face's tokenizers, ByteLevel replaces the text, so a later rule sees another one.
    if (ended_) bad_tokenizer(file, "pre_tokenizer", "ByteLevel as the last one", json.dump());
    if (type == "Sequence") {
        for (const Json& part : json.at("pretokenizers")) read(file, part);
    } else if (type == "ByteLevel") {
        ended_ = true;
        Rule rule;
        rule.prefix_space = json.value("add_prefix_space", false);
        if (json.value("use_regex", true)) rule.pattern.emplace(file, gpt2_pattern);
        if (rule.prefix_space || rule.pattern) rules_.push_back(std::move(rule));
    } else if (type == "Split") {
        const Json& pattern = json.at("pattern");
        add(pattern.contains("Regex") ? pattern.at("Regex").get<std::string>()
                                      : escaped(pattern.at("String").get<std::string>()),
            behavior_of(json.at("behavior").get<std::string>()), json.value("invert", false));
    } else if (type == "Digits") {
        add(R"(\p{N})",
            json.value("individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
    } else if (type == "Punctuation") {
        add(R"([\p{P}$+<=>^`|~])", behavior_of(json.value("behavior", "Isolated")));
    } else if (type == "Whitespace") {
        add(fmt::format(R"([{0}{1}]+|[^\s{0}{1}]+)", word_class, joiners), Behavior::removed, true);
    } else if (type == "WhitespaceSplit") {
        add(R"(\s)", Behavior::removed);
    } else if (type == "CharDelimiterSplit") {
        add(escaped(json.at("delimiter").get<std::string>()), Behavior::removed);
    } else {
        bad_tokenizer(file, "pre_tokenizer",
                      "ByteLevel, CharDelimiterSplit, Digits, Punctuation, Sequence, Split, "
                      "Whitespace or WhitespaceSplit",
                      json.dump());
    }
}

}  // namespace catena::models
