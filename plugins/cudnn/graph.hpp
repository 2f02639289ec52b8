// Convolutions in cuDNN's graph API: operation graphs, execution plans for them, and the cache of plans,
// which cuDNN's heuristics or timing select once for each problem.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include <catena/plugin/vendor.hpp>

#include "descriptor.hpp"

namespace catena_cudnn {

using Direction = ConvolutionProduct;
using Geometry = ConvolutionSizes;

// The convolution that a plan computes.
struct Problem {
    Direction direction;
    cudnnDataType_t dtype;
    Geometry g;
    bool bias;               // forward only: y = convolution + b, one b per output channel
    bool add;                // adds to the existing values of the result
    bool deterministic;      // bit-identical results in every run
    bool half;               // float32 operands may be rounded to half precision
    std::int64_t alignment;  // of all tensors, in bytes
    auto operator<=>(const Problem&) const = default;
};

// Unique IDs of the tensors in the graph. tensor_sum: the forward result before the bias is added.
enum Role : std::int64_t { tensor_x = 1, tensor_w, tensor_y, tensor_b, tensor_sum };

// Sets the device of a graph, of heuristics or of a plan, before the descriptor is finalized.
using Teller = std::function<void(Descriptor&)>;
Teller teller_of(cudnnHandle_t handle);

// An operation graph that owns all descriptors it refers to.
class Graph {
public:
    Graph(const Library& cudnn, const Problem& p, const Teller& teller);
    const Descriptor& descriptor() const { return parts_.back(); }

private:
    Descriptor tensor(Role number, const std::array<std::int64_t, 4>& shape) const;
    Descriptor& keep(Descriptor&& made) { return parts_.emplace_back(std::move(made)); }

    const Library& cudnn_;
    const Problem p_;
    std::vector<Descriptor> parts_;
};

// An execution plan of one engine, ready to run.
struct Plan {
    std::shared_ptr<const Graph> graph;
    Descriptor config;
    Descriptor plan;
    std::int64_t workspace;  // bytes
};

// Whether an engine with these numerical notes may compute the problem.
bool allowed(const Problem& p, bool tf32, std::span<const cudnnBackendNumericalNote_t> notes);

// Returns up to `most` plans that cuDNN proposes, best first, with a workspace of at most `limit` bytes.
// Empty if no allowed engine supports the problem.
std::vector<Plan> plans_for(const Library& cudnn, const Problem& p, const Teller& teller, bool tf32,
                            std::int64_t limit, std::size_t most);

// Data pointers by Role; null for tensors that the graph does not have.
using Pointers = std::array<void*, tensor_sum + 1>;
void execute(const Library& cudnn, cudnnHandle_t handle, const Plan& plan, const Pointers& data,
             void* workspace);

// plans.cpp. Whether cuDNN has a plan for the problem within the maximum workspace.
bool can(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Returns the bytes of scratch memory that run() needs; 0 if it needs none or there is no plan.
std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Enqueues the convolution. data: x, W, y, and b if p.bias. With CATENA_CUDNN_AUTOTUNE, first times plans.
void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data);

}  // namespace catena_cudnn
