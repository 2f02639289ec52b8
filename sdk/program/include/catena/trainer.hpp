// Trainer: the loop over epochs of programs that train.
#pragma once

#include <catena/operators.hpp>
#include <catena/optimizer_options.hpp>
#include <catena/program.hpp>

namespace catena {

// Throws DataError for a loss that is not finite. The last snapshot is kept.
void require_finite(double loss);

// Base class of what a program trains. A subclass has the net and data, makes a step and reports an
// epoch; run() shows progress, writes curves and snapshots, and ends cleanly after a signal.
class Trainer : public Visitable {
public:
    // Trains up to this many epochs, counted from the first run if it resumed from a snapshot.
    // Returns the program's exit code.
    int run(const Program& program, std::int64_t epochs);
    // Lists the optimizer's options and state, the seed and `score`. A subclass calls it, and lists
    // its net, data and options that decide the result: a snapshot resumes only under the same.
    void visit(Visitor& visitor) override;

protected:
    struct Words {
        std::string unit;                  // what Place counts: "images"
        std::vector<std::string> scores;   // the names of the means in `score`; "loss" is one
        std::vector<std::string> columns;  // of the curves, between the epoch and the rate
        int rate_digits = 0;               // after the point, in lines of output
    };
    struct Place {
        std::int64_t epoch;     // epochs completed
        std::int64_t position;  // in the current epoch; 0 after the last step of an epoch
        std::int64_t size;      // of an epoch
    };
    struct Report {
        std::string text;             // a line of output, without the epoch and the rate
        std::vector<double> numbers;  // one for each of Words::columns
    };

    Trainer(const OptimizerOptions& options, const Program& program, Words words);

    // Sets up the optimizer for a net. With several processes, makes a MultiNodeOptimizer, and
    // batch normalization uses all minibatches. With one backward() in a step, it sends gradients.
    void set_up(Link& link, bool one_backward = true);
    // The part of each minibatch that belongs to this process, for readers of data.
    const Share& share() const { return share_; }
    // The loss to call backward() of, for SharedReader::weight() of the reader. Weighing the loss
    // instead of the gradients is right for operations between ranks too.
    static Variable weigh(const Variable& loss, double weight) {
        return weight == 1 ? loss : loss * weight;
    }
    // Whether batch normalization uses the minibatches of all processes: then each process calls
    // the net for each minibatch, also for an empty one.
    bool normalizes_together() const { return normalizations_ > 0; }
    // Makes the means those over the examples of all processes.
    Summary over_all(Summary summary) const;

    virtual void step() = 0;  // one minibatch, or the next part of it: see share()
    virtual Place place() const = 0;
    virtual const Link& net() const = 0;  // --graph takes names of parameters from it
    // After each epoch: validates. May throw Interrupted.
    virtual Report report(const Program& program) = 0;
    virtual void reported(const Program&) {}  // after the report was printed
    virtual void complete(const Program&) {}  // after the last epoch
    // Whether to end before the last epoch is over.
    virtual bool enough() const { return false; }
    // The number beside the progress bar, and its name.
    virtual double progress() const { return score.mean("loss"); }
    virtual const char* progress_name() const { return "loss"; }

    // The report of a classifier: "loss" and "accuracy" in `score` and in `tested`, which has this
    // name in the text: "test". Words::columns are the losses of both, then the accuracies.
    Report compare(const Summary& tested, std::string_view name) const;
    // For step(): draws the first loss if --graph asks for it.
    void draw_once(const Variable& loss);

    std::unique_ptr<Optimizer> optimizer;
    Summary score;  // of the current epoch

private:
    // The last step was the last of an epoch that was not reported yet.
    bool epoch_over() const { return place().position == 0 && unreported_; }
    std::optional<double> run_epoch(const Program& program, const std::string& label);

    bool stops(const Program& program) const;
    // Throws DataError unless all processes have the same net, options, data sizes and position.
    void require_equal_standing();

    OptimizerOptions options_;
    std::int64_t seed_;
    distributed::Communicator communicator_;
    distributed::MultiNodeOptions multi_node_options_;
    Share share_;
    std::optional<distributed::MultiNodeOptimizer> multi_node_;
    int normalizations_ = 0;
    bool unreported_ = false;  // some process has a score
    Words words_;
    schedules::Schedule rate_;  // by epochs; may be empty
    std::function<void(const Variable&)> draw_;
};

}  // namespace catena
