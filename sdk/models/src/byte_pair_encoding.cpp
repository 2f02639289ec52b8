// BytePairEncoding: reads the files of tokenizers, splits texts with PCRE2, and merges pairs of tokens.
#define PCRE2_CODE_UNIT_WIDTH 8

#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/models/byte_pair_encoding.hpp>
#include <catena/text.hpp>

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <queue>
#include <sstream>
#include <unordered_map>

#include "parse_json.hpp"

namespace catena::models {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// GPT-2's pattern: words with the space before them, numbers, other marks, and spaces.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

[[noreturn]] void wrong(const fs::path& file, const std::string& what, const std::string& expected,
                        const std::string& got) {
    fail<DataError>("[tokenizer] {}: {}: expected {}, got {}", file.string(), what, expected, got);
}

std::string read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) wrong(file, "file", "one that can be read", "none");
    return {std::istreambuf_iterator<char>(in), {}};
}

// Bytes that are not printable in Latin-1 are stored as the code points from 256 on, in their order.
class StoredBytes {
public:
    StoredBytes() {
        std::uint32_t next = 256;
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            const bool printable =
                (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            bytes_[printable ? byte : next++] = static_cast<char>(byte);
        }
    }
    // Returns the bytes of a stored token, or false if it has other code points.
    bool read(std::string_view stored, std::string& bytes) const {
        for (std::size_t i = 0; i < stored.size(); ++i) {
            const auto first = static_cast<unsigned char>(stored[i]);
            std::uint32_t point = first;
            if (first >= 0xC0 && first < 0xE0 && i + 1 < stored.size())
                point = (first & 0x1Fu) << 6 | (static_cast<unsigned char>(stored[++i]) & 0x3Fu);
            else if (first >= 0x80) return false;
            const auto found = bytes_.find(point);
            if (found == bytes_.end()) return false;
            bytes += found->second;
        }
        return true;
    }

private:
    std::unordered_map<std::uint32_t, char> bytes_;
};

// A regular expression that cuts a text into pieces: its matches, and what lies between them.
class Pattern {
public:
    // The place of the code point before a byte of the text.
    static std::size_t point_before(std::string_view text, std::size_t at) {
        do --at;
        while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
        return at;
    }
    Pattern(const fs::path& file, const std::string& text) {
        int error = 0;
        PCRE2_SIZE at = 0;
        code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
        if (code_ == nullptr) {
            std::array<PCRE2_UCHAR, 256> message{};
            pcre2_get_error_message(error, message.data(), message.size());
            wrong(file, "pre_tokenizer", "a regular expression of PCRE2",
                  fmt::format("'{}', {} at {}", text, reinterpret_cast<const char*>(message.data()),
                              at));
        }
        pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    }
    // Calls take(piece). The text must be UTF-8.
    template <class Take>
    void split(std::string_view text, const Take& take) const {
        const std::unique_ptr<pcre2_match_data, Free> match(
            pcre2_match_data_create_from_pattern(code_.get(), nullptr));
        if (match == nullptr) throw std::bad_alloc();
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        std::size_t done = 0;
        for (std::size_t at = 0; at < text.size();) {
            const int found = pcre2_match(code_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                          match.get(), nullptr);
            if (found == PCRE2_ERROR_NOMATCH) break;
            if (found < 0)
                fail<InvalidError>(
                    "[tokenizer] text: expected one that the pattern can split, got "
                    "error {} of PCRE2 at byte {}",
                    found, at);
            const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match.get());
            if (ends[1] <= at) {  // an empty match
                at = next_point(text, at);
                continue;
            }
            if (ends[0] > done) take(text.substr(done, ends[0] - done));
            take(text.substr(ends[0], ends[1] - ends[0]));
            done = at = ends[1];
        }
        if (done < text.size()) take(text.substr(done));
    }
    // Returns the length of the match that begins at a byte of the text, 0 if there is none.
    std::size_t length_at(std::string_view text, std::size_t at) const {
        const std::unique_ptr<pcre2_match_data, Free> match(
            pcre2_match_data_create_from_pattern(code_.get(), nullptr));
        if (match == nullptr) throw std::bad_alloc();
        const int found =
            pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                        PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, match.get(), nullptr);
        return found > 0 ? pcre2_get_ovector_pointer(match.get())[1] - at : 0;
    }
    // Whether the pattern, of one code point, matches the one before a byte of the text.
    bool matches_before(std::string_view text, std::size_t at) const {
        return at > 0 && length_at(text, point_before(text, at)) > 0;
    }

private:
    struct Free {
        void operator()(pcre2_code* code) const { pcre2_code_free(code); }
        void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    };
    static std::size_t next_point(std::string_view text, std::size_t at) {
        do ++at;
        while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
        return at;
    }
    std::unique_ptr<pcre2_code, Free> code_;
};

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

struct BytePairEncoding::Tables {
    struct Merge {
        std::int32_t rank, result;
    };
    // A token that is found in the text before the text is split.
    struct Added {
        std::string text;
        std::int32_t id;
        bool takes_left, takes_right;  // spaces next to it belong to it
        bool whole_word;               // not beside a letter, number or underscore
    };
    using AddedByByte = std::array<std::vector<Added>, 256>;  // by first byte, the longest first

    fs::path file;
    std::string json;
    std::vector<std::string> tokens;  // bytes by id; ids without a token are empty
    std::unordered_map<std::string, std::int32_t> ids;
    std::array<std::int32_t, 256> of_byte{};  // -1: none
    std::unordered_map<std::uint64_t, Merge> merges;
    // Tokens of the first pass over a text, and of the second ("normalized"), over the rest of it.
    std::array<AddedByByte, 2> added;
    std::vector<std::int32_t> beginning;
    std::vector<Pattern> patterns;
    Pattern space{"", R"(\s)"}, word_point{"", R"(\w)"};
    bool prefix_space = false;
    bool whole_words = false;  // words that are tokens are not split into merges

    void add(std::string bytes, std::int64_t id) {
        constexpr std::int64_t most = std::int64_t{1} << 24;
        if (id < 0 || id >= most)
            wrong(file, "vocab", fmt::format("ids from 0 to {}", most - 1), fmt::format("{}", id));
        const auto place = static_cast<std::size_t>(id);
        if (tokens.size() <= place) tokens.resize(place + 1);
        tokens[place] = bytes;
        ids.insert_or_assign(std::move(bytes), static_cast<std::int32_t>(id));
    }
    void read_vocabulary(const Json& vocabulary) {
        if (!vocabulary.is_object() || vocabulary.empty())
            wrong(file, "vocab", "an object of tokens and ids", "something else");
        const StoredBytes stored;
        for (const auto& [token, id] : vocabulary.items()) {
            std::string bytes;
            if (!id.is_number_integer()) wrong(file, "vocab", "integers as ids", id.dump());
            // The names of special tokens are plain text, not stored bytes.
            add(stored.read(token, bytes) ? bytes : token, id.get<std::int64_t>());
        }
        of_byte.fill(-1);
        for (int byte = 0; byte < 256; ++byte) {
            const auto found = ids.find(std::string(1, static_cast<char>(byte)));
            if (found != ids.end()) of_byte[static_cast<std::size_t>(byte)] = found->second;
        }
    }
    void add_merge(std::string_view left, std::string_view right) {
        const StoredBytes& stored = stored_;
        std::string a, b;
        if (!stored.read(left, a) || !stored.read(right, b))
            wrong(file, "merges", "tokens of bytes", fmt::format("'{} {}'", left, right));
        const auto found_a = ids.find(a), found_b = ids.find(b), result = ids.find(a + b);
        if (found_a == ids.end() || found_b == ids.end() || result == ids.end())
            wrong(file, "merges", "pairs of tokens whose union is a token",
                  fmt::format("'{} {}'", left, right));
        merges.try_emplace(pair_of(found_a->second, found_b->second),
                           Merge{static_cast<std::int32_t>(merges.size()), result->second});
    }
    void read_tokenizer(const Json& json);
    void read_pre_tokenizer(const Json& json);
    void add_pattern(const std::string& text) { patterns.emplace_back(file, text); }
    void read_added_tokens(const Json& tokens);
    void read_post_processor(const Json& json);

    // Finds the added tokens of this pass and of later ones, and encodes the text between them.
    void encode_added(std::string_view text, std::size_t pass,
                      std::vector<std::int32_t>& result) const;
    void encode_word(std::string_view word, std::vector<std::int32_t>& result) const;
    void encode_text(std::string_view text, std::size_t pattern,
                     std::vector<std::int32_t>& result) const {
        if (pattern == patterns.size()) return encode_word(text, result);
        patterns[pattern].split(
            text, [&](std::string_view piece) { encode_text(piece, pattern + 1, result); });
    }

private:
    StoredBytes stored_;
};

// Merges the adjacent pair of the lowest rank, the leftmost first, until there is none.
void BytePairEncoding::Tables::encode_word(std::string_view word,
                                           std::vector<std::int32_t>& result) const {
    if (whole_words) {
        if (const auto found = ids.find(std::string(word)); found != ids.end())
            return result.push_back(found->second);
    }
    struct Part {
        std::int32_t token, before, after;  // neighbours; -1: none. token -1: merged into another
    };
    std::vector<Part> parts;
    const auto n = static_cast<std::int32_t>(word.size());
    for (std::int32_t i = 0; i < n; ++i) {
        const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
        if (of_byte[byte] < 0)
            fail<InvalidError>("[tokenizer] text: expected bytes that are tokens, got 0x{:02x}",
                               byte);
        parts.push_back({of_byte[byte], i - 1, i + 1 < n ? i + 1 : -1});
    }
    struct Candidate {
        std::int32_t rank, at, left,
            right;  // tokens; the candidate is outdated if they have changed
        bool operator>(const Candidate& other) const {
            return std::pair(rank, at) > std::pair(other.rank, other.at);
        }
    };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
    const auto part = [&](std::int32_t i) -> Part& { return parts[static_cast<std::size_t>(i)]; };
    const auto consider = [&](std::int32_t i) {
        if (i < 0 || part(i).after < 0) return;
        const std::int32_t left = part(i).token, right = part(part(i).after).token;
        if (const auto found = merges.find(pair_of(left, right)); found != merges.end())
            candidates.push({found->second.rank, i, left, right});
    };
    for (std::int32_t i = 0; i < n; ++i) consider(i);
    while (!candidates.empty()) {
        const Candidate best = candidates.top();
        candidates.pop();
        Part& left = part(best.at);
        if (left.token != best.left || left.after < 0 || part(left.after).token != best.right)
            continue;
        Part& right = part(left.after);
        left.token = merges.at(pair_of(best.left, best.right)).result;
        right.token = -1;
        left.after = right.after;
        if (left.after >= 0) part(left.after).before = best.at;
        consider(left.before);
        consider(best.at);
    }
    for (std::int32_t i = n > 0 ? 0 : -1; i >= 0; i = part(i).after)
        result.push_back(part(i).token);
}

void BytePairEncoding::Tables::read_pre_tokenizer(const Json& json) {
    const std::string type = json.is_object() ? json.value("type", "") : "none";
    if (type == "Sequence") {
        for (const Json& part : json.at("pretokenizers")) read_pre_tokenizer(part);
    } else if (type == "ByteLevel") {
        prefix_space = prefix_space || json.value("add_prefix_space", false);
        if (json.value("use_regex", true)) add_pattern(gpt2_pattern);
    } else if (type == "Split" && json.value("behavior", "") == "Isolated" &&
               json.contains("pattern") && json.at("pattern").contains("Regex")) {
        add_pattern(json.at("pattern").at("Regex").get<std::string>());
    } else {
        wrong(file, "pre_tokenizer", "ByteLevel, or Split by an isolated Regex", json.dump());
    }
}

void BytePairEncoding::Tables::read_tokenizer(const Json& json) {
    const Json& model = json.at("model");
    if (model.value("type", "BPE") != "BPE" || model.value("byte_fallback", false))
        wrong(file, "model", "BPE on bytes", model.value("type", "BPE") + " of another kind");
    if (const auto normalizer = json.find("normalizer");
        normalizer != json.end() && !normalizer->is_null())
        wrong(file, "normalizer", "none", normalizer->dump());
    whole_words = model.value("ignore_merges", false);
    read_pre_tokenizer(json.contains("pre_tokenizer") ? json.at("pre_tokenizer") : Json());
    read_vocabulary(model.at("vocab"));
    for (const Json& merge : model.at("merges")) {
        if (merge.is_array() && merge.size() == 2) {
            add_merge(merge[0].get<std::string>(), merge[1].get<std::string>());
            continue;
        }
        const auto text = merge.get<std::string>();
        const std::size_t space = text.find(' ');
        add_merge(std::string_view(text).substr(0, space),
                  space == text.npos ? "" : std::string_view(text).substr(space + 1));
    }
    if (json.contains("added_tokens")) read_added_tokens(json.at("added_tokens"));
    if (json.contains("post_processor")) read_post_processor(json.at("post_processor"));
}

void BytePairEncoding::Tables::read_added_tokens(const Json& tokens) {
    for (const Json& token : tokens) {
        const auto text = token.at("content").get<std::string>();
        add(text, token.at("id").get<std::int64_t>());
        if (text.empty()) continue;
        const bool later = token.value("normalized", false);
        added[later ? 1 : 0][static_cast<unsigned char>(text[0])].push_back(
            {text, token.at("id").get<std::int32_t>(), token.value("lstrip", false),
             token.value("rstrip", false), token.value("single_word", false)});
    }
    for (AddedByByte& pass : added)
        for (auto& same_start : pass)
            std::ranges::stable_sort(same_start, std::ranges::greater(),
                                     [](const Added& token) { return token.text.size(); });
}

// Finds the tokens that come before a text.
void BytePairEncoding::Tables::read_post_processor(const Json& json) {
    const std::string type = json.is_object() ? json.value("type", "") : "ByteLevel";
    if (type == "Sequence") {
        for (const Json& part : json.at("processors")) read_post_processor(part);
    } else if (type == "TemplateProcessing") {
        for (const Json& part : json.at("single")) {
            if (!part.contains("SpecialToken")) break;
            const auto name = part.at("SpecialToken").at("id").get<std::string>();
            for (const Json& id : json.at("special_tokens").at(name).at("ids"))
                beginning.push_back(id.get<std::int32_t>());
        }
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
        beginning.push_back(json.at("cls").at(1).get<std::int32_t>());
    } else if (type != "ByteLevel") {
        wrong(file, "post_processor", "ByteLevel, TemplateProcessing or RobertaProcessing",
              json.dump());
    }
    for (const std::int32_t id : beginning)
        if (id < 0 || id >= std::ssize(tokens))
            wrong(file, "post_processor", fmt::format("ids below {}", tokens.size()),
                  fmt::format("{}", id));
}

void BytePairEncoding::Tables::encode_added(std::string_view text, std::size_t pass,
                                            std::vector<std::int32_t>& result) const {
    if (text.empty()) return;
    if (pass == added.size()) {
        const bool prefix = prefix_space && !text.starts_with(' ');
        return encode_text(prefix ? " " + std::string(text) : std::string(text), 0, result);
    }
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto& same_start = added[pass][static_cast<unsigned char>(text[at])];
        const auto token = std::ranges::find_if(
            same_start, [&](const Added& one) { return text.substr(at).starts_with(one.text); });
        if (token == same_start.end()) {
            ++at;
            continue;
        }
        std::size_t begin = at, end = at + token->text.size();
        at = end;
        if (token->whole_word &&
            (word_point.matches_before(text, begin) || word_point.length_at(text, end) > 0))
            continue;
        while (token->takes_left && begin > done && space.matches_before(text, begin))
            begin = Pattern::point_before(text, begin);
        while (const std::size_t more = token->takes_right ? space.length_at(text, end) : 0)
            end += more;
        encode_added(text.substr(done, begin - done), pass + 1, result);
        result.push_back(token->id);
        at = done = end;
    }
    encode_added(text.substr(done), pass + 1, result);
}

namespace {

Json object_of(const fs::path& file, std::string_view text) {
    Json json = parse_json(text);
    if (!json.is_object()) wrong(file, "file", "a JSON object", "something else");
    return json;
}

// GPT-2's files as a tokenizer.json.
std::string joined(const fs::path& folder) {
    constexpr const char* end = "<|endoftext|>";
    const fs::path file = folder / "vocab.json";
    const Json vocabulary = object_of(file, read(file));
    Json merges = Json::array(), special = Json::array();
    std::istringstream lines(read(folder / "merges.txt"));
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (!line.empty() && !line.starts_with("#version")) merges.push_back(line);
    }
    if (const auto id = vocabulary.find(end); id != vocabulary.end())
        special.push_back({{"content", end}, {"id", *id}});
    return Json{{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}},
                {"pre_tokenizer", {{"type", "ByteLevel"}}},
                {"added_tokens", special}}
        .dump();
}

// Applies add_bos_token of tokenizer_config.json, if it is there, to a tokenizer.json.
std::string with_beginning(std::string text, const fs::path& config_file) {
    const Json config = object_of(config_file, read(config_file));
    const auto adds = config.find("add_bos_token");
    if (adds == config.end() || adds->is_null()) return text;
    Json json = object_of(config_file, text);
    json.erase("post_processor");
    if (adds->get<bool>()) {
        const Json& token = config.at("bos_token");
        const auto name = (token.is_object() ? token.at("content") : token).get<std::string>();
        Json id = json.at("model").at("vocab").value(name, Json());
        for (const Json& added : json.value("added_tokens", Json::array()))
            if (added.at("content") == name) id = added.at("id");
        if (id.is_null()) wrong(config_file, "bos_token", "a token of the tokenizer", name);
        json["post_processor"] = {
            {"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", name}}}}, {{"Sequence", {{"id", "A"}}}}}},
            {"special_tokens", {{name, {{"ids", Json::array({id})}}}}}};
    }
    return json.dump();
}

}  // namespace

BytePairEncoding BytePairEncoding::load(const fs::path& path) {
    if (!fs::is_directory(path)) return parse(read(path), path.string());
    const fs::path file = path / "tokenizer.json", config = path / "tokenizer_config.json";
    const std::string name = (fs::exists(file) ? file : path).string();
    std::string text = fs::exists(file) ? read(file) : joined(path);
    try {
        if (fs::exists(config)) text = with_beginning(std::move(text), config);
    } catch (const Json::exception& error) {
        wrong(config, "file", "the configuration of a tokenizer", error.what());
    }
    return parse(text, name);
}

BytePairEncoding BytePairEncoding::parse(std::string_view json, const std::string& name) {
    const auto tables = std::make_shared<Tables>();
    tables->file = name;
    tables->json = json;
    try {
        tables->read_tokenizer(object_of(name, json));
    } catch (const Json::exception& error) {
        wrong(name, "file", "the format of a tokenizer", error.what());
    }
    return BytePairEncoding(tables);
}

const std::string& BytePairEncoding::json() const noexcept { return tables_->json; }

std::int64_t BytePairEncoding::size() const noexcept { return std::ssize(tables_->tokens); }

std::int32_t BytePairEncoding::special_id(std::string_view token) const {
    if (token.empty()) return -1;
    for (const Tables::AddedByByte& pass : tables_->added) {
        const auto& same_start = pass[static_cast<unsigned char>(token[0])];
        const auto found = std::ranges::find(same_start, token, &Tables::Added::text);
        if (found != same_start.end()) return found->id;
    }
    return -1;
}

std::span<const std::int32_t> BytePairEncoding::beginning() const noexcept {
    return tables_->beginning;
}

std::vector<std::int32_t> BytePairEncoding::encode(std::string_view text, bool special) const {
    if (!is_utf8(text)) throw InvalidError("[tokenizer] text: expected UTF-8, got other bytes");
    std::vector<std::int32_t> result;
    tables_->encode_added(text, special ? 0 : tables_->added.size(), result);
    return result;
}

std::string BytePairEncoding::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= size() || tables_->tokens[static_cast<std::size_t>(id)].empty())
            fail<InvalidError>("[tokenizer] id: expected one of {} tokens, got {}", size(), id);
        text += tables_->tokens[static_cast<std::size_t>(id)];
    }
    return text;
}

}  // namespace catena::models
