// Program: common parts of command line programs: options, logging, error messages, exit codes.
#pragma once

#include <catena/interrupt.hpp>
#include <catena/profile.hpp>
#include <catena/program/training.hpp>

#include <stdexcept>

namespace catena {

// Lines on stdout and in the log. Only rank 0 writes. Throws DataError if writing fails.
class Output {
public:
    explicit Output(const Processes& processes) : processes_(processes) {}

    // Prints a line to stdout and, with the time, to --log-file.
    void print(std::string_view line) const;
    // print() in two parts: write() prints any text, log() writes a line to the log. For text that
    // is printed before the line is complete.
    void write(std::string_view text) const;
    void log(std::string_view line) const;

private:
    friend class Program;
    void open_log() const;

    const Processes& processes_;
    std::filesystem::path log_file_;
};

//     int main(int argc, char** argv) {
//         return run_program("my-program", [&] {
//             Program program("my-program", "Does this and that.");
//             std::int64_t steps = 10;
//             ProgramOptions& options = program.options;
//             options.add_options()("steps", options.value(steps), "how many");
//             if (!program.parse(argc, argv)) return 0;
//             options.require_at_least("steps", steps, 1);
//             const using_device scope(program.start());
//             ...
//             program.print("done");
//             return program.finish();
//         });
//     }
//
// While it exists, it handles SIGINT, SIGTERM and SIGHUP (see Interrupt), so create it first. After
// SIGTERM the program has 1.5 s to finish its step and to start saving, after SIGHUP a minute. Then
// the signal ends the process, unless it is writing a snapshot.
class Program {
public:
    // name and about are the first lines of --help.
    Program(std::string name, std::string about);
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    ProgramOptions options;
    Processes processes;
    Snapshots snapshots{processes};
    TrainingReports reports{processes, snapshots};
    Output output{processes};

    // Adds the options of snapshots, reports and processes, before parse().
    void add_training_options();
    // Lets --device take several devices, separated by commas.
    void allow_several_devices() noexcept { several_devices_ = true; }

    // Returns false after --help and --version, which print their text. Throws
    // boost::program_options::error for invalid options.
    bool parse(int argc, char** argv);
    // First looks up functions by name, so that the error for a missing plugin names the function.
    // Then applies the options: plugin folders, determinism, threads, seed. Returns the device, the
    // first of several. Throws the errors of missing devices and plugins, DataError if a snapshot
    // could not be saved, and boost::program_options::error if processes have different options.
    Device start(std::initializer_list<std::string_view> functions = {});
    const std::vector<Device>& devices() const noexcept { return devices_; }  // after start()
    std::int64_t seed() const noexcept { return seed_; }

    void print(std::string_view line) const { output.print(line); }
    bool interrupted() const noexcept { return interrupt_.requested(); }
    // For work without state: throws Interrupted, which ends run_program() with the signal's code.
    // Several processes stop together, between steps, so it does nothing there.
    void stop_if_interrupted() const;
    // Saves, and prints where training stopped after step t. Returns the exit code.
    int stop(std::string_view where, std::int64_t t, const Visitable& training) const;
    // Call it last: prints --profile, writes --trace. Returns the exit code, 0 or an interrupt's.
    int finish() const;

private:
    Interrupt interrupt_;
    bool trains_ = false;
    bool several_devices_ = false;
    std::string device_;
    std::vector<Device> devices_;
    int threads_ = 0;
    std::vector<std::string> plugins_;
    std::int64_t seed_ = 0;
    bool deterministic_ = false;
    std::filesystem::path trace_;
    bool profiles_ = false;
    std::unique_ptr<Profile> profile_;
};

// Data that is installed with the programs: share/catena/NAME next to this library.
std::filesystem::path shipped(std::string_view name);

// Thrown by Program::stop_if_interrupted().
class Interrupted : public std::runtime_error {
public:
    explicit Interrupted(int exit_code) : std::runtime_error("interrupted"), code(exit_code) {}
    int code;
};

// Runs the body of main() and returns the exit code: the result of body; 2 for invalid options; 1
// for other exceptions, and if stdout cannot be written. Messages go to stderr and --log-file.
int run_program(std::string_view name, const std::function<int()>& body);

}  // namespace catena
