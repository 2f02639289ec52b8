// The state of links on all ranks, data sets divided over ranks, and means over all ranks.
// require_same(): checks that all ranks call an operation with the same arguments.
#include <catena/distributed/data.hpp>
#include <catena/distributed/multi_node_optimizer.hpp>
#include <catena/fail.hpp>
#include <catena/random.hpp>

#include "same.hpp"

#include <cstring>
#include <numeric>
#include <sstream>

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

// ---- data sets

namespace {

// The bytes of one message of scatter_dataset().
constexpr std::int64_t message_bytes = std::int64_t{16} << 20;

// One line for each array: dtype and extents.
std::string forms_of(const Dataset& data) {
    (void)data.size();
    std::ostringstream text;
    for (const Array& array : data.arrays) {
        if (!array.device().host_accessible())
            fail<DeviceError>("[scatter_dataset] data: expected host memory, got {}",
                              array.device().name());
        text << name(array.dtype());
        for (const std::int64_t extent : array.shape()) text << ' ' << extent;
        text << '\n';
    }
    return text.str();
}

// Copies the rows order[k] of source, one after the other.
void copy_rows(const Array& source, std::span<const std::int64_t> order, const Array& target) {
    if (target.size() == 0) return;
    const std::int64_t row = target.size() / std::ssize(order);
    with_type(source.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T* const from = source.host<const T>().data();
        T* to = target.host<T>().data();
        for (const std::int64_t k : order) to = std::copy_n(from + k * row, row, to);
    });
}

}  // namespace

Dataset scatter_dataset(const Communicator& comm, const Dataset& data, bool shuffle,
                        std::uint64_t seed, int root) {
    if (root < 0 || root >= comm.size())
        fail<InvalidError>("[scatter_dataset] root: expected a rank below {}, got {}", comm.size(),
                           root);
    const bool sends = comm.rank() == root;
    std::string forms;
    try {
        if (sends) forms = forms_of(data);
    } catch (const Error& error) {
        comm.abort(error.what());  // the others wait for this rank
        throw;
    }
    std::istringstream lines(comm.bcast_text(forms, root));
    std::vector<std::int64_t> order(static_cast<std::size_t>(sends ? data.size() : 0));
    std::iota(order.begin(), order.end(), 0);
    if (shuffle) Generator(seed ^ 0x7363617474657221u).shuffle(order);  // its own stream

    Dataset result;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string dtype;
        words >> dtype;
        std::vector<std::int64_t> extents;
        for (std::int64_t extent = 0; words >> extent;) extents.push_back(extent);
        Shape shape(extents);
        const std::int64_t n = shape[0];
        shape[0] = 1;
        const std::int64_t row = shape.size();  // elements
        const auto own = [&](std::int64_t r) { return part_of(n, r, comm.size()); };
        shape[0] = own(comm.rank()).size();
        const Array part = Array::empty(shape, dtype_from_name(dtype), cuda::host());
        const std::int64_t row_bytes = std::max<std::int64_t>(row * item_size(part.dtype()), 1);
        const std::int64_t rows =
            std::max<std::int64_t>(message_bytes / row_bytes / comm.size(), 1);
        std::int64_t longest = 0;
        for (int r = 0; r < comm.size(); ++r) longest = std::max(longest, own(r).size());
        for (std::int64_t begin = 0; begin < longest; begin += rows) {
            std::vector<std::int64_t> counts, chosen;
            for (int r = 0; r < comm.size(); ++r) {
                const Range range{std::min(own(r).begin + begin, own(r).end),
                                  std::min(own(r).begin + begin + rows, own(r).end)};
                counts.push_back(range.size() * row);
                if (sends)
                    chosen.insert(chosen.end(), order.begin() + range.begin,
                                  order.begin() + range.end);
            }
            Array message;
            if (sends) {
                message = Array::empty({std::ssize(chosen) * row}, part.dtype(), cuda::host());
                copy_rows(data.arrays[result.arrays.size()], chosen, message);
            }
            const std::int64_t count = counts[static_cast<std::size_t>(comm.rank())];
            const Array target = part.view(std::min(begin * row, part.size()), {count});
            comm.scatter(message, target, root, counts, {.label = "data set"}).wait();
        }
        result.arrays.push_back(part);
    }
    return result;
}

void allreduce(const Communicator& comm, Summary& summary) {
    struct Numbers final : Visitor {
        std::vector<double*> numbers;
        std::string names;
        void real(const std::string& path, double& value) override {
            numbers.push_back(&value);
            names += path + '\n';
        }
    } visitor;
    summary.visit(visitor);
    require_same(comm, "allreduce", visitor.names, 0);
    std::vector<double> values;
    for (const double* each : visitor.numbers) values.push_back(*each);
    const Array sums =
        Array::from(std::span<const double>(values), {std::ssize(values)}, cuda::host());
    comm.allreduce(sums, Reduction::sum, {.label = "summary"}).wait();
    const auto results = sums.host<const double>();
    for (std::size_t i = 0; i < results.size(); ++i) *visitor.numbers[i] = results[i];
}

// ---- require_same()

namespace {

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

void require_same(const Communicator& communicator, std::string_view operation,
                  const std::string& text, int root) {
    const std::string expected = communicator.bcast_text(text, root);
    if (text == expected) return;
    const auto [there, here] = first_difference(expected, text);
    const std::string message =
        fmt::format("[{}] rank {}: expected the values of rank {}, {}, got {}", operation,
                    communicator.rank(), root, there, here);
    communicator.abort(message);  // the others wait for this rank
    throw InvalidError(message);
}

}  // namespace catena::distributed
