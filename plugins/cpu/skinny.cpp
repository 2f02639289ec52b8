// Products in which one operand has few rows: y = x W^T of one token, W x, the products of attention for
// one query. They read the large operand once, so memory bounds them; a BLAS packs that operand first or
// computes several rows of zeros. Every element of C is summed by one thread, in an order that depends on
// k alone.
#include <algorithm>
#include <cstring>

#include <catena/plugin/isa.hpp>

#include "cpu.hpp"

namespace catena_cpu {
namespace {

using catena::plugin::Isa;

constexpr int64_t most_rows = 8;       // of the small operand X
constexpr int64_t most_packed = 8192;  // elements of X that are made contiguous, on the stack
// For smaller W, OpenBLAS is as fast: k if columns of W are contiguous, and the elements of W.
constexpr int64_t least_dot = 16;  // for one row
constexpr int64_t least_dots = 128;
constexpr int64_t least_elements = 65'536;
constexpr int64_t piece_elements = 32'768;  // of W; fewer are not worth another thread
constexpr int64_t from_memory = 1 << 19;    // elements of W that a cache may not hold
constexpr int64_t wide_strip = 512;         // columns of W
constexpr int64_t strip_elements = 8192;    // sums that a thread keeps on its stack

// C(i, j) = alpha * sum over l of X(i, l) W(l, j), plus beta * C(i, j).
template <class T>
struct Skinny {
    int64_t rows;  // of X
    int64_t k;
    int64_t columns;  // of W
    const T* x;       // X(i, l) = x[i * x_row + l * x_step]
    int64_t x_row, x_step;
    const T* w;  // a column of W is contiguous if `transposed`, else a row is
    int64_t ldw;
    bool transposed;
    T* c;  // C(i, j) = c[i * c_row + j * c_column]
    int64_t c_row, c_column;
    T alpha, beta;

    CATENA_KERNEL void write(int64_t i, int64_t j, T sum) const {
        T& to = c[i * c_row + j * c_column];
        to = beta == 0 ? alpha * sum : alpha * sum + beta * to;
    }
};

template <class T, int bytes>
struct Vector {
    using V __attribute__((vector_size(bytes))) = T;
    using Bit = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    using Bits __attribute__((vector_size(bytes))) = Bit;
    static constexpr int64_t lanes = bytes / sizeof(T);

    CATENA_KERNEL static void load(V& v, const T* from) { std::memcpy(&v, from, sizeof v); }
    // Sets the first n elements to 0.
    CATENA_KERNEL static void clear(V& v, int64_t n) {
        Bits bits, index;
        for (int64_t i = 0; i < lanes; ++i) index[i] = static_cast<Bit>(i);
        std::memcpy(&bits, &v, sizeof v);
        bits &= index >= static_cast<Bit>(n);
        std::memcpy(&v, &bits, sizeof v);
    }
    // Adds the halves of v. References, because calls pass no vectors that the ABI's baseline lacks.
    template <class Half>
    CATENA_KERNEL static void halve(const V& v, Half& half) {
        [&]<int... i>(std::integer_sequence<int, i...>) CATENA_LAMBDA {
            half = __builtin_shufflevector(v, v, i...) +
                   __builtin_shufflevector(v, v, (i + static_cast<int>(lanes) / 2)...);
        }
        (std::make_integer_sequence<int, static_cast<int>(lanes) / 2>());
    }
    // Sets sums[i] to the sum of v[i].
    CATENA_KERNEL static void sums_of(const V (&v)[4], T* sums) {
        if constexpr (bytes > 16) {
            typename Vector<T, bytes / 2>::V half[4];
            CATENA_UNROLL
            for (int i = 0; i < 4; ++i) halve(v[i], half[i]);
            Vector<T, bytes / 2>::sums_of(half, sums);
        } else if constexpr (lanes == 4) {
            const V a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5) +
                        __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
            const V b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5) +
                        __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
            const V all = __builtin_shufflevector(a, b, 0, 1, 4, 5) +
                          __builtin_shufflevector(a, b, 2, 3, 6, 7);
            std::memcpy(sums, &all, sizeof all);
        } else {
            for (int i = 0; i < 4; ++i) sums[i] = v[i][0] + v[i][1];
        }
    }
};

// Transposed W: dot products of the rows of X with blocks of columns of W.
template <class T, int bytes>
struct Dots {
    using Lanes = Vector<T, bytes>;
    using V = typename Lanes::V;
    static constexpr int64_t lanes = Lanes::lanes;
    static constexpr int64_t block = 4;
    static constexpr int64_t distance = 4096 / sizeof(T);

    CATENA_KERNEL void operator()(int64_t begin, int64_t end) const {
        for (int64_t b = begin; b < end; ++b) {
            int64_t i = 0;
            for (; i + 4 <= s.rows; i += 4) columns<4>(b * block, i);
            if (i + 2 <= s.rows) columns<2>(b * block, i), i += 2;
            if (i < s.rows) columns<1>(b * block, i);
        }
    }

    template <int n>
    CATENA_KERNEL void columns(int64_t j, int64_t i) const {
        const T *w[block], *x[n];
        CATENA_UNROLL
        for (int64_t q = 0; q < block; ++q) w[q] = s.w + std::min(j + q, s.columns - 1) * s.ldw;
        CATENA_UNROLL
        for (int64_t p = 0; p < n; ++p) x[p] = s.x + (i + p) * s.x_row;
        V sums[n][block] = {};
        const auto add = [&]<int64_t first, int64_t end>(int64_t l, const auto& use) CATENA_LAMBDA {
            V row[n];
            CATENA_UNROLL
            for (int64_t p = 0; p < n; ++p) Lanes::load(row[p], x[p] + l), use(row[p]);
            CATENA_UNROLL
            for (int64_t q = first; q < end; ++q) {
                V column;
                Lanes::load(column, w[q] + l);
                use(column);
                CATENA_UNROLL
                for (int64_t p = 0; p < n; ++p) sums[p][q] += row[p] * column;
            }
        };
        // The columns one after the other, in the order of memory, or together.
        const auto add_all = [&]<int64_t first, int64_t end>() CATENA_LAMBDA {
            int64_t l = 0;
            for (; l + lanes <= s.k; l += lanes) {
                if (end == first + 1) __builtin_prefetch(w[first] + l + distance, 0, 2);
                add.template operator()<first, end>(l, [](V&) CATENA_LAMBDA {});
            }
            if (l < s.k)  // the last whole vector, without the lanes that are in the sums
                add.template operator()<first, end>(
                    s.k - lanes, [&](V& v) CATENA_LAMBDA { Lanes::clear(v, lanes - (s.k - l)); });
        };
        if (in_memory) {
            add_all.template operator()<0, 1>();
            add_all.template operator()<1, 2>();
            add_all.template operator()<2, 3>();
            add_all.template operator()<3, 4>();
        } else {
            add_all.template operator()<0, 4>();
        }
        CATENA_UNROLL
        for (int64_t p = 0; p < n; ++p) {
            T sum[block];
            Lanes::sums_of(sums[p], sum);
            for (int64_t q = 0; q < std::min(block, s.columns - j); ++q)
                s.write(i + p, j + q, sum[q]);
        }
    }

    const Skinny<T>& s;
    // Memory is fastest if it is read in order, with prefetches into the second-level cache. In a cache, several
    // columns at a time are faster. The sums are the same.
    bool in_memory = s.k * s.columns >= from_memory;
};

// W as stored: strips of the rows of C, to which the rows of W are added.
template <class T, int bytes>
struct Sums {
    using Lanes = Vector<T, bytes>;
    using V = typename Lanes::V;
    static constexpr int64_t lanes = Lanes::lanes;

    static constexpr int64_t chunk = 16;              // rows of W
    static constexpr int wide = bytes == 64 ? 4 : 2;  // vectors in registers

    CATENA_KERNEL void operator()(int64_t begin, int64_t end) const {
        const int64_t most = strip_elements / s.rows / lanes * lanes;
        for (int64_t j = begin * lanes; j < end * lanes; j += most)
            strip(j, std::min({most, end * lanes - j, s.columns - j}));
    }

    CATENA_KERNEL void strip(int64_t j, int64_t width) const {
        alignas(64) T sums[strip_elements];
        const int64_t padded = (width + lanes - 1) / lanes * lanes;
        std::memset(sums, 0, static_cast<size_t>(padded * s.rows) * sizeof(T));
        for (int64_t l = 0; l < s.k; l += chunk) {
            const int64_t end = std::min(l + chunk, s.k);
            int64_t i = 0;
            for (; i + 4 <= s.rows; i += 4) add<4>(l, end, j, i, width, padded, sums);
            if (i + 2 <= s.rows) add<2>(l, end, j, i, width, padded, sums), i += 2;
            if (i < s.rows) add<1>(l, end, j, i, width, padded, sums);
        }
        for (int64_t i = 0; i < s.rows; ++i) {
            const T* sum = sums + i * padded;
            for (int64_t q = 0; q < width; ++q) s.write(i, j + q, sum[q]);
        }
    }
    // Adds the rows l .. end of W to m rows of sums.
    template <int m>
    CATENA_KERNEL void add(int64_t l, int64_t end, int64_t j, int64_t i, int64_t width,
                           int64_t padded, T* sums) const {
        const T* const w = s.w + j;
        sums += i * padded;
        int64_t at = 0;
        for (; at + wide * lanes <= width; at += wide * lanes)
            add_vectors<m, wide>(l, end, i, w + at, sums + at, padded);
        for (; at + lanes <= width; at += lanes)
            add_vectors<m, 1>(l, end, i, w + at, sums + at, padded);
        for (int64_t p = 0; p < m; ++p)
            for (int64_t q = l; q < end && at < width; ++q) {
                const T x = s.x[(i + p) * s.x_row + q * s.x_step];
                for (int64_t c = at; c < width; ++c) sums[p * padded + c] += x * w[q * s.ldw + c];
            }
    }
    template <int m, int n>
    CATENA_KERNEL void add_vectors(int64_t l, int64_t end, int64_t i, const T* w, T* sums,
                                   int64_t padded) const {
        V sum[m][n];
        CATENA_UNROLL
        for (int64_t p = 0; p < m; ++p) CATENA_UNROLL
        for (int64_t q = 0; q < n; ++q) Lanes::load(sum[p][q], sums + p * padded + q * lanes);
        for (; l < end; ++l) {
            V row[n];
            CATENA_UNROLL
            for (int64_t q = 0; q < n; ++q) Lanes::load(row[q], w + l * s.ldw + q * lanes);
            CATENA_UNROLL
            for (int64_t p = 0; p < m; ++p) {
                const T x = s.x[(i + p) * s.x_row + l * s.x_step];
                CATENA_UNROLL
                for (int64_t q = 0; q < n; ++q) sum[p][q] += x * row[q];
            }
        }
        CATENA_UNROLL
        for (int64_t p = 0; p < m; ++p) CATENA_UNROLL
        for (int64_t q = 0; q < n; ++q)
            std::memcpy(sums + p * padded + q * lanes, &sum[p][q], sizeof(V));
    }

    const Skinny<T>& s;
};

template <class T, template <class, int> class Body>
void run_body(const Skinny<T>& s, int64_t n, int64_t grain) {
    using namespace catena::plugin;
#if defined(CATENA_X86)
    if (isa_level() == 4) {
        Body<T, 64> body = {s};
        return pool.parallel_for(n, grain, &Target<Isa::x86_64_v4>::range<Body<T, 64>>, &body);
    }
    if (isa_level() == 3) {
        Body<T, 32> body = {s};
        return pool.parallel_for(n, grain, &Target<Isa::x86_64_v3>::range<Body<T, 32>>, &body);
    }
#endif
    Body<T, 16> body = {s};
    pool.parallel_for(n, grain, &Target<Isa::baseline>::range<Body<T, 16>>, &body);
}

template <class T>
void multiply(const catena_gemm& g) {
    const bool few_columns = g.m > g.n;  // then it computes the transposes
    Skinny<T> s = {
        .rows = few_columns ? g.n : g.m,
        .k = g.k,
        .columns = few_columns ? g.m : g.n,
        .x = static_cast<const T*>(few_columns ? g.b : g.a),
        .x_row = few_columns ? (g.transpose_b != 0 ? g.ldb : 1) : (g.transpose_a != 0 ? 1 : g.lda),
        .x_step = few_columns ? (g.transpose_b != 0 ? 1 : g.ldb) : (g.transpose_a != 0 ? g.lda : 1),
        .w = static_cast<const T*>(few_columns ? g.a : g.b),
        .ldw = few_columns ? g.lda : g.ldb,
        .transposed = few_columns ? g.transpose_a == 0 : g.transpose_b != 0,
        .c = static_cast<T*>(g.c),
        .c_row = few_columns ? 1 : g.ldc,
        .c_column = few_columns ? g.ldc : 1,
        .alpha = static_cast<T>(g.alpha),
        .beta = static_cast<T>(g.beta),
    };
    if (s.columns == 1 && s.ldw == 1 && s.x_step == 1 && s.k >= least_dot) {
        s.transposed = true;
        s.ldw = s.k;
    }
    if (!s.transposed) {
        constexpr int64_t unit = Vector<T, 64>::lanes;
        const int64_t lanes = isa_level() == 4 ? unit : isa_level() == 3 ? unit / 2 : unit / 4;
        const int64_t n = (s.columns + lanes - 1) / lanes, threads = pool.count();
        // Wide strips, because memory is faster for longer runs.
        const int64_t wide = std::min((n + threads - 1) / threads, wide_strip / lanes);
        return run_body<T, Sums>(
            s, n, std::max(piece_elements / std::max<int64_t>(s.k * lanes, 1), wide));
    }
    const int64_t work = std::max<int64_t>(4 * s.k, 1);
    const int64_t blocks = (s.columns + 3) / 4, grain = std::max<int64_t>(piece_elements / work, 1);
    if (s.x_step == 1 || s.k == 1) return run_body<T, Dots>(s, blocks, grain);
    T packed[most_packed];
    for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t l = 0; l < s.k; ++l) packed[i * s.k + l] = s.x[i * s.x_row + l * s.x_step];
    s.x = packed;
    s.x_row = s.k;
    run_body<T, Dots>(s, blocks, grain);
}

}  // namespace

bool is_skinny(const catena_gemm& g) {
    const int64_t rows = std::min(g.m, g.n);
    const bool few_columns = g.m > g.n;
    const bool contiguous =
        few_columns ? g.transpose_b != 0 || g.ldb == 1 : g.transpose_a == 0 || g.lda == 1;
    const bool dots = few_columns ? g.transpose_a == 0 : g.transpose_b != 0;
    if (rows == 1) return !dots || (g.k >= least_dot && (contiguous || g.k <= most_packed));
    return rows <= most_rows && g.k * std::max(g.m, g.n) >= least_elements &&
           (!dots || (g.k >= least_dots && (contiguous || rows * g.k <= most_packed)));
}

void multiply_skinny(const catena_gemm& g) {
    if (g.dtype.bits == 32) multiply<float>(g);
    else multiply<double>(g);
}

}  // namespace catena_cpu
