// BytePairEncoding: reads the files of tokenizers, finds added tokens, and merges pairs of tokens.
// Tokenizer: calls its Vocabulary or BytePairEncoding.
#include <catena/array_file.hpp>
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/models/byte_pair_encoding.hpp>
#include <catena/models/tokenizer.hpp>
#include <catena/read_file.hpp>

#include <bitset>
#include <queue>
#include <sstream>

#include "tokenizer_text.hpp"

namespace catena::models {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string read(const fs::path& file) {
    return read_regular("tokenizer", file, "a tokenizer.json, vocab.json or merges.txt");
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

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

// Returns the id of a JSON value. Other values would become other ids by a conversion.
std::int32_t id_of(const fs::path& file, const char* what, const Json& json) {
    constexpr std::int64_t most = std::int64_t{1} << 24;
    if (!json.is_number_integer()) bad_tokenizer(file, what, "integers as ids", json.dump());
    // A number from 2^63 on is unsigned.
    if (json < 0 || json >= most)
        bad_tokenizer(file, what, fmt::format("ids from 0 to {}", most - 1), json.dump());
    return json.get<std::int32_t>();
}

// A token that is found in a text before the text is split.
struct AddedToken {
    std::string text;
    std::int32_t id;
    bool takes_left, takes_right;  // spaces next to it belong to it
    bool whole_word;               // not beside a letter, number or underscore
};

class AddedTokens {
public:
    void add(AddedToken token) { tokens_.push_back(std::move(token)); }
    // Call it after the last add(). Of tokens with one text, the first counts.
    void sort() {
        std::ranges::stable_sort(tokens_, {}, &AddedToken::text);
        const auto repeated = std::ranges::unique(tokens_, {}, &AddedToken::text);
        tokens_.erase(repeated.begin(), repeated.end());
        for (const AddedToken& token : tokens_) begins_.set(byte_of(token.text, 0));
    }
    // The longest token that the text begins with, or nullptr.
    const AddedToken* at_begin_of(std::string_view text) const {
        if (text.empty() || !begins_[byte_of(text, 0)]) return nullptr;
        const AddedToken* longest = nullptr;
        std::ranges::subrange range(tokens_);  // the tokens that begin with the first n bytes
        for (std::size_t n = 0; n < text.size() && !range.empty(); ++n) {
            range = std::ranges::equal_range(
                range, static_cast<int>(byte_of(text, n)), {}, [n](const AddedToken& token) {
                    return n < token.text.size() ? static_cast<int>(byte_of(token.text, n)) : -1;
                });
            if (!range.empty() && range.front().text.size() == n + 1) longest = &range.front();
        }
        return longest;
    }
    const AddedToken* find(std::string_view text) const {
        const auto found = std::ranges::lower_bound(tokens_, text, {}, &AddedToken::text);
        return found != tokens_.end() && found->text == text ? &*found : nullptr;
    }

private:
    static unsigned char byte_of(std::string_view text, std::size_t at) {
        return static_cast<unsigned char>(text[at]);
    }

    std::vector<AddedToken> tokens_;
    std::bitset<256> begins_;  // first bytes
};

}  // namespace

struct BytePairEncoding::Tables {
    struct Merge {
        std::int32_t rank, result;
    };

    fs::path file;
    std::string json;
    std::vector<std::string> tokens;  // bytes by id; ids without a token are empty
    std::unordered_map<std::string, std::int32_t> ids;  // of the vocabulary, without added tokens
    std::array<std::int32_t, 256> of_byte{};            // -1: none
    std::int32_t unknown = -1;   // the token of bytes that have none; -1: they are dropped
    bool joins_unknown = false;  // one for adjacent unknown bytes
    std::unordered_map<std::uint64_t, Merge> merges;
    // Tokens of the first pass over a text, and of the second, over the rest of it, normalized.
    std::array<AddedTokens, 2> added;
    std::vector<std::int32_t> beginning;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    Pattern space{"", "\\s"};
    Pattern word_point{"", fmt::format("[{}{}]", word_class, joiners)};
    bool whole_words = false;  // words that are tokens are not split into merges

    void add(const std::string& bytes, std::int32_t id) {
        const auto place = static_cast<std::size_t>(id);
        if (tokens.size() <= place) tokens.resize(place + 1);
        tokens[place] = bytes;
    }
    void read_vocabulary(const Json& vocabulary) {
        if (!vocabulary.is_object() || vocabulary.empty())
            bad_tokenizer(file, "vocab", "an object of tokens and ids", "something else");
        for (const auto& [token, value] : vocabulary.items()) {
            std::string bytes;
            // The names of special tokens are plain text, not stored bytes.
            if (!stored_.read(token, bytes)) bytes = token;
            const std::int32_t id = id_of(file, "vocab", value);
            add(bytes, id);
            ids.insert_or_assign(std::move(bytes), id);
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
            bad_tokenizer(file, "merges", "tokens of bytes", fmt::format("'{} {}'", left, right));
        const auto found_a = ids.find(a), found_b = ids.find(b), result = ids.find(a + b);
        if (found_a == ids.end() || found_b == ids.end() || result == ids.end())
            bad_tokenizer(file, "merges", "pairs of tokens whose union is a token",
                          fmt::format("'{} {}'", left, right));
        merges.try_emplace(pair_of(found_a->second, found_b->second),
                           Merge{static_cast<std::int32_t>(merges.size()), result->second});
    }
    void read_tokenizer(const Json& json) {
        read_model(json.at("model"));
        normalizer = Normalizer(file, json.value("normalizer", Json()));
        pre_tokenizer = PreTokenizer(file, json.value("pre_tokenizer", Json()));
        if (json.contains("added_tokens")) read_added_tokens(json.at("added_tokens"));
        if (json.contains("post_processor")) read_post_processor(json.at("post_processor"));
    }
    void read_model(const Json& model) {
        if (model.value("type", "BPE") != "BPE" || model.value("byte_fallback", false))
            bad_tokenizer(file, "model", "BPE on bytes",
                          model.value("type", "BPE") + " of another kind");
        for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
            if (const Json value = model.value(name, Json());
                !value.is_null() && value != "" && value != 0)
                bad_tokenizer(file, name, "none", value.dump());
        whole_words = model.value("ignore_merges", false);
        read_vocabulary(model.at("vocab"));
        if (const Json token = model.value("unk_token", Json()); !token.is_null()) {
            unknown =
                id_of(file, "unk_token", model.at("vocab").value(token.get<std::string>(), Json()));
            joins_unknown = model.value("fuse_unk", false);
        }
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
    }
    void read_added_tokens(const Json& list) {
        for (const Json& token : list) {
            const bool later = token.value("normalized", false);
            const auto content = token.at("content").get<std::string>();
            const std::string text = later ? normalizer(content) : content;
            const std::int32_t id = id_of(file, "added_tokens", token.at("id"));
            add(text, id);
            if (!text.empty())
                added[later ? 1 : 0].add({text, id, token.value("lstrip", false),
                                          token.value("rstrip", false),
                                          token.value("single_word", false)});
        }
        for (AddedTokens& pass : added) pass.sort();
    }
    // Finds the tokens that come before a text.
    void read_post_processor(const Json& json) {
        const std::string type = json.is_object() ? json.value("type", "") : "ByteLevel";
        std::vector<std::int32_t> before;
        if (type == "Sequence") {
            for (const Json& part : json.at("processors")) read_post_processor(part);
        } else if (type == "TemplateProcessing") {
            for (const Json& part : json.at("single")) {
                if (!part.contains("SpecialToken")) break;
                const auto name = part.at("SpecialToken").at("id").get<std::string>();
                for (const Json& id : json.at("special_tokens").at(name).at("ids"))
                    before.push_back(id_of(file, "post_processor", id));
            }
        } else if (type == "RobertaProcessing" || type == "BertProcessing") {
            before.push_back(id_of(file, "post_processor", json.at("cls").at(1)));
        } else if (type != "ByteLevel") {
            bad_tokenizer(file, "post_processor",
                          "ByteLevel, TemplateProcessing or RobertaProcessing", json.dump());
        }
        beginning.insert(beginning.begin(), before.begin(), before.end());
        for (const std::int32_t id : before)
            if (id >= std::ssize(tokens))
                bad_tokenizer(file, "post_processor", fmt::format("ids below {}", tokens.size()),
                              fmt::format("{}", id));
    }

    // Finds the added tokens of this pass and of later ones, and encodes the text between them.
    void encode_added(std::string_view text, std::size_t pass,
                      std::vector<std::int32_t>& result) const {
        if (text.empty()) return;
        if (pass == added.size())
            return pre_tokenizer.split(text,
                                       [&](std::string_view word) { encode_word(word, result); });
        std::string normal;
        if (pass == 1 && !normalizer.changes_nothing())
            text = normal = normalizer(std::string(text));
        std::size_t done = 0;
        for (std::size_t at = 0; at < text.size();) {
            const AddedToken* const token = added[pass].at_begin_of(text.substr(at));
            if (token == nullptr) {
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
    // Merges the adjacent pair of the lowest rank, the leftmost first, until there is none.
    void encode_word(std::string_view word, std::vector<std::int32_t>& result) const {
        if (whole_words) {
            if (const auto found = ids.find(std::string(word)); found != ids.end())
                return result.push_back(found->second);
        }
        struct Part {
            std::int32_t token;          // -1: merged into another
            std::int32_t before, after;  // neighbours; -1: none
        };
        std::vector<Part> parts;
        bool after_unknown = false;
        for (const char c : word) {
            const std::int32_t known = of_byte[static_cast<unsigned char>(c)];
            const bool joins = known < 0 && after_unknown && joins_unknown;
            after_unknown = known < 0;
            const std::int32_t token = known < 0 ? unknown : known;
            if (token < 0 || joins) continue;
            const auto i = static_cast<std::int32_t>(parts.size());
            parts.push_back({token, i - 1, i + 1});
        }
        if (parts.empty()) return;
        parts.back().after = -1;
        const auto n = static_cast<std::int32_t>(parts.size());
        struct Candidate {
            std::int32_t rank, at;
            std::int32_t left, right;  // tokens; it is outdated if they have changed
            bool operator>(const Candidate& other) const {
                return std::pair(rank, at) > std::pair(other.rank, other.at);
            }
        };
        std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
        const auto part = [&](std::int32_t i) -> Part& {
            return parts[static_cast<std::size_t>(i)];
        };
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
        for (std::int32_t i = 0; i >= 0; i = part(i).after) result.push_back(part(i).token);
    }

private:
    StoredBytes stored_;
};

namespace {

Json object_of(const fs::path& file, std::string_view text) {
    Json json = parse_json(text);
    if (!json.is_object()) bad_tokenizer(file, "file", "a JSON object", "something else");
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
        if (id.is_null()) bad_tokenizer(config_file, "bos_token", "a token of the tokenizer", name);
        json["post_processor"] = {
            {"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", name}}}}, {{"Sequence", {{"id", "A"}}}}}},
            {"special_tokens", {{name, {{"ids", Json::array({id})}}}}}};
    }
    return json.dump();
}

}  // namespace

BytePairEncoding BytePairEncoding::load(const fs::path& path) {
    if (!fs::is_directory(path)) {
        const std::string text = read(path), kind = file_kind(path);
        if (!text.starts_with('{') && !kind.empty() && kind != "a text")
            bad_tokenizer(path, "file", "a JSON object", kind);
        return parse(text, path.string());
    }
    const fs::path file = path / "tokenizer.json", config = path / "tokenizer_config.json";
    const std::string name = (fs::exists(file) ? file : path).string();
    std::string text = fs::exists(file) ? read(file) : joined(path);
    try {
        if (fs::exists(config)) text = with_beginning(std::move(text), config);
    } catch (const Json::exception& error) {
        bad_tokenizer(config, "file", "the configuration of a tokenizer", error.what());
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
        bad_tokenizer(name, "file", "the format of a tokenizer", error.what());
    }
    return BytePairEncoding(tables);
}

const std::string& BytePairEncoding::json() const noexcept { return tables_->json; }

std::int64_t BytePairEncoding::size() const noexcept { return std::ssize(tables_->tokens); }

std::int32_t BytePairEncoding::special_id(std::string_view token) const {
    for (const AddedTokens& pass : tables_->added)
        if (const AddedToken* const found = pass.find(token)) return found->id;
    return -1;
}

std::span<const std::int32_t> BytePairEncoding::beginning() const noexcept {
    return tables_->beginning;
}

std::vector<std::int32_t> BytePairEncoding::encode(std::string_view text, bool special) const {
    if (!is_utf8(text)) throw InvalidError("[tokenizer] text: expected UTF-8, got other bytes");
    std::vector<std::int32_t> result;
    if (special) tables_->encode_added(text, 0, result);
    else
        tables_->encode_added(tables_->normalizer(std::string(text)), tables_->added.size(),
                              result);
    return result;
}

std::string BytePairEncoding::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (id < 0) fail<InvalidError>("[tokenizer] id: expected 0 or more, got {}", id);
        if (id < size()) text += tables_->tokens[static_cast<std::size_t>(id)];
    }
    return text;
}

// ---- Tokenizer

Tokenizer Tokenizer::load(const std::filesystem::path& file, std::string_view path) {
    const std::string name = std::string(path) + "tokenizer";
    const auto texts = load_texts(file, path);
    if (const auto found = texts.find(name); found != texts.end())
        return Tokenizer(BytePairEncoding::parse(found->second, file.string() + ": " + name));
    return Tokenizer(Vocabulary::load(file, path));
}

std::int64_t Tokenizer::size() const noexcept {
    return std::visit([](const auto& tokens) { return tokens.size(); }, tokens_);
}

std::string_view Tokenizer::unit() const noexcept {
    if (vocabulary() == nullptr) return "tokens";
    const Tokens tokens = vocabulary()->tokens();
    return tokens == Tokens::spaces ? "words" : to_string(tokens);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
    return std::visit([&](const auto& tokens) { return tokens.encode(text); }, tokens_);
}

std::vector<std::int32_t> Tokenizer::encode(const TextPieces& text) const {
    if (vocabulary() != nullptr) return vocabulary()->encode(text);
    std::string all;
    text([&](std::string_view piece) { all += piece; });
    return encode(all);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
    return std::visit([&](const auto& tokens) { return tokens.decode(ids); }, tokens_);
}

std::vector<std::string> Tokenizer::missing(std::string_view text) const {
    return vocabulary() != nullptr ? vocabulary()->missing(text) : std::vector<std::string>();
}

std::span<const std::int32_t> Tokenizer::beginning() const noexcept {
    const auto* encoding = std::get_if<BytePairEncoding>(&tokens_);
    return encoding != nullptr ? encoding->beginning() : std::span<const std::int32_t>();
}

std::vector<std::int32_t> Tokenizer::ends() const {
    if (vocabulary() != nullptr || end() < 0) return {};
    return {end()};
}

std::int32_t Tokenizer::end() const {
    if (vocabulary() == nullptr) {
        const auto& encoding = std::get<BytePairEncoding>(tokens_);
        const std::int32_t id = encoding.special_id("<|endoftext|>");
        return id >= 0 ? id : encoding.special_id("<|end_of_text|>");
    }
    for (const std::string_view token :
         {std::string_view("\n"), std::string_view("<0x0a>"), Vocabulary::end_of_line})
        if (vocabulary()->contains(token)) return vocabulary()->id(token);
    return -1;
}

void Tokenizer::visit(Visitor& visitor) {
    if (auto* words = std::get_if<Vocabulary>(&tokens_)) words->visit(visitor);
    else visitor.require("tokenizer", std::get<BytePairEncoding>(tokens_).json());
}

}  // namespace catena::models
