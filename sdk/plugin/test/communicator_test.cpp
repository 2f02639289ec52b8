// Tests the helpers for communicators: reductions, checks and texts of operations.
#include <doctest/doctest.h>
#include <catena/plugin/communicator.hpp>
#include <catena/plugin/half.hpp>
#include <catena/testing/array.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace catena::plugin;
using catena::testing::Array;

namespace {

constexpr catena_comm_info rank_1_of_3 = {sizeof(catena_comm_info), 1, 3, 1, 3, 0};

// An operation of rank 1 of 3 that is valid for every kind.
struct Operation {
    explicit Operation(std::int32_t kind) {
        o.struct_size = sizeof o;
        o.kind = kind;
        o.dtype = dtype_of<float>();
        o.send = memory;
        o.recv = memory + 32;
        o.count = 4;
        o.device_type = 1;
    }
    // Returns the text of a refusal with this status; "" if it is accepted.
    std::string refusal(catena_status status, const catena_comm_info& info = rank_1_of_3) const {
        try {
            check_operation(o, info);
            return "";
        } catch (const Error& e) {
            return e.status() == status ? e.what() : "status " + std::to_string(e.status());
        }
    }
    catena_operation o = {};
    float memory[64] = {};
};

double reduced(double a, double b, std::int32_t reduction) {
    switch (reduction) {
        case CATENA_REDUCE_MIN: return std::min(a, b);
        case CATENA_REDUCE_MAX: return std::max(a, b);
        case CATENA_REDUCE_PROD: return a * b;
        default: return a + b;
    }
}

template <class T>
T reduced_bits(T a, T b, std::int32_t reduction) {
    reduce_into(&a, &b, 1, catena::testing::dtype_of<T>(), reduction);
    return a;
}

}  // namespace

TEST_CASE("reduce_into: every dtype and reduction") {
    for (const catena_dtype dtype :
         {dtype_of<float>(), dtype_of<double>(), dtype_of<Float16>(), dtype_of<BFloat16>(),
          dtype_of<std::int8_t>(), dtype_of<std::int16_t>(), dtype_of<std::int32_t>(),
          dtype_of<std::int64_t>(), dtype_of<std::uint8_t>(), dtype_of<std::uint16_t>(),
          dtype_of<std::uint32_t>(), dtype_of<std::uint64_t>()})
        for (std::int32_t reduction = CATENA_REDUCE_SUM; reduction <= CATENA_REDUCE_PROD;
             ++reduction)
            for (const std::int64_t n : {0, 1, 37, 1024, 2500}) {
                CAPTURE(text_of(dtype));
                CAPTURE(name_of_reduction(reduction));
                Array a({n}, dtype), b({n}, dtype);
                const bool negative = dtype.code != CATENA_CODE_UINT;
                for (std::int64_t i = 0; i < n; ++i) {
                    a.set(i, static_cast<double>(i % 11) - (negative ? 5 : 0));
                    b.set(i, static_cast<double>(i * 3 % 7) - (negative ? 2 : 0));
                }
                const Array before = a;
                reduce_into(a.data<std::byte>(), b.data<std::byte>(), static_cast<std::uint64_t>(n),
                            dtype, reduction);
                CHECK(a.intact());
                for (std::int64_t i = 0; i < n; ++i)
                    CHECK(a.at(i) == reduced(before.at(i), b.at(i), reduction));
            }
}

TEST_CASE("reduce_into: bool") {
    for (const bool a : {false, true})
        for (const bool b : {false, true}) {
            CHECK(reduced_bits(a, b, CATENA_REDUCE_MIN) == (a && b));
            CHECK(reduced_bits(a, b, CATENA_REDUCE_MAX) == (a || b));
        }
}

TEST_CASE("reduce_into: integers wrap around and keep their sign and size") {
    CHECK(reduced_bits<std::int8_t>(127, 1, CATENA_REDUCE_SUM) == -128);
    CHECK(reduced_bits<std::int8_t>(16, 17, CATENA_REDUCE_PROD) == 16);
    CHECK(reduced_bits<std::uint8_t>(255, 3, CATENA_REDUCE_SUM) == 2);
    CHECK(reduced_bits<std::uint16_t>(65535, 65535, CATENA_REDUCE_PROD) == 1);
    CHECK(reduced_bits<std::int16_t>(-32768, -1, CATENA_REDUCE_SUM) == 32767);
    CHECK(reduced_bits<std::int16_t>(-3, 7, CATENA_REDUCE_PROD) == -21);
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    CHECK(reduced_bits<std::int32_t>(most, 1, CATENA_REDUCE_SUM) == -most - 1);
    CHECK(reduced_bits<std::int32_t>(most, 2, CATENA_REDUCE_PROD) == -2);
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    CHECK(reduced_bits<std::int64_t>(least, -1, CATENA_REDUCE_PROD) == least);
    CHECK(reduced_bits<std::int64_t>(least, 5, CATENA_REDUCE_MIN) == least);
    CHECK(reduced_bits<std::uint64_t>(~std::uint64_t{0}, 5, CATENA_REDUCE_MAX) ==
          ~std::uint64_t{0});
}

TEST_CASE("reduce_into: halves are rounded to nearest even, float32 and float64 not") {
    const auto sum16 = [](float a, float b) {
        return to_float(reduced_bits(to_float16(a), to_float16(b), CATENA_REDUCE_SUM));
    };
    CHECK(sum16(2048, 1) == 2048);  // halfway; the last bit of 2048 is 0
    CHECK(sum16(2050, 1) == 2052);
    CHECK(sum16(2048, 1.0009765625f) == 2050);  // above halfway, only if added in float
    CHECK(sum16(65504, 65504) == std::numeric_limits<float>::infinity());
    const auto sum_b16 = [](float a, float b) {
        return to_float(reduced_bits(to_bfloat16(a), to_bfloat16(b), CATENA_REDUCE_SUM));
    };
    CHECK(sum_b16(256, 1) == 256);
    CHECK(sum_b16(258, 1) == 260);
    CHECK(to_float(reduced_bits(to_float16(3), to_float16(-0.5f), CATENA_REDUCE_PROD)) == -1.5f);
    CHECK(to_float(reduced_bits(to_bfloat16(-3), to_bfloat16(2), CATENA_REDUCE_MIN)) == -3);
    CHECK(reduced_bits(1.0f, 0x1p-24f, CATENA_REDUCE_SUM) == 1.0f);
    CHECK(reduced_bits(1.0, 0x1p-24, CATENA_REDUCE_SUM) == 1.0 + 0x1p-24);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(reduced_bits(nan, 1.0f, CATENA_REDUCE_SUM)));
}

TEST_CASE("divide") {
    float x[] = {3, 1, -6};
    divide(x, 3, dtype_of<float>(), 3);
    CHECK(x[0] == 1);
    CHECK(x[1] == 1.0f / 3);
    CHECK(x[2] == -2);
    double y = 1;
    divide(&y, 1, dtype_of<double>(), 3);
    CHECK(y == 1.0 / 3);
    Float16 h = to_float16(1);
    divide(&h, 1, dtype_of<Float16>(), 3);
    CHECK(h.bits == to_float16(1.0f / 3).bits);
    BFloat16 b = to_bfloat16(10);
    divide(&b, 1, dtype_of<BFloat16>(), 4);
    CHECK(to_float(b) == 2.5f);
}

TEST_CASE("agreement") {
    const auto text = [](std::int32_t kind, const std::uint64_t* counts = nullptr) {
        Operation operation(kind);
        operation.o.reduction = CATENA_REDUCE_MAX;
        operation.o.peer = 2;
        operation.o.send_counts = operation.o.recv_counts = counts;
        return agreement(operation.o, rank_1_of_3);
    };
    CHECK(text(CATENA_OP_BARRIER) == "barrier");
    CHECK(text(CATENA_OP_ALLREDUCE) == "allreduce max of float32 x 4");
    CHECK(text(CATENA_OP_REDUCE) == "reduce max of float32 x 4 to rank 2");
    CHECK(text(CATENA_OP_BCAST) == "bcast of float32 x 4 from rank 2");
    CHECK(text(CATENA_OP_ALLGATHER) == "allgather of float32 x 4 for each rank");
    CHECK(text(CATENA_OP_REDUCE_SCATTER) == "reduce_scatter max of float32 x 4 for each rank");
    CHECK(text(CATENA_OP_GATHER) == "gather of float32 to rank 2");
    CHECK(text(CATENA_OP_SCATTER) == "scatter of float32 from rank 2");
    CHECK(text(CATENA_OP_ALLTOALL) == "alltoall of float32");
    CHECK(text(CATENA_OP_SEND) == "send of float32 x 4");
    const std::uint64_t equal[] = {4, 4, 4}, a[] = {1, 4, 2}, b[] = {2, 4, 1};
    CHECK(text(CATENA_OP_ALLGATHER, equal) == text(CATENA_OP_ALLGATHER));
    CHECK(text(CATENA_OP_ALLGATHER, a).starts_with("allgather of float32 x 7 in pieces "));
    CHECK(text(CATENA_OP_ALLGATHER, a) != text(CATENA_OP_ALLGATHER, b));
    CHECK(hash_of(text(CATENA_OP_ALLGATHER, a)) != hash_of(text(CATENA_OP_ALLGATHER, b)));
    CHECK(hash_of("") == 0xcbf29ce484222325u);  // FNV's published values
    CHECK(hash_of("a") == 0xaf63dc4c8601ec8cu);
}

TEST_CASE("failure") {
    Operation operation(CATENA_OP_ALLREDUCE);
    CHECK(failure(rank_1_of_3, operation.o, "this", "that") ==
          "rank 1: [allreduce]: expected this, got that");
    operation.o.label = "l1/W";
    CHECK(failure(rank_1_of_3, operation.o, "this", "that") ==
          "rank 1: [allreduce] l1/W: expected this, got that");
}

TEST_CASE("pieces") {
    Operation operation(CATENA_OP_ALLTOALL);
    const std::uint64_t counts[] = {1, 0, 5};
    operation.o.send_counts = counts;
    const Pieces sends = send_pieces(operation.o, rank_1_of_3);
    CHECK(sends.counts == std::vector<std::uint64_t>{1, 0, 5});
    CHECK(sends.offsets == std::vector<std::uint64_t>{0, 1, 1, 6});
    CHECK(recv_pieces(operation.o, rank_1_of_3).offsets == std::vector<std::uint64_t>{0, 4, 8, 12});
    Operation gather(CATENA_OP_GATHER);
    CHECK(recv_pieces(gather.o, rank_1_of_3).offsets.empty());  // rank 0 has them
    gather.o.peer = 1;
    CHECK(recv_pieces(gather.o, rank_1_of_3).total() == 12);
}

TEST_CASE("check_operation accepts every kind, and missing memory where there are no elements") {
    for (std::int32_t kind = CATENA_OP_BARRIER; kind <= CATENA_OP_RECV; ++kind) {
        CAPTURE(name_of_operation(kind));
        Operation operation(kind);
        CHECK(operation.refusal(CATENA_OK) == "");
        operation.o.count = 0;
        operation.o.send = nullptr;
        operation.o.recv = nullptr;
        CHECK(operation.refusal(CATENA_OK) == "");
    }
    Operation bcast(CATENA_OP_BCAST);
    bcast.o.send = nullptr;  // rank 1 only receives
    CHECK(bcast.refusal(CATENA_OK) == "");
    Operation wide(CATENA_OP_BCAST);
    wide.o.dtype = {.code = 7, .bits = 128, .lanes = 1};
    CHECK(wide.refusal(CATENA_OK) == "");
}

TEST_CASE("most ranks decide what was expected; the first one if there are no more") {
    CHECK(usual_rank({"a"}) == 0);
    CHECK(usual_rank({"a", "b"}) == 0);
    CHECK(usual_rank({"b", "a", "b", "a"}) == 0);
    CHECK(usual_rank({"a", "b", "b"}) == 1);
    CHECK(usual_rank({"a", "b", "c", "c", "b"}) == 1);
}

TEST_CASE("check_operation refuses") {
    const auto refusal = [](std::int32_t kind, catena_status status, const auto& change) {
        Operation operation(kind);
        change(operation.o);
        return operation.refusal(status);
    };
    CHECK(refusal(11, CATENA_E_UNSUPPORTED, [](catena_operation&) {}) ==
          "[operation] kind: expected 0 to 10, got 11");
    CHECK(refusal(CATENA_OP_BCAST, CATENA_E_DTYPE, [](auto& o) { o.dtype.lanes = 2; }) ==
          "[bcast] lanes of the dtype: expected 1, got 2");
    CHECK(refusal(CATENA_OP_BCAST, CATENA_E_DTYPE, [](auto& o) { o.dtype.bits = 12; }) ==
          "[bcast] dtype: expected one of 1 to 16 bytes, got float12");
    CHECK(refusal(CATENA_OP_BCAST, CATENA_E_INVALID, [](auto& o) { o.peer = 3; }) ==
          "[bcast] root: expected a rank from 0 to 2, got 3");
    CHECK(refusal(CATENA_OP_RECV, CATENA_E_INVALID, [](auto& o) { o.peer = -1; }) ==
          "[recv] peer: expected a rank from 0 to 2, got -1");
    CHECK(refusal(CATENA_OP_SEND, CATENA_E_INVALID, [](auto& o) { o.peer = 1; }) ==
          "[send] peer: expected another rank, got rank 1 itself");
    CHECK(refusal(CATENA_OP_SEND, CATENA_E_INVALID, [](auto& o) { o.tag = -1; }) ==
          "[send] tag: expected 0 or more, got -1");
    CHECK(refusal(CATENA_OP_BARRIER, CATENA_E_INVALID, [](auto& o) { o.timeout = -0.5; }) ==
          "[barrier] timeout: expected 0 or more seconds, got -0.5");
    CHECK(refusal(CATENA_OP_BCAST, CATENA_E_INVALID, [](auto& o) { o.timeout = NAN; }) ==
          "[bcast] timeout: expected 0 or more seconds, got nan");
    CHECK(refusal(CATENA_OP_REDUCE, CATENA_E_UNSUPPORTED, [](auto& o) { o.reduction = 5; }) ==
          "[reduce] reduction: expected 0 to 4, got 5");
    CHECK(refusal(CATENA_OP_ALLREDUCE, CATENA_E_DTYPE, [](auto& o) {
              o.dtype = dtype_of<std::int32_t>();
              o.reduction = CATENA_REDUCE_MEAN;
          }) == "[allreduce] mean: expected a floating dtype, got int32");
    CHECK(refusal(CATENA_OP_ALLREDUCE, CATENA_E_DTYPE, [](auto& o) {
              o.dtype = dtype_of<bool>();
          }) == "[allreduce] sum: expected min or max of bool, got bool");
    CHECK(refusal(CATENA_OP_ALLREDUCE, CATENA_E_INVALID, [](auto& o) { o.send = nullptr; }) ==
          "[allreduce] send: expected memory, got NULL");
    CHECK(refusal(CATENA_OP_BCAST, CATENA_E_INVALID, [](auto& o) { o.recv = nullptr; }) ==
          "[bcast] recv: expected memory, got NULL");
    static constexpr std::uint64_t counts[] = {4, 5, 4};
    CHECK(refusal(CATENA_OP_ALLTOALL, CATENA_E_INVALID, [](auto& o) { o.send_counts = counts; }) ==
          "[alltoall] counts: expected send_counts and recv_counts, got one of them");
    static constexpr std::uint64_t others[] = {4, 6, 4};
    CHECK(refusal(CATENA_OP_ALLTOALL, CATENA_E_INVALID, [](auto& o) {
              o.send_counts = counts;
              o.recv_counts = others;
          }) == "[alltoall] recv_counts: expected 5 elements of rank 1 for itself, got 6");
    CHECK(refusal(CATENA_OP_ALLGATHER, CATENA_E_INVALID, [](auto& o) { o.recv_counts = counts; }) ==
          "[allgather] recv_counts: expected 4 elements for rank 1, got 5");
    CHECK(refusal(CATENA_OP_SCATTER, CATENA_E_INVALID, [](auto& o) {
              o.peer = 1;
              o.send_counts = counts;
          }) == "[scatter] send_counts: expected 4 elements for rank 1, got 5");
}

TEST_CASE("check_operation refuses reductions of dtypes that reduce_into() does not know") {
    for (const catena_dtype dtype : {catena_dtype{CATENA_CODE_FLOAT, 8, 1},
                                     {CATENA_CODE_FLOAT, 24, 1},
                                     {CATENA_CODE_FLOAT, 128, 1},
                                     {CATENA_CODE_BFLOAT, 32, 1},
                                     {CATENA_CODE_INT, 24, 1},
                                     {CATENA_CODE_UINT, 128, 1},
                                     {CATENA_CODE_BOOL, 32, 1},
                                     {5, 64, 1}}) {
        Operation operation(CATENA_OP_ALLREDUCE);
        operation.o.dtype = dtype;
        operation.o.reduction = CATENA_REDUCE_MIN;
        CHECK(operation.refusal(CATENA_E_DTYPE) ==
              "[allreduce] dtype: expected a number of 8 to 64 bits, got " + text_of(dtype));
        operation.o.kind = CATENA_OP_BCAST;
        CHECK(operation.refusal(CATENA_OK) == "");
    }
}
