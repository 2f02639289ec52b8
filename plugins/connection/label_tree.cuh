// Label trees in device memory.
//
// The first call with a tree copies its tables to memory that is kept until the process ends, for
// up to 16 trees per device. Recorded calls can only use these tables, so they need a warm-up call.
// Each call with another tree copies its tables to scratch memory and waits for the copy.
#pragma once

#include <memory>

#include <catena/plugin/cuda/launch.cuh>

#include "label_tree.hpp"

namespace catena::plugins {

// The tables of a tree that kernels read.
struct TreeTables {
    static constexpr std::int32_t wrong = -2;  // the parent of a label that is not in the tree

    __device__ __forceinline__ LabelTree::Link find(std::int64_t label) const {
        // Labels are mostly consecutive: try that index first, then search.
        std::int64_t at = static_cast<std::int64_t>(static_cast<std::uint64_t>(label) -
                                                    static_cast<std::uint64_t>(labels[0]));
        if (at >= 0 && at < n && labels[at] == label) return leaves[at];
        at = 0;
        for (std::int64_t rest = n; rest > 0;) {
            const std::int64_t half = rest / 2;
            const bool beyond = labels[at + half] < label;
            at += beyond ? half + 1 : 0;
            rest = beyond ? rest - half - 1 : half;
        }
        return at < n && labels[at] == label ? leaves[at] : LabelTree::Link{wrong, 0};
    }

    const std::int64_t* labels;     // sorted
    const LabelTree::Link* leaves;  // in the order of labels
    const LabelTree::Link* nodes;
    std::int64_t n;  // number of leaves
};

class TreesOnDevice {
public:
    static std::uint64_t bytes(const LabelTree& tree) {
        return tree.leaves().size() * (sizeof(std::int64_t) + sizeof(LabelTree::Link)) +
               tree.links().size() * sizeof(LabelTree::Link);
    }
    // Returns the bytes of scratch memory that tables() may need.
    static std::uint64_t scratch(int device, const std::shared_ptr<const LabelTree>& tree) {
        const std::lock_guard lock(all().mutex);
        return all().find(device, tree) == nullptr ? bytes(*tree) : 0;
    }
    static TreeTables tables(const cuda::Queue& queue, const std::shared_ptr<const LabelTree>& tree,
                             char* scratch) {
        const std::lock_guard lock(all().mutex);
        if (const Entry* const entry = all().find(queue.device, tree))
            return tables_at(*tree, entry->data);
        refuse_recording(queue);
        const bool full =
            std::ranges::count(all().entries, queue.device, &Entry::device) >= All::most;
        Memory memory(full ? nullptr : allocate(queue, bytes(*tree)));
        copy(queue, *tree, memory == nullptr ? scratch : memory.get());
        if (memory == nullptr) return tables_at(*tree, scratch);
        all().entries.push_back({queue.device, tree, memory.get()});
        return tables_at(*tree, memory.release());
    }

private:
    struct Free {
        void operator()(char* data) const { static_cast<void>(cudaFree(data)); }
    };
    using Memory = std::unique_ptr<char, Free>;
    struct Entry {
        int device;
        std::shared_ptr<const LabelTree> tree;
        char* data;
    };
    struct All {
        const Entry* find(int device, const std::shared_ptr<const LabelTree>& tree) const {
            const auto found = std::ranges::find_if(entries, [&](const Entry& e) {
                return e.device == device && (e.tree == tree || *e.tree == *tree);
            });
            return found == entries.end() ? nullptr : &*found;
        }
        static constexpr int most = 16;  // trees per device
        std::mutex mutex;
        std::vector<Entry> entries;
    };
    static All& all() {
        static All& trees = *new All;  // plugins are never unloaded
        return trees;
    }

    static TreeTables tables_at(const LabelTree& tree, const char* data) {
        const std::size_t n = tree.leaves().size();
        const auto* const labels = reinterpret_cast<const std::int64_t*>(data);
        const auto* const leaves = reinterpret_cast<const LabelTree::Link*>(labels + n);
        return {labels, leaves, leaves + n, static_cast<std::int64_t>(n)};
    }
    static void check(const cuda::Queue& queue, const char* what, cudaError_t error) {
        if (error != cudaSuccess) cuda::fail_cuda(queue.function, what, error);
    }
    static void refuse_recording(const cuda::Queue& queue) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        check(queue, "cudaStreamIsCapturing", cudaStreamIsCapturing(queue.stream, &status));
        if (status != cudaStreamCaptureStatusNone)
            fail(CATENA_E_UNSUPPORTED, queue.function, "tree",
                 "one that a call before the recording has brought to the device, of " +
                     std::to_string(All::most) + " that stay there",
                 "one that is not there");
    }
    // Returns null if there is not enough device memory; the caller then uses scratch memory.
    static char* allocate(const cuda::Queue& queue, std::uint64_t bytes) {
        void* data = nullptr;
        const cudaError_t error = cudaMalloc(&data, bytes);
        if (error != cudaErrorMemoryAllocation) check(queue, "cudaMalloc", error);
        else static_cast<void>(cudaGetLastError());
        return static_cast<char*>(data);
    }
    // Waits for the copy: `words` is freed here, and other streams may read the tables afterwards.
    static void copy(const cuda::Queue& queue, const LabelTree& tree, char* to) {
        std::vector<std::int64_t> words(bytes(tree) / sizeof(std::int64_t));
        static_assert(sizeof(LabelTree::Link) == sizeof(std::int64_t));
        auto word = words.begin();
        for (const LabelTree::Leaf& leaf : tree.leaves()) *word++ = leaf.label;
        for (const LabelTree::Leaf& leaf : tree.leaves())
            *word++ = std::bit_cast<std::int64_t>(leaf.link);
        for (const LabelTree::Link& link : tree.links())
            *word++ = std::bit_cast<std::int64_t>(link);
        check(queue, "cudaMemcpyAsync",
              cudaMemcpyAsync(to, words.data(), bytes(tree), cudaMemcpyHostToDevice, queue.stream));
        check(queue, "cudaStreamSynchronize", cudaStreamSynchronize(queue.stream));
    }
};

}  // namespace catena::plugins
