// Selects and caches plans. A plan belongs to the handle that it was made with, and so to one thread at a
// time, as cuDNN requires. The results of timing apply to all handles of a device.
#include "graph.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <set>

#include <catena/plugin/cuda/launch.cuh>

namespace catena_cudnn {
namespace {

constexpr std::size_t most_kept = 1024;
constexpr std::size_t most_timed = 8;
constexpr int timed_runs = 3;
constexpr std::uint64_t workspace_alignment = 256;  // scratch memory is aligned to 64

using Plans = std::vector<std::shared_ptr<const Plan>>;

struct Prepared {
    bool tuned() const { return plans.size() <= 1; }
    std::int64_t workspace() const {
        std::int64_t most = 0;
        for (const auto& plan : plans) most = std::max(most, plan->workspace);
        return most;
    }
    Plans plans;  // several: not timed yet; none: cuDNN has no plan
};

struct Key {
    Problem problem;
    int device;
    const void* handle;
    auto operator<=>(const Key&) const = default;
};
Cache<Key, std::shared_ptr<Prepared>>& prepared() {
    static auto* const cache = new Cache<Key, std::shared_ptr<Prepared>>(most_kept);
    return *cache;
}
// Index of the fastest candidate. The list of candidates is the same for all handles of a device.
Cache<Key, std::size_t>& fastest() {
    static auto* const cache = new Cache<Key, std::size_t>(most_kept);
    return *cache;
}

bool times(const Problem& p) { return settings().autotune && !p.deterministic; }

void leave_one(Prepared& all, std::size_t chosen) {
    if (chosen >= all.plans.size()) chosen = 0;
    if (chosen != 0) std::swap(all.plans[0], all.plans[chosen]);
    while (all.plans.size() > 1) all.plans.pop_back();
}

// Makes plans. If cuDNN refuses, returns none instead of failing the call: another kernel can run it.
Plans make(catena_ctx* ctx, cudnnHandle_t handle, const Problem& p, std::int64_t limit,
           std::size_t most) {
    try {
        Plans plans;
        Problem allowed = p;  // autotuning alone does not allow nondeterministic engines
        allowed.deterministic = p.deterministic || !settings().nondeterministic;
        for (Plan& plan :
             plans_for(*library(ctx), allowed, teller_of(handle), settings().tf32, limit, most))
            plans.push_back(std::make_shared<const Plan>(std::move(plan)));
        return plans;
    } catch (const Refusal& refusal) {
        if (refusal.status() == CATENA_E_NOMEM) throw;
        host().log(ctx, CATENA_LOG_DEBUG, refusal.what());
        return {};
    }
}

std::shared_ptr<Prepared> prepare(catena_ctx* ctx, const catena_call& call, const Problem& p) {
    const cudnnHandle_t handle = handle_of(ctx, call);
    const Key key = {p, call.device_id, handle};
    if (auto found = prepared().find(key)) return *found;
    const auto made = std::make_shared<Prepared>();
    made->plans = make(ctx, handle, p, settings().workspace, times(p) ? most_timed : 1);
    if (times(p))
        if (const auto known = fastest().find({p, call.device_id, nullptr}))
            leave_one(*made, *known);
    prepared().keep(key, made);
    return made;
}

// The result of a problem that adds to it, which is a convolution.
Role output(const Problem& p) {
    constexpr Role outputs[] = {tensor_y, tensor_x, tensor_w};  // by Direction
    return outputs[static_cast<std::size_t>(std::get<Convolution>(p.operation).direction)];
}
std::uint64_t output_bytes(const Problem& p) {
    const auto& [direction, g, bias] = std::get<Convolution>(p.operation);
    const std::int64_t sizes[] = {g.n * g.outputs * g.oh * g.ow,
                                  g.n * g.channels * g.height * g.width,
                                  g.outputs * g.group_channels() * g.kh * g.kw};
    const std::int64_t each = p.dtype == CUDNN_DATA_DOUBLE  ? 8
                              : p.dtype == CUDNN_DATA_FLOAT ? 4
                                                            : 2;
    return static_cast<std::uint64_t>(sizes[static_cast<std::size_t>(direction)] * each);
}
// Whether candidates write to temporary memory while they are timed: else each would add to the result.
bool writes_elsewhere(const Problem& p, const Prepared& all) { return p.add && !all.tuned(); }

std::uint64_t round_up(std::uint64_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

class Event {
public:
    explicit Event(const cuda::Queue& queue) : queue_(queue) { check(cudaEventCreate(&event_)); }
    ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    void record() const { check(cudaEventRecord(event_, queue_.stream)); }
    float since(const Event& begin) const {
        float milliseconds = 0;
        check(cudaEventSynchronize(event_));
        check(cudaEventElapsedTime(&milliseconds, begin.event_, event_));
        return milliseconds;
    }

private:
    void check(cudaError_t error) const {
        if (error != cudaSuccess) cuda::fail_cuda(queue_.function, "autotune", error);
    }
    cuda::Queue queue_;
    cudaEvent_t event_ = nullptr;
};

bool is_recorded(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) != cudaSuccess ||
           status != cudaStreamCaptureStatusNone;
}

// Keeps a recorded plan until the process ends, because it may own code that the recording launches.
void keep_recorded(std::shared_ptr<const Plan> plan) {
    struct Kept {
        std::mutex mutex;
        std::set<std::shared_ptr<const Plan>> plans;
    };
    static Kept& kept = *new Kept;
    const std::lock_guard lock(kept.mutex);
    kept.plans.insert(std::move(plan));
}

// Returns the index of the fastest candidate on the call's own data, or nothing if all candidates fail.
std::optional<std::size_t> time_all(const cuda::Queue& queue, const Library& cudnn,
                                    cudnnHandle_t handle, const Prepared& all, const Pointers& data,
                                    void* workspace) {
    const Event begin(queue);
    const Event end(queue);
    std::optional<std::size_t> best;
    float least = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < all.plans.size(); ++i) {
        try {
            execute(cudnn, handle, *all.plans[i], data, workspace);  // warm-up, loads code
            begin.record();
            for (int run = 0; run < timed_runs; ++run)
                execute(cudnn, handle, *all.plans[i], data, workspace);
            end.record();
        } catch (const Refusal& refusal) {
            if (refusal.status() == CATENA_E_NOMEM) throw;
            continue;
        }
        if (const float took = end.since(begin); took < least) {
            least = took;
            best = i;
        }
    }
    return best;
}

}  // namespace

bool can(catena_ctx* ctx, const catena_call& call, const Problem& p) {
    return !prepare(ctx, call, p)->plans.empty();
}

std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p) {
    const auto all = prepare(ctx, call, p);
    std::uint64_t bytes = round_up(static_cast<std::uint64_t>(all->workspace()));
    if (writes_elsewhere(p, *all)) bytes += output_bytes(p);
    return bytes == 0 ? 0 : bytes + workspace_alignment;
}

void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data) {
    const cuda::Queue queue = cuda::queue_of(call.function->name, call);
    const Library& cudnn = *library(ctx);
    const auto all = prepare(ctx, call, p);
    const cudnnHandle_t handle = handle_of(ctx, call);
    // Skips the start of the scratch memory up to the first aligned address.
    const std::uint64_t skipped = round_up(reinterpret_cast<std::uintptr_t>(call.scratch)) -
                                  reinterpret_cast<std::uintptr_t>(call.scratch);
    const std::uint64_t room = call.scratch_bytes > skipped ? call.scratch_bytes - skipped : 0;
    char* const workspace = room == 0 ? nullptr : static_cast<char*>(call.scratch) + skipped;

    if (!all->tuned() && !is_recorded(queue.stream) &&
        scratch_for(ctx, call, p) <= call.scratch_bytes) {
        Pointers written = data;
        if (writes_elsewhere(p, *all))
            written[output(p)] = workspace + round_up(static_cast<std::uint64_t>(all->workspace()));
        if (const auto chosen = time_all(queue, cudnn, handle, *all, written, workspace)) {
            leave_one(*all, *chosen);
            fastest().keep({p, call.device_id, nullptr}, *chosen);
        } else {
            all->plans.clear();
        }
    }
    // If a plan is refused when it runs, the next one is tried. Exceptions: lack of memory, which the host
    // can resolve; a recording, which is invalid then; and plans that add, which may have started to add.
    std::exception_ptr refused;
    const auto runs = [&](const Plans::value_type& plan) {
        if (static_cast<std::uint64_t>(plan->workspace) > room) return false;
        try {
            if (is_recorded(queue.stream)) keep_recorded(plan);
            execute(cudnn, handle, *plan, data, workspace);
            return true;
        } catch (const Refusal& refusal) {
            if (refusal.status() == CATENA_E_NOMEM || p.add || is_recorded(queue.stream)) throw;
            host().log(ctx, CATENA_LOG_DEBUG, refusal.what());
            if (!refused) refused = std::current_exception();
            return false;
        }
    };
    if (std::ranges::any_of(all->plans, runs)) return;
    // Makes plans that fit the scratch memory: the cached ones may differ from those that plan() saw.
    Plans others = make(ctx, handle, p, static_cast<std::int64_t>(room), most_timed);
    const auto found = std::ranges::find_if(others, runs);
    if (found != others.end()) {
        all->plans.clear();
        all->plans.push_back(std::move(*found));
        return;
    }
    if (!refused)
        fail(CATENA_E_UNSUPPORTED, call.function->name, "cuDNN",
             "a plan that takes " + std::to_string(room) + " bytes of workspace", "none");
    all->plans.clear();  // another kernel runs the next such call
    std::rethrow_exception(refused);
}

}  // namespace catena_cudnn
