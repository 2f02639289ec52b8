// Program: common parts of command line programs: options, logging, error messages, exit codes.
#pragma once

#include <catena/core/device.hpp>
#include <catena/curves.hpp>
#include <catena/distributed.hpp>
#include <catena/interrupt.hpp>
#include <catena/link.hpp>
#include <catena/profile.hpp>
#include <catena/visitor.hpp>

#include <boost/program_options.hpp>

#include <concepts>
#include <optional>
#include <set>
#include <stdexcept>

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
// While it exists, it handles SIGINT, SIGTERM and SIGHUP (see Interrupt), so create it first. After
// SIGTERM the program has 1.5 s to finish its step and to start saving, after SIGHUP a minute. Then
// the signal ends the process, unless it is writing a snapshot.
class Program {
public:
    // name and about are the first lines of --help.
    Program(std::string name, std::string about);
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    // Add the program's own options here, before parse().
    boost::program_options::options_description& options() noexcept { return own_; }
    // An option with a default; --help shows defaults like 0.1 in short form.
    template <class T>
    static boost::program_options::typed_value<T>* value(T& variable) {
        return boost::program_options::value(&variable)->default_value(variable, to_text(variable));
    }
    // An option that is a path, which may have spaces. NAME appears in --help.
    static boost::program_options::typed_value<std::string>* path(std::filesystem::path& variable,
                                                                  const char* name = "FILE");
    // Marks an option that may differ between the processes of a group, such as a device or a file
    // that only rank 0 writes. start() requires equal values of all others:
    //     ("vectors", program.per_process(Program::path(file)), "write all vectors")
    template <class T>
    boost::program_options::typed_value<T>* per_process(
        boost::program_options::typed_value<T>* value) {
        per_process_.insert(value);
        return value;
    }
    // Positional arguments.
    boost::program_options::positional_options_description& positional() noexcept {
        return positional_;
    }
    // Adds --save, --save-every, --resume, --curves, --plot and --graph, and the options for
    // several processes, beginning with --communicator.
    void add_training_options();
    // Lets --device take several devices, separated by commas.
    void allow_several_devices() noexcept { several_devices_ = true; }

    // Returns false after --help and --version, which print their text. Throws
    // boost::program_options::error for invalid options.
    bool parse(int argc, char** argv);
    // Whether the option is on the command line, independent of its default.
    bool given(const char* option) const {
        return values_.count(option) > 0 && !values_[option].defaulted();
    }
    // Throws boost::program_options::error "--option: expected ..., got ...".
    template <class Got>
    static void require(bool condition, const char* option, const char* expected, const Got& got) {
        if (!condition) refuse(option, expected, to_text(got));
    }
    static void require_at_least(const char* option, std::int64_t value, std::int64_t least);
    using Numbers = std::initializer_list<std::pair<const char*, std::int64_t>>;
    static void require_at_least(std::int64_t least, Numbers options);
    static void require_positive(const char* option, double value);  // and finite
    // For options that require, or exclude, another option.
    void require_with(const char* option, const char* other) const;
    void require_without(const char* option, const char* other) const;

    // First looks up functions by name, so that the error for a missing plugin names the function.
    // Then applies the options: plugin folders, determinism, threads, seed. Returns the device, the
    // first of several. Throws the errors of missing devices and plugins, DataError if a snapshot
    // could not be saved, and boost::program_options::error if processes have different options.
    Device start(std::initializer_list<std::string_view> functions = {});
    const std::vector<Device>& devices() const noexcept { return devices_; }  // after start()

    std::int64_t seed() const noexcept { return seed_; }
    // Data that is installed with the programs: share/catena/NAME next to this library.
    static std::filesystem::path shipped(std::string_view name);

    // The group of --communicator after start(), else of this process alone. An exception that
    // leaves run_program()'s body aborts it, so that the other processes end.
    const distributed::Communicator& communicator() const;
    // Whether this process prints, logs and draws: rank 0 does.
    bool is_first() const { return communicator().rank() == 0; }
    // The options of MultiNodeOptimizer, for `micro_batches` parts of a minibatch of all processes.
    distributed::MultiNodeOptions multi_node_options() const;
    std::int64_t micro_batches() const;

    // Training that can be interrupted and resumed: snapshots in the file of --save, checkpoints in
    // the folder of --checkpoint. All processes call these functions. Values whose names begin with
    // "random" or "score" differ between processes; the others are equal or parts.
    bool resumes() const noexcept { return !resume_.empty(); }
    const std::filesystem::path& resumed_file() const noexcept { return resume_; }
    void resume(Visitable& training);                   // the newest checkpoint, else --resume
    bool resumed() const noexcept { return resumed_; }  // it has loaded something
    void save(std::int64_t t, const Visitable& training) const;
    void save_after_step(std::int64_t t, const Visitable& training) const;  // --save-every
    bool interrupted() const noexcept { return interrupt_.requested(); }
    // For work without state: throws Interrupted, which ends run_program() with the signal's code.
    // Several processes stop together, between steps, so it does nothing there.
    void stop_if_interrupted() const;
    // Throws DataError for a loss that is not finite. The last snapshot is kept.
    static void require_finite(double loss);
    // Saves, and prints where training stopped after step t. Returns the exit code.
    int stop(std::string_view where, std::int64_t t, const Visitable& training) const;
    // Call it last: prints --profile, writes --trace. Returns the exit code, 0 or an interrupt's.
    int finish() const;

    // The results of each epoch, for --curves and --plot. A resumed run continues its curves: last
    // is the last epoch that the snapshot has completed.
    Curves curves(std::vector<std::string> columns, std::int64_t last) const;
    // Returns a function that saves the graph of a loss for --graph, with the parameters' names in
    // the link, which must stay alive. Empty without --graph.
    std::function<void(const Variable& loss)> drawing(const Link& link) const;

    // Prints a line to stdout and, with the time, to --log-file. Throws DataError if writing fails.
    void print(std::string_view line) const;
    // print() in two parts: write() prints any text, log() writes a line to the log. For text that
    // is printed before the line is complete.
    void write(std::string_view text) const;
    void log(std::string_view line) const;

private:
    [[noreturn]] static void refuse(std::string_view option, std::string_view expected,
                                    const std::string& got);
    static std::string to_text(double value);
    static std::string to_text(std::integral auto value) { return std::to_string(value); }
    static std::string to_text(const std::filesystem::path& value) { return value.string(); }

    void require_options() const;
    void require_process_options() const;
    void open_communicator();
    void require_equal_options() const;
    void open_checkpoints();
    void set_threads() const;
    bool has_several() const { return communicator().size() > 1; }
    std::string usage() const;

    Interrupt interrupt_;
    std::string name_, about_;
    boost::program_options::options_description own_, training_, processes_;
    boost::program_options::positional_options_description positional_;
    boost::program_options::options_description common_;
    std::set<const boost::program_options::value_semantic*> per_process_;
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

    std::string communicator_, wire_;
    std::filesystem::path checkpoint_;
    std::optional<distributed::Checkpoints> checkpoints_;
    bool resumed_ = false;
    double timeout_ = 0;
    double bucket_ = 25;  // MiB
    int keep_ = 3;
    bool shard_ = false;
    bool double_buffering_ = false;
    std::int64_t micro_batches_ = 0;  // 0: one for each process
};

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
