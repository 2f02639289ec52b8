// Parts of catena-predict: options, a snapshot's description of its net, timing, a task per net.
#pragma once

#include <catena/catena.hpp>
#include <catena/fail.hpp>
#include <catena/models.hpp>
#include <catena/program.hpp>
#include <catena/sampling_options.hpp>

#include <boost/lexical_cast/try_lexical_convert.hpp>

#include <sstream>

struct Options {
    std::filesystem::path model;
    std::vector<std::filesystem::path> inputs;
    std::int64_t top = 1;
    std::int64_t batch = 32;
    bool latency = false;
    std::filesystem::path labels;
    std::vector<std::string> prompts;
    std::int64_t length = 100;
    catena::SamplingOptions sampling;
};

// Reads a snapshot's description of its net.
class About {
public:
    // Does not open the file. The functions below throw DataError if it is not a snapshot.
    explicit About(std::filesystem::path file) : file_(std::move(file)) {}

    const std::filesystem::path& file() const noexcept { return file_; }
    bool has(const std::string& name) const {
        return catena::load_texts(file_, name).contains(name);
    }
    // Each returns the value of a name such as "about/net". Throws DataError if the name is missing.
    std::string text(const std::string& name) const {
        const auto texts = catena::load_texts(file_, name);
        const auto found = texts.find(name);
        if (found == texts.end()) missing(name);
        return found->second;
    }
    double number(const std::string& name) const {  // stored as text
        double number = 0;
        if (!boost::conversion::try_lexical_convert(text(name), number)) missing(name);
        return number;
    }
    std::int64_t integer(const std::string& name) const {  // 1 to 2^30
        const auto value = catena::load_arrays(file_, catena::cuda::host(), name)[name];
        if (!value || value.dtype() != catena::Dtype::int64 || value.size() != 1) missing(name);
        const auto number = value.item<std::int64_t>();
        constexpr std::int64_t most = std::int64_t{1} << 30;  // larger than any extent of a net
        if (number < 1 || number > most)
            catena::fail<catena::DataError>("[predict] {}: {}: expected 1 to {}, got {}",
                                            file_.string(), name, most, number);
        return number;
    }
    std::vector<std::string> lines(const std::string& name) const {
        std::istringstream all(text(name));
        std::vector<std::string> result;
        for (std::string line; std::getline(all, line);) result.push_back(line);
        return result;
    }

private:
    [[noreturn]] void missing(const std::string& name) const {
        catena::fail<catena::DataError>(
            "[predict] {}: expected a snapshot with {}, got one without", file_.string(), name);
    }

    std::filesystem::path file_;
};

// Measures how long predictions take.
class Timing {
public:
    // Starts measuring now.
    void begin() {
        last_ = Clock::now();
        begun_ = true;
    }
    // Seconds since the last mark, or since begin() or the constructor.
    double since_begin() const {
        return std::chrono::duration<double>(Clock::now() - last_).count();
    }
    // Records the time since the last mark, or since the start, for this number of things.
    void mark(std::int64_t things) {
        const auto now = Clock::now();
        marks_.push_back({std::chrono::duration<double>(now - last_).count(), things});
        last_ = now;
    }
    // "123.4 images/s". Without begin(), ignores the first of several marks, with one-time work.
    std::string rate(const std::string& things) const {
        double seconds = 0;
        std::int64_t count = 0;
        for (const Mark& mark : counted()) {
            seconds += mark.seconds;
            count += mark.things;
        }
        return fmt::format("{:.1f} {}/s", seconds > 0 ? static_cast<double>(count) / seconds : 0,
                           things);
    }
    // "10 images: p50 1.2 ms, ..."
    std::string latency(const std::string& thing) const {
        std::vector<Mark> marks = counted();
        std::ranges::sort(marks, {}, &Mark::seconds);
        const auto at = [&](double share) {
            const auto last = static_cast<double>(marks.size() - 1);
            return marks[static_cast<std::size_t>(share * last + 0.5)].seconds * 1e3;
        };
        return fmt::format("{} {}: p50 {:.3f} ms, p95 {:.3f} ms, p99 {:.3f} ms", marks.size(),
                           thing, at(0.5), at(0.95), at(0.99));
    }

private:
    using Clock = std::chrono::steady_clock;
    struct Mark {
        double seconds;
        std::int64_t things;
    };
    std::vector<Mark> counted() const {
        return {marks_.begin() + (!begun_ && marks_.size() > 1 ? 1 : 0), marks_.end()};
    }

    Clock::time_point last_ = Clock::now();
    bool begun_ = false;
    std::vector<Mark> marks_;
};

// Prints a line to stderr. Errors are ignored, because the results are on stdout.
inline void tell(const std::string& line) { (void)std::fputs((line + "\n").c_str(), stderr); }

// Each prints its results, and throws DataError if the input does not fit the net.
void classify(const catena::Program& program, const Options& options, const About& about,
              catena::Device device);
void continue_text(const catena::Program& program, const Options& options, const About& about,
                   catena::Device device);
void find_nearest(const catena::Program& program, const Options& options, const About& about);
