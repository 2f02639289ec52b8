// Texts as numbers: a text is split into tokens, and a vocabulary numbers the tokens.
#pragma once

#include <filesystem>
#include <unordered_map>

#include <catena/visitor.hpp>

namespace catena {

// How a text is split into tokens.
enum class Tokens : std::uint8_t {
    words,       // runs of letters, digits and apostrophes; other marks are tokens
    spaces,      // split at white space, as in the files of the Penn Treebank
    characters,  // code points
    bytes,       // of UTF-8; the token of byte 0x0a is "<0x0a>"
};
// "words", "spaces", "characters", "bytes". tokens_from_string() throws InvalidError for others.
std::string_view to_string(Tokens tokens);
Tokens tokens_from_string(std::string_view name);

// Reads a UTF-8 text file, plain or compressed with gzip. "\r\n" becomes "\n", and a byte order
// mark at the start is removed. Throws DataError with the position if the file is missing, damaged,
// not UTF-8, or has more than 2^31 bytes.
std::string read_text(const std::filesystem::path& file);

// Calls its argument with consecutive pieces of a text. A piece may end anywhere except within a
// code point. Each call gives the same text.
using TextPieces = std::function<void(const std::function<void(std::string_view)>& take)>;
// The content that read_text() returns, of any length, in pieces of at most a megabyte. Each call
// reads the file, and throws the errors of read_text().
TextPieces text_pieces(const std::filesystem::path& file);
// The bytes [begin, end) of a text, both between code points. Reads no piece after `end`: to stop,
// it throws an object that is not a std::exception through `text`, which must not catch it.
TextPieces part_of(TextPieces text, std::uint64_t begin, std::uint64_t end);

// Whether the text is valid UTF-8 (RFC 3629), as names and texts in files must be.
bool is_utf8(std::string_view text);

// Calls take(token) for each token in order. The end of a line is the token "<eos>", unless tokens
// are characters or bytes. "<unk>" and other names in angle brackets, such as <name>, are one word.
void tokenize(std::string_view text, Tokens tokens,
              const std::function<void(std::string_view)>& take);
// The same for pieces, one in memory at a time. Throws DataError for a token over 2^24 bytes.
void tokenize(const TextPieces& text, Tokens tokens,
              const std::function<void(std::string_view)>& take);

// The words of a text and their numbers. The most frequent word comes first; words of equal counts
// are in the order of their bytes. Loading a snapshot of another vocabulary throws DataError.
class Vocabulary final : public Visitable {
public:
    static constexpr std::string_view unknown = "<unk>";
    static constexpr std::string_view end_of_line = "<eos>";

    struct Options {
        std::int64_t min_count = 1;  // skip words that are rarer than this
        std::int64_t most = 0;       // keep only this many of the most frequent words; 0: all
        // Adds "<unk>" last if it is missing. Without it, encode() and id() throw for other words.
        bool unknown = true;
    };

    Vocabulary() = default;
    // Makes the vocabulary of a text. That of bytes has all 256 in their order, whatever the text
    // and the options. Throws DataError for more than 2^26 different tokens.
    static Vocabulary of(const TextPieces& text, Tokens tokens, const Options& options);
    static Vocabulary of(std::string_view text, Tokens tokens, const Options& options);
    template <class Text>
    static Vocabulary of(const Text& text, Tokens tokens, std::int64_t min_count = 1,
                         std::int64_t most = 0) {
        return of(text, tokens, Options{.min_count = min_count, .most = most});
    }
    // Loads the vocabulary of a snapshot, saved under path. Throws DataError if there is none.
    static Vocabulary load(const std::filesystem::path& file,
                           std::string_view path = "vocabulary/");

    Tokens tokens() const noexcept { return tokens_; }
    std::int64_t size() const noexcept { return static_cast<std::int64_t>(words_.size()); }
    // Throws InvalidError unless 0 <= id < size().
    const std::string& word(std::int64_t id) const;
    // A word's number. An unknown word has that of "<unk>"; without "<unk>" it throws InvalidError.
    std::int32_t id(std::string_view word) const;
    bool contains(std::string_view word) const { return ids_.contains(std::string(word)); }
    std::int32_t unknown_id() const { return id(unknown); }

    std::vector<std::int32_t> encode(std::string_view text) const;
    // The same for pieces, which are read twice. Throws DataError for more than 2^28 tokens.
    std::vector<std::int32_t> encode(const TextPieces& text) const;
    // The tokens of a text that encode() replaces by "<unk>", in order, without "<unk>" itself.
    std::vector<std::string> missing(std::string_view text) const;
    // The text of these tokens, with spaces as in normal writing. Bytes may be incomplete UTF-8.
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
