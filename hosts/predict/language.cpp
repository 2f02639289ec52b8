// Generates text and finds similar words.
#include "predict.hpp"

using namespace catena;

namespace {

using models::Gpt;
using models::LanguageModel;
using models::Tokenizer;

struct LanguageNet {
    Tokenizer tokens;
    std::variant<LanguageModel, Gpt> model;
    std::vector<std::int32_t> beginning = {};  // tokens before a prompt
    std::vector<std::int32_t> ends = {};       // tokens that end a text

    std::unique_ptr<models::NextToken> next_token() {
        return std::visit([](auto& net) { return net.next_token(); }, model);
    }
    // The text of tokens, without the beginning.
    std::string text_of(std::span<const std::int32_t> text) const {
        return tokens.decode(text.subspan(beginning.size()));
    }
};

// A folder has a model of Hugging Face, a file is a snapshot.
LanguageNet load_net(const Options& options, const About& about, Device device) {
    if (std::filesystem::is_directory(options.model)) {
        LanguageNet net{Tokenizer(models::BytePairEncoding::load(options.model)),
                        models::load_gpt(options.model)};
        std::get<Gpt>(net.model).to(device);
        net.beginning.assign(net.tokens.beginning().begin(), net.tokens.beginning().end());
        net.ends = models::load_end_tokens(options.model);
        if (net.ends.empty()) net.ends = net.tokens.ends();
        return net;
    }
    Tokenizer tokens = Tokenizer::load(about.file());
    const auto make = [&]() -> std::variant<LanguageModel, Gpt> {
        if (about.has("about/config")) return models::make_gpt(about.text("about/config"));
        if (about.text("about/net") == "gpt")
            return Gpt({.words = tokens.size(),
                        .context = about.integer("about/context"),
                        .units = about.integer("about/units"),
                        .layers = about.integer("about/layers"),
                        .heads = about.integer("about/heads"),
                        .kv_heads = about.integer("about/kv_heads"),
                        .layout = models::layout_from_string(about.text("about/layout"))});
        return LanguageModel({.words = tokens.size(),
                              .units = about.integer("about/units"),
                              .layers = about.integer("about/layers"),
                              .cell = models::cell_from_string(about.text("about/cell"))});
    };
    auto model = [&] {
        const initializers::no_random_values loading;
        return make();
    }();
    LanguageNet net{std::move(tokens), std::move(model)};
    net.ends = net.tokens.ends();
    std::visit(
        [&](auto& model) {
            load_snapshot(about.file(), model, "model/");
            model.to(device);
        },
        net.model);
    return net;
}

// Returns the text's length without an incomplete code point at its end.
std::size_t whole_points(std::string_view text) {
    for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
        const auto byte = static_cast<unsigned char>(text[text.size() - n]);
        if ((byte & 0xC0) == 0x80) continue;
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
        return n < length ? text.size() - n : text.size();
    }
    return text.size();
}

// Generates a text token by token, calling show() after each. Returns the seconds until the first.
template <class Show>
double follow(const Program& program, const Options& options, LanguageNet& net,
              std::vector<std::int32_t>& text, Generator generator, Timing& timing,
              const Show& show) {
    Timing first;
    models::TextGenerator generating(net, text);
    timing.begin();
    double seconds = 0;
    for (std::int64_t i = 0; i < options.length; ++i) {
        program.stop_if_interrupted();
        const std::int32_t token = generating.next(options.sampling, generator);
        timing.mark(1);
        if (i == 0) seconds = first.since_begin();
        if (std::ranges::find(net.ends, token) != net.ends.end()) break;
        text.push_back(token);
        show();
    }
    return seconds;
}

// Prints a text while it is generated.
void stream(const Program& program, const Options& options, LanguageNet& net,
            std::vector<std::int32_t>& text, const Generator& generator) {
    std::string rest = net.text_of(text);  // not printed yet
    const auto show = [&] {
        // Whether a space precedes a word depends on the token before it.
        const std::size_t n = std::min<std::size_t>(text.size(), 2);
        const auto last = std::span(text).last(n);
        rest += net.tokens.decode(last).substr(net.tokens.decode(last.first(n - 1)).size());
        const std::size_t whole = whole_points(rest);
        program.output.write(std::string_view(rest).substr(0, whole));
        rest.erase(0, whole);
    };
    program.output.write(std::exchange(rest, ""));
    Timing timing;
    const double first = follow(program, options, net, text, generator, timing, show);
    program.output.write(rest + "\n");
    program.output.log(net.text_of(text));
    tell(fmt::format("first token after {:.1f} ms, {}", first * 1e3, timing.rate("tokens")));
}

}  // namespace

void continue_text(const Program& program, const Options& options, const About& about,
                   Device device) {
    LanguageNet net = load_net(options, about, device);
    std::vector<std::vector<std::int32_t>> texts;
    std::vector<Generator> generators;
    for (const std::string& prompt : options.prompts) {
        for (const std::string& word : net.tokens.missing(prompt))
            tell(fmt::format("note: the vocabulary does not contain '{}' of the prompt", word));
        texts.push_back(net.tokens.encode(prompt));
    }
    if (texts.empty()) texts.emplace_back();  // generate without a prompt
    for (auto& text : texts) text.insert(text.begin(), net.beginning.begin(), net.beginning.end());
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty() && std::holds_alternative<Gpt>(net.model))
            texts[i].push_back(std::max(net.tokens.end(), 0));
        generators.emplace_back(static_cast<std::uint64_t>(program.seed()), i << 32);
    }
    if (texts.size() == 1 && !options.latency)
        return stream(program, options, net, texts[0], generators[0]);
    Timing timing;
    const std::size_t at_once = options.latency ? 1 : static_cast<std::size_t>(options.batch);
    for (std::size_t begin = 0; begin < texts.size(); begin += at_once) {
        const std::size_t n = std::min(at_once, texts.size() - begin);
        if (options.latency) {
            follow(program, options, net, texts[begin], generators[begin], timing, [] {});
        } else {
            const auto own = std::span(texts).subspan(begin, n);
            const auto more = models::continue_texts(
                net, own, options.length, options.sampling, std::span(generators).subspan(begin, n),
                net.ends, [&] { program.stop_if_interrupted(); });
            std::int64_t count = 0;
            for (std::size_t i = 0; i < n; ++i) {
                own[i].insert(own[i].end(), more[i].begin(), more[i].end());
                count += std::ssize(more[i]);
            }
            timing.mark(count);
        }
        for (std::size_t i = begin; i < begin + n; ++i) program.print(net.text_of(texts[i]));
    }
    tell(options.latency ? timing.latency("tokens") : timing.rate("tokens"));
}

void find_nearest(const Program& program, const Options& options, const About& about) {
    const Vocabulary vocabulary = Vocabulary::load(about.file());
    if (options.prompts.empty()) throw DataError("[predict] --prompt: expected a word, got none");
    for (const std::string& word : options.prompts) {
        if (!vocabulary.contains(word))
            fail<DataError>("[predict] --prompt: expected one of the {} words, got '{}'",
                            vocabulary.size(), word);
    }
    const auto arrays = load_arrays(about.file(), {}, "model/embed/W");
    const auto W = arrays.find("model/embed/W");
    if (W == arrays.end() || W->second.ndim() != 2 || W->second.shape()[0] != vocabulary.size())
        fail<DataError>("[predict] {}: expected a vector for each word, got another array",
                        about.file().string());
    for (const std::string& word : options.prompts) {
        std::int64_t shown = 0;
        if (options.prompts.size() > 1) program.print(fmt::format("{}:", word));
        for (const auto& [id, cosine] :
             models::nearest_words(W->second, vocabulary.id(word), options.top + 1)) {
            if (id != vocabulary.unknown_id() && shown++ < options.top)  // it has no trained vector
                program.print(fmt::format("{:.4f}  {}", cosine, vocabulary.word(id)));
        }
    }
}
