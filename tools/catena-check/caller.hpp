// Calls of a function's callbacks, each lent what a host lends it and watched at the border.
#pragma once

#include <catena/testing/exam.hpp>

#include <functional>
#include <map>
#include <optional>

#include "control.hpp"
#include "ground.hpp"

namespace catena::check {

using testing::Array;
using testing::OwnedAttrs;

inline constexpr const char* cpu = "cpu";  // whose memory is lent, but for kernels of `Devices`

// By name, with memory of their own.
using Devices = std::map<std::string, const testing::detail::Device*>;

enum class Step { infer, supports, plan, run, gradient };
const char* name_of(Step step);

// What came back from the last callback that was called.
struct Reply {
    Step step = Step::infer;
    catena_status status = CATENA_OK;
    bool served = true;  // false: supports() or plan() say that the kernel cannot do it
    bool fired = false;  // a fault that was asked for happened
    int failures = 0;    // calls of fail()
    std::string text;
    std::string thrown;
    std::string misuse;
    std::vector<catena_meta> metas;  // infer
    std::vector<Array> results;      // outputs and updated inputs; gradients
};

// What is wrong with a reply, whatever was asked; empty: nothing.
std::string judge(const Reply& reply, const catena_function& f);

// The nearest number that the dtype has; integers have no NaN.
void set_clamped(Array& a, std::int64_t i, double value);

class Caller {
public:
    Caller(testing::World& world, const Devices& devices, const catena_function& f,
           const OwnedAttrs& attrs, bool train);

    Placement placement;
    std::function<void()> arm;  // before the last step
    // More than this is not lent; a call that needs it counts as not served.
    std::uint64_t most_bytes = std::uint64_t{1} << 27;

    Reply infer(const std::vector<std::optional<catena_meta>>& x);
    // The callbacks up to `last`; outputs have these shapes and dtypes.
    Reply forward(const catena_kernel& k, const std::vector<Array>& x,
                  const std::vector<catena_meta>& y, Step last,
                  std::vector<Array>* saved = nullptr);
    // `before` is the forward kernel of its variant, where it has one.
    Reply backward(const catena_kernel& k, const catena_kernel* before,
                   const testing::detail::Given& given, Step last);
    Reply gradient(const testing::detail::Given& given);

private:
    struct Lists;
    template <class Body>
    void enter(Reply& reply, Step step, bool last, const Body& body);
    bool kernel_call(const catena_kernel& k, Ground& ground, Lists& lists,
                     std::vector<Array>& saved, Step last, Reply& reply);
    const catena_value* attributes(Ground& ground) const;
    // Null: its memory is the host's.
    const testing::detail::Device* device_of(const catena_kernel& k) const {
        const auto found = devices_.find(k.device);
        return found == devices_.end() ? nullptr : found->second;
    }

    testing::World& world_;
    const Devices& devices_;
    const catena_function& f_;
    OwnedAttrs attrs_;
    bool train_;
    catena_ctx ctx_;
};

}  // namespace catena::check
