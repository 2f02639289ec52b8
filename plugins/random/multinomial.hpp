// Random classes.
#pragma once

#include "random.hpp"

namespace catena::plugins {

// A draw with replacement takes the first class at which the running sum of the probabilities
// exceeds u times their total, with u from U[0, 1). The probabilities are summed in chunks: all
// devices then add in the same order, and a draw searches the chunks and one chunk's classes only.
struct Chunks {
    static constexpr std::int64_t most = 256;
    CATENA_FN explicit Chunks(std::int64_t n) : classes(n), count(n < most ? n : most) {}
    CATENA_FN std::int64_t begin(std::int64_t chunk) const { return classes * chunk / count; }
    // The sum of a chunk; NaN if it has a negative probability.
    template <class P>
    CATENA_FN double sum(const P& p, std::int64_t chunk) const {
        double total = 0;
        for (std::int64_t c = begin(chunk); c < begin(chunk + 1); ++c) {
            const auto own = static_cast<double>(p(c));
            total += own >= 0 ? own : std::numeric_limits<double>::quiet_NaN();
        }
        return total;
    }
    // Turns the chunks' sums into sums of all before; the last is the total. Returns whether that
    // is a positive number.
    CATENA_FN bool accumulate(double* sums) const {
        double total = 0;
        for (std::int64_t k = 0; k < count; ++k) {
            const double own = sums[k];
            sums[k] = total;
            total += own;
        }
        sums[count] = total;
        return total > 0 && total <= std::numeric_limits<double>::max();
    }
    // The class for u in [0, 1).
    template <class P>
    CATENA_FN std::int64_t find(const P& p, const double* before, double u) const {
        double wanted = u * before[count];
        if (wanted >= before[count]) wanted = 0;  // a subnormal total, rounded up
        std::int64_t low = 0, high = count - 1;   // the first chunk at whose end the sum exceeds it
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            if (before[middle + 1] > wanted) high = middle;
            else low = middle + 1;
        }
        double sum = before[low];
        std::int64_t last = begin(low);  // if rounding keeps the sum below: the last possible class
        for (std::int64_t c = begin(low); c < begin(low + 1); ++c) {
            const auto own = static_cast<double>(p(c));
            sum += own;
            if (own > 0) last = c;
            if (sum > wanted) return c;
        }
        return last;
    }

    std::int64_t classes, count;
};
// Without replacement: the classes with the least e / p, for e from the exponential distribution
// (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
struct Rival {
    CATENA_FN static std::int64_t blocks(std::int64_t classes) { return (classes + 1) / 2; }
    // The key of class c with probability p > 0; `drawn` is block c / 2 of its row.
    CATENA_FN static Rival of(const Philox4& drawn, std::int64_t c, double p) {
        const bool odd = c % 2 != 0;
        const std::uint64_t bits =
            odd ? join_words(drawn.v[2], drawn.v[3]) : join_words(drawn.v[0], drawn.v[1]);
        const double u = (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
        return {-math::log(u) / p, c};
    }
    CATENA_FN bool precedes(const Rival& other) const {
        return key < other.key || (key == other.key && index < other.index);
    }
    double key;
    std::int64_t index;
};
CATENA_FN double uniform_of(const Philox4& drawn) {
    return static_cast<double>(join_words(drawn.v[0], drawn.v[1]) >> 11) * 0x1p-53;
}

// The number of rows and their lengths, and how a call draws.
struct Multinomials {
    explicit Multinomials(const auto& call)
        : Multinomials(call.template x<std::byte>(0).shape, call.template attr<"num_samples">(),
                       call.template attr<"replacement">()) {}
    Multinomials(Shape p, std::int64_t num_samples, bool replacement)
        : classes(p.back()),
          rows(size_of(p.first(p.size() - 1))),
          n(num_samples),
          searches(replacement || num_samples == 1) {}
    std::uint64_t blocks() const {
        return static_cast<std::uint64_t>(rows * (searches ? n : Rival::blocks(classes)));
    }
    std::int64_t classes, rows, n;
    bool searches;  // in sums of probabilities, else it compares keys
};

struct Multinomial {
    static constexpr auto about =
        describe(
            "catena.multinomial",
            "y = classes drawn at random, with probabilities p / sum of p along the last axis\n\n"
            "Without replacement a row's classes differ, and later ones are drawn with the "
            "probabilities that the earlier ones leave. A row with a negative probability, "
            "with NaN, or with too few probabilities above 0 is an error; on a GPU, which "
            "cannot report it, its classes are -1. The numbers come from the stream of the "
            "device.",
            in(Port("p", "probabilities (..., classes)").not_differentiable()),
            out(Port("y", "classes (..., num_samples)").of("I")),
            attr("num_samples", 1, "how many classes of each row").range(1, 0x1p31),
            attr("replacement", false, "a class may be drawn several times"))
            .stochastic()
            .not_differentiable()
            .example("p=(4)[0.1,1]")
            .example("p=(3,5)[0.1,1] num_samples=4")
            .example("p=(2,3,5)[0.1,1] num_samples=9 replacement=true")
            .example("p=(2,700)[0.1,1] num_samples=9 replacement=true");
    using types = Rows<Row<float, std::int64_t>, Row<double, std::int64_t>>;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        s.check_least_ndim(0, 1);
        const Shape p = s.x(0);
        const std::int64_t n = s.template attr<"num_samples">();
        s.check(p.back() >= 1, "p.shape", "at least 1 class", p);
        s.check(
            s.template attr<"replacement">() || n <= p.back(), "num_samples",
            "at most the number of classes, " + std::to_string(p.back()) + ", without replacement",
            n, CATENA_E_INVALID);
        std::int64_t shape[CATENA_MAX_NDIM];
        std::ranges::copy(p, shape);
        shape[p.size() - 1] = n;
        s.y(0, Shape(shape, p.size()), dtype_of<std::int64_t>());
    }
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        const Multinomials m(call);
        if (!m.searches)
            plan.scratch_bytes =
                static_cast<std::uint64_t>(call.slots() * m.classes) * sizeof(Rival);
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const Multinomials m(call);
        const T* const p = call.template x<T>(0).data;
        std::int64_t* const y = call.template y<std::int64_t>(0).data;
        Rival* const scratch = call.template scratch<Rival>();
        std::uint64_t seed = 0, offset = 0;
        check_status(host().philox(call.context(), m.blocks(), &seed, &offset));
        call.parallel(m.rows, 16 * m.classes + m.n,
                      [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
                          for (std::int64_t r = begin; r < end; ++r) {
                              const T* const row = p + r * m.classes;
                              const bool done = m.searches
                                                    ? search(m, r, row, seed, offset, y + r * m.n)
                                                    : compare(m, r, row, seed, offset, y + r * m.n,
                                                              scratch + slot * m.classes);
                              if (!done) refuse(call, m, r, row);
                          }
                      });
    }

private:
    template <class T>
    [[noreturn]] static void refuse(const auto& call, const Multinomials& m, std::int64_t r,
                                    const T* row) {
        const std::string least = std::to_string(m.searches ? 1 : m.n);
        constexpr std::int64_t most = 8;  // values in the message
        std::string got;
        for (std::int64_t c = 0; c < std::min(m.classes, most); ++c)
            got += (c == 0 ? "" : ", ") + text_of(row[c]);
        call.fail(CATENA_E_VALUE, ("p, row " + std::to_string(r)).c_str(),
                  "no negative or infinite probability, and at least " + least + " above 0",
                  got + (m.classes > most ? ", ..." : ""));
    }
    template <class T>
    static bool search(const Multinomials& m, std::int64_t r, const T* row, std::uint64_t seed,
                       std::uint64_t offset, std::int64_t* y) {
        const auto p = [=](std::int64_t c) { return row[c]; };
        const Chunks chunks(m.classes);
        double before[Chunks::most + 1];
        for (std::int64_t k = 0; k < chunks.count; ++k) before[k] = chunks.sum(p, k);
        if (!chunks.accumulate(before)) return false;
        for (std::int64_t i = 0; i < m.n; ++i) {
            const auto block = philox(seed, offset + static_cast<std::uint64_t>(r * m.n + i));
            y[i] = chunks.find(p, before, uniform_of(block));
        }
        return true;
    }
    template <class T>
    static bool compare(const Multinomials& m, std::int64_t r, const T* row, std::uint64_t seed,
                        std::uint64_t offset, std::int64_t* y, Rival* rivals) {
        std::int64_t n = 0;
        const std::int64_t first = r * Rival::blocks(m.classes);
        for (std::int64_t c = 0; c < m.classes; ++c) {
            const auto own = static_cast<double>(row[c]);
            if (!(own >= 0 && own <= std::numeric_limits<double>::max())) return false;
            if (own == 0) continue;
            const auto block = philox(seed, offset + static_cast<std::uint64_t>(first + c / 2));
            rivals[n++] = Rival::of(block, c, own);
        }
        if (n < m.n) return false;
        std::partial_sort(rivals, rivals + m.n, rivals + n,
                          [](const Rival& a, const Rival& b) { return a.precedes(b); });
        for (std::int64_t i = 0; i < m.n; ++i) y[i] = rivals[i].index;
        return true;
    }
};

CATENA_FUNCTIONS(Multinomial);

}  // namespace catena::plugins
