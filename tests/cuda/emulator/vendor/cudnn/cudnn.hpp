// The cuDNN stand-in: declarations shared by its parts.
#pragma once

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

// Counts that tests read through catena_cudnn_counts(), which they find with dlsym().
struct CudnnCounts {
    long heuristics = 0;   // requested
    long plans = 0;        // created
    long runs = 0;         // executed plans
    long engine = -1;      // of the last run
    long descriptors = 0;  // that exist
};
#pragma GCC visibility push(default)
extern "C" CudnnCounts catena_cudnn_counts();
#pragma GCC visibility pop

namespace stand_in {

CudnnCounts& counts();  // the caller holds the lock of change()
void change(long CudnnCounts::*count, long by);
void ran(long engine);

// The value of an attribute, as it was set.
struct Value {
    cudnnBackendAttributeType_t type;
    std::int64_t count;
    std::vector<char> bytes;
};

struct Descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized = false;
    std::map<int, Value> values;
    bool recorded = false;  // plans: a recording launches its code

    bool has(int name) const { return values.contains(name); }
    template <class T>
    std::vector<T> all(int name) const {
        const auto found = values.find(name);
        if (found == values.end() || found->second.count == 0) return {};
        std::vector<T> list(static_cast<std::size_t>(found->second.count));
        std::memcpy(static_cast<void*>(list.data()), found->second.bytes.data(),
                    found->second.bytes.size());
        return list;
    }
    template <class T>
    T one(int name, T otherwise = {}) const {
        const std::vector<T> list = all<T>(name);
        return list.empty() ? otherwise : list[0];
    }
    const Descriptor* link(int name) const {
        return static_cast<const Descriptor*>(one<cudnnBackendDescriptor_t>(name));
    }
    template <class T>
    void put(int name, cudnnBackendAttributeType_t value_type, const std::vector<T>& list) {
        const auto* const begin = reinterpret_cast<const char*>(list.data());
        values[name] = {value_type, static_cast<std::int64_t>(list.size()),
                        std::vector<char>(begin, begin + list.size() * sizeof(T))};
    }
};

// The problem that a graph describes, as engines read it.
struct Convolution {
    int direction;  // 0 forward, 1 data, 2 filter
    cudnnDataType_t dtype;
    std::int64_t n, channels, height, width, outputs, oh, ow, kh, kw;
    std::int64_t stride_y, stride_x, pad_y, pad_x, dilate_y, dilate_x, groups;
    double alpha, beta;
    bool bias;
    std::int64_t x, w, y, b;  // unique ids
    std::int64_t alignment;
};
// Returns false if no engine supports the graph.
bool read_graph(const Descriptor& graph, Convolution& c);

// Engines: 0 is plain; the others have properties that callers must check.
struct Engine {
    std::int64_t index;
    std::vector<cudnnBackendNumericalNote_t> notes;
    // Returns bytes; -1 if finalizing a plan of it fails.
    std::int64_t (*workspace)(const Convolution& c);
    bool slow;
};
const std::vector<Engine>& engines();
const Engine& engine_of(std::int64_t index);

// Enqueues the convolution. data: pointers by unique ID.
cudnnStatus_t run(const Convolution& c, const Engine& engine, cudaStream_t stream,
                  const std::map<std::int64_t, void*>& data, void* workspace);

// A graph without convolutions: its operations in order, as attention needs them. Its only engine
// interprets it, if it is like cuDNN's fused attention.
extern const Engine fused_engine;
struct Program;
// Returns null if the engine does not support the graph.
std::shared_ptr<const Program> read_program(const Descriptor& graph);
std::int64_t workspace_of(const Program& program);  // bytes
// Enqueues the program. data: pointers by unique ID, exactly those of the graph.
cudnnStatus_t run(const Program& program, cudaStream_t stream,
                  const std::map<std::int64_t, void*>& data, void* workspace);

}  // namespace stand_in
