// Convolutions and attention in cuDNN's graph API: operation graphs, execution plans for them, and the
// cache of plans, which cuDNN's heuristics or timing select once for each problem.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <variant>

#include <catena/plugin/vendor.hpp>

#include "descriptor.hpp"

namespace catena_cudnn {

using Direction = ConvolutionProduct;
using Geometry = ConvolutionSizes;

struct Convolution {
    Direction direction;
    Geometry g;
    bool bias;  // forward only: y = convolution + b, one b per output channel
    auto operator<=>(const Convolution&) const = default;
};

// Attention of h heads of queries to hk heads of keys and values, in b batches: queries (b, h, t, d),
// keys (b, hk, s, d) and values (b, hk, s, e), or with rows before heads.
struct Attention {
    bool backward;
    bool causal;  // query i sees the keys up to i
    bool heads_last;
    bool accumulate;  // backward: sums the gradient of q in memory, in any order
    std::int64_t b, h, hk, t, s, d, e;
    auto operator<=>(const Attention&) const = default;
};

// The computation of a plan.
struct Problem {
    std::variant<Convolution, Attention> operation;
    cudnnDataType_t dtype;
    bool add;                // adds to the existing values of the result; convolutions only
    bool deterministic;      // bit-identical results in every run
    bool half;               // float32 operands may be rounded to half precision
    std::int64_t alignment;  // of all tensors, in bytes
    auto operator<=>(const Problem&) const = default;
};

// Unique IDs of the tensors in the graph.
enum Role : std::int64_t {
    tensor_x = 1,
    tensor_w,
    tensor_y,
    tensor_b,
    tensor_sum,  // the forward result before the bias is added
    tensor_q,
    tensor_k,
    tensor_v,
    tensor_attended,  // the result of attention, (b, h, t, e)
    tensor_lse,       // log of the sum of e^score, float32 (b, h, t)
    tensor_gy,
    tensor_mean,  // gy . y, float32 (b, h, t)
    tensor_gq,
    tensor_gk,
    tensor_gv,
    tensor_gq_sum,  // if it accumulates: float32 (b, h, t, d)
    number_scale,   // the numbers are float32 in host memory
    number_one,
    number_hidden,  // the score of a key that a query does not see
    n_roles
};

// Sets the device of a graph, of heuristics or of a plan, before the descriptor is finalized.
using Teller = std::function<void(Descriptor&)>;
Teller teller_of(cudnnHandle_t handle);

using Shape4 = std::array<std::int64_t, 4>;
Shape4 packed(const Shape4& shape);  // strides

// An operation graph that owns all descriptors it refers to.
class Graph {
public:
    Graph(const Library& cudnn, const Problem& p, const Teller& teller);
    const Descriptor& descriptor() const { return parts_.back(); }

    // For the functions that build it. by_value: a number in host memory. within: not in memory.
    enum class Place { stored, within, by_value };
    const Descriptor& tensor(std::int64_t id, const Shape4& shape, const Shape4& strides,
                             cudnnDataType_t dtype, Place place = Place::stored);
    // Returns a descriptor that operations refer to, or the next operation. Callers finalize them.
    Descriptor& part(cudnnBackendDescriptorType_t type) {
        return parts_.emplace_back(cudnn_, type);
    }
    Descriptor& operation(cudnnBackendDescriptorType_t type) {
        return operations_.emplace_back(cudnn_, type);
    }
    // Adds y = mode(x), or mode(x, b). mask: of a selection. axis: of an index.
    void pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t computed, const Descriptor& x,
                   const Descriptor* b, const Descriptor& y, const Descriptor* mask = nullptr,
                   std::int64_t axis = -1);

private:
    const Library& cudnn_;
    const std::int64_t alignment_;
    std::deque<Descriptor> parts_;  // references stay valid
    std::vector<Descriptor> operations_;
};
void build(Graph& graph, const Problem& p, const Convolution& c);
void build(Graph& graph, const Problem& p, const Attention& a);  // attention_graph.cpp

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
using Pointers = std::array<void*, n_roles>;
void execute(const Library& cudnn, cudnnHandle_t handle, const Plan& plan, const Pointers& data,
             void* workspace);

// plans.cpp. Whether cuDNN has a plan for the problem within the maximum workspace.
bool can(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Returns the bytes of scratch memory that run() needs; 0 if it needs none or there is no plan.
std::uint64_t scratch_for(catena_ctx* ctx, const catena_call& call, const Problem& p);
// Enqueues the work. data: all tensors of the graph in memory. With CATENA_CUDNN_AUTOTUNE, first times
// plans.
void run(catena_ctx* ctx, const catena_call& call, const Problem& p, const Pointers& data);

}  // namespace catena_cudnn
