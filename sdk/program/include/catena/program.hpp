// Program: what the programs on the SDK have in common: options, a log, errors as words and exit codes.
#pragma once

#include <catena/core/device.hpp>
#include <catena/curves.hpp>
#include <catena/interrupt.hpp>
#include <catena/link.hpp>
#include <catena/profile.hpp>
#include <catena/visitor.hpp>

#include <boost/program_options.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

//     int main(int argc, char** argv) {
//         return run_program("my-program", [&] {
//             Program program("my-program", "Does this and that.");
//             std::int64_t steps = 10;
//             program.options().add_options()("steps", program.value(steps), "how many");
//             if (!program.parse(argc, argv)) return 0;
//             program.require_at_least("steps", steps, 1);
//             const using_device scope(program.start());
//             ...
//             program.print("done");
//             return program.finish();
//         });
//     }
//
// While it lives, it handles SIGINT, SIGTERM and SIGHUP (see Interrupt), so make it first. After SIGTERM
// the program has 1.5 s to end its step and to begin to save, after SIGHUP a minute. Then the signal ends
// the process, unless it is writing a snapshot.
class Program {
public:
    // What --help begins with: the program's name, and what it does.
    Program(std::string name, std::string about);
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program();

    // For options of its own, before parse().
    boost::program_options::options_description& options() noexcept { return own_; }
    // The value of an option, and what it is without one: --help says 0.1, as people write it.
    template <class T>
    static boost::program_options::typed_value<T>* value(T& variable) {
        return boost::program_options::value(&variable)->default_value(variable, to_text(variable));
    }
    // For options that come one after the other without names.
    boost::program_options::positional_options_description& positional() noexcept {
        return positional_;
    }
    // Adds --save, --save-every, --resume, --curves, --plot and --graph.
    void add_training_options();
    // Lets --device name several, separated by commas; else it is one.
    void allow_several_devices() noexcept { several_devices_ = true; }

    // False after --help and --version, which print their text. Throws boost::program_options::error
    // for options that cannot be.
    bool parse(int argc, char** argv);
    // Whether the command line has it, whatever it is without one.
    bool given(const char* option) const {
        return values_.count(option) > 0 && !values_[option].defaulted();
    }
    // Throws a boost::program_options::error "--option: expected ..., got ...".
    template <class Got>
    static void require(bool condition, const char* option, const char* expected, const Got& got) {
        if (!condition) refuse(option, expected, to_text(got));
    }
    static void require_at_least(const char* option, std::int64_t value, std::int64_t least);
    static void require_positive(const char* option, double value);  // and finite
    // Options that say nothing without another, or beside it.
    void require_with(const char* option, const char* other) const;
    void require_without(const char* option, const char* other) const;

    // First looks for functions by name, so that a missing plugin shows by what it lacks. Then as the options
    // say: plugins from some folders alone, the same bits for any number of threads, the
    // seed; gives the device, the first of several, with its threads. Throws what a missing device or
    // plugin throws, and DataError if a snapshot could not be saved.
    Device start(std::initializer_list<std::string_view> functions = {});
    const std::vector<Device>& devices() const noexcept { return devices_; }  // from start() on

    std::int64_t seed() const noexcept { return seed_; }
    // Data that come with the programs: share/catena/NAME of where this library is installed.
    static std::filesystem::path shipped(std::string_view name);

    // Training that can be stopped and gone on with. Snapshots are written where --save says, if it does.
    bool resumes() const noexcept { return !resume_.empty(); }
    const std::filesystem::path& resumed_file() const noexcept { return resume_; }
    void resume(Visitable& training) const;                                 // --resume
    void save(const Visitable& training) const;                             // --save
    void save_after_step(std::int64_t t, const Visitable& training) const;  // --save-every
    bool interrupted() const noexcept { return interrupt_.requested(); }
    // For work without a state worth saving: throws Interrupted, which ends run_program() with the exit
    // code that an interrupt asks for.
    void stop_if_interrupted() const;
    // Throws DataError for a loss that is not finite: what was learned is lost, the last snapshot is not.
    static void require_finite(double loss);
    // Saves, and says where it stopped. Returns the exit code.
    int stop(std::string_view where, const Visitable& training) const;
    // At the end of the work: prints --profile and writes --trace. Returns the exit code: 0, or what an
    // interrupt asks for.
    int finish() const;

    // For numbers of each epoch, as --curves and --plot say. A run that goes on goes on with its curves,
    // too: last is the epoch that the snapshot has completed.
    Curves curves(std::vector<std::string> columns, std::int64_t last) const;
    // Saves the graph of a loss as --graph says; parameters bear their names in the link, which has to stay.
    // None without --graph.
    std::function<void(const Variable& loss)> drawing(const Link& link) const;

    // A line to stdout at once, and with the time to --log-file. Throws DataError if it cannot be written.
    void print(std::string_view line) const;

private:
    [[noreturn]] static void refuse(std::string_view option, std::string_view expected,
                                    const std::string& got);
    static std::string to_text(double value);
    static std::string to_text(std::int64_t value) { return std::to_string(value); }
    static std::string to_text(std::uint64_t value) { return std::to_string(value); }
    static std::string to_text(int value) { return std::to_string(value); }
    static std::string to_text(const std::string& value) { return value; }
    static std::string to_text(const std::filesystem::path& value) { return value.string(); }

    void require_options() const;
    std::string usage() const;

    Interrupt interrupt_{std::chrono::milliseconds(1500), std::chrono::minutes(1)};
    std::string name_, about_;
    boost::program_options::options_description own_, training_;
    boost::program_options::positional_options_description positional_;
    boost::program_options::variables_map values_;
    bool trains_ = false;

    bool several_devices_ = false;
    std::string device_;
    std::vector<Device> devices_;
    int threads_ = 0;
    std::vector<std::string> plugins_;
    std::int64_t seed_ = 0;
    bool deterministic_ = false;
    std::filesystem::path save_, resume_, log_file_, trace_, curves_, plot_, graph_;
    bool profiles_ = false;
    std::unique_ptr<Profile> profile_;
    std::int64_t save_every_ = 0;
};

// What Program::stop_if_interrupted() throws.
class Interrupted : public std::runtime_error {
public:
    explicit Interrupted(int exit_code) : std::runtime_error("interrupted"), code(exit_code) {}
    int code;
};

// Runs the body of main() and returns the exit code: what body returns; 2 for wrong options; 1 for all
// other exceptions, and if stdout could not be written. Reasons go to stderr and to --log-file.
int run_program(std::string_view name, const std::function<int()>& body);

}  // namespace catena
