// What a backward pass gets NULL for, in words, for the report of a crash.
#pragma once

#include <cstdio>

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

// For as long as a backward pass runs: what it gets NULL for, in words, should it crash.
class Absent {
public:
    Absent(const catena_function& f, const catena_call& call, std::uint64_t kept_x,
           std::uint64_t kept_y) {
        std::string text;
        const auto add = [&](const std::string& what) {
            text += (text.empty() ? "" : ", ") + what;
        };
        for (std::uint32_t i = 0; i < call.n_x; ++i)
            if (call.x[i] == nullptr)
                add("x " + input_name(f, i) +
                    (retains(kept_x, i, f.n_inputs) ? "" : " (not in retain_x)"));
        for (std::uint32_t i = 0; i < call.n_y; ++i)
            if (call.y[i] == nullptr)
                add(std::string("y ") + f.outputs[i]->name +
                    ((kept_y >> i & 1) != 0 ? "" : " (not in retain_y)"));
        for (std::uint32_t i = 0; i < call.n_y; ++i)
            if (call.gy[i] == nullptr) add(std::string("gy ") + f.outputs[i]->name);
        for (std::uint32_t i = 0; i < call.n_x; ++i)
            if (call.gx[i] == nullptr) add("gx " + input_name(f, i));
        std::snprintf(testing::absent, sizeof testing::absent, "%s", text.c_str());
    }
    Absent(const Absent&) = delete;
    Absent& operator=(const Absent&) = delete;
    ~Absent() { testing::absent[0] = 0; }
};

}  // namespace catena::testing::detail
