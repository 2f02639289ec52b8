// All callbacks of a function for one call, each ready to be called again under other circumstances.
#pragma once

#include "rig.hpp"

namespace catena::check {

struct Circumstances {
    std::function<void()> arm = {};  // before the callback itself
    Placement placement = {};
};

struct Callback {
    std::string label;  // with the call, in words
    const catena_function* function;
    std::function<Reply(const Circumstances&)> call;
    std::vector<Array> expected;  // empty where the callback gives no arrays
    testing::Tolerance tolerance;
    int phase = CATENA_PHASE_FORWARD;  // of what it gives

    // What is wrong with a reply: the border, and the numbers if it succeeded.
    std::string judge(const Reply& reply) const;
    // Judges a call that has to succeed.
    std::string judge_success(const Reply& reply) const;
    // The label without the call's text: the same for every example.
    std::string kind() const { return label.substr(0, label.find(" of \"")); }
};

std::vector<Callback> callbacks_of(Rig& rig, const std::string& name, const Play& play);

}  // namespace catena::check
