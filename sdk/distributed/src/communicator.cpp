// Communicator: operations on arrays, through the tables of plugins. run_ranks(): threads as ranks.
#include <catena/core/config.hpp>
#include <catena/distributed/communicator.hpp>

#include <catena/abi/ext/communicator.h>

#include <catena/core/stream.hpp>
#include <catena/cuda/device.hpp>
#include <catena/extension_call.hpp>
#include <catena/fail.hpp>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <ranges>
#include <thread>

#include <fmt/ranges.h>

namespace catena::distributed {
namespace {

// The tables of all loaded plugins, by name.
std::map<std::string, const catena_communicator*> tables() {
    std::map<std::string, const catena_communicator*> result;
    for (const PluginTable& plugin : plugin_tables())
        for (std::uint32_t i = 0; i < plugin.table->n_extensions; ++i) {
            const catena_extension& extension = *plugin.table->extensions[i];
            if (std::string_view(extension.id) != CATENA_COMMUNICATOR_1) continue;
            const auto* table = static_cast<const catena_communicator*>(extension.table);
            result.emplace(table->name, table);
        }
    return result;
}

double default_timeout() {
    const char* text = std::getenv("CATENA_COMMUNICATOR_TIMEOUT");
    if (!text) return 300;
    char* end = nullptr;
    const double seconds = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds > 0) || std::isinf(seconds))
        fail<InvalidError>("[Communicator] CATENA_COMMUNICATOR_TIMEOUT: expected seconds, got '{}'",
                           text);
    return seconds;
}

bool in_list(std::string_view list, std::string_view name) {
    return std::ranges::any_of(std::views::split(list, ','),
                               [&](const auto& each) { return std::ranges::equal(each, name); });
}

constexpr const char* kind_name(int kind) {
    constexpr const char* names[] = {"barrier",   "allreduce",      "reduce", "bcast",
                                     "allgather", "reduce_scatter", "gather", "scatter",
                                     "alltoall",  "send",           "recv"};
    return names[kind];
}

}  // namespace

struct Communicator::Group {
    const catena_communicator* table = nullptr;  // null: this process alone
    catena_comm* comm = nullptr;
    Device staging;  // where arrays are copied that the plugin does not take
    std::string name;
    catena_comm_info info = {sizeof(catena_comm_info), 0, 1, 0, 1, 0};
    // Arrays of operations that failed or were given up: the plugin may access them until close().
    std::mutex mutex;
    std::vector<Array> kept;
    std::vector<std::weak_ptr<Group>> parts;  // groups that split() made

    Group() = default;
    Group(const Group&) = delete;
    ~Group() {
        if (comm) table->close(comm);
    }
    bool takes(const Array& array) const {
        return !table || in_list(table->devices, array.device().backend());
    }
};

// An operation before it starts. An empty array has no elements.
struct Communicator::Request {
    int kind;
    Array send = {}, recv = {};
    std::int64_t count = 0;
    int peer = 0;
    Reduction reduction = Reduction::sum;
    std::vector<std::uint64_t> send_counts = {}, recv_counts = {};  // empty: count for each rank
    int tag = 0;
};

struct Work::State {
    std::shared_ptr<Communicator::Group> group;
    catena_work* work = nullptr;
    Array send, recv;  // as the plugin accesses them
    Array target;      // where recv is copied, unless it is recv
    int exceptions = std::uncaught_exceptions();

    State() = default;
    State(const State&) = delete;
    ~State() {
        if (work) group->table->release(work);
    }
    Array any() const { return recv ? recv : send; }
    bool async() const { return any() && !any().device().host_accessible(); }
    template <class Call>
    void call(const Call& function) {
        ExtensionCall call;
        const catena_status status = function(call.context());
        if (status == CATENA_OK) return;
        if (work || status == CATENA_E_DEVICE) keep();  // else the plugin did not start it
        call.check(status, {});                         // it names rank and operation
    }
    void keep() {
        const std::scoped_lock lock(group->mutex);
        group->kept.insert(group->kept.end(), {send, recv});
    }
};

Work::Work() noexcept = default;
Work::Work(Work&&) noexcept = default;
Work::Work(std::unique_ptr<State> state) : state_(std::move(state)) {}
Work::~Work() {
    try {
        // An error on this rank must not wait for others, which learn of it from abort().
        if (state_ && std::uncaught_exceptions() > state_->exceptions) state_->keep();
        else wait();
    } catch (const std::exception&) {  // the next operation of the group throws it
    }
}
Work& Work::operator=(Work&& other) noexcept {
    Work old(std::exchange(state_, std::move(other.state_)));
    return *this;
}

bool Work::done() const {
    if (!state_) return true;
    std::int32_t done = 0;
    state_->call(
        [&](catena_ctx* ctx) { return state_->group->table->test(ctx, state_->work, &done); });
    return done != 0;
}

void Work::wait() {
    if (!state_) return;
    const std::unique_ptr<State> state = std::move(state_);
    const catena_communicator& table = *state->group->table;
    if (state->async() && table.wait_on) {
        const Stream stream = Stream::current(state->any().device());
        state->call(
            [&](catena_ctx* ctx) { return table.wait_on(ctx, state->work, stream.native()); });
        if (state->send) use(stream, state->send, false);
        if (state->recv) use(stream, state->recv, true);
    } else {
        state->call([&](catena_ctx* ctx) { return table.wait(ctx, state->work); });
    }
    if (state->target) state->target.copy_from(state->recv);
}

Communicator::Communicator() : group_(std::make_shared<Group>()) {}
Communicator::Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}

Communicator Communicator::open(std::string_view name, const CommunicatorOptions& options) {
    const auto known = tables();
    const auto found = known.find(std::string(name));
    if (found == known.end())
        fail<PluginError>("[Communicator] name: expected one of {}, got '{}'",
                          known.empty() ? "no plugin" : fmt::format("{}", fmt::join(names(), ", ")),
                          name);
    if (options.timeout < 0 || !std::isfinite(options.timeout))
        fail<InvalidError>("[Communicator] timeout: expected 0 or more seconds, got {}",
                           options.timeout);
    const Device device = options.device ? options.device : Device::current();
    auto group = std::make_shared<Group>();
    group->table = found->second;
    group->name = name;
    catena_comm_options given = {};
    given.struct_size = sizeof given;
    given.rank = options.rank;
    given.size = options.size;
    given.device_id = device.ordinal();
    given.address = options.address.empty() ? nullptr : options.address.c_str();
    given.timeout = options.timeout > 0 ? options.timeout : default_timeout();
    ExtensionCall call;
    call.check(group->table->open(call.context(), &given, &group->comm), group->name);
    const std::string_view takes = group->table->devices;
    group->staging =
        in_list(takes, "cpu")
            ? cuda::host()
            : Device::get(fmt::format("{}:{}", takes.substr(0, takes.find(',')), device.ordinal()));
    group->table->info(group->comm, &group->info);
    return Communicator(std::move(group));
}

std::vector<std::string> Communicator::names() {
    std::vector<std::string> result;
    for (const auto& [name, table] : tables()) result.push_back(name);
    return result;
}

const std::string& Communicator::name() const noexcept { return group_->name; }
int Communicator::rank() const noexcept { return group_->info.rank; }
int Communicator::size() const noexcept { return group_->info.size; }
int Communicator::local_rank() const noexcept { return group_->info.local_rank; }
int Communicator::local_size() const noexcept { return group_->info.local_size; }

Communicator Communicator::split(int color, int key) const {
    if (!group_->table) return {};
    auto part = std::make_shared<Group>();
    part->table = group_->table;
    part->name = group_->name;
    part->staging = group_->staging;
    ExtensionCall call;
    call.check(part->table->split(call.context(), group_->comm, color, key, &part->comm), {});
    if (!part->comm) return {};
    part->table->info(part->comm, &part->info);
    const std::scoped_lock lock(group_->mutex);
    group_->parts.push_back(part);
    return Communicator(std::move(part));
}

void Communicator::abort(std::string_view reason) const noexcept {
    if (!group_->table) return;
    try {
        group_->table->abort(group_->comm, std::string(reason).c_str());
        std::unique_lock lock(group_->mutex);
        const std::vector<std::weak_ptr<Group>> parts = group_->parts;
        lock.unlock();
        for (const auto& each : parts)
            if (const auto part = each.lock()) Communicator(part).abort(reason);
    } catch (const std::exception&) {
        group_->table->abort(group_->comm, "out of memory");
    }
}

// ---- operations

namespace {

// Returns the number of elements of one of n equal pieces. Throws if there is a remainder.
std::int64_t piece_of(const Array& array, int n, int kind) {
    if (array.size() % n != 0)
        fail<ShapeError>("[{}] elements: expected a multiple of {} ranks, got shape {}",
                         kind_name(kind), n, to_string(array.shape()));
    return array.size() / n;
}

std::vector<std::uint64_t> counts_of(std::span<const std::int64_t> counts, const Array& whole,
                                     int n, int kind) {
    if (counts.empty()) return {};
    if (std::ssize(counts) != n || std::ranges::any_of(counts, [](auto c) { return c < 0; }))
        fail<ShapeError>("[{}] counts: expected {} numbers >= 0, got {}", kind_name(kind), n,
                         counts);
    std::int64_t total = 0;
    for (const std::int64_t each : counts) total += each;
    if (total != whole.size())
        fail<ShapeError>("[{}] counts: expected a sum of {}, the elements of {}, got {}",
                         kind_name(kind), whole.size(), to_string(whole.shape()), counts);
    return {counts.begin(), counts.end()};
}

void require_elements(const Array& array, std::int64_t expected, int kind, const char* what) {
    if (array.size() != expected)
        fail<ShapeError>("[{}] {}: expected {} elements, got {} of shape {}", kind_name(kind), what,
                         expected, array.size(), to_string(array.shape()));
}

// Returns the counts of the pieces of an array, of which `own` is this rank's.
std::vector<std::uint64_t> pieces_of(const Communicator& comm, const Array& whole,
                                     std::span<const std::int64_t> counts, const Array& own,
                                     int kind, const char* what) {
    auto pieces = counts_of(counts, whole, comm.size(), kind);
    const std::int64_t expected = pieces.empty() ? piece_of(whole, comm.size(), kind)
                                                 : counts[static_cast<std::size_t>(comm.rank())];
    require_elements(own, expected, kind, what);
    return pieces;
}

void require_array(const Array& array, int kind, const char* what) {
    if (!array)
        fail<InvalidError>("[{}] {}: expected an array, got an empty handle", kind_name(kind),
                           what);
}

}  // namespace

// The checks of plugins, for the group of one.
void Communicator::check_alone(const Request& r) {
    const bool reduces = r.kind == CATENA_OP_ALLREDUCE || r.kind == CATENA_OP_REDUCE ||
                         r.kind == CATENA_OP_REDUCE_SCATTER;
    if (r.kind != CATENA_OP_SEND && r.kind != CATENA_OP_RECV && r.peer != 0)
        fail<InvalidError>("[{}] root: expected a rank from 0 to 0, got {}", kind_name(r.kind),
                           r.peer);
    if (!reduces) return;
    const Dtype dtype = r.send.dtype();
    const bool orders = r.reduction == Reduction::min || r.reduction == Reduction::max;
    if (r.reduction == Reduction::mean && !is_floating(dtype))
        fail<DtypeError>("[{}] mean: expected a floating dtype, got {}", kind_name(r.kind),
                         catena::name(dtype));
    if (dtype == Dtype::bool8 && !orders)
        fail<DtypeError>("[{}] {}: expected min or max of bool, got bool", kind_name(r.kind),
                         r.reduction == Reduction::sum ? "sum" : "prod");
}

Work Communicator::start(const Request& r, const OperationOptions& options) const {
    if (r.send && r.recv && (r.send.dtype() != r.recv.dtype()))
        fail<DtypeError>("[{}] y: expected {} as x, got {}", kind_name(r.kind),
                         catena::name(r.send.dtype()), catena::name(r.recv.dtype()));
    if (r.send && r.recv && r.send.device() != r.recv.device())
        fail<DeviceError>("[{}] y: expected an array on {} as x, got one on {}", kind_name(r.kind),
                          r.send.device().name(), r.recv.device().name());
    if (!group_->table) {  // every piece is this process's
        check_alone(r);
        if (r.kind == CATENA_OP_SEND || r.kind == CATENA_OP_RECV)
            fail<InvalidError>("[{}] peer: expected another rank, got a group of one",
                               kind_name(r.kind));
        if (r.send && r.recv && r.send.body() != r.recv.body())
            r.recv.reshape({-1}).copy_from(r.send.reshape({-1}));
        return {};
    }
    auto state = std::make_unique<Work::State>();
    state->group = group_;
    state->send = r.send;
    state->recv = r.recv;
    if (const Array any = state->any(); any && !group_->takes(any)) {
        const Device& device = group_->staging;
        const bool in_place = r.send && r.recv && r.send.body() == r.recv.body();
        if (r.send) state->send = r.send.to(device);
        if (r.recv) {
            state->target = r.recv;
            if (in_place) state->recv = state->send;
            else if (device.host_accessible())
                state->recv = Array::pinned(r.recv.shape(), r.recv.dtype(), any.device());
            else state->recv = Array::empty(r.recv.shape(), r.recv.dtype(), device);
        }
    }
    catena_operation o = {};
    o.struct_size = sizeof o;
    o.kind = r.kind;
    o.reduction = static_cast<std::int32_t>(r.reduction);
    o.peer = r.peer;
    o.tag = r.tag;
    o.count = static_cast<std::uint64_t>(r.count);
    o.send_counts = r.send_counts.empty() ? nullptr : r.send_counts.data();
    o.recv_counts = r.recv_counts.empty() ? nullptr : r.recv_counts.data();
    o.timeout = options.timeout;
    o.label = options.label.c_str();
    std::optional<ExtensionCall> access;  // waits for pending work on the arrays
    if (const Array any = state->any()) {
        access.emplace(any.device());
        const auto describe = [&](const catena_tensor& t) {
            o.dtype = t.dl.dtype;
            o.device_type = t.dl.device_type;
            o.device_id = t.dl.device_id;
            return static_cast<char*>(t.dl.data) + t.dl.byte_offset;
        };
        if (state->send) o.send = describe(*access->reads(state->send));
        if (state->recv) o.recv = describe(*access->writes(state->recv));
        o.stream = access->stream();
    }
    state->call(
        [&](catena_ctx* ctx) { return group_->table->start(ctx, group_->comm, &o, &state->work); });
    return Work(std::move(state));
}

Work Communicator::barrier() const { return start({.kind = CATENA_OP_BARRIER}, {}); }

Work Communicator::allreduce(const Array& x, Reduction reduction,
                             const OperationOptions& options) const {
    return allreduce(x, x, reduction, options);
}
Work Communicator::allreduce(const Array& x, const Array& y, Reduction reduction,
                             const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_ALLREDUCE;
    require_array(x, kind, "x");
    require_array(y, kind, "y");
    require_elements(y, x.size(), kind, "y");
    return start({kind, x, y, x.size(), 0, reduction}, options);
}

Work Communicator::reduce(const Array& x, const Array& y, int root, Reduction reduction,
                          const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_REDUCE;
    require_array(x, kind, "x");
    if (rank() == root) {
        require_array(y, kind, "y");
        require_elements(y, x.size(), kind, "y");
    }
    return start({kind, x, rank() == root ? y : Array(), x.size(), root, reduction}, options);
}

Work Communicator::bcast(const Array& x, int root, const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_BCAST;
    require_array(x, kind, "x");
    const bool sends = rank() == root;
    return start({kind, sends ? x : Array(), sends ? Array() : x, x.size(), root}, options);
}

Work Communicator::allgather(const Array& x, const Array& y, std::span<const std::int64_t> counts,
                             const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_ALLGATHER;
    require_array(x, kind, "x");
    require_array(y, kind, "y");
    Request request{kind, x, y, x.size()};
    request.recv_counts = pieces_of(*this, y, counts, x, kind, "x");
    return start(request, options);
}

Work Communicator::reduce_scatter(const Array& x, const Array& y, Reduction reduction,
                                  std::span<const std::int64_t> counts,
                                  const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_REDUCE_SCATTER;
    require_array(x, kind, "x");
    require_array(y, kind, "y");
    Request request{kind, x, y, y.size(), 0, reduction};
    request.send_counts = pieces_of(*this, x, counts, y, kind, "y");
    return start(request, options);
}

Work Communicator::gather(const Array& x, const Array& y, int root,
                          std::span<const std::int64_t> counts,
                          const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_GATHER;
    require_array(x, kind, "x");
    Request request{kind, x, {}, x.size(), root};
    if (rank() == root) {
        require_array(y, kind, "y");
        request.recv = y;
        request.recv_counts = pieces_of(*this, y, counts, x, kind, "x");
    }
    return start(request, options);
}

Work Communicator::scatter(const Array& x, const Array& y, int root,
                           std::span<const std::int64_t> counts,
                           const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_SCATTER;
    require_array(y, kind, "y");
    Request request{kind, {}, y, y.size(), root};
    if (rank() == root) {
        require_array(x, kind, "x");
        request.send = x;
        request.send_counts = pieces_of(*this, x, counts, y, kind, "y");
    }
    return start(request, options);
}

Work Communicator::alltoall(const Array& x, const Array& y,
                            std::span<const std::int64_t> send_counts,
                            std::span<const std::int64_t> recv_counts,
                            const OperationOptions& options) const {
    constexpr int kind = CATENA_OP_ALLTOALL;
    require_array(x, kind, "x");
    require_array(y, kind, "y");
    if (send_counts.empty() != recv_counts.empty())
        fail<InvalidError>("[alltoall] counts: expected those of x and y, got one list");
    if (send_counts.empty()) require_elements(y, x.size(), kind, "y");
    Request request{kind, x, y, send_counts.empty() ? piece_of(x, size(), kind) : 0};
    request.send_counts = counts_of(send_counts, x, size(), kind);
    request.recv_counts = counts_of(recv_counts, y, size(), kind);
    return start(request, options);
}

Work Communicator::send(const Array& x, int to, int tag, const OperationOptions& options) const {
    require_array(x, CATENA_OP_SEND, "x");
    return start({.kind = CATENA_OP_SEND, .send = x, .count = x.size(), .peer = to, .tag = tag},
                 options);
}

Work Communicator::recv(const Array& y, int from, int tag, const OperationOptions& options) const {
    require_array(y, CATENA_OP_RECV, "y");
    return start({.kind = CATENA_OP_RECV, .recv = y, .count = y.size(), .peer = from, .tag = tag},
                 options);
}

namespace {

Array bytes_of(std::string_view text) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
    return Array::from(std::span(data, text.size()), {static_cast<std::int64_t>(text.size())},
                       cuda::host());
}
std::string text_of(std::span<const std::uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

std::string Communicator::bcast_text(std::string text, int root) const {
    const Array length = Array::from({std::ssize(text)}, {1}, cuda::host());
    bcast(length, root, {.label = "length"}).wait();
    Array bytes = bytes_of(text);
    if (rank() != root)
        bytes = Array::zeros({length.item<std::int64_t>()}, Dtype::uint8, cuda::host());
    bcast(bytes, root, {.label = "text"}).wait();
    return text_of(bytes.host<const std::uint8_t>());
}

std::vector<std::string> Communicator::allgather_text(const std::string& text) const {
    const Array length = Array::from({std::ssize(text)}, {1}, cuda::host());
    const Array lengths = Array::zeros({size()}, Dtype::int64, cuda::host());
    allgather(length, lengths, {}, {.label = "length"}).wait();
    const auto counts = lengths.to_vector<std::int64_t>();
    std::int64_t total = 0;
    for (const std::int64_t each : counts) total += each;
    const Array all = Array::zeros({total}, Dtype::uint8, cuda::host());
    allgather(bytes_of(text), all, counts, {.label = "text"}).wait();
    std::vector<std::string> result;
    std::span<const std::uint8_t> rest = all.host<const std::uint8_t>();
    for (const std::int64_t each : counts) {
        result.push_back(text_of(rest.first(static_cast<std::size_t>(each))));
        rest = rest.subspan(static_cast<std::size_t>(each));
    }
    return result;
}

void run_ranks(int n, const std::function<void(const Communicator&)>& body,
               const std::vector<Device>& devices, double timeout) {
    if (n < 1 || (!devices.empty() && std::ssize(devices) < n))
        fail<InvalidError>("[run_ranks] ranks: expected at least 1 and {} devices, got {}", n,
                           devices.size());
    static std::atomic<int> groups = 0;
    const std::string address = fmt::format("run_ranks {}", groups++);
    std::mutex mutex;
    std::exception_ptr first;
    bool first_is_own = false;
    const Config inherited = config();
    const Device current = Device::current();
    const auto run = [&](int rank) {
        std::optional<Communicator> comm;
        try {
            config() = inherited;
            const using_device scope(devices.empty() ? current
                                                     : devices[static_cast<std::size_t>(rank)]);
            comm = Communicator::open(
                "threads", {.rank = rank, .size = n, .address = address, .timeout = timeout});
            body(*comm);
        } catch (const std::exception& error) {
            const std::scoped_lock lock(mutex);
            // A DeviceError may be a consequence of another rank's exception.
            const bool own = dynamic_cast<const DeviceError*>(&error) == nullptr;
            if (!first || (own && !first_is_own)) {
                first = std::current_exception();
                first_is_own = own;
            }
            if (comm) comm->abort(error.what());
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < n; ++rank) threads.emplace_back(run, rank);
    }
    if (first) std::rethrow_exception(first);
}

}  // namespace catena::distributed
