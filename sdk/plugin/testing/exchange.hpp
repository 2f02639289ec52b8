// Operations of communicators with known results.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catena/abi/ext/communicator.h"
#include "testing/types.hpp"

namespace catena::testing {

struct Form {
    int kind = CATENA_OP_ALLREDUCE;
    catena_dtype dtype = dtype_of<float>();
    int reduction = CATENA_REDUCE_SUM;
    std::uint64_t count = 1;
    bool pieces = false;  // of different sizes, one of them empty
    bool in_place = false;
    int root = 0;
    bool at_begin = false;  // in place: send begins where recv does, not at a piece of it
    std::string text() const;
};
bool has_pieces(int kind);
bool has_reduction(catena_dtype dtype, int reduction);
inline constexpr auto& reducible_dtypes = detail::EveryType::dtypes;

// The part of one rank in such an operation.
class Exchange {
public:
    Exchange(const Form& form, int rank, int size);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    catena_operation operation = {};
    // The operation on copies of its memory: place(array) returns the address of a copy.
    catena_operation on(const std::function<void*(Array&)>& place);
    // Returns what is wrong with the result, or an empty text.
    std::string wrong() const;

private:
    double number(int rank, std::uint64_t i) const;  // element i of a rank's send
    std::uint64_t piece(int rank) const;
    std::uint64_t piece(int from, int to) const;  // of ALLTOALL
    std::uint64_t offset(int rank) const;
    double reduced(std::uint64_t i) const;
    std::vector<double> results() const;

    const Form form_;
    const int rank_, size_;
    std::vector<std::uint64_t> send_counts_, recv_counts_;
    Array send_, recv_;  // in place, one of them is empty
    Array sent_;         // a copy of send_
    std::vector<double> expected_;
};

}  // namespace catena::testing
