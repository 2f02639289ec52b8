// The image nets of catena::models, implemented with libtorch.
#pragma once

#include <torch/torch.h>

namespace catena_bench {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

inline nn::Conv2d conv(int in, int out, int k, int stride = 1, int pad = 0) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, k).stride(stride).padding(pad));
}
inline Tensor rectified(const Tensor& x) { return F::relu(x, F::ReLUFuncOptions(true)); }
inline Tensor pool(const Tensor& x) {
    return F::max_pool2d(x, F::MaxPool2dFuncOptions(3).stride(2).ceil_mode(true));
}
inline Tensor half_dropped(const Tensor& x, double p = 0.5) {
    return F::dropout(x, F::DropoutFuncOptions().p(p));
}

struct Nin : nn::Module {
    struct Block {
        nn::Conv2d first, second, third;
        Tensor operator()(const Tensor& x) {
            return third->forward(rectified(second->forward(rectified(first->forward(x)))));
        }
    };
    Block block(int in, int mid, int out, int k, int stride, int pad) {
        const std::string n = std::to_string(children().size());
        return {register_module("a" + n, conv(in, mid, k, stride, pad)),
                register_module("b" + n, conv(mid, mid, 1)),
                register_module("c" + n, conv(mid, out, 1))};
    }
    Block b1 = block(3, 96, 96, 11, 4, 0), b2 = block(96, 256, 256, 5, 1, 2),
          b3 = block(256, 384, 384, 3, 1, 1), b4 = block(384, 1024, 1000, 3, 1, 1);

    Tensor loss(const Tensor& x, const Tensor& t) {
        const Tensor h =
            b4(half_dropped(pool(rectified(b3(pool(rectified(b2(pool(rectified(b1(x)))))))))));
        return F::cross_entropy(F::avg_pool2d(h, F::AvgPool2dFuncOptions(6)).flatten(1), t);
    }
};

struct AlexNetBn : nn::Module {
    template <class Module>
    Module add(Module module) {
        return register_module("m" + std::to_string(children().size()), module);
    }
    nn::Conv2d c1 = add(conv(3, 96, 11, 4)), c2 = add(conv(96, 256, 5, 1, 2)),
               c3 = add(conv(256, 384, 3, 1, 1)), c4 = add(conv(384, 384, 3, 1, 1)),
               c5 = add(conv(384, 256, 3, 1, 1));
    nn::BatchNorm2d n1 = add(nn::BatchNorm2d(96)), n2 = add(nn::BatchNorm2d(256));
    nn::Linear f6 = add(nn::Linear(9216, 4096)), f7 = add(nn::Linear(4096, 4096)),
               f8 = add(nn::Linear(4096, 1000));

    Tensor loss(const Tensor& x, const Tensor& t) {
        Tensor h = pool(rectified(n1->forward(c1->forward(x))));
        h = pool(rectified(n2->forward(c2->forward(h))));
        h = pool(rectified(c5->forward(rectified(c4->forward(rectified(c3->forward(h)))))));
        h = half_dropped(rectified(f6->forward(h.flatten(1))));
        h = half_dropped(rectified(f7->forward(h)));
        return F::cross_entropy(f8->forward(h), t);
    }
};

struct GoogLeNet : nn::Module {
    template <class Module>
    Module add(Module module) {
        return register_module("m" + std::to_string(children().size()), module);
    }
    struct Inception {
        nn::Conv2d one, reduce3, three, reduce5, five, behind_pool;
        Tensor operator()(const Tensor& x) {
            const auto maxima = F::MaxPool2dFuncOptions(3).stride(1).padding(1);
            return rectified(
                torch::cat({one->forward(x), three->forward(rectified(reduce3->forward(x))),
                            five->forward(rectified(reduce5->forward(x))),
                            behind_pool->forward(F::max_pool2d(x, maxima))},
                           1));
        }
    };
    Inception inception(int in, int o1, int p3, int o3, int p5, int o5, int pp) {
        return {add(conv(in, o1, 1)), add(conv(in, p3, 1)),       add(conv(p3, o3, 3, 1, 1)),
                add(conv(in, p5, 1)), add(conv(p5, o5, 5, 1, 2)), add(conv(in, pp, 1))};
    }
    struct Auxiliary {
        nn::Conv2d reduce;
        nn::Linear fc1, fc2;
        Tensor operator()(const Tensor& x) {
            const Tensor means = F::avg_pool2d(x, F::AvgPool2dFuncOptions(5).stride(3));
            return fc2->forward(
                rectified(fc1->forward(rectified(reduce->forward(means)).flatten(1))));
        }
    };
    Auxiliary auxiliary(int in) {
        return {add(conv(in, 128, 1)), add(nn::Linear(2048, 1024)), add(nn::Linear(1024, 1000))};
    }
    static Tensor lrn(const Tensor& x) {
        return F::local_response_norm(x, F::LocalResponseNormFuncOptions(5).k(2));
    }

    nn::Conv2d c1 = add(conv(3, 64, 7, 2, 3)), c2r = add(conv(64, 64, 1)),
               c2 = add(conv(64, 192, 3, 1, 1));
    Inception i3a = inception(192, 64, 96, 128, 16, 32, 32),
              i3b = inception(256, 128, 128, 192, 32, 96, 64),
              i4a = inception(480, 192, 96, 208, 16, 48, 64),
              i4b = inception(512, 160, 112, 224, 24, 64, 64),
              i4c = inception(512, 128, 128, 256, 24, 64, 64),
              i4d = inception(512, 112, 144, 288, 32, 64, 64),
              i4e = inception(528, 256, 160, 320, 32, 128, 128),
              i5a = inception(832, 256, 160, 320, 32, 128, 128),
              i5b = inception(832, 384, 192, 384, 48, 128, 128);
    Auxiliary a1 = auxiliary(512), a2 = auxiliary(528);
    nn::Linear fc = add(nn::Linear(1024, 1000));

    Tensor loss(const Tensor& x, const Tensor& t) {
        Tensor h = lrn(pool(rectified(c1->forward(x))));
        h = pool(lrn(rectified(c2->forward(rectified(c2r->forward(h))))));
        const Tensor a = i4a(pool(i3b(i3a(h))));
        const Tensor d = i4d(i4c(i4b(a)));
        h = i5b(i5a(pool(i4e(d))));
        h = half_dropped(F::avg_pool2d(h, F::AvgPool2dFuncOptions(7)).flatten(1), 0.4);
        return F::cross_entropy(fc->forward(h), t) +
               0.3 * (F::cross_entropy(a1(a), t) + F::cross_entropy(a2(d), t));
    }
};

}  // namespace catena_bench
