// The state of links on all ranks.
#include <catena/distributed/multi_node_optimizer.hpp>
#include <catena/fail.hpp>

#include "same.hpp"

#include <cstring>

namespace catena::distributed {
namespace {

// The parameters and persistent values of a link.
class LinkState final : public Visitor {
public:
    struct Entry {
        std::string path;
        Array array;
        bool is_parameter;
    };
    explicit LinkState(Link& link) { link.visit(*this); }
    std::vector<Entry> entries;

    struct Number {
        std::string path;
        void* value;  // 8 bytes
    };
    std::vector<Number> numbers;

    std::string text() const {
        std::string result;
        for (const auto& [path, array, is_parameter] : entries)
            result +=
                fmt::format("{} {} {}\n", path, to_string(array.shape()), name(array.dtype()));
        for (const Number& number : numbers) result += fmt::format("{} number\n", number.path);
        return result;
    }

private:
    void parameter(const std::string& path, Variable& value) override {
        entries.push_back({path, value.data(), true});
    }
    void array(const std::string& path, Array& value) override {
        entries.push_back({path, value, false});
    }
    void integer(const std::string& path, std::int64_t& value) override {
        numbers.push_back({path, &value});
    }
    void integer(const std::string& path, std::uint64_t& value) override {
        numbers.push_back({path, &value});
    }
    void real(const std::string& path, double& value) override {
        numbers.push_back({path, &value});
    }
};

}  // namespace

void bcast_data(const Communicator& communicator, Link& link, int root) {
    const LinkState own(link);
    require_same(communicator, "bcast_data", own.text(), root);
    for (const auto& [path, array, is_parameter] : own.entries)
        communicator.bcast(array, root, {.label = path}).wait();
    if (own.numbers.empty()) return;
    std::vector<std::int64_t> bits(own.numbers.size());
    for (std::size_t i = 0; i < bits.size(); ++i)
        std::memcpy(&bits[i], own.numbers[i].value, sizeof bits[i]);
    const Array sent = Array::from(bits, {std::ssize(bits)}, cuda::host());
    communicator.bcast(sent, root, {.label = "numbers"}).wait();
    bits = sent.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < bits.size(); ++i)
        std::memcpy(own.numbers[i].value, &bits[i], sizeof bits[i]);
}

void allreduce_persistent(const Communicator& communicator, Link& link) {
    const LinkState own(link);
    for (const auto& [path, array, is_parameter] : own.entries)
        if (!is_parameter && is_floating(array.dtype()))
            communicator.allreduce(array, Reduction::mean, {.label = path}).wait();
}

}  // namespace catena::distributed
