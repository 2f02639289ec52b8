// An interpreter of graphs like attention's. It computes each operation in double, and rounds its result
// to the tensor's type.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>

#include "cudnn.hpp"
#include "emulator/work.hpp"
#include "load.hpp"

namespace stand_in {

const Engine fused_engine = {20, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, nullptr, false};

namespace {

using Index = std::array<std::int64_t, 4>;

struct Operand {
    cudnnDataType_t dtype;
    Index shape, strides;
    enum { stored, within, by_value } place;
    bool written = false;
    void* data = nullptr;

    std::int64_t size() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
    // The place of an element of a tensor that has a multiple of the rows, columns and so on.
    std::int64_t at(const Index& i, const Index& of) const {
        std::int64_t place_of_i = 0;
        for (std::size_t d = 0; d < 4; ++d) place_of_i += i[d] * shape[d] / of[d] * strides[d];
        return place_of_i;
    }
    bool divides(const Index& other) const {
        for (std::size_t d = 0; d < 4; ++d)
            if (other[d] % shape[d] != 0) return false;
        return true;
    }
};
struct Operation {
    cudnnBackendDescriptorType_t type;
    int mode = 0;
    std::size_t axis = 0;
    std::int64_t a, b, t, y;  // unique IDs; 0: none
};

template <class Body>
void for_each(const Index& shape, const Body& body) {
    Index i;
    for (i[0] = 0; i[0] < shape[0]; ++i[0])
        for (i[1] = 0; i[1] < shape[1]; ++i[1])
            for (i[2] = 0; i[2] < shape[2]; ++i[2])
                for (i[3] = 0; i[3] < shape[3]; ++i[3]) body(i);
}

double load_as(cudnnDataType_t type, const void* data, std::int64_t i) {
    switch (type) {
        case CUDNN_DATA_HALF: return load(static_cast<const Float16*>(data)[i]);
        case CUDNN_DATA_BFLOAT16: return load(static_cast<const BFloat16*>(data)[i]);
        default: return load(static_cast<const float*>(data)[i]);
    }
}
void store_as(cudnnDataType_t type, void* data, std::int64_t i, float x) {
    switch (type) {
        case CUDNN_DATA_HALF: return store(static_cast<Float16*>(data) + i, x);
        case CUDNN_DATA_BFLOAT16: return store(static_cast<BFloat16*>(data) + i, x);
        default: return store(static_cast<float*>(data) + i, x);
    }
}
double rounded(cudnnDataType_t type, double x) {
    float place = 0;
    store_as(type, &place, 0, static_cast<float>(x));
    return load_as(type, &place, 0);
}

}  // namespace

struct Program {
    std::map<std::int64_t, Operand> operands;
    std::vector<Operation> operations;
    std::int64_t workspace = 0;
    void* scratch = nullptr;
    std::deque<float> numbers;  // those that are passed by value
};

namespace {

// Reads a tensor into the program; returns its unique ID, 0 if it is not supported.
std::int64_t read(Program& program, const Descriptor* t, bool written) {
    const auto shape = t->all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = t->all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    const auto id = t->one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (shape.size() != 4) return 0;
    Operand made = {.dtype = t->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                    .shape = {},
                    .strides = {},
                    .place = t->one<char>(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0  ? Operand::by_value
                             : t->one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0 ? Operand::within
                                                                               : Operand::stored};
    std::ranges::copy(shape, made.shape.begin());
    std::ranges::copy(strides, made.strides.begin());
    const auto& [known, is_new] = program.operands.try_emplace(id, made);
    Operand& o = known->second;
    const bool half = o.dtype == CUDNN_DATA_HALF || o.dtype == CUDNN_DATA_BFLOAT16;
    if (o.shape != made.shape || o.strides != made.strides || o.dtype != made.dtype) return 0;
    if (o.place == Operand::stored) {
        if (t->one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16) return 0;
        const std::int64_t size = o.strides[3] == 1 ? o.shape[3] : o.shape[2];
        if (half ? size % 8 != 0 || size > 128 : o.dtype != CUDNN_DATA_FLOAT) return 0;
    }
    if (o.place == Operand::within && !written && !o.written) return 0;  // nothing to read
    o.written = o.written || written;
    return id;
}

bool is_consistent(const Program& program, const Operation& o) {
    const auto shape = [&](std::int64_t id) { return program.operands.at(id).shape; };
    const Index y = shape(o.y), a = shape(o.a);
    switch (o.type) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
            const Index b = shape(o.b);
            return a[3] == b[2] && y[2] == a[2] && y[3] == b[3] && y[0] == a[0] && y[0] == b[0] &&
                   y[1] % a[1] == 0 && y[1] % b[1] == 0;
        }
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            return program.operands.at(o.y).divides(a);
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            return program.operands.at(o.y).size() == program.operands.at(o.a).size();
        default: return true;  // backend.cpp checks those of pointwise operations
    }
}

using Values = std::map<std::int64_t, std::vector<double>>;

double pointwise(const Operation& o, double x, double b, double t, const Index& i) {
    switch (o.mode) {
        case CUDNN_POINTWISE_ADD: return x + b;
        case CUDNN_POINTWISE_MUL: return x * b;
        case CUDNN_POINTWISE_DIV: return x / b;
        case CUDNN_POINTWISE_SUB: return x - b;
        case CUDNN_POINTWISE_EXP: return std::exp(x);
        case CUDNN_POINTWISE_LOG: return std::log(x);
        case CUDNN_POINTWISE_IDENTITY: return x;
        case CUDNN_POINTWISE_CMP_GE: return x >= b ? 1 : 0;
        case CUDNN_POINTWISE_GEN_INDEX: return static_cast<double>(i[o.axis]);
        case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
        default: return std::nan("");
    }
}

void compute(const Program& program, const Operation& o, Values& values) {
    const Operand& y = program.operands.at(o.y);
    const Operand& a = program.operands.at(o.a);
    const auto value = [&](std::int64_t id, const Index& i, const Index& of) {
        const Operand& x = program.operands.at(id);
        return values[id][static_cast<std::size_t>(x.at(i, of))];
    };
    std::vector<double> result(static_cast<std::size_t>(y.size()));
    const auto put = [&](const Index& i) -> double& {
        return result[static_cast<std::size_t>(y.at(i, y.shape))];
    };
    if (o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        const Operand& b = program.operands.at(o.b);
        for_each(y.shape, [&](const Index& i) {
            for (std::int64_t k = 0; k < a.shape[3]; ++k)
                put(i) += value(o.a, {i[0], i[1], i[2], k},
                                {y.shape[0], y.shape[1], a.shape[2], a.shape[3]}) *
                          value(o.b, {i[0], i[1], k, i[3]},
                                {y.shape[0], y.shape[1], b.shape[2], b.shape[3]});
        });
    } else if (o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
        const bool most = o.mode == CUDNN_REDUCE_TENSOR_MAX;
        if (most) std::ranges::fill(result, -HUGE_VAL);
        for_each(a.shape, [&](const Index& i) {
            double& sum = result[static_cast<std::size_t>(y.at(i, a.shape))];
            const double x = value(o.a, i, a.shape);
            sum = most ? std::max(sum, x) : sum + x;
        });
    } else if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
        result = values[o.a];  // the same memory with other strides
    } else {
        for_each(y.shape, [&](const Index& i) {
            put(i) = pointwise(o, value(o.a, i, y.shape), o.b ? value(o.b, i, y.shape) : 0,
                               o.t ? value(o.t, i, y.shape) : 0, i);
        });
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (y.dtype != CUDNN_DATA_INT32 && y.dtype != CUDNN_DATA_BOOLEAN)
            result[i] = rounded(y.dtype, result[i]);
        if (y.place == Operand::stored)
            store_as(y.dtype, y.data, static_cast<std::int64_t>(i), static_cast<float>(result[i]));
    }
    values[o.y] = std::move(result);
}

void interpret(const Program& program) {
    std::memset(program.scratch, 1, static_cast<std::size_t>(program.workspace));
    Values values;
    for (const auto& [id, o] : program.operands) {
        if (o.written) continue;
        std::vector<double>& list = values[id];
        for (std::int64_t i = 0; i < o.size(); ++i) list.push_back(load_as(o.dtype, o.data, i));
    }
    for (const Operation& o : program.operations) compute(program, o, values);
}

std::size_t bytes_of(const Operand& o) {
    std::int64_t n = 1;
    for (std::size_t d = 0; d < 4; ++d) n += (o.shape[d] - 1) * o.strides[d];
    const bool half = o.dtype == CUDNN_DATA_HALF || o.dtype == CUDNN_DATA_BFLOAT16;
    return static_cast<std::size_t>(n) * (half ? 2 : 4);
}

}  // namespace

std::shared_ptr<const Program> read_program(const Descriptor& graph) {
    // Attributes of each operation; 0: none (the first one is no link).
    struct Names {
        int type, a, b, t, y, rule, mode;
    };
    static constexpr Names all_names[] = {
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
         CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0, CUDNN_ATTR_OPERATION_MATMUL_CDESC, 0, 0},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0, 0,
         CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
         CUDNN_ATTR_REDUCTION_OPERATOR},
        {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0, 0,
         CUDNN_ATTR_OPERATION_RESHAPE_YDESC, 0, 0},
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
         CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
         CUDNN_ATTR_POINTWISE_MODE}};
    const auto program = std::make_shared<Program>();
    for (auto* const raw : graph.all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        const auto& d = *static_cast<const Descriptor*>(raw);
        const auto* const n = std::ranges::find(all_names, static_cast<int>(d.type), &Names::type);
        if (n == std::end(all_names)) return nullptr;
        bool known = true;
        const auto id = [&](int name, bool written) -> std::int64_t {
            if (name == 0 || !d.has(name)) return 0;
            const std::int64_t found = read(*program, d.link(name), written);
            known = known && found != 0;
            return found;
        };
        Operation o = {d.type, 0, 0, id(n->a, false), id(n->b, false), id(n->t, false), 0};
        o.y = id(n->y, true);
        if (n->rule != 0) {
            const Descriptor& rule = *d.link(n->rule);
            o.mode = rule.one<int>(n->mode);
            o.axis =
                static_cast<std::size_t>(rule.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS)) % 4;
        }
        if (!known || !is_consistent(*program, o)) return nullptr;
        program->operations.push_back(o);
    }
    // Gradients store those of all scores, unless they end in a sum in memory.
    for (const Operation& o : program->operations)
        if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR &&
            program->operations.back().mode != CUDNN_POINTWISE_IDENTITY)
            program->workspace = std::max(program->workspace, 2 * program->operands.at(o.y).size());
    return program;
}

std::int64_t workspace_of(const Program& program) { return program.workspace; }

cudnnStatus_t run(const Program& program, cudaStream_t stream,
                  const std::map<std::int64_t, void*>& data, void* workspace) {
    const auto bound = std::make_shared<Program>(program);
    bound->scratch = workspace;
    std::vector<catena_emulator::Range> ranges = {
        {workspace, static_cast<std::size_t>(program.workspace), true}};
    std::size_t needed = 0;
    for (auto& [id, o] : bound->operands) {
        if (o.place == Operand::within) continue;
        ++needed;
        const auto found = data.find(id);
        if (found == data.end() || found->second == nullptr) return CUDNN_STATUS_BAD_PARAM;
        o.data = found->second;
        if (o.place == Operand::by_value) {  // numbers are read now
            o.data = &bound->numbers.emplace_back(*static_cast<const float*>(o.data));
            continue;
        }
        if (reinterpret_cast<std::uintptr_t>(o.data) % 16 != 0) return CUDNN_STATUS_BAD_PARAM;
        ranges.push_back({o.data, bytes_of(o), o.written});
    }
    if (needed != data.size()) return CUDNN_STATUS_BAD_PARAM;
    const auto body = [bound] { interpret(*bound); };
    return catena_emulator::work(stream, std::move(ranges), body, "cudnnBackendExecute") ==
                   cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace stand_in
