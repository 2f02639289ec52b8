// Code that would use memory of a temporary object, and scopes that end at once.
#include <catena/catena.hpp>

#include <iostream>

using namespace catena;

Array squared(const Array& x);
Variable squared(const Variable& x);

void use(const Array& x, const Variable& v) {
#if defined(DANGLING)
    const std::vector<std::int64_t> extents(x.shape().begin(), x.shape().end());
    std::int64_t& rows = x.shape()[0];
    for (const float element : squared(x).host<const float>()) std::cout << element;
    for (const float element : squared(v).data().host<const float>()) std::cout << element;
#elif defined(SCOPES)
    no_backprop_mode();
    force_backprop_mode{};
    using_config(&Config::train, false);
    using_named_config("use_cudnn", false);
    using_device("cpu:0");
    using_fallback("cpu:0");
    using_stream(Stream::current());
    cuda::using_device(0);
    Interrupt();
    Profile();
#else
    const Array& data = squared(v).data();  // a value, which the reference keeps alive
    const Array& grad = squared(v).grad();
    const std::string& name = squared(v).name();
    static_assert(std::is_same_v<decltype(squared(v).data()), Array>);
    static_assert(std::is_same_v<decltype(squared(v).grad()), Array>);
    static_assert(std::is_same_v<decltype(squared(v).name()), std::string>);
    static_assert(std::is_same_v<decltype(v.data()), const Array&>);
    static_assert(std::is_same_v<decltype(v.grad()), const Array&>);
    for (const std::int64_t extent : x.shape()) std::cout << extent << x.shape()[0] << name;
    std::cout << data << grad << x << v << Parameter(v.data()) << x.shape() << x.dtype();
    const no_backprop_mode scope;
#endif
}
