// check(): what is expected of any function, for one call with numbers of the caller's choice.
#pragma once

#include "catena/testing/conform.hpp"

namespace catena::testing {

struct Case {
    std::string function;
    std::vector<Array> inputs;  // float64 where floating
    Attrs attrs = {};
    double step = 1e-4;  // of finite differences
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance differences = {1e-5, 1e-6};
    bool train = true;
};

// Empty if all is well, else one line for each problem.
inline std::string check(World& world, const Case& example) {
    Report report(example.function);
    try {
        const catena_function& f = world.function(example.function);
        Settings settings;
        settings.step = example.step;
        settings.float32 = example.float32;
        settings.float64 = example.float64;
        settings.differences = example.differences;
        Sample sample;
        sample.x = example.inputs;
        if (sample.x.size() < f.n_inputs) sample.x.resize(f.n_inputs);
        for (const Array& a : sample.x) {
            sample.example.inputs.emplace_back();
            sample.example.inputs.back().present = bool(a);
            sample.example.inputs.back().shape = a.shape();
        }
        sample.example.attrs = OwnedAttrs(example.attrs);
        sample.text = text_of(f, sample.example);
        sample.train = example.train;
        Options options;
        options.train = example.train;
        world.drawn = 0;
        sample.y = world.forward(f.name, sample.x, example.attrs, options);
        detail::examine(world, f, sample, report, settings);
    } catch (const std::exception& e) {
        report.fail(Check::example, e.what());
    }
    return report.failures();
}

}  // namespace catena::testing
