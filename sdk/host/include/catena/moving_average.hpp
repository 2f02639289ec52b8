// ExponentialMovingAverage: averages of parameters over the steps of training, for evaluation.
#pragma once

#include <catena/link.hpp>

namespace catena {

// average = decay * average + (1 - decay) * parameter after each step (Polyak and Juditsky, 1992).
// Averages start as the parameters, and are float32 for parameters in half precision. Not
// thread-safe.
//
//     ExponentialMovingAverage averages(model, 0.999);
//     ...
//     optimizer.update();
//     averages.update();
//     ...
//     averages.swap();  // the model has the averages now
//     evaluate(model);
//     averages.swap();
class ExponentialMovingAverage : public Visitable {
public:
    // Throws InvalidError unless 0 <= decay <= 1, and PluginError if no plugin has the function.
    explicit ExponentialMovingAverage(const Link& link, double decay = 0.999);

    // Updates the averages with the current parameters, by the formula above. Throws InvalidError,
    // and changes nothing, if the shape or device of a parameter has changed.
    void update();
    // Exchanges the values of the parameters and their averages. Throws as update().
    void swap();

    // Saves the averages under the names of their parameters.
    void visit(Visitor& visitor) override;

private:
    struct Entry {
        NamedParameter parameter;
        Array average;
    };
    void check(std::string_view where) const;

    std::vector<Entry> entries_;
    double decay_;
};

}  // namespace catena
