// The parts of a tokenizer.json that prepare a text: its normalizer and its pre-tokenizer.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "parse_json.hpp"

namespace catena::models {

[[noreturn]] void bad_tokenizer(const std::filesystem::path& file, const std::string& what,
                                const std::string& expected, const std::string& got);

// White space and characters of words, as members of a class. PCRE2's \s has U+180E, which Unicode
// removed from white space in 2013, and its \w depends on its version. A word in Rust has joiners
// too, and one in Oniguruma the numbers of Latin-1.
constexpr const char* space_class = R"(\x{9}-\x{d}\x{85}\p{Z})";
constexpr const char* word_class =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})"
    R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr const char* joiners = R"(\x{200c}\x{200d})";

// A regular expression of Oniguruma, which Hugging Face's tokenizers use, run by PCRE2.
class Pattern {
public:
    // Throws DataError for an invalid expression, and for one that PCRE2 would read differently.
    Pattern(const std::filesystem::path& file, std::string_view text);

    struct Match {
        std::size_t begin, end;
    };
    // Returns the first match at or after a byte of the text, which must be UTF-8.
    std::optional<Match> find(std::string_view text, std::size_t from,
                              bool only_here = false) const;
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
    struct Free {
        void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    };
    std::unique_ptr<pcre2_code, Free> code_;
};

// NFC, NFD, NFKC and NFKD of Unicode, in sequence.
class Normalizer {
public:
    Normalizer() = default;
    // Reads the member "normalizer". Throws DataError for other normalizers.
    Normalizer(const std::filesystem::path& file, const nlohmann::json& json) { read(file, json); }

    // text must be UTF-8.
    std::string operator()(std::string text) const;
    bool changes_nothing() const noexcept { return forms_.empty(); }

private:
    void read(const std::filesystem::path& file, const nlohmann::json& json);

    std::vector<std::string> forms_;
};

// Splits a text into words, by one rule after the other.
class PreTokenizer {
public:
    PreTokenizer() = default;
    // Reads the member "pre_tokenizer". Throws DataError unless ByteLevel is its last rule.
    PreTokenizer(const std::filesystem::path& file, const nlohmann::json& json);

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

    void read(const std::filesystem::path& file, const nlohmann::json& json);

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
