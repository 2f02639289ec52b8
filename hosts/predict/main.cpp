// catena-predict: runs trained nets. Parses options, reads snapshots' descriptions, measures time.
#include "predict.hpp"

#include <catena/fail.hpp>

#include <boost/lexical_cast/try_lexical_convert.hpp>

#include <sstream>

using namespace catena;
namespace po = boost::program_options;

namespace {

bool parse_options(Program& program, int argc, char** argv, Options& o) {
    std::vector<std::string> inputs;
    ProgramOptions& options = program.options;
    // clang-format off
    options.add_options()
        ("model", options.path(o.model, "PATH"),
         "a snapshot of a training program; or a folder with a GPT-2 or Llama from Hugging Face: "
         "config.json, model.safetensors and the tokenizer")
        ("input", po::value(&inputs)->value_name("FILE"),
         "for image nets: PNG or JPEG files, folders of them, or, for digits, an IDX file; --input may be "
         "omitted")
        ("top", options.value(o.top), "print this many classes or similar words per input")
        ("batch", options.value(o.batch), "images or texts per batch")
        ("latency", po::bool_switch(&o.latency),
         "run one input at a time and print the latency without the first: p50, p95 and p99")
        ("labels", options.path(o.labels),
         "IDX labels of an IDX file: print the accuracy instead of classes")
        ("prompt", po::value(&o.prompts)->value_name("TEXT"),
         "for language models: the beginning of the text; for word vectors: a word; may be repeated")
        ("length", options.value(o.length), "number of tokens to generate, unless the text ends before");
    // clang-format on
    o.sampling.add_to(options);
    options.positional().add("input", -1);
    if (!program.parse(argc, argv)) return false;
    o.inputs.assign(inputs.begin(), inputs.end());
    if (o.model.empty()) throw po::error("--model: expected a snapshot, got none");
    options.require_at_least(1, {{"top", o.top}, {"batch", o.batch}, {"length", o.length}});
    o.sampling.check(options);
    options.require_without("latency", "batch");
    return true;
}

// Throws an error for options that do not apply to this kind of net.
void require_fitting(const ProgramOptions& options, bool images) {
    const std::string image_net = "one for images", word_net = "one for words";
    for (const char* option : {"input", "labels"})
        options.require(images || !options.given(option), option, "a net for images", word_net);
    for (const char* option : {"prompt", "length", "temperature", "top-k", "top-p"})
        options.require(!images || !options.given(option), option, "a net for words", image_net);
}

[[noreturn]] void missing(const About& about, const std::string& name) {
    fail<DataError>("[predict] {}: expected a snapshot with {}, got one without",
                    about.file().string(), name);
}

}  // namespace

std::string About::text(const std::string& name) const {
    const auto texts = load_texts(file_, name);
    const auto found = texts.find(name);
    if (found == texts.end()) missing(*this, name);
    return found->second;
}

double About::number(const std::string& name) const {
    double number = 0;
    if (!boost::conversion::try_lexical_convert(text(name), number)) missing(*this, name);
    return number;
}

std::int64_t About::integer(const std::string& name) const {
    const Array value = load_arrays(file_, cuda::host(), name)[name];
    if (!value || value.dtype() != Dtype::int64 || value.size() != 1) missing(*this, name);
    const auto number = value.item<std::int64_t>();
    constexpr std::int64_t most = std::int64_t{1} << 30;  // larger than any extent of a net
    if (number < 1 || number > most)
        fail<DataError>("[predict] {}: {}: expected 1 to {}, got {}", file_.string(), name, most,
                        number);
    return number;
}

std::vector<std::string> About::lines(const std::string& name) const {
    std::istringstream all(text(name));
    std::vector<std::string> result;
    for (std::string line; std::getline(all, line);) result.push_back(line);
    return result;
}

void Timing::mark(std::int64_t things) {
    const auto now = Clock::now();
    marks_.push_back({std::chrono::duration<double>(now - last_).count(), things});
    last_ = now;
}

std::vector<Timing::Mark> Timing::counted() const {
    return {marks_.begin() + (!begun_ && marks_.size() > 1 ? 1 : 0), marks_.end()};
}

std::string Timing::rate(const std::string& things) const {
    double seconds = 0;
    std::int64_t count = 0;
    for (const Mark& mark : counted()) {
        seconds += mark.seconds;
        count += mark.things;
    }
    return fmt::format("{:.1f} {}/s", seconds > 0 ? static_cast<double>(count) / seconds : 0,
                       things);
}

std::string Timing::latency(const std::string& thing) const {
    std::vector<Mark> marks = counted();
    std::ranges::sort(marks, {}, &Mark::seconds);
    const auto at = [&](double share) {
        const auto last = static_cast<double>(marks.size() - 1);
        return marks[static_cast<std::size_t>(share * last + 0.5)].seconds * 1e3;
    };
    return fmt::format("{} {}: p50 {:.3f} ms, p95 {:.3f} ms, p99 {:.3f} ms", marks.size(), thing,
                       at(0.5), at(0.95), at(0.99));
}

int main(int argc, char** argv) {
    return run_program("catena-predict", [&] {
        Program program(
            "catena-predict",
            "Classifies images, generates text or finds similar words with a net from a "
            "snapshot.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const About about(options.model);
        const std::string net =
            std::filesystem::is_directory(options.model) ? "gpt" : about.text("about/net");
        const bool language = net == "language model" || net == "gpt";
        const bool images = !language && net != "word vectors";
        require_fitting(program.options, images);
        if (images) classify(program, options, about, device);
        else if (language) continue_text(program, options, about, device);
        else find_nearest(program, options, about);
        return program.finish();
    });
}
