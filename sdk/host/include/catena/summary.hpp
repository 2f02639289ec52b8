// Summary: means of the values that the steps of a loop report.
#pragma once

#include <catena/lists.hpp>
#include <catena/visitor.hpp>

namespace catena {

// Means by name, weighted by the number of items, such as images or words. Values stay on their
// device until a mean is read, so reading one in each step waits for each step. Can be part of a
// snapshot.
//
//     Summary training{"loss", "accuracy"};
//     training.add({loss.data(), F::accuracy(y, t).data()}, t.size());
//     training.mean("loss");
class Summary final : public Visitable {
public:
    Summary(std::initializer_list<std::string_view> names);
    explicit Summary(std::vector<std::string> names);

    // Adds an array of one element for each name. Throws ShapeError for another number of arrays,
    // InvalidError for a weight that is not finite and positive.
    void add(const ArrayList& values, double weight);

    // NaN before the first add(). Throws InvalidError if the name does not exist.
    double mean(std::string_view name) const;
    double weight() const noexcept { return weight_; }  // the total weight
    const std::vector<std::string>& names() const noexcept { return names_; }
    void clear();

    void visit(Visitor& visitor) override;

private:
    struct Pending {
        std::vector<Array> values;
        double weight;
    };
    void settle() const;

    std::vector<std::string> names_;
    mutable std::vector<double> sums_;
    mutable std::vector<Pending> pending_;
    double weight_ = 0;
};

}  // namespace catena
