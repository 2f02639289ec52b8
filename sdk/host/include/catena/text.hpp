// Texts as numbers: texts are cut into tokens, and a vocabulary numbers the tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <catena/visitor.hpp>

namespace catena {

// What a text is cut into.
enum class Tokens : std::uint8_t {
    words,       // runs of letters, digits and apostrophes; every other mark is a token
    spaces,      // runs of anything but white space, as in the files of the Penn Treebank
    characters,  // code points
};
// The names are "words", "spaces" and "characters". tokens_from_string() throws InvalidError for others.
std::string_view to_string(Tokens tokens);
Tokens tokens_from_string(std::string_view name);

// The content of a text file in UTF-8, plain or compressed by gzip; "\r\n" becomes "\n", and a
// byte order mark at its beginning is left out. Throws DataError if it is missing, damaged, not UTF-8,
// or has more than 2^31 bytes, and says where.
std::string read_text(const std::filesystem::path& file);

// Calls its argument with the pieces of a text, in turn. A piece may end anywhere, but not within a
// code point. Each call gives the same text.
using TextPieces = std::function<void(const std::function<void(std::string_view)>& take)>;
// The content that read_text() returns, of any length, in pieces of at most a megabyte. The file is
// read at each call, which throws as read_text().
TextPieces text_pieces(const std::filesystem::path& file);
// The bytes [begin, end) of a text; both places must be between code points. Reads no piece behind
// `end`: to stop, it throws through `text` an object that is no std::exception, which `text` must not
// catch.
TextPieces part_of(TextPieces text, std::uint64_t begin, std::uint64_t end);

// Whether it is UTF-8 (RFC 3629), as names and texts in files have to be.
bool is_utf8(std::string_view text);

// Calls take(token) for each token in turn. The end of a line is the token "<eos>", unless tokens are
// characters. "<unk>" and other names in angle brackets, such as <name>, are one word.
void tokenize(std::string_view text, Tokens tokens,
              const std::function<void(std::string_view)>& take);
// The same for pieces: memory holds one piece and one token at a time. Throws DataError for a token of
// more than 2^24 bytes.
void tokenize(const TextPieces& text, Tokens tokens,
              const std::function<void(std::string_view)>& take);

// The words of a text and their numbers: the most frequent word is first, and words of equal counts are
// in the order of their bytes. Copies share nothing. visit() requires the same vocabulary when a
// snapshot is loaded, else loading throws DataError.
class Vocabulary final : public Visitable {
public:
    static constexpr std::string_view unknown = "<unk>";
    static constexpr std::string_view end_of_line = "<eos>";

    struct Options {
        std::int64_t min_count = 1;  // words that the text has less often are left out
        std::int64_t most = 0;       // only so many, the most frequent ones; 0: all
        // "<unk>" is a word: the last one, if the text does not have it. Without it, encode() and id()
        // throw for a word that the vocabulary does not have.
        bool unknown = true;
    };

    Vocabulary() = default;
    static Vocabulary of(std::string_view text, Tokens tokens, const Options& options);
    static Vocabulary of(std::string_view text, Tokens tokens, std::int64_t min_count = 1,
                         std::int64_t most = 0);
    // The same for pieces. Throws DataError for more than 2^26 different tokens.
    static Vocabulary of(const TextPieces& text, Tokens tokens, const Options& options);
    static Vocabulary of(const TextPieces& text, Tokens tokens, std::int64_t min_count = 1,
                         std::int64_t most = 0);
    // Reads the vocabulary of a snapshot, which was saved under path. Throws DataError if there is none.
    static Vocabulary load(const std::filesystem::path& file,
                           std::string_view path = "vocabulary/");

    Tokens tokens() const noexcept { return tokens_; }
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(words_.size()); }
    // Throws InvalidError unless 0 <= id < size().
    const std::string& word(std::int64_t id) const;
    // The number of a word; for an unknown word that of "<unk>". Throws InvalidError for an unknown word
    // if there is no "<unk>".
    std::int32_t id(std::string_view word) const;
    bool contains(std::string_view word) const { return ids_.contains(std::string(word)); }
    std::int32_t unknown_id() const { return id(unknown); }

    std::vector<std::int32_t> encode(std::string_view text) const;
    // The same for pieces, which are read twice, so that only the result needs memory. Throws DataError
    // for more than 2^28 tokens.
    std::vector<std::int32_t> encode(const TextPieces& text) const;
    // The tokens of a text that encode() replaces by "<unk>", in their order; not "<unk>" itself.
    std::vector<std::string> missing(std::string_view text) const;
    // The text that consists of these tokens, with spaces where people write them.
    std::string decode(std::span<const std::int32_t> ids) const;

    void visit(Visitor& visitor) override;

private:
    void append(std::string word);
    std::string listing() const;

    Tokens tokens_ = Tokens::words;
    std::vector<std::string> words_;
    std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace catena
