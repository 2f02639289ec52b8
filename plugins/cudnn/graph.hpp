// A convolution as cuDNN's graph API describes it, the ways in which cuDNN can compute it, and plans by
// what they were made for: chosen once, by cuDNN's heuristics or by timing, and kept.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include <catena/plugin/vendor.hpp>

#include "descriptor.hpp"

namespace catena_cudnn {

using Direction = ConvolutionProduct;
using Geometry = ConvolutionSizes;

// What a plan is made for.
struct Problem {
    Direction direction;
    cudnnDataType_t dtype;
    Geometry g;
    bool bias;               // forward alone: y = convolution + b, for each of the outputs
    bool add;                // to what is there
    bool deterministic;      // the same bits each time
    std::int64_t alignment;  // of all data, in bytes
    auto operator<=>(const Problem&) const = default;
};

// The tensors by their numbers in the graph.
enum Role : std::int64_t { tensor_x = 1, tensor_w, tensor_y, tensor_b, tensor_sum };

// Tells a graph, its heuristics and its plans which device they are for, before they are finalised.
using Teller = std::function<void(Descriptor&)>;
Teller teller_of(cudnnHandle_t handle);

// An operation graph, with all that it refers to.
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

// One engine's way, ready to run.
struct Plan {
    std::shared_ptr<const Graph> graph;
    Descriptor config;
    Descriptor plan;
    std::int64_t workspace;  // bytes
};

// What an engine may not do to the numbers.
bool allowed(const Problem& p, bool tf32, std::span<const cudnnBackendNumericalNote_t> notes);

// What cuDNN proposes, best first: at most `most` plans with a workspace of at most `limit` bytes. Empty
// if it can do nothing of what is allowed.
std::vector<Plan> plans_for(const Library& cudnn, const Problem& p, const Teller& teller, bool tf32,
                            std::int64_t limit, std::size_t most);

// Pointers by Role, null for those that are not there.
using Pointers = std::array<void*, tensor_sum + 1>;
void execute(const Library& cudnn, cudnnHandle_t handle, const Plan& plan, const Pointers& data,
             void* workspace);

// plans.cpp. Whether cuDNN can do this within the workspace that is allowed.
bool can(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Scratch bytes that run() takes; 0 if it cannot.
std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Enqueues it. data: x, W, y and b as p has them. With CATENA_CUDNN_AUTOTUNE the first run measures.
void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data);

}  // namespace catena_cudnn
