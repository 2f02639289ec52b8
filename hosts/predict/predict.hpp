// Parts of catena-predict: options, a snapshot's description of its net, timing, a task per net.
#pragma once

#include <catena/catena.hpp>
#include <catena/models.hpp>
#include <catena/program.hpp>
#include <catena/sampling_options.hpp>

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
    std::string text(const std::string& name) const;
    double number(const std::string& name) const;         // stored as text
    std::int64_t integer(const std::string& name) const;  // 1 to 2^30
    std::vector<std::string> lines(const std::string& name) const;

private:
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
    void mark(std::int64_t things);
    // Without begin(), the first of several marks is ignored, because it includes one-time work.
    std::string rate(const std::string& things) const;    // "123.4 images/s"
    std::string latency(const std::string& thing) const;  // "10 images: p50 1.2 ms, ..."

private:
    using Clock = std::chrono::steady_clock;
    struct Mark {
        double seconds;
        std::int64_t things;
    };
    std::vector<Mark> counted() const;

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
