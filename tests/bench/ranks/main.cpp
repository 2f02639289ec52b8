// catena-bench-ranks: measures training steps and operations of several ranks, and prints a line of
// JSON for each. compare.py runs it beside ranks_torch.py, tools/scaling for its model of the cost.
#include "../models.hpp"

#include <catena/distributed.hpp>
#include <catena/models.hpp>

#include <boost/program_options.hpp>
#include <command_line.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>

namespace catena_bench {
namespace {

using catena::distributed::Communicator, catena::distributed::MultiNodeOptimizer,
    catena::distributed::MultiNodeOptions;

struct Options {
    std::string communicator = "threads";
    int ranks = 2;
    double block = 0.5;
    double bucket = 25;
    std::string filter;
    std::string measure = "steps";
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double middle(std::vector<double> values) {
    const auto half = values.begin() + std::ssize(values) / 2;
    std::ranges::nth_element(values, half);
    return *half;
}

// ---- nets

// 784, 8 layers of 1000 units, 10.
class DeepMlp : public Chain {
public:
    DeepMlp() {
        for (int i = 0; i < 8; ++i) layers_.append(links::Linear(i == 0 ? 784 : 1000, 1000));
    }
    void visit(Visitor& visitor) override { visitor("layers", layers_)("out", out_); }
    Variable operator()(const Variable& x) const override {
        Variable h = x;
        for (const Link& layer : layers_) h = F::relu(layer(h));
        return out_(h);
    }

private:
    ChainList layers_;
    links::Linear out_{1000, 10};
};

// A net, its minibatch and its optimizer.
struct Training {
    std::unique_ptr<Link> net;
    std::unique_ptr<Optimizer> optimizer;
    std::function<Variable()> loss;
};

template <class Net>
Training classify(Net net, const Shape& shape) {
    auto model = std::make_unique<Net>(std::move(net));
    auto loss = [&model = *model, x = as_variable(initializers::Normal(1)(shape)),
                 t = as_variable(labels({shape[0]}, 10))] {
        return F::softmax_cross_entropy(model(x), t);
    };
    return {std::move(model), std::make_unique<optimizers::SGD>(0.01), std::move(loss)};
}

Training gpt(std::int64_t texts) {
    auto model = std::make_unique<models::Gpt>(
        models::Gpt::Sizes{.words = 65, .layout = models::Gpt::Layout::gpt2});
    auto loss = [&model = *model, x = as_variable(labels({texts, 256}, 65)),
                 t = as_variable(labels({texts, 256}, 65))] { return model.loss(x, t); };
    return {std::move(model), std::make_unique<optimizers::AdamW>(3e-4), std::move(loss)};
}

// Each rank has half of the minibatch that catena-bench uses, if that measures the net.
struct Net {
    const char* name;
    Training (*make)();
};
constexpr Net nets[] = {
    {"MLP 1000",
     [] {
         return classify(Mlp(1000), {50, 784});
     }},
    {"CNN",
     [] {
         return classify(Cnn(), {50, 1, 28, 28});
     }},
    {"GPT", [] { return gpt(4); }},
    {"MLP of 9 layers",
     [] {
         return classify(DeepMlp(), {400, 784});
     }},
};

Training make(const Net& net) {
    static std::mutex mutex;  // threads share the random numbers
    const std::lock_guard guard(mutex);
    return net.make();
}

void step(Training& training) {
    training.optimizer->cleargrads();
    Variable loss = training.loss();
    std::move(loss).backward();
    training.optimizer->update();
}

// ---- measurements

// The median time of a run on rank 0. All ranks run it equally often, for `block` seconds.
double measure(const Communicator& comm, double block, const std::function<void()>& run) {
    std::vector<double> times;
    const auto time_runs = [&](int n) {
        times.clear();
        comm.barrier().wait();
        for (int i = 0; i < n; ++i) {
            const double start = now();
            run();
            times.push_back(now() - start);
        }
        return middle(times);
    };
    time_runs(3);
    const auto wanted = static_cast<std::int32_t>(std::clamp(block / time_runs(3), 5.0, 1e6));
    const Array runs = Array::from(std::vector<std::int32_t>{wanted}, {1});
    comm.bcast(runs).wait();
    return time_runs(runs.host<const std::int32_t>()[0]);
}

double measure_steps(const Communicator& comm, double block, const Net& net,
                     const std::optional<MultiNodeOptions>& options) {
    Training training = make(net);
    std::optional<MultiNodeOptimizer> multi;
    if (options) multi.emplace(*training.optimizer, comm, *options).setup(*training.net);
    else training.optimizer->setup(*training.net);
    return measure(comm, block, [&] { step(training); });
}

void print(const Communicator& comm, const nlohmann::json& line) {
    if (comm.rank() == 0) std::cout << line << std::endl;
}

bool wanted(const Options& options, const std::string& name) {
    return std::regex_search(name, std::regex(options.filter));
}

std::int64_t bucket_bytes(const Options& options) {
    return static_cast<std::int64_t>(options.bucket * (1 << 20));
}

// All nets in all modes, then allreduce.
void measure_all(const Communicator& comm, const Options& options) {
    MultiNodeOptions plain{.bucket_bytes = bucket_bytes(options)};
    MultiNodeOptions late = plain, shard = plain, bfloat16 = plain;
    late.overlap = false;
    shard.shard = true;
    bfloat16.wire = Dtype::bfloat16;
    const std::pair<const char*, std::optional<MultiNodeOptions>> modes[] = {
        {"", plain},        {", no overlap", late},   {", no communication", {}},
        {", shard", shard}, {", bfloat16", bfloat16},
    };
    for (const Net& net : nets)
        for (const auto& [suffix, mode] : modes)
            if (const std::string name = net.name + std::string(suffix); wanted(options, name))
                print(comm,
                      {{"work", name}, {"seconds", measure_steps(comm, options.block, net, mode)}});
    for (const std::int64_t bytes : {4, 100'000, 1'000'000, 10'000'000, 100'000'000}) {
        const std::string name = "allreduce " + std::to_string(bytes);
        if (!wanted(options, name)) continue;
        const Array x = Array::zeros({bytes / 4}, Dtype::float32);
        print(comm, {{"work", name},
                     {"seconds", measure(comm, options.block, [&] { comm.allreduce(x).wait(); })}});
    }
}

// The phases of a step without communication, and when each gradient is computed.
struct Profile {
    double forward, backward, update, step;
    std::vector<std::pair<std::int64_t, double>> ready;  // bytes, seconds of backward()

    std::int64_t bytes() const {
        std::int64_t sum = 0;
        for (const auto& each : ready) sum += each.first;
        return sum;
    }
};

Profile profile(const Communicator& comm, double block, const Net& net) {
    Training training = make(net);
    training.optimizer->setup(*training.net);
    const std::vector<NamedParameter> parameters = training.net->collect_parameters();
    std::vector<double> phases[4];
    std::vector<std::vector<double>> ready(parameters.size());
    double start = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        parameters[i].variable.set_grad_hook([&, i] { ready[i].push_back(now() - start); });
    measure(comm, block, [&] {
        training.optimizer->cleargrads();
        const double begin = now();
        Variable loss = training.loss();
        start = now();
        std::move(loss).backward();
        const double computed = now();
        training.optimizer->update();
        const double end = now();
        const double times[] = {start - begin, computed - start, end - computed, end - begin};
        for (int i = 0; i < 4; ++i) phases[i].push_back(times[i]);
    });
    Profile result{middle(phases[0]), middle(phases[1]), middle(phases[2]), middle(phases[3]), {}};
    for (std::size_t i = parameters.size(); i-- > 0;)
        result.ready.emplace_back(parameters[i].variable.data().nbytes(), middle(ready[i]));
    return result;
}

// A step on a link whose transfer of the gradients takes as long as backward(), with and without
// overlap. Opens groups of `threads`.
void measure_overlap(const Options& options, const Net& net) {
    std::optional<Profile> alone;
    double overlapped = 0, sequential = 0;
    unsetenv("CATENA_THREADS_BYTES_PER_SECOND");
    distributed::run_ranks(options.ranks, [&](const Communicator& comm) {
        const Profile own = profile(comm, options.block, net);
        if (comm.rank() == 0) alone = own;
    });
    const double sent =
        static_cast<double>(alone->bytes()) * 2 * (options.ranks - 1) / options.ranks;
    setenv("CATENA_THREADS_BYTES_PER_SECOND", std::to_string(sent / alone->backward).c_str(), 1);
    distributed::run_ranks(options.ranks, [&](const Communicator& comm) {
        for (const bool overlap : {true, false}) {
            const double time = measure_steps(
                comm, options.block, net,
                MultiNodeOptions{.bucket_bytes = bucket_bytes(options), .overlap = overlap});
            if (comm.rank() == 0) (overlap ? overlapped : sequential) = time;
        }
    });
    const nlohmann::json line = {{"work", net.name},
                                 {"computation", alone->step},
                                 {"transfer", alone->backward},
                                 {"overlap", overlapped},
                                 {"no overlap", sequential},
                                 {"of longer", overlapped / std::max(alone->step, alone->backward)},
                                 {"gain", sequential / overlapped}};
    std::cout << line << std::endl;
}

void measure_profiles(const Communicator& comm, const Options& options) {
    for (const Net& net : nets) {
        if (!wanted(options, net.name)) continue;
        const Profile p = profile(comm, options.block, net);
        print(comm, {{"work", net.name},
                     {"forward", p.forward},
                     {"backward", p.backward},
                     {"update", p.update},
                     {"step", p.step},
                     {"ready", p.ready}});
    }
}

void run(const Options& options) {
    Device::current().set_threads(1);
    if (options.measure == "overlap") {
        for (const Net& net : nets)
            if (wanted(options, net.name)) measure_overlap(options, net);
        return;
    }
    const auto body = [&](const Communicator& comm) {
        if (options.measure == "profiles") measure_profiles(comm, options);
        else measure_all(comm, options);
    };
    if (options.communicator == "threads") distributed::run_ranks(options.ranks, body);
    else body(Communicator::open(options.communicator));
}

}  // namespace
}  // namespace catena_bench

int main(int argc, char** argv) {
    return catena::run_command(
        "catena-bench-ranks",
        [&] {
            namespace po = boost::program_options;
            catena_bench::Options options;
            po::options_description description(
                "usage: catena-bench-ranks [OPTION...]\n       mpirun -n 2 catena-bench-ranks "
                "--communicator mpi [OPTION...]\n\nMeasures training with several ranks of one "
                "thread each.\n\nOptions");
            auto add = description.add_options();
            add("help,h", "print this text");
            add("communicator",
                po::value(&options.communicator)->default_value(options.communicator),
                "threads, or one whose launcher has started this program");
            add("ranks", po::value(&options.ranks)->default_value(options.ranks),
                "number of ranks of threads");
            add("measure", po::value(&options.measure)->default_value(options.measure),
                "steps: of nets, and allreduce; profiles: the phases of steps without "
                "communication; overlap: steps with threads whose transfer takes as long as "
                "backward()");
            add("filter", po::value(&options.filter), "only works whose name matches this regex");
            add("block", po::value(&options.block)->default_value(options.block, "0.5"),
                "seconds of each measurement");
            add("bucket", po::value(&options.bucket)->default_value(options.bucket, "25"),
                "MiB of a bucket of gradients");
            const po::variables_map given = catena::parse_command_line(argc, argv, description);
            if (given.count("help")) {
                std::cout << description;
                return 0;
            }
            if (options.measure != "steps" && options.measure != "profiles" &&
                options.measure != "overlap")
                throw po::error("--measure: expected steps, profiles or overlap, got " +
                                options.measure);
            if (options.ranks < 1 || !(options.block > 0) || !(options.bucket > 0))
                throw po::error("--ranks, --block, --bucket: expected positive numbers");
            catena_bench::run(options);
            return 0;
        },
        2);
}
