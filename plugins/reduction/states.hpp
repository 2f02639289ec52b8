// States of reductions: what is known of the elements seen so far. A state is kept per lane of a
// piece of elements, in the type Number, and joined to the Total of many pieces, for CPU and CUDA:
//
//   start()                the state of no elements
//   take(x, at, inverse)   adds an element: at is its place in the piece, and inverse is 1 / the
//                          number of elements, including x
//   merge(other, n)        joins the lane of other elements; both lanes have n elements
//   Total::of(lane, n, from) a lane of n elements, of a piece that begins with element `from`
//   join(total)            joins other elements
//   opposite(x)            optional: -x for extremes, because the minimum of x is -(maximum of -x), and
//                          !x for truth, because all of x is !(any of !x)
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct None {};
// The numbers of a state. Lanes keep those of w states in arrays, for vectors.
template <class A, class B = None>
struct Two {
    A first;
    B second;
};

// An integer as wide as C: the place of an element in a piece.
template <class C>
using Place = std::conditional_t<sizeof(C) == 4, std::int32_t, std::int64_t>;

// The largest or smallest element, and in `second` its first place or the number of elements that
// equal it. As in NumPy, NaN has priority over every number; the number of NaNs is not counted.
template <class C, class I, bool largest, bool places>
struct Extreme : Two<C, I> {
    using Number = C;
    static constexpr bool even = false;  // all lanes must have the same number of elements
    using Total = Extreme<C, std::int64_t, largest, places>;
    using Limits = std::numeric_limits<C>;
    static constexpr C worst = Limits::has_infinity
                                   ? (largest ? -Limits::infinity() : Limits::infinity())
                                   : (largest ? Limits::min() : Limits::max());

    CATENA_FN static C opposite(C x) {
        if constexpr (std::is_integral_v<C>) return static_cast<C>(~x);
        else return -x;
    }
    CATENA_FN static Extreme start() { return {{worst, 0}}; }
    template <class J>
    CATENA_FN static Extreme of(const Extreme<C, J, largest, places>& lane, std::int64_t,
                                std::int64_t from) {
        return {{lane.first, lane.second + (places ? from : 0)}};
    }

    CATENA_FN void take(C x, I at, C) {
        const bool better = beats(x, this->first);
        if constexpr (places) this->second = better ? at : this->second;
        else this->second = better ? I(1) : this->second + (x == this->first ? I(1) : I(0));
        this->first = better ? x : this->first;
    }
    CATENA_FN void join(const Extreme& other) {
        const C x = other.first;
        const bool better = beats(x, this->first);
        const bool equal = (x == this->first) | ((x != x) & (this->first != this->first));
        if constexpr (places) {
            const bool before = better | (equal & (other.second < this->second));
            this->second = before ? other.second : this->second;
        } else {
            const I own = better ? I(0) : this->second;
            this->second = static_cast<I>(own + (better | equal ? other.second : I(0)));
        }
        this->first = better ? x : this->first;
    }
    CATENA_FN void merge(const Extreme& other, C) { join(other); }

private:
    CATENA_FN static bool beats(C a, C b) {
        return !((largest ? b >= a : b <= a) | (b != b));  // also if a is NaN and b is not
    }
};

template <class C>
struct Product : Two<C> {
    using Number = C;
    static constexpr bool even = false;
    using Total = Product;
    CATENA_FN static Product start() { return {{C(1), {}}}; }
    CATENA_FN static Product of(const Product& lane, std::int64_t, std::int64_t) { return lane; }
    CATENA_FN void take(C x, Place<C>, C) { this->first *= x; }
    CATENA_FN void join(const Product& other) { this->first *= other.first; }
    CATENA_FN void merge(const Product& other, C) { join(other); }
};

// A sum, with its Total in double.
template <class C>
struct Summed : Two<C> {
    using Number = C;
    static constexpr bool even = false;
    using Total = Summed<double>;
    CATENA_FN static Summed start() { return {{C(0), {}}}; }
    template <class D>
    CATENA_FN static Summed of(const Summed<D>& lane, std::int64_t, std::int64_t) {
        return {{static_cast<C>(lane.first), {}}};
    }
    CATENA_FN void take(C x, Place<C>, C) { this->first += x; }
    CATENA_FN void join(const Summed& other) { this->first += other.first; }
    CATENA_FN void merge(const Summed& other, C) { join(other); }
};

// The mean and the sum of squared differences from it, by Welford's and Chan's formulas.
struct MomentsTotal : Two<double, double> {
    CATENA_FN static MomentsTotal start() { return {{0, 0}, 0}; }
    CATENA_FN static MomentsTotal of(const auto& lane, std::int64_t n, std::int64_t) {
        return {{static_cast<double>(lane.first), static_cast<double>(lane.second)},
                static_cast<double>(n)};
    }
    CATENA_FN void join(const MomentsTotal& other) {
        const double all = n + other.n;
        const double part = all == 0 ? 0 : other.n / all;
        const double d = other.first - first;
        first += d * part;
        second += other.second + d * (n * part) * d;  // 0 if either has no elements
        n = all;
    }
    double n;
};
template <class C>
struct Moments : Two<C, C> {
    using Number = C;
    static constexpr bool even = true;
    using Total = MomentsTotal;
    CATENA_FN static Moments start() { return {{C(0), C(0)}}; }
    CATENA_FN void take(C x, Place<C>, C inverse) {
        const C d = x - this->first;
        this->first += d * inverse;
        this->second += d * (x - this->first);
    }
    CATENA_FN void merge(const Moments& other, C n) {
        const C d = other.first - this->first;
        this->first += d * C(0.5);
        this->second += other.second + d * d * (n * C(0.5));
    }
};

// The maximum of numbers, and the sum of e^(number - maximum). If all are -inf, the sum counts them.
template <class C>
struct ExpSum : Two<C, C> {
    using Number = C;
    static constexpr bool even = false;
    using Total = ExpSum<double>;
    CATENA_FN static ExpSum start() { return {{-std::numeric_limits<C>::infinity(), C(0)}}; }
    template <class D>
    CATENA_FN static ExpSum of(const ExpSum<D>& lane, std::int64_t, std::int64_t) {
        return {{static_cast<C>(lane.first), static_cast<C>(lane.second)}};
    }
    CATENA_FN void take(C x, Place<C>, C) {
        const C most = this->first;
        const C d = x == most ? C(0) : x - most;  // not inf - inf
        const C e = math::exp(-math::abs(d));
        this->second = x > most ? this->second * e + C(1) : this->second + e;
        this->first = x > most ? x : most;
    }
    CATENA_FN void join(const ExpSum& other) {
        const C most = this->first > other.first ? this->first : other.first;
        const C a = this->first == most ? C(1) : math::exp(this->first - most);
        const C b = other.first == most ? C(1) : math::exp(other.first - most);
        this->second = this->second * a + other.second * b;
        this->first = most;
    }
    CATENA_FN void merge(const ExpSum& other, C) { join(other); }
};

// Whether any element is not 0, or whether all are not.
template <class C, bool any>
struct Truth : Two<bool> {
    using Number = C;
    static constexpr bool even = false;
    using Total = Truth;
    template <class X>
    CATENA_FN static X opposite(X x) {
        return x == X(0);
    }
    CATENA_FN static Truth start() { return {{!any, {}}}; }
    CATENA_FN static Truth of(const Truth& lane, std::int64_t, std::int64_t) { return lane; }
    CATENA_FN void take(C x, Place<C>, C) {
        const bool is = x != C(0);
        first = any ? first | is : first & is;
    }
    CATENA_FN void join(const Truth& other) {
        first = any ? first | other.first : first & other.first;
    }
    CATENA_FN void merge(const Truth& other, C) { join(other); }
};

}  // namespace catena::plugins
