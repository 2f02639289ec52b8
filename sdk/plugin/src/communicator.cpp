// Communicators: checks and texts of operations, reductions on the CPU, and the table's callbacks.
#include "catena/plugin/communicator.hpp"

#include <algorithm>
#include <cstring>

#include "catena/plugin/half.hpp"

namespace catena::plugin {
namespace {

constexpr const char* operation_names[] = {"barrier",   "allreduce",      "reduce", "bcast",
                                           "allgather", "reduce_scatter", "gather", "scatter",
                                           "alltoall",  "send",           "recv"};
constexpr const char* reduction_names[] = {"sum", "mean", "min", "max", "prod"};

bool has_root(std::int32_t kind) {
    return kind == CATENA_OP_REDUCE || kind == CATENA_OP_BCAST || kind == CATENA_OP_GATHER ||
           kind == CATENA_OP_SCATTER;
}
// The types that reduce_into() knows.
using Reducible =
    Row<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
        std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;

// The ranks that have memory and pieces on each side.
struct Sides {
    bool send, recv;                // this rank reads send, writes recv
    bool send_pieces, recv_pieces;  // ... with a piece for each rank
};
Sides sides_of(const catena_operation& o, const catena_comm_info& info) {
    const bool root = o.peer == info.rank;
    switch (o.kind) {
        case CATENA_OP_ALLREDUCE: return {true, true, false, false};
        case CATENA_OP_REDUCE: return {true, root, false, false};
        case CATENA_OP_BCAST: return {root, !root, false, false};
        case CATENA_OP_ALLGATHER: return {true, true, false, true};
        case CATENA_OP_REDUCE_SCATTER: return {true, true, true, false};
        case CATENA_OP_GATHER: return {true, root, false, root};
        case CATENA_OP_SCATTER: return {root, true, root, false};
        case CATENA_OP_ALLTOALL: return {true, true, true, true};
        case CATENA_OP_SEND: return {true, false, false, false};
        case CATENA_OP_RECV: return {false, true, false, false};
        default: return {};
    }
}

template <class Expected, class Got>
[[noreturn]] void refuse(const catena_operation& o, const char* what, const Expected& expected,
                         const Got& got, catena_status status = CATENA_E_INVALID) {
    fail(status, name_of_operation(o.kind), what, expected, got);
}

Pieces pieces_of(const std::uint64_t* counts, std::uint64_t each, std::int32_t n) {
    Pieces pieces;
    pieces.offsets.push_back(0);
    for (std::int32_t r = 0; r < n; ++r) {
        pieces.counts.push_back(counts != nullptr ? counts[r] : each);
        pieces.offsets.push_back(pieces.total() + pieces.counts.back());
    }
    return pieces;
}

// Throws unless the count of this rank's own piece is `count`.
void check_own(const catena_operation& o, const catena_comm_info& info, const Pieces& pieces,
               const char* what) {
    const std::uint64_t own = pieces.counts[static_cast<std::size_t>(info.rank)];
    if (own != o.count)
        refuse(o, what, std::to_string(o.count) + " elements for " + rank_text(info.rank), own);
}

}  // namespace

const char* name_of_operation(std::int32_t kind) {
    return kind >= 0 && kind < std::ssize(operation_names) ? operation_names[kind] : "operation";
}
const char* name_of_reduction(std::int32_t reduction) {
    return reduction >= 0 && reduction < std::ssize(reduction_names) ? reduction_names[reduction]
                                                                     : "reduction";
}
std::size_t item_bytes(catena_dtype dtype) { return (dtype.bits + 7u) / 8u; }

void check_operation(const catena_operation& o, const catena_comm_info& info) {
    if (o.kind < 0 || o.kind >= std::ssize(operation_names))
        refuse(o, "kind", "0 to " + std::to_string(std::ssize(operation_names) - 1), o.kind,
               CATENA_E_UNSUPPORTED);
    if (!(o.timeout >= 0)) refuse(o, "timeout", "0 or more seconds", o.timeout);
    if (o.kind == CATENA_OP_BARRIER) return;
    const unsigned bits = o.dtype.bits;
    if (o.dtype.lanes != 1) refuse(o, "lanes of the dtype", "1", o.dtype.lanes, CATENA_E_DTYPE);
    if (bits == 0 || bits % 8 != 0 || bits > 128)
        refuse(o, "dtype", "one of 1 to 16 bytes", o.dtype, CATENA_E_DTYPE);
    if ((has_root(o.kind) || is_pair(o.kind)) && (o.peer < 0 || o.peer >= info.size))
        refuse(o, has_root(o.kind) ? "root" : "peer",
               "a rank from 0 to " + std::to_string(info.size - 1), o.peer);
    if (is_pair(o.kind) && o.peer == info.rank)
        refuse(o, "peer", "another rank", rank_text(o.peer) + " itself");
    if (is_pair(o.kind) && o.tag < 0) refuse(o, "tag", "0 or more", o.tag);
    if (reduces(o.kind)) {
        if (o.reduction < 0 || o.reduction >= std::ssize(reduction_names))
            refuse(o, "reduction", "0 to " + std::to_string(std::ssize(reduction_names) - 1),
                   o.reduction, CATENA_E_UNSUPPORTED);
        const bool floats = o.dtype.code == CATENA_CODE_FLOAT || o.dtype.code == CATENA_CODE_BFLOAT;
        const bool orders = o.reduction == CATENA_REDUCE_MIN || o.reduction == CATENA_REDUCE_MAX;
        if (o.reduction == CATENA_REDUCE_MEAN && !floats)
            refuse(o, "mean", "a floating dtype", o.dtype, CATENA_E_DTYPE);
        if (o.dtype.code == CATENA_CODE_BOOL && !orders)
            refuse(o, name_of_reduction(o.reduction), "min or max of bool", o.dtype,
                   CATENA_E_DTYPE);
        if (index_in(Reducible(), o.dtype) < 0)
            refuse(o, "dtype", "a number of 8 to 64 bits", o.dtype, CATENA_E_DTYPE);
    }
    const Sides sides = sides_of(o, info);
    if (o.kind == CATENA_OP_ALLTOALL && (o.send_counts == nullptr) != (o.recv_counts == nullptr))
        refuse(o, "counts", "send_counts and recv_counts", "one of them");
    const Pieces sends = send_pieces(o, info), recvs = recv_pieces(o, info);
    if (o.kind == CATENA_OP_ALLTOALL) {
        const auto rank = static_cast<std::size_t>(info.rank);
        if (sends.counts[rank] != recvs.counts[rank])
            refuse(o, "recv_counts",
                   std::to_string(sends.counts[rank]) + " elements of " + rank_text(info.rank) +
                       " for itself",
                   recvs.counts[rank]);
    }
    if (o.kind == CATENA_OP_ALLGATHER || (o.kind == CATENA_OP_GATHER && sides.recv_pieces))
        check_own(o, info, recvs, "recv_counts");
    if (o.kind == CATENA_OP_REDUCE_SCATTER || (o.kind == CATENA_OP_SCATTER && sides.send_pieces))
        check_own(o, info, sends, "send_counts");
    const std::uint64_t sent = sides.send_pieces ? sends.total() : o.count;
    const std::uint64_t received = sides.recv_pieces ? recvs.total() : o.count;
    if (sides.send && sent > 0 && o.send == nullptr) refuse(o, "send", "memory", "NULL");
    if (sides.recv && received > 0 && o.recv == nullptr) refuse(o, "recv", "memory", "NULL");
}

Pieces send_pieces(const catena_operation& o, const catena_comm_info& info) {
    return sides_of(o, info).send_pieces ? pieces_of(o.send_counts, o.count, info.size) : Pieces();
}
Pieces recv_pieces(const catena_operation& o, const catena_comm_info& info) {
    return sides_of(o, info).recv_pieces ? pieces_of(o.recv_counts, o.count, info.size) : Pieces();
}

OperationCopy::OperationCopy(const catena_operation& operation, const catena_comm_info& info,
                             double timeout)
    : label(operation.label != nullptr ? operation.label : ""),
      o(operation),
      item(item_bytes(operation.dtype)),
      sends(send_pieces(operation, info)),
      recvs(recv_pieces(operation, info)),
      deadline(started + duration_of(operation.timeout > 0 ? operation.timeout : timeout)) {
    o.label = label.c_str();
    o.send_counts = o.recv_counts = nullptr;  // the caller's
    if (!(o.timeout > 0)) o.timeout = timeout;
}

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
    const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

std::string agreement(const catena_operation& o, const catena_comm_info& info) {
    std::string text = name_of_operation(o.kind);
    if (o.kind == CATENA_OP_BARRIER) return text;
    if (reduces(o.kind)) text += std::string(" ") + name_of_reduction(o.reduction);
    text += " of " + text_of(o.dtype);
    const bool whole = o.kind == CATENA_OP_ALLREDUCE || o.kind == CATENA_OP_REDUCE ||
                       o.kind == CATENA_OP_BCAST || is_pair(o.kind);
    if (whole) text += " x " + std::to_string(o.count);
    if (o.kind == CATENA_OP_ALLGATHER || o.kind == CATENA_OP_REDUCE_SCATTER) {
        const Pieces pieces =
            o.kind == CATENA_OP_ALLGATHER ? recv_pieces(o, info) : send_pieces(o, info);
        const auto& counts = pieces.counts;
        text += " x ";
        if (std::ranges::all_of(counts, [&](std::uint64_t n) { return n == counts[0]; })) {
            text += std::to_string(counts[0]) + " for each rank";
        } else {
            std::uint64_t position = 0;  // the first counts may be equal, so all are in the hash
            for (const std::uint64_t n : counts) position = position * 1000003 + n;
            text += std::to_string(pieces.total()) + " in pieces " + std::to_string(position);
        }
    }
    if (o.kind == CATENA_OP_REDUCE || o.kind == CATENA_OP_GATHER)
        text += " to " + rank_text(o.peer);
    if (o.kind == CATENA_OP_BCAST || o.kind == CATENA_OP_SCATTER)
        text += " from " + rank_text(o.peer);
    return text;
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::size_t usual_rank(const std::vector<std::string>& texts) {
    std::size_t usual = 0;
    std::ptrdiff_t most = 0;
    for (std::size_t r = 0; r < texts.size(); ++r)
        if (const auto votes = std::ranges::count(texts, texts[r]); votes > most)
            most = votes, usual = r;
    return usual;
}

std::string name_of(const catena_operation& o) {
    std::string text = std::string("[") + name_of_operation(o.kind) + "]";
    if (o.label != nullptr && *o.label != '\0') text += std::string(" ") + o.label;
    return text;
}

std::string place_of(const catena_comm_info& info, const catena_operation& o) {
    return rank_text(info.rank) + ": " + name_of(o);
}

std::string failure(const catena_comm_info& info, const catena_operation& o,
                    std::string_view expected, std::string_view got) {
    return place_of(info, o).append(": expected ").append(expected).append(", got ").append(got);
}

// ---- reductions

namespace {

// Calls body(T()) for the type of the elements; bool is reduced as uint8_t.
template <class Body>
void with_number(catena_dtype dtype, const Body& body) {
    with_type(Reducible(), index_in(Reducible(), dtype), [&]<class T>(T) {
        body(std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>());
    });
}

// Integers wrap around, as in NumPy: they are added and multiplied without a sign.
template <class T>
auto without_sign(T x) {
    if constexpr (std::is_integral_v<T>) return static_cast<std::make_unsigned_t<T>>(x);
    else return x;
}

template <class T, class Combine>
void combine(T* a, const T* b, std::uint64_t n, const Combine& op) {
    for (std::uint64_t i = 0; i < n; ++i) a[i] = op(a[i], b[i]);
}

template <class T>
void reduce_numbers(T* a, const T* b, std::uint64_t n, std::int32_t reduction) {
    switch (reduction) {
        case CATENA_REDUCE_MIN: return combine(a, b, n, [](T x, T y) { return y < x ? y : x; });
        case CATENA_REDUCE_MAX: return combine(a, b, n, [](T x, T y) { return x < y ? y : x; });
        case CATENA_REDUCE_PROD:
            return combine(a, b, n, [](T x, T y) {
                // 16-bit numbers would be multiplied as int, which may overflow
                using Wide = decltype(without_sign(x) * 1u);
                return static_cast<T>(static_cast<Wide>(without_sign(x)) *
                                      static_cast<Wide>(without_sign(y)));
            });
        default:
            return combine(a, b, n, [](T x, T y) {
                return static_cast<T>(without_sign(x) + without_sign(y));
            });
    }
}

// Converts with the best instructions of this machine; all give the same bits.
template <class From, class To>
void convert(const From* from, To* to, std::size_t n) {
    const auto count = static_cast<std::int64_t>(n);
#if defined(CATENA_X86)
    static const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") &&
                           __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    if (v3) return convert_halves<Isa::x86_64_v3>(from, to, count);
#endif
    convert_halves<Isa::baseline>(from, to, count);
}

// Calls body(numbers, first, n) with blocks of halves as floats, and rounds them.
template <class Half, class Body>
void as_floats(Half* data, std::uint64_t n, const Body& body) {
    float numbers[1024];
    for (std::uint64_t i = 0; i < n; i += std::size(numbers)) {
        const std::size_t m = std::min<std::uint64_t>(std::size(numbers), n - i);
        convert(data + i, numbers, m);
        body(numbers, i, m);
        convert(numbers, data + i, m);
    }
}

}  // namespace

void reduce_into(void* into, const void* from, std::uint64_t n, catena_dtype dtype,
                 std::int32_t reduction) {
    with_number(dtype, [&]<class T>(T) {
        T* const a = static_cast<T*>(into);
        const T* const b = static_cast<const T*>(from);
        if constexpr (is_half_type<T>)
            as_floats(a, n, [&](float* numbers, std::uint64_t first, std::size_t m) {
                float others[1024];
                convert(b + first, others, m);
                reduce_numbers(numbers, others, m, reduction);
            });
        else reduce_numbers(a, b, n, reduction);
    });
}

void divide(void* data, std::uint64_t n, catena_dtype dtype, std::int32_t ranks) {
    with_number(dtype, [&]<class T>(T) {
        T* const x = static_cast<T*>(data);
        const auto divide_all = [&](auto* numbers, std::uint64_t, std::size_t m) {
            const auto by = static_cast<std::remove_pointer_t<decltype(numbers)>>(ranks);
            for (std::size_t i = 0; i < m; ++i) numbers[i] /= by;
        };
        if constexpr (is_half_type<T>) as_floats(x, n, divide_all);
        else if constexpr (std::is_floating_point_v<T>) divide_all(x, 0, n);
    });
}

// ---- the table

namespace detail {
namespace {

Group& group_of(catena_comm* comm) { return *reinterpret_cast<Group*>(comm); }
// A catena_work is a handle that was allocated.
using WorkHandle = std::shared_ptr<Work>;
Work& work_of(catena_work* work) { return **reinterpret_cast<WorkHandle*>(work); }
catena_comm* handle_of(std::unique_ptr<Group> group) {
    return reinterpret_cast<catena_comm*>(group.release());
}

catena_status start(catena_ctx* ctx, catena_comm* comm, const catena_operation* operation,
                    catena_work** work) noexcept {
    return guarded(ctx, [&] {
        Group& group = group_of(comm);
        catena_operation known = {};  // an older caller's is shorter
        std::memcpy(&known, operation, std::min<std::size_t>(operation->struct_size, sizeof known));
        check_operation(known, group.info());
        *work = reinterpret_cast<catena_work*>(new WorkHandle(group.start(known)));
    });
}

}  // namespace

catena_status start_on_cpu(catena_ctx* ctx, catena_comm* comm, const catena_operation* operation,
                           catena_work** work) noexcept {
    const catena_operation& o = *operation;
    if (o.kind == CATENA_OP_BARRIER || o.device_type == 1)  // DLPack's kDLCPU
        return start(ctx, comm, operation, work);
    return guarded(ctx, [&] {
        refuse(o, "device_type", "1, memory of the CPU", o.device_type, CATENA_E_UNSUPPORTED);
    });
}

catena_status open_group(catena_ctx* ctx, const catena_comm_options* options, catena_comm** comm,
                         Open open) noexcept {
    return guarded(ctx, [&] {
        catena_comm_options known = {};
        std::memcpy(&known, options, std::min<std::size_t>(options->struct_size, sizeof known));
        if (!(known.timeout > 0))
            plugin::fail(CATENA_E_INVALID, "open", "timeout", "above 0 seconds", known.timeout);
        if (known.size < 0 || known.rank < -1 || (known.size > 0 && known.rank >= known.size))
            plugin::fail(CATENA_E_INVALID, "open", "rank",
                         "below the size, " + std::to_string(known.size), known.rank);
        *comm = handle_of(open(known));
    });
}

const catena_communicator group_callbacks = {
    .struct_size = sizeof(catena_communicator),
    .reserved = 0,
    .name = nullptr,
    .doc = nullptr,
    .devices = nullptr,
    .open = nullptr,
    .close = [](catena_comm* comm) noexcept { delete &group_of(comm); },
    .info =
        [](catena_comm* comm, catena_comm_info* out) noexcept {
            catena_comm_info own = group_of(comm).info();
            own.struct_size = out->struct_size;
            std::memcpy(out, &own, std::min<std::size_t>(out->struct_size, sizeof own));
        },
    .split = [](catena_ctx* ctx, catena_comm* comm, std::int32_t color, std::int32_t key,
                catena_comm** out) noexcept -> catena_status {
        return guarded(ctx, [&] { *out = handle_of(group_of(comm).split(color, key)); });
    },
    .start = start,
    .test = [](catena_ctx* ctx, catena_work* work, std::int32_t* done) noexcept -> catena_status {
        return guarded(ctx, [&] { *done = work_of(work).test() ? 1 : 0; });
    },
    .wait = [](catena_ctx* ctx, catena_work* work) noexcept -> catena_status {
        return guarded(ctx, [&] { work_of(work).wait(); });
    },
    .wait_on = [](catena_ctx* ctx, catena_work* work, catena_stream* stream) noexcept
    -> catena_status { return guarded(ctx, [&] { work_of(work).wait_on(stream); }); },
    .release = [](catena_work* work) noexcept { delete reinterpret_cast<WorkHandle*>(work); },
    .abort = [](catena_comm* comm, const char* reason) noexcept { group_of(comm).abort(reason); }};

}  // namespace detail
}  // namespace catena::plugin
