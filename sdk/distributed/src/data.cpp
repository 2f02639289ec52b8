// The state of links on all ranks.
#include <catena/distributed/multi_node_optimizer.hpp>
#include <catena/fail.hpp>

namespace catena::distributed {
namespace {

// The parameters and persistent values of a link.
class Arrays final : public Visitor {
public:
    struct Entry {
        std::string path;
        Array array;
        bool is_parameter;
    };
    explicit Arrays(Link& link) { link.visit(*this); }
    std::vector<Entry> entries;

    std::string text() const {
        std::string result;
        for (const auto& [path, array, is_parameter] : entries)
            result +=
                fmt::format("{} {} {}\n", path, to_string(array.shape()), name(array.dtype()));
        return result;
    }

private:
    void parameter(const std::string& path, Variable& value) override {
        entries.push_back({path, value.data(), true});
    }
    void array(const std::string& path, Array& value) override {
        entries.push_back({path, value, false});
    }
};

// The first line in which two texts differ, from each.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
    while (!a.empty() || !b.empty()) {
        const std::string_view x = a.substr(0, a.find('\n')), y = b.substr(0, b.find('\n'));
        if (x != y)
            return {x.empty() ? "no more" : std::string(x), y.empty() ? "no more" : std::string(y)};
        a.remove_prefix(std::min(a.size(), x.size() + 1));
        b.remove_prefix(std::min(b.size(), y.size() + 1));
    }
    return {};
}

}  // namespace

void bcast_data(const Communicator& communicator, Link& link, int root) {
    Arrays own(link);
    const std::string expected = communicator.bcast_text(own.text(), root);
    if (const std::string text = own.text(); text != expected) {
        const auto [there, here] = first_difference(expected, text);
        const std::string message =
            fmt::format("[bcast_data] rank {}: expected the values of rank {}, {}, got {}",
                        communicator.rank(), root, there, here);
        communicator.abort(message);  // the others wait for this rank
        throw InvalidError(message);
    }
    for (const auto& [path, array, is_parameter] : own.entries)
        communicator.bcast(array, root, {.label = path}).wait();
}

void allreduce_persistent(const Communicator& communicator, Link& link) {
    Arrays own(link);
    for (const auto& [path, array, is_parameter] : own.entries)
        if (!is_parameter && is_floating(array.dtype()))
            communicator.allreduce(array, Reduction::mean, {.label = path}).wait();
}

}  // namespace catena::distributed
