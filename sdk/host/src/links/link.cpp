// Visitor: joins the names of nested parts to paths. Link: the functions that are based on visit(),
// such as parameters() and to(); FunctionSet, ChainList and Sequential.
#include "../support.hpp"

#include <catena/function_forms.hpp>
#include <catena/sequential.hpp>

#include <ranges>
#include <set>

namespace catena {
namespace {

// Maps arrays to their replacements. Handles to the same array get the same replacement.
class Replaced {
public:
    template <class Make>
    const Array& operator()(const Array& original, const Make& make) {
        const auto [place, is_new] = known_.try_emplace(original.body(), original, Array());
        if (is_new) place->second.second = make();
        return place->second.second;
    }

private:
    std::map<const ArrayBody*, std::pair<Array, Array>> known_;  // first: keeps the key alive
};

// Visits twice: first makes all new arrays and checks everything that can fail, then assigns them.
class Changer final : public Visitor {
public:
    explicit Changer(Device device) : device_(device) {}
    explicit Changer(Dtype dtype) : dtype_(dtype) {}

    void change(Link& link) {
        link.visit(*this);
        planning_ = false;
        link.visit(*this);
    }

private:
    Array changed(const Array& array, bool running = false) {
        return replaced_(array, [&] {
            if (device_) return array.to(device_);
            if (!is_floating(array.dtype())) return array;
            const bool narrow = item_size(dtype_) < item_size(Dtype::float32);
            return array.astype(running && narrow ? Dtype::float32 : dtype_);
        });
    }
    void parameter(const std::string& path, Variable& value) override {
        const Array data = changed(value.data());
        const Array grad = value.grad() ? changed(value.grad()) : Array();
        if (data.body() == value.data().body()) return;
        if (!planning_) {
            value.set_data(data);
            if (grad) value.set_grad(grad);
        } else if (value.node().in_graph())
            fail<GraphError>(
                "[to] {}: expected a parameter that no graph refers to, got one in use", path);
    }
    void assign(Array& value, bool running) {
        const Array array = changed(value, running);
        if (!planning_) value = array;
    }
    void array(const std::string&, Array& value) override { assign(value, false); }
    void running_array(const std::string&, Array& value) override { assign(value, true); }

    Device device_;
    Dtype dtype_ = Dtype::float32;
    bool planning_ = true;
    Replaced replaced_;
};

class Unsharer final : public Visitor {
private:
    void parameter(const std::string&, Variable& value) override {
        Variable& copy = copies_[&value.node()];  // tied parameters stay tied
        if (!copy) copy = copy_of(value);
        value = copy;
    }
    void array(const std::string&, Array& value) override {
        value = replaced_(value, [&] { return value.copy(); });
    }
    static Variable copy_of(const Variable& value) {
        Variable copy(value.data().copy(), value.is_volatile());
        copy.node().is_parameter = value.node().is_parameter;
        copy.set_requires_grad(value.requires_grad());
        if (!value.name().empty()) copy.set_name(value.name());
        return copy;
    }

    std::map<const VariableNode*, Variable> copies_;
    Replaced replaced_;
};

void require_same_number(std::string_view what, std::size_t expected, std::size_t got) {
    if (expected != got)
        fail<ShapeError>("[{}] parameters: expected {}, got {}", what, expected, got);
}

void require_same(std::string_view what, const NamedParameter& parameter, const Array& got) {
    const Array& data = parameter.variable.data();
    if (data.shape() == got.shape() && data.dtype() == got.dtype()) return;
    fail<ShapeError>("[{}] {}: expected {} {}, got {} {}", what, parameter.name,
                     to_string(data.shape()), name(data.dtype()), to_string(got.shape()),
                     name(got.dtype()));
}

}  // namespace

void add_gradients(std::string_view where, std::span<const NamedParameter> parameters,
                   std::span<const Array> gradients) {
    require_same_number(where, parameters.size(), gradients.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (gradients[i]) require_same(where, parameters[i], gradients[i]);
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Variable& to = parameters[i].variable;
        if (gradients[i]) accumulate(to.node(), functions::copy(gradients[i], to.device()));
    }
}

std::vector<NamedParameter> listed_parameters(Visitable& object) {
    class Collector final : public Visitor {
    public:
        std::vector<NamedParameter> found;

    private:
        void parameter(const std::string& path, Variable& value) override {
            found.push_back({path, value});
        }
    } collector;
    object.visit(collector);
    return std::move(collector.found);
}

std::vector<NamedParameter> each_once(std::vector<NamedParameter> parameters) {
    std::map<std::string, const VariableNode*> names;
    std::set<const VariableNode*> seen;
    std::vector<NamedParameter> result;
    for (auto& parameter : parameters) {
        require_parameter("parameters", parameter.name, parameter.variable);
        const VariableNode* node = &parameter.variable.node();
        note_listed(parameter.variable);
        if (names.emplace(parameter.name, node).first->second != node)
            fail<InvalidError>(
                "[parameters] names: expected one for each parameter, got {} for two",
                parameter.name);
        if (seen.insert(node).second) result.push_back(std::move(parameter));
    }
    return result;
}

Variable Link::operator()(const Variable&) const {
    fail<UnsupportedError>(
        "[{0}] call: expected a link that takes one variable, got {0}, which is called in its own "
        "way, or not by an operator() that is const",
        class_name(typeid(*this)));
}
Variable Link::operator()(const Variable& x) { return std::as_const(*this)(x); }

std::vector<NamedParameter> Link::collect_parameters() const {
    // The const_cast is safe: listing copies handles and does not change the link.
    return each_once(listed_parameters(const_cast<Link&>(*this)));
}

std::vector<Variable> Link::parameters() const {
    std::vector<Variable> result;
    for (auto& parameter : collect_parameters()) result.push_back(std::move(parameter.variable));
    return result;
}

std::vector<Array> Link::gradients() const {
    std::vector<Array> result;
    for (const auto& variable : parameters()) result.push_back(variable.grad());
    return result;
}

std::int64_t Link::count_parameters() const {
    std::int64_t count = 0;
    for (const auto& variable : parameters()) count += variable.size();
    return count;
}

void Link::cleargrads() const {
    for (const auto& variable : parameters()) variable.cleargrad();
}

void Link::zerograds() const {
    for (const auto& variable : parameters()) variable.zerograd();
}

void Link::add_gradients(const Link& source) const {
    catena::add_gradients("add_gradients", collect_parameters(), source.gradients());
}

void Link::copy_parameters_from(const Link& source) const {
    copy_parameters_from(source.parameters());
}

void Link::copy_parameters_from(std::span<const Variable> source) const {
    std::vector<Array> arrays;
    for (const Variable& variable : source) arrays.push_back(variable ? variable.data() : Array());
    copy_parameters_from(arrays);
}

void Link::copy_parameters_from(std::span<const Array> source) const {
    const auto targets = collect_parameters();
    require_same_number("copy_parameters_from", targets.size(), source.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (!source[i])
            fail<InvalidError>("[copy_parameters_from] {}: expected an array, got none",
                               targets[i].name);
        require_same("copy_parameters_from", targets[i], source[i]);
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
        targets[i].variable.data().copy_from(source[i]);
}

Link& Link::to(Device device) {
    if (!device) throw InvalidError("[to] device: expected a device, got none");
    Changer(device).change(*this);
    return *this;
}

Link& Link::to(Dtype dtype) {
    if (!is_floating(dtype))
        fail<DtypeError>("[to] dtype: expected a floating one, got {}", name(dtype));
    Changer(dtype).change(*this);
    return *this;
}

Link& Link::to_gpu(const cuda::DeviceLike& device) { return to(cuda::get_gpu("to_gpu", device)); }
Link& Link::to_cpu() { return to(cuda::host()); }

void Link::unshare() {
    Unsharer unsharer;
    visit(unsharer);
}

// ---- FunctionSet: the map of links

FunctionSet::FunctionSet(std::initializer_list<std::pair<std::string_view, Child>> links) {
    for (const auto& [name, child] : links) add(name, child);
}

Link& FunctionSet::add(std::string_view name, Child child) {
    if (name.empty() || name.find('/') != name.npos)
        fail<InvalidError>("[FunctionSet] add: expected a name without '/', got '{}'", name);
    const auto [place, added] = children_.emplace(std::string(name), std::move(child));
    if (!added) fail<InvalidError>("[FunctionSet] add: expected a new name, got '{}'", name);
    return place->second.link();
}

Link& FunctionSet::operator[](std::string_view path) const {
    const auto slash = path.find('/');
    const auto child = children_.find(path.substr(0, slash));
    if (child == children_.end()) {
        const std::string names = fmt::format("{}", fmt::join(std::views::keys(children_), ", "));
        fail<InvalidError>(
            "[FunctionSet] link: expected {}, got '{}'",
            names.empty() ? "the name of a link, of which there are none" : "one of " + names,
            path);
    }
    Link& link = child->second.link();
    if (slash == path.npos) return link;
    const auto& set = detail::link_as<FunctionSet>("FunctionSet", child->first, link);
    return set[path.substr(slash + 1)];
}

bool FunctionSet::contains(std::string_view path) const {
    const auto slash = path.find('/');
    const auto child = children_.find(path.substr(0, slash));
    if (child == children_.end() || slash == path.npos) return child != children_.end();
    const auto* set = dynamic_cast<const FunctionSet*>(&child->second.link());
    return set && set->contains(path.substr(slash + 1));
}

FunctionSet& FunctionSet::to_gpu(const cuda::DeviceLike& device) & {
    Link::to_gpu(device);
    return *this;
}
FunctionSet FunctionSet::to_gpu(const cuda::DeviceLike& device) && {
    return std::move(to_gpu(device));
}
FunctionSet& FunctionSet::to_cpu() & {
    Link::to_cpu();
    return *this;
}
FunctionSet FunctionSet::to_cpu() && { return std::move(to_cpu()); }

void FunctionSet::visit(Visitor& visitor) {
    for (auto& [name, child] : children_) visitor(name, child.link());
}

void detail::throw_wrong_kind(std::string_view set, std::string_view path,
                              const std::type_info& expected, const Link& got) {
    fail<InvalidError>("[{}] {}: expected {}, got {}", set, path, class_name(expected),
                       class_name(typeid(got)));
}

// ---- ChainList and Sequential

namespace {

// A function among links.
class FunctionLink final : public Link {
public:
    explicit FunctionLink(std::function<Variable(const Variable&)> function)
        : function_(std::move(function)) {}
    Variable operator()(const Variable& x) const override { return function_(x); }
    void visit(Visitor&) override {}

private:
    std::function<Variable(const Variable&)> function_;
};

}  // namespace

Link& ChainList::append(Child child) {
    children_.push_back(std::move(child));
    return children_.back().link();
}
Link& ChainList::operator[](std::int64_t i) const {
    const auto n = static_cast<std::int64_t>(size());
    if (i < -n || i >= n) fail<InvalidError>("[ChainList] link: expected one of {}, got {}", n, i);
    return children_[static_cast<std::size_t>(i < 0 ? i + n : i)].link();
}
void ChainList::visit(Visitor& visitor) {
    int number = 0;
    for (Link& link : *this)
        if (typeid(link) != typeid(FunctionLink)) visitor(std::to_string(number++), link);
}

Sequential::Step::Step(Variable (*function)(const Variable&)) : Step(Function(function), 0) {}
Sequential::Step::Step(Function function, int) : Child(FunctionLink(std::move(function))) {}

Sequential::Sequential(std::initializer_list<Step> steps) : ChainList() {
    children_.assign(steps.begin(), steps.end());
}
void Sequential::extend(const Sequential& steps) {
    const std::vector<Child> more = steps.children_;  // `steps` may be this one
    children_.insert(children_.end(), more.begin(), more.end());
}
Sequential Sequential::repeat(std::int64_t n) const {
    Sequential result;
    for (std::int64_t i = 0; i < n; ++i) result.append(deep_copy(*this));
    return result;
}
Variable Sequential::operator()(const Variable& x) const {
    Variable y = x;
    for (Link& step : *this) y = step(y);
    return y;
}

// ---- Visitor

// Calls visit() with the name appended to the path.
template <class Visit>
Visitor& Visitor::at(std::string_view name, const Visit& visit) {
    const OnExit restore{[this, length = path_.size()] { path_.resize(length); }};
    if (!path_.empty()) path_ += '/';
    path_ += name;
    visit();
    return *this;
}

Visitor& Visitor::operator()(std::string_view name, Parameter& value) {
    note_listed(value);
    return value ? at(name, [&] { parameter(path_, value); }) : *this;
}
Visitor& Visitor::operator()(std::string_view name, Variable& value) {
    if (!value) return *this;
    return at(name, [&] {
        require_parameter("visit", path_, value);
        parameter(path_, value);
    });
}
Visitor& Visitor::operator()(std::string_view name, Array& value) {
    return value ? at(name, [&] { array(path_, value); }) : *this;
}
Visitor& Visitor::running(std::string_view name, Array& value) {
    return value ? at(name, [&] { running_array(path_, value); }) : *this;
}
Visitor& Visitor::part(std::string_view name, Array& value, std::int64_t begin,
                       const Shape& whole) {
    return at(name, [&] { array_part(path_, value, begin, whole); });
}
void Visitor::array_part(const std::string& path, Array& value, std::int64_t begin,
                         const Shape& whole) {
    fail<UnsupportedError>(
        "[visit] {}: expected the whole array of shape {}, got {} of its elements from {} on, "
        "because processes share the state; distributed::Checkpoints save the parts",
        path, to_string(whole), value ? value.size() : 0, begin);
}
Visitor& Visitor::operator()(std::string_view name, std::int64_t& value) {
    return at(name, [&] { integer(path_, value); });
}
Visitor& Visitor::within(std::string_view name, std::int64_t& value, std::int64_t low,
                         std::int64_t high) {
    return at(name, [&] { integer_within(path_, value, low, high); });
}
Visitor& Visitor::operator()(std::string_view name, std::uint64_t& value) {
    return at(name, [&] { integer(path_, value); });
}
Visitor& Visitor::operator()(std::string_view name, double& value) {
    return at(name, [&] { real(path_, value); });
}
Visitor& Visitor::operator()(std::string_view name, Visitable& part) {
    return at(name, [&] { nested(part); });
}
Visitor& Visitor::require(std::string_view name, std::int64_t value) {
    return at(name, [&] { required(path_, value); });
}
Visitor& Visitor::require(std::string_view name, std::string_view value) {
    return at(name, [&] { required(path_, value); });
}
Visitor& Visitor::require_or_convert(std::string_view name, std::string_view value,
                                     std::string_view array, Convert convert) {
    std::string array_path;
    at(array, [&] { array_path = path_; });
    return at(name, [&] { required_or_converted(path_, value, array_path, convert); });
}

}  // namespace catena
