// Cutting texts, counting words, and putting texts together again.
#include "gzip_reader.hpp"

#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace catena {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // of UTF-8

constexpr std::array<std::string_view, 3> names{"words", "spaces", "characters"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

// Letters and digits; every byte of what is not ASCII counts as one.
bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}

// Bytes of the code point that begins here; 0 if none does. (RFC 3629, without surrogates and what
// a shorter form has.)
std::size_t code_point(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const unsigned low = first == 0xe0 ? 0xa0 : 0x80, high = first == 0xed ? 0x9f : 0xbf;
        return follows(1, low, high) && follows(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const unsigned low = first == 0xf0 ? 0x90 : 0x80, high = first == 0xf4 ? 0x8f : 0xbf;
        return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

// Bytes of "<name>" at the text's beginning; 0 if there is none.
std::size_t bracketed(std::string_view text) {
    if (text.empty() || text[0] != '<') return 0;
    std::size_t n = 1;
    while (n < text.size() && text[n] >= 'a' && text[n] <= 'z') ++n;
    return n > 1 && n < text.size() && text[n] == '>' ? n + 1 : 0;
}

std::size_t next_word(std::string_view text) {
    if (const std::size_t n = bracketed(text)) return n;
    std::size_t n = 0;
    while (n < text.size() && is_word(text[n])) ++n;
    return std::max<std::size_t>(n, 1);
}

std::size_t until_space(std::string_view text) {
    std::size_t n = 0;
    while (n < text.size() && !is_space(text[n]) && text[n] != '\n') ++n;
    return n;
}

// A listing has a word in each line.
std::string escaped(std::string_view word) {
    std::string text;
    for (const char c : word) {
        if (c == '\\') text += "\\\\";
        else if (c == '\n') text += "\\n";
        else text += c;
    }
    return text;
}

std::string unescaped(std::string_view line) {
    std::string word;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool escape = line[i] == '\\' && i + 1 < line.size();
        if (escape) ++i;
        word += escape && line[i] == 'n' ? '\n' : line[i];
    }
    return word;
}

// Whether people set a space between two words.
bool apart(std::string_view before, std::string_view after) {
    constexpr std::string_view closing = ".,;:!?)]}%";
    constexpr std::string_view opening = "([{$";
    const auto one_of = [](std::string_view word, std::string_view marks) {
        return word.size() == 1 && marks.find(word[0]) != marks.npos;
    };
    return !one_of(after, closing) && !one_of(before, opening);
}

}  // namespace

std::string_view to_string(Tokens tokens) { return names.at(static_cast<std::size_t>(tokens)); }

Tokens tokens_from_string(std::string_view name) {
    const auto* found = std::ranges::find(names, name);
    if (found == names.end()) {
        throw InvalidError(
            fmt::format("[Tokens] expected words, spaces or characters, got '{}'", name));
    }
    return static_cast<Tokens>(found - names.begin());
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t n = code_point(text);
        if (n == 0) return false;
        text.remove_prefix(n);
    }
    return true;
}

std::string read_text(const std::filesystem::path& file) {
    std::string text = GzipReader(file, "read_text").read_all();
    std::int64_t line = 1;
    std::size_t to = 0;
    for (std::size_t at = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
         at < text.size();) {
        const std::size_t n = code_point(std::string_view(text).substr(at, 4));
        if (n == 0) {
            throw DataError(
                fmt::format("[read_text] {}: expected text in UTF-8, got byte 0x{:02x} in line {} "
                            "(at {})",
                            file.string(), static_cast<unsigned char>(text[at]), line, at));
        }
        if (text[at] == '\n') ++line;
        const bool before_newline =
            text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
        for (std::size_t i = 0; i < n && !before_newline; ++i) text[to++] = text[at + i];
        at += n;
    }
    text.resize(to);
    return text;
}

void tokenize(std::string_view text, Tokens tokens,
              const std::function<void(std::string_view)>& take) {
    while (!text.empty()) {
        std::size_t n = 1;
        if (tokens == Tokens::characters) {
            n = std::max<std::size_t>(code_point(text), 1);
            take(text.substr(0, n));
        } else if (text[0] == '\n') {
            take(Vocabulary::end_of_line);
        } else if (!is_space(text[0])) {
            n = tokens == Tokens::words ? next_word(text) : until_space(text);
            take(text.substr(0, n));
        }
        text.remove_prefix(n);
    }
}

Vocabulary Vocabulary::of(std::string_view text, Tokens tokens, std::int64_t min_count,
                          std::int64_t most) {
    return of(text, tokens, Options{.min_count = min_count, .most = most});
}

Vocabulary Vocabulary::of(std::string_view text, Tokens tokens, const Options& options) {
    std::unordered_map<std::string, std::int64_t> counts;
    tokenize(text, tokens, [&](std::string_view word) { ++counts[std::string(word)]; });
    std::vector<std::pair<std::int64_t, std::string>> order;
    for (const auto& [word, count] : counts) {
        if (count >= options.min_count || (options.unknown && word == unknown))
            order.emplace_back(-count, word);
    }
    std::ranges::sort(order);
    if (options.most > 0 && std::ssize(order) > options.most) {
        order.resize(static_cast<std::size_t>(options.most));
        const auto is_unknown = [](const auto& entry) { return entry.second == unknown; };
        if (options.unknown && std::ranges::none_of(order, is_unknown)) order.pop_back();
    }
    Vocabulary result;
    result.tokens_ = tokens;
    for (auto& [count, word] : order) result.append(std::move(word));
    if (options.unknown && !result.contains(unknown)) result.append(std::string(unknown));
    return result;
}

Vocabulary Vocabulary::load(const std::filesystem::path& file, std::string_view path) {
    const auto texts = load_texts(file, path);
    const auto tokens = texts.find(std::string(path) + "tokens");
    const auto words = texts.find(std::string(path) + "words");
    if (tokens == texts.end() || words == texts.end()) {
        throw DataError(fmt::format("[Vocabulary] {}: expected texts {}tokens and {}words, got {}",
                                    file.string(), path, path, texts.empty() ? "none" : "others"));
    }
    Vocabulary result;
    result.tokens_ = tokens_from_string(tokens->second);
    std::string_view rest = words->second;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string word = unescaped(rest.substr(0, end));
        if (result.contains(word)) {
            throw DataError(fmt::format("[Vocabulary] {}: expected words once, got '{}' twice",
                                        file.string(), word));
        }
        result.append(std::move(word));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return result;
}

void Vocabulary::append(std::string word) {
    if (words_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw DataError("[Vocabulary] expected at most 2^31 words, got more");
    ids_.emplace(word, static_cast<std::int32_t>(words_.size()));
    words_.push_back(std::move(word));
}

const std::string& Vocabulary::word(std::int64_t id) const {
    if (id < 0 || id >= size()) {
        throw InvalidError(
            fmt::format("[Vocabulary] id: expected 0 to {}, got {}", size() - 1, id));
    }
    return words_[static_cast<std::size_t>(id)];
}

std::int32_t Vocabulary::id(std::string_view word) const {
    const auto found = ids_.find(std::string(word));
    if (found != ids_.end()) return found->second;
    const auto other = ids_.find(std::string(unknown));
    if (other != ids_.end()) return other->second;
    throw InvalidError(
        fmt::format("[Vocabulary] word: expected one of its {}, got '{}' (it has no {})", size(),
                    word, unknown));
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
    std::vector<std::int32_t> ids;
    tokenize(text, tokens_, [&](std::string_view token) { ids.push_back(id(token)); });
    return ids;
}

std::vector<std::string> Vocabulary::missing(std::string_view text) const {
    std::vector<std::string> words;
    tokenize(text, tokens_, [&](std::string_view token) {
        if (!contains(token)) words.emplace_back(token);
    });
    return words;
}

std::string Vocabulary::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    std::string_view before;
    for (const std::int32_t id : ids) {
        const std::string& token = word(id);
        if (tokens_ == Tokens::characters) {
            text += token;
        } else if (token == end_of_line) {
            text += '\n';
        } else {
            const bool at_start = text.empty() || text.back() == '\n';
            if (!at_start && (tokens_ == Tokens::spaces || apart(before, token))) text += ' ';
            text += token;
        }
        before = token;
    }
    return text;
}

std::string Vocabulary::listing() const {
    std::string text;
    for (const std::string& word : words_) text += escaped(word) + '\n';
    return text;
}

void Vocabulary::visit(Visitor& visitor) {
    visitor.require("tokens", to_string(tokens_)).require("words", listing());
}

}  // namespace catena
