// The expected results of operations of communicators.
#include "testing/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catena/plugin/communicator.hpp"
#include "catena/testing/communicator.hpp"

namespace catena::testing {

bool has_pieces(int kind) {
    return kind == CATENA_OP_ALLGATHER || kind == CATENA_OP_REDUCE_SCATTER ||
           kind == CATENA_OP_GATHER || kind == CATENA_OP_SCATTER || kind == CATENA_OP_ALLTOALL;
}
bool has_reduction(catena_dtype dtype, int reduction) {
    if (dtype.code == CATENA_CODE_BOOL)
        return reduction == CATENA_REDUCE_MIN || reduction == CATENA_REDUCE_MAX;
    return reduction != CATENA_REDUCE_MEAN || is_floating(dtype);
}

std::string Form::text() const {
    std::string text = plugin::name_of_operation(kind);
    if (kind == CATENA_OP_BARRIER) return text;
    if (plugin::reduces(kind)) text += std::string(" ") + plugin::name_of_reduction(reduction);
    return text + " of " + plugin::text_of(dtype) + " x " + std::to_string(count) +
           (pieces ? " in pieces" : "") + (in_place ? ", in place" : "") +
           (at_begin ? " at the begin" : "");
}

// Small integers, so that sums are exact in any order.
double Exchange::number(int rank, std::uint64_t i) const {
    const std::uint64_t k = (static_cast<std::uint64_t>(rank) * 7 + i * 3) % 5;
    if (form_.dtype.code == CATENA_CODE_BOOL) return static_cast<double>(k % 2);
    const bool product = plugin::reduces(form_.kind) && form_.reduction == CATENA_REDUCE_PROD;
    return static_cast<double>(1 + (product ? k % 2 : k));
}
std::uint64_t Exchange::piece(int rank) const {
    if (!form_.pieces) return form_.count;
    return rank == 1 ? 0 : form_.count + 3 * static_cast<std::uint64_t>(rank);
}
std::uint64_t Exchange::piece(int from, int to) const {
    return form_.pieces ? static_cast<std::uint64_t>((from + 2 * to) % 3) * form_.count
                        : form_.count;
}
std::uint64_t Exchange::offset(int rank) const {
    std::uint64_t sum = 0;
    for (int r = 0; r < rank; ++r) sum += piece(r);
    return sum;
}
double Exchange::reduced(std::uint64_t i) const {
    double all = number(0, i);
    for (int r = 1; r < size_; ++r) {
        const double x = number(r, i);
        switch (form_.reduction) {
            case CATENA_REDUCE_MIN: all = std::min(all, x); break;
            case CATENA_REDUCE_MAX: all = std::max(all, x); break;
            case CATENA_REDUCE_PROD: all *= x; break;
            default: all += x;
        }
    }
    return form_.reduction == CATENA_REDUCE_MEAN ? all / size_ : all;
}

std::vector<double> Exchange::results() const {
    std::vector<double> all;
    const auto append = [&](std::uint64_t n, const auto& element) {
        for (std::uint64_t i = 0; i < n; ++i) all.push_back(element(i));
    };
    const bool root = rank_ == form_.root;
    const bool at_root = form_.kind == CATENA_OP_REDUCE || form_.kind == CATENA_OP_GATHER;
    if (root ? form_.kind == CATENA_OP_BCAST : at_root) return {};
    switch (form_.kind) {
        case CATENA_OP_REDUCE:
        case CATENA_OP_ALLREDUCE:
            append(form_.count, [&](std::uint64_t i) { return reduced(i); });
            break;
        case CATENA_OP_BCAST:
            append(form_.count, [&](std::uint64_t i) { return number(form_.root, i); });
            break;
        case CATENA_OP_GATHER:
        case CATENA_OP_ALLGATHER:
            for (int r = 0; r < size_; ++r)
                append(piece(r), [&](std::uint64_t i) { return number(r, i); });
            break;
        case CATENA_OP_REDUCE_SCATTER:
            append(piece(rank_), [&](std::uint64_t i) { return reduced(offset(rank_) + i); });
            break;
        case CATENA_OP_SCATTER:
            append(piece(rank_),
                   [&](std::uint64_t i) { return number(form_.root, offset(rank_) + i); });
            break;
        case CATENA_OP_ALLTOALL:
            for (int r = 0; r < size_; ++r) {
                std::uint64_t first = 0;
                for (int q = 0; q < rank_; ++q) first += piece(r, q);
                append(piece(r, rank_), [&](std::uint64_t i) { return number(r, first + i); });
            }
            break;
        default: break;
    }
    return all;
}

Exchange::Exchange(const Form& form, int rank, int size) : form_(form), rank_(rank), size_(size) {
    const bool root = rank == form.root;
    const bool sends_pieces =
        form.kind == CATENA_OP_REDUCE_SCATTER || (form.kind == CATENA_OP_SCATTER && root);
    const bool receives_pieces =
        form.kind == CATENA_OP_ALLGATHER || (form.kind == CATENA_OP_GATHER && root);
    for (int r = 0; r < size; ++r) {
        const bool each = form.kind == CATENA_OP_ALLTOALL;
        send_counts_.push_back(each ? piece(rank, r) : piece(r));
        recv_counts_.push_back(each ? piece(r, rank) : piece(r));
    }
    std::uint64_t n_sent = piece(rank);
    if (sends_pieces || form.kind == CATENA_OP_ALLTOALL)
        n_sent = std::accumulate(send_counts_.begin(), send_counts_.end(), std::uint64_t{0});
    if (form.kind == CATENA_OP_BARRIER || (form.kind == CATENA_OP_BCAST && !root) ||
        (form.kind == CATENA_OP_SCATTER && !root))
        n_sent = 0;
    expected_ = results();

    const std::uint64_t n_received = expected_.size();
    const bool shared = form.in_place && n_sent > 0 && n_received > 0;
    const auto room = [&](std::uint64_t n) {
        return Array({static_cast<std::int64_t>(n)}, form.dtype);
    };
    const std::size_t item = form.dtype.bits / 8;
    send_ = room(shared && n_received >= n_sent ? 0 : n_sent);
    recv_ = room(shared && n_received < n_sent ? 0 : n_received);
    std::byte* from = send_.data<std::byte>();
    std::byte* to = recv_.data<std::byte>();
    std::uint64_t first = 0;  // where send begins in recv_
    if (shared && n_received >= n_sent) {
        if (receives_pieces && !form.at_begin) first = offset(rank);
        from = to + first * item;
    } else if (shared) {
        to = from + (sends_pieces && !form.at_begin ? offset(rank) : 0) * item;
    }
    Array& source = shared && n_received >= n_sent ? recv_ : send_;
    for (std::uint64_t i = 0; i < n_sent; ++i)
        source.set(static_cast<std::int64_t>(first + i), number(rank, i));
    sent_ = send_;

    operation = comm_operation(form.kind, form.dtype, n_sent > 0 ? from : nullptr,
                               n_received > 0 ? to : nullptr, piece(rank));
    operation.reduction = form.reduction;
    operation.peer = form.root;
    operation.label = "check";
    if (form.pieces && (sends_pieces || form.kind == CATENA_OP_ALLTOALL))
        operation.send_counts = send_counts_.data();
    if (form.pieces && (receives_pieces || form.kind == CATENA_OP_ALLTOALL))
        operation.recv_counts = recv_counts_.data();
    if (form.kind == CATENA_OP_ALLREDUCE || form.kind == CATENA_OP_REDUCE ||
        form.kind == CATENA_OP_BCAST)
        operation.count = form.count;
    if (form.kind == CATENA_OP_BCAST && root && form.in_place) operation.recv = from;
}

catena_operation Exchange::on(const std::function<void*(Array&)>& place) {
    catena_operation o = operation;
    for (Array* array : {&send_, &recv_}) {
        if (array->size() == 0) continue;
        const std::byte* const here = array->data<std::byte>();
        auto* const there = static_cast<std::byte*>(place(*array));
        const auto moved = [&](const void* at) -> std::byte* {
            const auto* const byte = static_cast<const std::byte*>(at);
            const bool within = byte >= here && byte < here + array->nbytes();
            return within ? there + (byte - here) : nullptr;
        };
        if (std::byte* const send = moved(operation.send)) o.send = send;
        if (std::byte* const recv = moved(operation.recv)) o.recv = recv;
    }
    return o;
}

std::string Exchange::wrong() const {
    for (const Array* a : {&send_, &recv_})
        if (!a->intact()) return a->damage();
    const bool within = recv_.size() == 0 && !expected_.empty();  // in place, in a piece of send
    if (!within && send_ != sent_) return "send was modified";
    std::int64_t first = 0;
    if (within)
        first = (static_cast<const std::byte*>(operation.recv) - send_.data<std::byte>()) /
                (form_.dtype.bits / 8);
    // A mean may be a sum times 1/N.
    double tolerance = 0;
    if (plugin::reduces(form_.kind) && form_.reduction == CATENA_REDUCE_MEAN)
        tolerance = form_.dtype.bits == 16 ? 1e-2 : 1e-6;
    for (std::size_t i = 0; i < expected_.size(); ++i) {
        const double got = (within ? send_ : recv_).at(first + static_cast<std::int64_t>(i));
        if (!(std::abs(got - expected_[i]) <= tolerance * std::abs(expected_[i])))
            return "element " + std::to_string(i) + " of " + std::to_string(expected_.size()) +
                   ": expected " + plugin::text_of(expected_[i]) + ", got " + plugin::text_of(got);
    }
    return "";
}

}  // namespace catena::testing
