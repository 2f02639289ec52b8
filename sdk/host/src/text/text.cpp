// Tokenization, vocabularies, and text files.
#include "../files/gzip_reader.hpp"

#include <catena/array_file.hpp>
#include <catena/core/tables.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/read_file.hpp>
#include <catena/text.hpp>

#include <fmt/ranges.h>
#include <boost/algorithm/string/replace.hpp>
#include <boost/locale/utf.hpp>

#include <cstring>
#include <limits>

namespace catena {
namespace {

constexpr std::uint64_t most_text = std::uint64_t{1} << 31;
constexpr std::size_t longest_token = std::size_t{1} << 24;
constexpr std::size_t most_words = std::size_t{1} << 26;
constexpr std::size_t most_tokens = std::size_t{1} << 28;     // WikiText-103 has 103 million words
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // of UTF-8

constexpr std::array<std::string_view, 4> names{"words", "spaces", "characters", "bytes"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }
bool ends_token(char c) { return is_space(c) || c == '\n'; }

// Words consist of ASCII letters and digits, apostrophes, and all bytes that are not ASCII.
bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}

// Returns the length of the code point (RFC 3629) at the text's beginning, or 0 if there is none.
std::size_t code_point(std::string_view text) {
    namespace utf = boost::locale::utf;
    const auto* at = text.begin();
    const utf::code_point found = utf::utf_traits<char>::decode(at, text.end());
    const bool valid = found != utf::illegal && found != utf::incomplete;
    return valid ? static_cast<std::size_t>(at - text.begin()) : 0;
}

// Returns the length of "<name>" at the text's beginning, or 0 if there is none.
std::size_t bracketed(std::string_view text) {
    if (!text.starts_with('<')) return 0;
    const std::size_t n = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", 1);
    return n != text.npos && n > 1 && text[n] == '>' ? n + 1 : 0;
}

std::size_t next_word(std::string_view text) {
    if (const std::size_t n = bracketed(text)) return n;
    std::size_t n = 0;
    while (n < text.size() && is_word(text[n])) ++n;
    return std::max<std::size_t>(n, 1);
}

std::string byte_token(unsigned char byte) { return fmt::format("<0x{:02x}>", byte); }

// Returns how many of the piece's first bytes are whole tokens, whatever follows; 0 if none need be.
std::size_t last_boundary(std::string_view piece, Tokens tokens) {
    if (tokens == Tokens::characters || tokens == Tokens::bytes) return piece.size();
    const auto is_boundary = [&](char c) {  // '<' may begin "<name>"
        return ends_token(c) || (tokens == Tokens::words && !is_word(c) && c != '<');
    };
    std::size_t n = piece.size();
    while (n > 0 && !is_boundary(piece[n - 1])) --n;
    return n;
}

// Passes the token at the text's beginning, if any, to take(). Returns how many bytes it used.
std::size_t next_token(std::string_view text, Tokens tokens,
                       const std::function<void(std::string_view)>& take) {
    std::size_t n = 1;
    if (tokens == Tokens::characters) {
        n = std::max<std::size_t>(code_point(text), 1);
        take(text.substr(0, n));
    } else if (tokens == Tokens::bytes) {
        take(byte_token(static_cast<unsigned char>(text[0])));
    } else if (text[0] == '\n') {
        take(Vocabulary::end_of_line);
    } else if (!is_space(text[0])) {
        n = tokens == Tokens::words
                ? next_word(text)
                : static_cast<std::size_t>(std::ranges::find_if(text, ends_token) - text.begin());
        take(text.substr(0, n));
    } else {
        while (n < text.size() && is_space(text[n])) ++n;
    }
    return n;
}

TextPieces one_piece(std::string_view text) {
    return [text](const std::function<void(std::string_view)>& take) { take(text); };
}

// Reads a file once, checks that it is UTF-8, and removes a byte order mark and "\r" before "\n".
class TextFile {
public:
    explicit TextFile(const std::filesystem::path& file)
        : name_(file.string()), reader_(file, "read_text") {}

    void read(const std::function<void(std::string_view)>& take) {
        std::string buffer(piece, '\0');
        std::size_t kept = 0;  // bytes left over: an incomplete code point or line end
        for (bool last = false; !last;) {
            const std::size_t got = reader_.read_some(std::span(buffer).subspan(kept));
            last = got < buffer.size() - kept;
            if (last) reader_.expect_end();
            std::size_t size = kept + got, begin = 0;
            if (at_ == 0 && std::string_view(buffer).substr(0, size).starts_with(byte_order_mark))
                begin = byte_order_mark.size();
            at_ += begin;
            const auto [from, to] = check(buffer, begin, size, last);
            if (to > begin) take(std::string_view(buffer).substr(begin, to - begin));
            kept = size - from;
            std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(from),
                      buffer.begin() + static_cast<std::ptrdiff_t>(size), buffer.begin());
        }
    }

private:
    static constexpr std::size_t piece = std::size_t{1} << 20;

    // Checks whole code points of [begin, size) and removes "\r" before "\n". Returns both new ends.
    std::pair<std::size_t, std::size_t> check(std::string& buffer, std::size_t begin,
                                              std::size_t size, bool last) {
        constexpr std::size_t longest = 4;  // bytes of a code point
        std::size_t at = begin, to = begin;
        while (at < size && (last || size - at >= longest)) {
            std::size_t plain = at;  // the end of the ASCII bytes to copy unchanged
            while (plain < size && buffer[plain] != '\r' &&
                   static_cast<unsigned char>(buffer[plain]) < 0x80)
                ++plain;
            if (const std::size_t n = plain - at; n > 0) {
                line_ += static_cast<std::uint64_t>(std::count(&buffer[at], &buffer[at] + n, '\n'));
                if (to != at) std::memmove(&buffer[to], &buffer[at], n);
                at += n;
                at_ += n;
                to += n;
                continue;
            }
            const std::size_t n =
                code_point(std::string_view(buffer).substr(at, std::min(longest, size - at)));
            if (n == 0) {
                const std::string kind = file_kind(name_);
                const bool is_other = !kind.empty() && kind != "a text";
                fail<DataError>(
                    "[read_text] {}: expected text in UTF-8, got byte 0x{:02x} in line {} (at "
                    "{}){}",
                    name_, static_cast<unsigned char>(buffer[at]), line_, at_,
                    is_other ? " of " + kind : "");
            }
            const bool before_newline =
                buffer[at] == '\r' && at + 1 < size && buffer[at + 1] == '\n';
            for (std::size_t i = 0; i < n && !before_newline; ++i) buffer[to++] = buffer[at + i];
            at += n;
            at_ += n;
        }
        return {at, to};
    }

    std::string name_;
    GzipReader reader_;
    std::uint64_t line_ = 1, at_ = 0;
};

// Escapes a word for a listing, which has one word in each line.
std::string escaped(std::string word) {
    boost::replace_all(word, "\\", "\\\\");
    boost::replace_all(word, "\n", "\\n");
    return word;
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

// Whether a space usually stands between two tokens.
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
    if (found == names.end())
        fail<InvalidError>("[Tokens] expected {}, got '{}'", fmt::join(names, ", "), name);
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

TextPieces text_pieces(const std::filesystem::path& file) {
    return [file](const std::function<void(std::string_view)>& take) {
        naming_file("read_text", file, [&] {
            TextFile(file).read([&](std::string_view piece) {
                try {
                    take(piece);
                } catch (const DataError& error) {  // from take(), which does not name the file
                    fail<DataError>("{}, in {}", error.what(), file.string());
                }
            });
        });
    };
}

TextPieces part_of(TextPieces text, std::uint64_t begin, std::uint64_t end) {
    struct Enough {};
    return [text = std::move(text), begin, end](const auto& take) {
        if (begin >= end) return;
        std::uint64_t at = 0;
        try {
            text([&](std::string_view piece) {
                const std::uint64_t from = std::clamp(begin, at, at + piece.size());
                const std::uint64_t to = std::clamp(end, from, at + piece.size());
                if (from < to) take(piece.substr(from - at, to - from));
                at += piece.size();
                if (at >= end) throw Enough{};
            });
        } catch (const Enough&) {  // the rest of the text is not read
        }
    };
}

std::string read_text(const std::filesystem::path& file) {
    return naming_file("read_text", file, [&] {
        const auto pieces = text_pieces(file);
        std::uint64_t size = 0;
        pieces([&](std::string_view piece) {
            size += piece.size();
            if (size <= most_text) return;
            fail<DataError>("[read_text] text: expected at most {} bytes, got more", most_text);
        });
        std::string text;
        text.reserve(size);
        pieces([&](std::string_view piece) { text += piece; });
        return text;
    });
}

void tokenize(std::string_view text, Tokens tokens,
              const std::function<void(std::string_view)>& take) {
    while (!text.empty()) text.remove_prefix(next_token(text, tokens, take));
}

void tokenize(const TextPieces& text, Tokens tokens,
              const std::function<void(std::string_view)>& take) {
    std::string rest;  // a token that the next piece may continue
    text([&](std::string_view piece) {
        const std::size_t whole = last_boundary(piece, tokens);
        if (whole == 0) {
            rest += piece;
        } else if (rest.empty()) {
            tokenize(piece.substr(0, whole), tokens, take);
            rest = piece.substr(whole);
        } else {
            rest += piece.substr(0, whole);
            tokenize(rest, tokens, take);
            rest = piece.substr(whole);
        }
        if (rest.size() > longest_token)
            fail<DataError>(
                "[tokenize] token: expected at most {} bytes, got more, beginning with '{}'",
                longest_token, beginning(rest));
    });
    tokenize(rest, tokens, take);
}

Vocabulary Vocabulary::of(std::string_view text, Tokens tokens, const Options& options) {
    return of(one_piece(text), tokens, options);
}

Vocabulary Vocabulary::of(const TextPieces& text, Tokens tokens, const Options& options) {
    Vocabulary result;
    result.tokens_ = tokens;
    if (tokens == Tokens::bytes) {
        for (int byte = 0; byte < 256; ++byte)
            result.append(byte_token(static_cast<unsigned char>(byte)));
        return result;
    }
    std::unordered_map<std::string, std::int64_t> counts;
    tokenize(text, tokens, [&](std::string_view word) {
        ++counts[std::string(word)];
        if (counts.size() > most_words)
            fail<DataError>("[Vocabulary] text: expected at most {} different tokens, got more",
                            most_words);
    });
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
    for (auto& [count, word] : order) result.append(std::move(word));
    if (options.unknown && !result.contains(unknown)) result.append(std::string(unknown));
    return result;
}

Vocabulary Vocabulary::load(const std::filesystem::path& file, std::string_view path) {
    return naming_file("Vocabulary", file, [&] {
        const auto texts = load_texts(file, path);
        const auto tokens = texts.find(std::string(path) + "tokens");
        const auto words = texts.find(std::string(path) + "words");
        if (tokens == texts.end() || words == texts.end())
            fail<DataError>("[Vocabulary] {}: expected texts {}tokens and {}words, got {}",
                            file.string(), path, path, texts.empty() ? "none" : "others");
        Vocabulary result;
        result.tokens_ = tokens_from_string(tokens->second);
        std::string_view rest = words->second;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            std::string word = unescaped(rest.substr(0, end));
            if (result.contains(word))
                fail<DataError>("[Vocabulary] {}: expected distinct words, got '{}' twice",
                                file.string(), word);
            result.append(std::move(word));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return result;
    });
}

void Vocabulary::append(std::string word) {
    if (words_.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw DataError("[Vocabulary] expected at most 2^31 words, got more");
    ids_.emplace(word, static_cast<std::int32_t>(words_.size()));
    words_.push_back(std::move(word));
}

const std::string& Vocabulary::word(std::int64_t id) const {
    if (id < 0 || id >= size())
        fail<InvalidError>("[Vocabulary] id: expected 0 to {}, got {}", size() - 1, id);
    return words_[static_cast<std::size_t>(id)];
}

std::int32_t Vocabulary::id(std::string_view word) const {
    const auto found = ids_.find(std::string(word));
    if (found != ids_.end()) return found->second;
    const auto other = ids_.find(std::string(unknown));
    if (other != ids_.end()) return other->second;
    fail<InvalidError>("[Vocabulary] word: expected one of its {}, got '{}' (it has no {})", size(),
                       word, unknown);
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
    return encode(one_piece(text));
}

std::vector<std::int32_t> Vocabulary::encode(const TextPieces& text) const {
    std::size_t size = 0;
    tokenize(text, tokens_, [&](std::string_view) {
        if (++size > most_tokens)
            fail<DataError>("[Vocabulary] text: expected at most {} tokens, got more", most_tokens);
    });
    std::vector<std::int32_t> ids;
    tokenize(text, tokens_, [&](std::string_view token) {
        if (ids.empty()) ids.reserve(size);  // here, so that an error can name the file
        ids.push_back(id(token));
    });
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
        } else if (tokens_ == Tokens::bytes) {
            text += static_cast<char>(id);
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
