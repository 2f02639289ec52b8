// cuda: turns cuDNN on or off for a scope, a call, or a link.
#pragma once

#include <catena/core/config.hpp>
#include <catena/link.hpp>

namespace catena::cuda {

// Allows or forbids cuDNN for this thread's calls until the end of the scope; without cuDNN, other
// kernels compute the same functions. The default is allowed, unless CATENA_CUDNN=0 is set. A
// gradient uses the setting of its forward call. If that call had none, it uses the setting in
// effect when the gradient is computed.
//
//     const cuda::use_cudnn scope(false);
class [[nodiscard]] use_cudnn : using_named_config {
public:
    explicit use_cudnn(bool use) : using_named_config("use_cudnn", use ? 1 : 0) {}
};

// Returns call(arguments...), run in such a scope. Corresponds to Chainer's use_cudnn argument.
//
//     const Variable y = cuda::with_cudnn(false, [&] { return F::convolution_2d(x, W, b); });
//     const Variable h = cuda::with_cudnn(false, conv1, x);
template <class Call, class... A>
decltype(auto) with_cudnn(bool use, Call&& call, A&&... arguments) {
    const use_cudnn scope(use);
    return std::invoke(std::forward<Call>(call), std::forward<A>(arguments)...);
}

// A link of class L whose calls run in such a scope. Corresponds to Chainer's argument use_cudnn of
// a link. It has the parameters of L, with the same names.
//
//     cuda::WithCudnn<links::Convolution2D> conv1(false, 3, 16, 5);  // arguments of L follow
template <std::derived_from<Link> L>
class WithCudnn : public L {
public:
    template <class... A>
    explicit WithCudnn(bool use, A&&... arguments)
        : L(std::forward<A>(arguments)...), is_used(use) {}

    Variable operator()(const Variable& x) const override {
        const use_cudnn scope(is_used);
        if constexpr (std::invocable<const L&, const Variable&>) return L::operator()(x);
        else return Link::operator()(x);  // throws the error for non-const links
    }
    Variable operator()(const Variable& x) override {
        const use_cudnn scope(is_used);
        return L::operator()(x);
    }
    template <class... A>
    decltype(auto) operator()(A&&... arguments) {
        const use_cudnn scope(is_used);
        return L::operator()(std::forward<A>(arguments)...);
    }
    template <class... A>
        requires(std::invocable<const L&, A...>)
    decltype(auto) operator()(A&&... arguments) const {
        const use_cudnn scope(is_used);
        return L::operator()(std::forward<A>(arguments)...);
    }

    bool is_used;
};

}  // namespace catena::cuda
