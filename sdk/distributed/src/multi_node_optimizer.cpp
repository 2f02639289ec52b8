// MultiNodeOptimizer: buckets of gradients, which are reduced while backward() runs.
#include "same.hpp"

#include <catena/core/config.hpp>
#include <catena/distributed/multi_node_optimizer.hpp>
#include <catena/fail.hpp>
#include <catena/operators.hpp>

#include <cmath>

namespace catena::distributed {
namespace {

// Slices of buckets start at multiples of this, in elements, so that they are aligned as arrays are.
constexpr std::int64_t alignment = 64;

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

// Adds two terms, of which either may be missing; changes the first if nobody else holds it.
Array add_terms(Array a, const Array& b) {
    if (!a || !b) return a ? a : b;
    if (!a.body()->exclusive()) return a + b;
    a += b;
    return a;
}

// A parameter in a bucket.
struct Piece {
    std::size_t parameter;
    std::int64_t begin, size;  // in the bucket, in elements
};

struct Bucket {
    Dtype dtype, wire;
    Device device;
    std::vector<Piece> pieces;
    std::int64_t size = 0;    // elements, with gaps
    std::size_t missing = 0;  // gradients that backward() has not computed yet
    std::string label;
};

// The memory of a bucket's gradients, and the operation that reduces them.
struct Flight {
    Array memory;  // in the parameters' dtype; the result
    Array wire;    // the same in the dtype on the wire, if that differs
    Array rows;    // pairwise sums: this rank's piece of every rank's gradients
    Work work;
};

}  // namespace

class MultiNodeOptimizer::Exchange final : public OptimizerExtension {
public:
    Exchange(Optimizer& optimizer, Communicator communicator, const MultiNodeOptions& options)
        : optimizer_(optimizer),
          // A group of its own: other operations of the program may come between the buckets.
          comm_(communicator.split(0, communicator.rank())),
          all_(std::move(communicator)),
          options_(options),
          shards_(options.shard && comm_.size() > 1) {}
    ~Exchange() override { remove_hooks(); }

    void setup(Link& link) {
        restart();
        remove_hooks();
        bcast_data(comm_, link);
        const std::vector<NamedParameter> all = link.collect_parameters();
        std::vector<NamedParameter> trained = trained_everywhere(all);
        for (const NamedParameter& each : trained) {
            if (options_.overlap && each.variable.node().grad_hook)
                fail<InvalidError>(
                    "[MultiNodeOptimizer] {}: expected a variable without a hook of gradients, got "
                    "one with a hook: MultiNodeOptions{{.overlap = false}} needs none",
                    each.name);
        }
        parameters_ = std::move(trained);
        pairwise_ = options_.pairwise.value_or(config().deterministic);
        sums_.assign(parameters_.size(), {});
        asks_to_stop_ = all_stop_ = false;
        fill_buckets();
        make_flights();
        parts_.assign(parameters_.size(), Variable());
        if (shards_) optimizer_.setup_parts(own_parts());
        else optimizer_.setup(all);
        memory_of_parameters_.clear();
        for (const NamedParameter& each : parameters_)
            memory_of_parameters_.push_back(each.variable.data().body());
        restart();
        for (std::size_t i = 0; i < parameters_.size() && options_.overlap; ++i)
            parameters_[i].variable.set_grad_hook([this, i] { ready(i); });
    }
    const Communicator& communicator() const { return all_; }
    void set_weight(double weight) {
        if (began() && !prepared_ && weight != weight_)
            fail<InvalidError>(
                "[MultiNodeOptimizer] weight: expected it before backward(), got {} after "
                "gradients with {} were sent",
                weight, weight_);
        weight_ = weight;
    }
    void request_stop() { asks_to_stop_ = true; }
    bool stop_requested() const { return all_stop_; }

    void prepare_grads() override {
        if (accumulates())
            fail<InvalidError>(
                "[MultiNodeOptimizer] gradients: expected their use in a hook of the optimizer, "
                "because update() adds up those of {} minibatches, got minibatch {}",
                options_.accumulate, minibatch_ + 1);
        if (options_.double_buffering && !prepared_)
            fail<InvalidError>(
                "[MultiNodeOptimizer] gradients: expected their use in a hook of the optimizer, "
                "because update() has those of the previous step with double buffering, got a use "
                "before it");
        exchange();
    }
    bool begin_update() override {
        if (accumulates()) {
            for (std::size_t i = 0; i < parameters_.size(); ++i) {
                (void)total(i);
                parameters_[i].variable.cleargrad();
            }
            ++minibatch_;
            return false;
        }
        exchange();
        if (has_results_) return true;
        restart();
        return false;
    }
    // With `shard`, gives all ranks the parameters that this one has updated.
    void end_update() override {
        if (shards_) {
            std::vector<Work> works;
            for (std::size_t b = 0; b < buckets_.size(); ++b) {
                const Bucket& bucket = buckets_[b];
                const Array& memory = flights_[b].memory;
                for (const Piece& piece : bucket.pieces) {
                    const Variable& part = parts_[piece.parameter];
                    if (!part) continue;
                    memory.view(own_range(bucket, piece).first, part.shape())
                        .copy_from(part.data());
                    part.cleargrad();
                }
                works.push_back(
                    comm_.allgather(memory.view(piece_begin(bucket), {piece_size(bucket)}), memory,
                                    {}, {.label = "parameters of " + bucket.label}));
            }
            for (std::size_t b = 0; b < buckets_.size(); ++b) {
                works[b].wait();
                for (const Piece& piece : buckets_[b].pieces) {
                    const Array& data = parameters_[piece.parameter].variable.data();
                    data.copy_from(flights_[b].memory.view(piece.begin, data.shape()));
                }
            }
        }
        restart();
    }
    void cleargrads() override {
        if (prepared_ || began()) restart();
        if (!shards_) return;
        for (const NamedParameter& each : parameters_) each.variable.cleargrad();
    }
    Array sum_over_parts(Array own) override {
        if (shards_) comm_.allreduce(own, Reduction::sum, {.label = "norm"}).wait();
        return own;
    }

private:
    bool began() const {  // a gradient of this step is in its bucket
        return std::ranges::any_of(filled_, [](bool filled) { return filled; });
    }
    bool accumulates() const { return minibatch_ + 1 < options_.accumulate; }
    // This rank's piece of a bucket.
    std::int64_t piece_size(const Bucket& bucket) const { return bucket.size / comm_.size(); }
    std::int64_t piece_begin(const Bucket& bucket) const {
        return comm_.rank() * piece_size(bucket);
    }
    // The elements of the bucket that belong to this rank and to the parameter; empty: end <= begin.
    std::pair<std::int64_t, std::int64_t> own_range(const Bucket& bucket,
                                                    const Piece& piece) const {
        const std::int64_t low = piece_begin(bucket), high = low + piece_size(bucket);
        return {std::max(low, piece.begin), std::min(high, piece.begin + piece.size)};
    }
    void remove_hooks() {
        for (const NamedParameter& each : parameters_) each.variable.set_grad_hook({});
        parameters_.clear();
        buckets_.clear();  // they refer to parameters
        flights_.clear();
        before_.clear();
    }
    // The parameters that require a gradient. Throws unless they are the same on all ranks.
    std::vector<NamedParameter> trained_everywhere(const std::vector<NamedParameter>& all) const {
        std::vector<NamedParameter> result;
        std::string text;
        for (const NamedParameter& each : all) {
            const bool trained = each.variable.requires_grad();
            if (trained) result.push_back(each);
            text += fmt::format("{} {} a gradient\n", each.name, trained ? "requires" : "without");
        }
        require_same(comm_, "MultiNodeOptimizer", text, 0);
        return result;
    }
    // The last parameters come first, because their gradients are computed first.
    void fill_buckets() {
        buckets_.clear();
        places_.assign(parameters_.size(), {});
        for (std::size_t i = parameters_.size(); i-- > 0;) {
            const Array& data = parameters_[i].variable.data();
            const std::int64_t item = item_size(data.dtype());
            const auto fits = [&](const Bucket& b) {
                return b.dtype == data.dtype() && b.device == data.device() &&
                       (b.size + data.size()) * item <= options_.bucket_bytes;
            };
            if (buckets_.empty() || !fits(buckets_.back())) {
                Bucket& bucket = buckets_.emplace_back();
                bucket.dtype = data.dtype();
                bucket.device = data.device();
                const bool narrows = options_.wire && item_size(*options_.wire) < item;
                bucket.wire = narrows ? *options_.wire : bucket.dtype;
            }
            Bucket& bucket = buckets_.back();
            places_[i] = {buckets_.size() - 1, bucket.pieces.size()};
            bucket.pieces.push_back({i, bucket.size, data.size()});
            bucket.size = round_up(bucket.size + data.size(), alignment);
        }
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            Bucket& bucket = buckets_[b];
            if (shards_ || pairwise_) bucket.size = round_up(bucket.size, alignment * comm_.size());
            bucket.label = fmt::format("gradients {} of {}", b + 1, buckets_.size());
        }
    }
    void make_flights() {
        flights_ = std::vector<Flight>(buckets_.size());
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            const Bucket& bucket = buckets_[b];
            Flight& flight = flights_[b];
            flight.memory = Array::zeros({bucket.size}, bucket.dtype, bucket.device);
            if (bucket.wire != bucket.dtype)
                flight.wire = Array::zeros({bucket.size}, bucket.wire, bucket.device);
            if (pairwise_) flight.rows = Array::zeros({bucket.size}, bucket.wire, bucket.device);
        }
    }
    std::vector<ParameterPart> own_parts() {
        std::vector<ParameterPart> result;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const auto& [name, whole] = parameters_[i];
            const Bucket& bucket = buckets_[places_[i].bucket];
            const Piece& piece = bucket.pieces[places_[i].piece];
            const auto [begin, end] = own_range(bucket, piece);
            if (begin < end)
                parts_[i] = Parameter(whole.data().view(begin - piece.begin, {end - begin}));
            result.push_back({name, parts_[i], whole, begin - piece.begin});
        }
        return result;
    }
    // backward() has computed the gradient of a parameter.
    void ready(std::size_t i) {
        if (prepared_) restart();  // the last step was given up before its update()
        if (accumulates()) return;
        if (filled_[i]) {
            if (again_.empty()) again_ = parameters_[i].name;
            return;
        }
        fill(i);
        send_complete();
    }
    // A parameter's gradient in all minibatches, or none. Pairwise, sums[level] has 2^level of them.
    Array total(std::size_t i) {
        Array sum = parameters_[i].variable.grad();
        if (sum && weight_ != 1) sum = sum * weight_;
        std::vector<Array>& sums = sums_[i];
        std::size_t level = 0;
        for (; pairwise_ ? (minibatch_ >> level & 1) != 0 : level == 0; ++level)
            if (level < sums.size()) sum = add_terms(std::exchange(sums[level], Array()), sum);
        if (accumulates()) {
            if (!pairwise_) level = 0;
            sums.resize(std::max(sums.size(), level + 1));
            sums[level] = sum;
            return {};
        }
        for (Array& each : sums) sum = add_terms(std::exchange(each, Array()), sum);
        return sum;
    }
    void fill(std::size_t i) {
        const std::size_t b = places_[i].bucket;
        Bucket& bucket = buckets_[b];
        const Piece& piece = bucket.pieces[places_[i].piece];
        const Flight& flight = flights_[b];
        const Array& target = flight.wire ? flight.wire : flight.memory;
        const Array place = target.view(piece.begin, {piece.size});
        const Array& own = parameters_[i].variable.grad();
        sent_[i] = own ? own.body() : nullptr;
        Array gradient = total(i);
        filled_[i] = true;
        --bucket.missing;
        if (!gradient) return place.fill(0);
        gradient = gradient.reshape({-1});
        // Halves are divided here, because their sum could overflow; other pairwise sums afterwards.
        const auto minibatches = static_cast<double>(options_.accumulate);
        const double parts = flight.wire ? minibatches * comm_.size() : pairwise_ ? 1 : minibatches;
        if (parts != 1) gradient = gradient * (1 / parts);
        place.copy_from(gradient.astype(bucket.wire));
    }
    void send(std::size_t b) {
        const Bucket& bucket = buckets_[b];
        Flight& flight = flights_[b];
        const Array& data = flight.wire ? flight.wire : flight.memory;
        const OperationOptions named{.label = bucket.label};
        const Reduction reduction = flight.wire ? Reduction::sum : Reduction::mean;
        if (pairwise_) flight.work = comm_.alltoall(data, flight.rows, {}, {}, named);
        else if (shards_)
            flight.work = comm_.reduce_scatter(
                data, data.view(piece_begin(bucket), {piece_size(bucket)}), reduction, {}, named);
        else flight.work = comm_.allreduce(data, reduction, named);
    }
    void send_complete() {
        while (next_ < buckets_.size() && buckets_[next_].missing == 0) send(next_++);
    }
    // Sends the rest of the gradients, and receives those that update() uses.
    void exchange() {
        if (prepared_) return;
        if (!again_.empty())
            fail<InvalidError>(
                "[MultiNodeOptimizer] {}: expected one backward() for each update(), got another "
                "one after the gradient was sent: MultiNodeOptions{{.overlap = false}} sends in "
                "update()",
                again_);
        std::vector<std::uint8_t> own;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const auto& [name, variable] = parameters_[i];
            if (shards_ && variable.data().body() != memory_of_parameters_[i])
                fail<InvalidError>(
                    "[MultiNodeOptimizer] {}: expected the memory of setup(), got another array",
                    name);
            if (filled_[i] && (variable.grad() ? variable.grad().body() : nullptr) != sent_[i])
                fail<InvalidError>(
                    "[MultiNodeOptimizer] {}: expected the gradient that was sent, got another "
                    "one: change gradients in a hook of the optimizer, or use overlap = false",
                    name);
            own.push_back(exists(i) ? 1 : 0);
        }
        for (std::size_t i = 0; i < parameters_.size(); ++i)
            if (!filled_[i]) fill(i);
        send_complete();
        own.push_back(asks_to_stop_ ? 1 : 0);
        const Array flags = Array::from(own, {std::ssize(own)}, cuda::host());
        comm_.allreduce(flags, Reduction::max, {.label = "which gradients exist"}).wait();
        const auto all = flags.host<const std::uint8_t>();
        std::vector<bool> has(all.begin(), all.end() - 1);
        all_stop_ = all.back() != 0;
        prepared_ = true;
        if (options_.double_buffering) {
            const bool first = before_.empty();
            if (first) {
                before_ = std::exchange(flights_, {});
                make_flights();
            } else {
                std::swap(before_, flights_);
            }
            std::swap(before_has_, has);
            has_results_ = !first;
            if (first) return;
        }
        for (std::size_t b = 0; b < buckets_.size(); ++b) receive(b);
        has_results_ = true;
        take_results(has);
    }
    // Waits until the bucket of flights_ is reduced.
    void receive(std::size_t b) {
        const Bucket& bucket = buckets_[b];
        Flight& flight = flights_[b];
        flight.work.wait();
        const Array& data = flight.wire ? flight.wire : flight.memory;
        const std::int64_t begin = piece_begin(bucket), size = piece_size(bucket);
        Array own = data.view(begin, {size});
        if (pairwise_) {
            std::vector<Array> rows;
            for (std::int64_t r = 0; r < comm_.size(); ++r)
                rows.push_back(flight.rows.view(r * size, {size}));
            for (std::size_t step = 1; step < rows.size(); step *= 2)
                for (std::size_t r = 0; r + step < rows.size(); r += 2 * step)
                    rows[r] += rows[r + step];
            const auto parts = static_cast<double>(comm_.size() * options_.accumulate);
            own.copy_from(flight.wire ? rows[0] : rows[0] * (1 / parts));
            if (!shards_) comm_.allgather(own, data, {}, {.label = bucket.label}).wait();
        }
        if (!flight.wire) return;
        if (shards_) flight.memory.view(begin, {size}).copy_from(own.astype(bucket.dtype));
        else flight.memory.copy_from(data.astype(bucket.dtype));
    }
    // Sets the gradients of the optimizer's parameters to views of the buckets.
    void take_results(const std::vector<bool>& any) {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            const Bucket& bucket = buckets_[b];
            for (const Piece& piece : bucket.pieces) {
                const Variable& whole = parameters_[piece.parameter].variable;
                const bool has = any[piece.parameter];
                if (!shards_) {
                    if (has) whole.set_grad(flights_[b].memory.view(piece.begin, whole.shape()));
                    else whole.cleargrad();
                    continue;
                }
                whole.cleargrad();  // the memory is needed no longer
                const Variable& part = parts_[piece.parameter];
                if (!part) continue;
                const auto [begin, end] = own_range(bucket, piece);
                if (has) part.set_grad(flights_[b].memory.view(begin, {end - begin}));
                else part.cleargrad();
            }
        }
    }
    // Whether this rank has a gradient of the parameter, in this or an earlier minibatch.
    bool exists(std::size_t i) const {
        return filled_[i] || parameters_[i].variable.grad() ||
               std::ranges::any_of(sums_[i], [](const Array& each) { return bool(each); });
    }
    // Begins a step. If the last one was given up, on all ranks, the rest of its buckets is sent first.
    void restart() {
        if (began() && next_ < buckets_.size()) {
            for (std::size_t i = 0; i < parameters_.size(); ++i)
                if (!filled_[i]) fill(i);
            send_complete();
        }
        for (Flight& flight : flights_) flight.work = {};  // waits
        for (Bucket& bucket : buckets_) bucket.missing = bucket.pieces.size();
        filled_.assign(parameters_.size(), false);
        sent_.assign(parameters_.size(), nullptr);
        next_ = 0;
        minibatch_ = 0;
        for (std::vector<Array>& each : sums_) each.clear();
        again_.clear();
        prepared_ = has_results_ = false;
    }

    Optimizer& optimizer_;
    const Communicator comm_, all_;
    const MultiNodeOptions options_;
    const bool shards_;
    bool pairwise_ = false;
    double weight_ = 1;

    std::vector<NamedParameter> parameters_;
    std::vector<Variable> parts_;  // with `shard`: of each parameter; empty: none is this rank's
    std::vector<const void*> memory_of_parameters_;
    std::vector<Bucket> buckets_;
    struct Place {
        std::size_t bucket, piece;
    };
    std::vector<Place> places_;             // by parameter
    std::vector<Flight> flights_, before_;  // before_: of the previous step
    std::vector<bool> before_has_;
    std::vector<std::vector<Array>> sums_;  // of earlier minibatches, by parameter

    // The current step.
    std::int64_t minibatch_ = 0;     // of options_.accumulate
    std::vector<bool> filled_;       // by parameter
    std::vector<const void*> sent_;  // the gradients when they were sent
    std::size_t next_ = 0;           // the bucket to send next
    std::string again_;              // a parameter whose gradient was computed again
    bool prepared_ = false;
    bool has_results_ = false;
    bool asks_to_stop_ = false, all_stop_ = false;
};

MultiNodeOptimizer::MultiNodeOptimizer(Optimizer& optimizer, Communicator communicator,
                                       MultiNodeOptions options)
    : optimizer_(optimizer) {
    if (options.bucket_bytes < 1)
        fail<InvalidError>("[MultiNodeOptimizer] bucket_bytes: expected at least 1, got {}",
                           options.bucket_bytes);
    if (options.accumulate < 1)
        fail<InvalidError>("[MultiNodeOptimizer] accumulate: expected at least 1, got {}",
                           options.accumulate);
    if (options.wire && !is_floating(*options.wire))
        fail<InvalidError>("[MultiNodeOptimizer] wire: expected a floating dtype, got {}",
                           name(*options.wire));
    if (optimizer.has_extension())
        throw InvalidError(
            "[MultiNodeOptimizer] optimizer: expected one without an extension, got one that "
            "already has a MultiNodeOptimizer");
    exchange_ = std::make_shared<Exchange>(optimizer, std::move(communicator), options);
    optimizer.set_extension(exchange_);
}

MultiNodeOptimizer::~MultiNodeOptimizer() { optimizer_.set_extension(nullptr); }

void MultiNodeOptimizer::setup(Link& link) { exchange_->setup(link); }
void MultiNodeOptimizer::set_weight(double weight) {
    if (!(weight >= 0) || std::isinf(weight))
        fail<InvalidError>("[MultiNodeOptimizer] weight: expected 0 or more, got {}", weight);
    exchange_->set_weight(weight);
}
void MultiNodeOptimizer::request_stop() { exchange_->request_stop(); }
bool MultiNodeOptimizer::stop_requested() const noexcept { return exchange_->stop_requested(); }
const Communicator& MultiNodeOptimizer::communicator() const noexcept {
    return exchange_->communicator();
}

std::int64_t MultiNodeOptimizer::state_bytes() const {
    struct Counter final : Visitor {
        std::int64_t bytes = 0;
        void array(const std::string&, Array& value) override { bytes += value.nbytes(); }
        void array_part(const std::string&, Array& value, std::int64_t, const Shape&) override {
            if (value) bytes += value.nbytes();
        }
    } counter;
    optimizer_.visit(counter);
    return counter.bytes;
}

}  // namespace catena::distributed
