// The parts of a tokenizer.json that prepare a text: its normalizer and its pre-tokenizer.
#pragma once

#include <catena/data_error.hpp>
#include <catena/fail.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "parse_json.hpp"

namespace catena::models {

[[noreturn]] inline void bad_tokenizer(const std::filesystem::path& file, const std::string& what,
                                       const std::string& expected, const std::string& got) {
    fail<DataError>("[tokenizer] {}: {}: expected {}, got {}", file.string(), what, expected, got);
}

// White space and characters of words, as members of a class. PCRE2's \s has U+180E, which Unicode
// removed from white space in 2013, and its \w depends on its version. A word in Rust has joiners
// too, and one in Oniguruma the numbers of Latin-1.
constexpr const char* space_class = R"(\x{9}-\x{d}\x{85}\p{Z})";
constexpr const char* word_class =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})"
    R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr const char* joiners = R"(\x{200c}\x{200d})";

// GPT-2's pattern: words with the space before them, numbers, other marks, and spaces.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The complement of space_class.
constexpr const char* no_space_class =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";

inline const std::string latin1_numbers = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// A regular expression of Oniguruma, which Hugging Face's tokenizers use, run by PCRE2.
class Pattern {
public:
    // Throws DataError for an invalid expression, and for one that PCRE2 would read differently.
    Pattern(const std::filesystem::path& file, std::string_view text) {
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
            bad_tokenizer(file, "pre_tokenizer", "a regular expression of PCRE2",
                          fmt::format("'{}', {} at {}", text,
                                      reinterpret_cast<const char*>(message.data()), at));
        }
        pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    }

    struct Match {
        std::size_t begin, end;
    };
    // Returns the first match at or after a byte of the text, which must be UTF-8.
    std::optional<Match> find(std::string_view text, std::size_t from,
                              bool only_here = false) const {
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
                "[tokenizer] text: expected one that the pattern can split, got error {} of PCRE2 "
                "at byte {}",
                found, from);
        const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data);
        return Match{ends[0], ends[1]};
    }
    // Returns the length of the match that begins at a byte of the text, 0 if there is none.
    std::size_t length_at(std::string_view text, std::size_t at) const {
        const auto match = find(text, at, true);
        return match ? match->end - at : 0;
    }
    // Whether the pattern, of one code point, matches the one before a byte of the text.
    bool matches_before(std::string_view text, std::size_t at) const {
        return at > 0 && length_at(text, point_before(text, at)) > 0;
    }
    // The place of the code point before, or after, a byte of the text.
    static std::size_t point_before(std::string_view text, std::size_t at) {
        do --at;
        while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
        return at;
    }
    static std::size_t point_after(std::string_view text, std::size_t at) {
        do ++at;
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
        return at;
    }

private:
    // Translates an expression of Oniguruma to PCRE2. What has no counterpart is in `unknown`.
    static std::string translated(std::string_view text, std::string& unknown) {
        std::string result;
        bool in_class = false;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::string_view rest = text.substr(i);
            if (rest.starts_with('\\') && rest.size() > 1) {
                const char name = rest[1];
                const bool negative = name == 'S' || name == 'W' || name == 'H';
                const std::string members = name == 's' || name == 'S' ? space_class
                                            : name == 'w' || name == 'W'
                                                ? word_class + latin1_numbers
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
                if (flags > 2 && rest.substr(0, flags).find('m') != rest.npos)
                    unknown = "the flag m";
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
    static pcre2_match_data* match_data() {
        struct Free {
            void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
        };
        thread_local const std::unique_ptr<pcre2_match_data, Free> data(
            pcre2_match_data_create(1, nullptr));
        if (data == nullptr) throw std::bad_alloc();
        return data.get();
    }

    struct Free {
        void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    };
    std::unique_ptr<pcre2_code, Free> code_;
};

// NFC, NFD, NFKC and NFKD of Unicode, in sequence, by utf8proc.
class Normalizer {
public:
    Normalizer() = default;
    // Reads the member "normalizer". Throws DataError for other normalizers.
    Normalizer(const std::filesystem::path& file, const nlohmann::json& json) { read(file, json); }

    // text must be UTF-8.
    std::string operator()(std::string text) const {
        const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
        if (forms_.empty() || std::ranges::all_of(text, is_ascii)) return text;
        for (const std::string& form : forms_) {
            const int options = UTF8PROC_STABLE |
                                (form.ends_with('C') ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                (form.starts_with("NFK") ? UTF8PROC_COMPAT : 0);
            utf8proc_uint8_t* result = nullptr;
            const utf8proc_ssize_t size =
                utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                             std::ssize(text), &result, static_cast<utf8proc_option_t>(options));
            const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(result, &std::free);
            if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
            if (size < 0)
                fail<InvalidError>("[tokenizer] text: expected one that has {}, got an error: {}",
                                   form, utf8proc_errmsg(size));
            text.assign(reinterpret_cast<const char*>(result), static_cast<std::size_t>(size));
        }
        return text;
    }
    bool changes_nothing() const noexcept { return forms_.empty(); }

private:
    void read(const std::filesystem::path& file, const nlohmann::json& json) {
        if (json.is_null()) return;
        const std::string type = json.is_object() ? json.value("type", "none") : "none";
        if (type == "Sequence") {
            for (const nlohmann::json& part : json.at("normalizers")) read(file, part);
        } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
            forms_.push_back(type);
        } else {
            bad_tokenizer(file, "normalizer", "NFC, NFD, NFKC or NFKD", json.dump());
        }
    }

    std::vector<std::string> forms_;
};

// Splits a text into words, by one rule after the other.
class PreTokenizer {
public:
    PreTokenizer() = default;
    // Reads the member "pre_tokenizer". Throws DataError unless ByteLevel is its last rule.
    PreTokenizer(const std::filesystem::path& file, const nlohmann::json& json) {
        read(file, json);
        if (!ended_) bad_tokenizer(file, "pre_tokenizer", "ByteLevel as the last one", json.dump());
    }

    // Calls take(word) for each word that is not empty. text must be UTF-8.
    template <class Take>
    void split(std::string_view text, const Take& take) const {
        split(text, take, 0);
    }

private:
    // What happens to matches of the pattern: they are removed, are words, are joined with each
    // other, or are joined with the text before or after them.
    enum class Behavior : std::uint8_t { removed, isolated, contiguous, with_previous, with_next };
    struct Rule {
        std::optional<Pattern> pattern;
        Behavior behavior = Behavior::isolated;
        bool inverted = false;      // the text between the matches is treated as a match
        bool prefix_space = false;  // a text without a space at its begin gets one
    };

    void read(const std::filesystem::path& file, const nlohmann::json& json) {
        constexpr std::pair<std::string_view, Behavior> behaviors[] = {
            {"Removed", Behavior::removed},
            {"Isolated", Behavior::isolated},
            {"Contiguous", Behavior::contiguous},
            {"MergedWithPrevious", Behavior::with_previous},
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
            for (const nlohmann::json& part : json.at("pretokenizers")) read(file, part);
        } else if (type == "ByteLevel") {
            ended_ = true;
            Rule rule;
            rule.prefix_space = json.value("add_prefix_space", false);
            if (json.value("use_regex", true)) rule.pattern.emplace(file, gpt2_pattern);
            if (rule.prefix_space || rule.pattern) rules_.push_back(std::move(rule));
        } else if (type == "Split") {
            const nlohmann::json& pattern = json.at("pattern");
            add(pattern.contains("Regex") ? pattern.at("Regex").get<std::string>()
                                          : escaped(pattern.at("String").get<std::string>()),
                behavior_of(json.at("behavior").get<std::string>()), json.value("invert", false));
        } else if (type == "Digits") {
            add(R"(\p{N})",
                json.value("individual_digits", false) ? Behavior::isolated : Behavior::contiguous);
        } else if (type == "Punctuation") {
            add(R"([\p{P}$+<=>^`|~])", behavior_of(json.value("behavior", "Isolated")));
        } else if (type == "Whitespace") {
            add(fmt::format(R"([{0}{1}]+|[^\s{0}{1}]+)", word_class, joiners), Behavior::removed,
                true);
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
    static std::string escaped(std::string_view text) {
        std::string result;
        for (const char c : text) {
            if (static_cast<unsigned char>(c) < 0x80 &&
                std::isalnum(static_cast<unsigned char>(c)) == 0)
                result += '\\';
            result += c;
        }
        return result;
    }

    template <class Take>
    void split(std::string_view text, const Take& take, std::size_t step) const {
        if (step == rules_.size()) return take(text);
        const Rule& rule = rules_[step];
        std::string longer;
        if (rule.prefix_space && !text.starts_with(' ')) text = longer = " " + std::string(text);
        if (!rule.pattern) return split(text, take, step + 1);
        std::optional<Pattern::Match> kept;  // not given to the next rule yet
        bool previous = false;               // whether the last piece was a match
        const auto flush = [&] {
            if (kept && kept->begin < kept->end)
                split(text.substr(kept->begin, kept->end - kept->begin), take, step + 1);
            kept.reset();
        };
        const auto add = [&](const Pattern::Match& piece, bool matches) {
            matches = matches != rule.inverted;
            const bool joins = (rule.behavior == Behavior::contiguous && matches == previous) ||
                               (rule.behavior == Behavior::with_previous && matches && !previous) ||
                               (rule.behavior == Behavior::with_next && !matches && previous);
            previous = matches;
            if (kept && joins) {
                kept->end = piece.end;
                return;
            }
            flush();
            if (rule.behavior != Behavior::removed || !matches) kept = piece;
        };
        std::size_t done = 0;
        bool first = true;
        for (std::size_t at = 0; at <= text.size();) {
            const auto match = rule.pattern->find(text, at);
            if (!match) break;
            if (match->end == done && !first) {  // empty, after another match
                at = Pattern::point_after(text, at);
                continue;
            }
            if (match->begin > done) add({done, match->begin}, false);
            add(*match, true);
            done = at = match->end;
            first = false;
        }
        if (done < text.size()) add({done, text.size()}, false);
        flush();
    }

    std::vector<Rule> rules_;
    bool ended_ = false;  // ByteLevel was read
};

}  // namespace catena::models
