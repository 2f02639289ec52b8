// Optimizer: state, the update of all parameters, and hooks on gradients; optimizers by name.
#include "../support.hpp"

#include <catena/capture.hpp>
#include <catena/core/config.hpp>
#include <catena/operators.hpp>
#include <catena/optimizers.hpp>

#include <cmath>
#include <tuple>

namespace catena {
namespace {

// Returns the gradient in memory that may be written: copies a shared one, unless grad_in_place is set.
const Array& own_gradient(const Variable& variable) {
    const Array& grad = variable.grad();
    if (variable.node().grad_in_place) variable.node().set_grad_node({});
    else if (!grad.body()->exclusive()) variable.set_grad(grad.copy());
    return grad;
}

// Returns float32 for parameters in half precision, else the parameter's dtype.
Dtype state_dtype(const Array& data) {
    return item_size(data.dtype()) < item_size(Dtype::float32) ? Dtype::float32 : data.dtype();
}

[[noreturn]] void throw_recorded(std::string_view rule, std::int64_t t, Device device) {
    fail<UnsupportedError>(
        "[update] {}: expected a call that is not recorded, because each launch would repeat step "
        "t = {}, got a recording on {}",
        rule, t, device.name());
}

// Copies the result of an update rule to `there`, the parameter or state. Throws if it does not fit.
void keep(const Array& there, const Array& result, std::string_view parameter,
          std::string_view what) {
    if (result.body() == there.body()) return;
    if (!result || result.shape() != there.shape() || result.dtype() != there.dtype()) {
        const auto text = [](const Array& array) {
            return array ? fmt::format("{} {}", to_string(array.shape()), name(array.dtype()))
                         : "none";
        };
        fail<InvalidError>("[update] {} of {}: expected {} from update_one(), got {}", what,
                           parameter, text(there), text(result));
    }
    there.copy_from(result);
}

}  // namespace

struct Optimizer::NoStep : UnsupportedError {
    NoStep()
        : UnsupportedError(
              "[update] update rule: expected a subclass with step() or update_one(), "
              "got neither") {}
    // For a rule that lacks update_one_cpu() or update_one_gpu().
    explicit NoStep(const char* where)
        : UnsupportedError(
              fmt::format("[update] update rule: expected a subclass with step(), update_one() or "
                          "update_one_{}(), got none of them",
                          where)) {}
};

void Optimizer::setup(std::vector<NamedParameter> parameters) {
    std::vector<Slot> slots;
    for (auto& parameter : each_once(std::move(parameters))) {
        Slot slot;
        const Array& data = parameter.variable.data();
        slot.shape = data.shape();
        slot.dtype = state_dtype(data);
        const using_device scope(data.device());
        slot.state = init_state(data);
        if (slot.state.size() != state_names_.size() ||
            std::ranges::count_if(slot.state, [](const Array& array) { return !array; }) > 0)
            fail<InvalidError>("[setup] {}: expected {} arrays from init_state(), got {}",
                               parameter.name, state_names_.size(), slot.state.size());
        // State is written in place, so its memory must not be shared.
        for (Array& array : slot.state)
            if (!array.body()->exclusive()) array = array.copy();
        slot.parameter = std::move(parameter);
        slots.push_back(std::move(slot));
    }
    slots_ = std::move(slots);
    absent_.clear();
    groups_.assign(1, {});
    memory_ = nullptr;
    t_ = 0;
    is_set_up_ = true;
    checks_links_ = false;
}

void Optimizer::setup_parts(std::vector<ParameterPart> parts) {
    std::vector<NamedParameter> parameters;
    std::vector<NamedParameter> absent;
    for (const ParameterPart& each : parts) {
        if (each.part) parameters.push_back({each.name, each.part});
        else absent.push_back({each.name, each.whole});
    }
    setup(std::move(parameters));
    absent_ = std::move(absent);
    try {
        group_ = 0;
        t_ = 1;  // rules divide by it
        const PluginFunction function = step();
        t_ = 0;
        if ((function.descriptor().flags & CATENA_FUNCTION_ELEMENTWISE) == 0)
            refuse_parts(function.name());
    } catch (const NoStep&) {
        refuse_parts("update_one()");
    }
    auto slot = slots_.begin();
    for (ParameterPart& each : parts) {
        if (!each.part) continue;
        slot->whole = std::move(each.whole);
        slot->begin = each.begin;
        ++slot;
    }
}

void Optimizer::refuse_parts(std::string_view rule) {
    is_set_up_ = false;
    fail<UnsupportedError>(
        "[setup] optimizer: expected a function of a plugin as update rule that treats each "
        "element "
        "alone, because this process updates only a part of the parameters, got {}",
        rule);
}

void Optimizer::set_group(const std::function<bool(const NamedParameter&)>& which,
                          ParameterGroup group) {
    for (const auto& [what, factor] : {std::pair("rate", group.rate), {"decay", group.decay}})
        if (!(factor >= 0 && std::isfinite(factor)))
            fail<InvalidError>("[set_group] {}: expected a finite number >= 0, got {}", what,
                               factor);
    std::vector<Slot*> members;
    for (Slot& slot : slots_) {
        NamedParameter parameter = slot.parameter;
        if (slot.whole) parameter.variable = slot.whole;
        if (which(parameter)) members.push_back(&slot);
    }
    const bool elsewhere = std::ranges::any_of(absent_, which);
    if (members.empty() && !elsewhere)
        fail<InvalidError>("[set_group] parameters: expected some of the {} of setup(), got none",
                           slots_.size());
    if (members.empty()) return;
    const auto same = std::ranges::find(groups_, group);
    const auto index = static_cast<std::size_t>(same - groups_.begin());
    if (same == groups_.end()) groups_.push_back(group);
    for (Slot* slot : members) slot->group = index;
    memory_ = nullptr;  // recordings are outdated
}

const ParameterGroup& Optimizer::group() {
    group_is_read_ = true;
    return groups_[group_];
}

// Throws if the update rule has ignored settings of the current group.
void Optimizer::require_group_is_read() const {
    const ParameterGroup& group = groups_[group_];
    if (!group_is_read_ && (group.rate != 1 || group.decay != 1))
        fail<UnsupportedError>(
            "[update] groups: expected an update rule that reads group(), because a parameter has "
            "the rate {} and the decay {}, got one that does not",
            group.rate, group.decay);
}

bool Optimizer::has_grad(const Slot& slot) const {
    return !groups_[slot.group].frozen && static_cast<bool>(slot.parameter.variable.grad());
}

void Optimizer::update() {
    if (!is_set_up_) throw InvalidError("[update] parameters: expected setup() first, got none");
    for (const auto& slot : slots_) {  // before hooks change gradients, or add them
        if (!groups_[slot.group].frozen && !slot.state.empty()) require_as_at_setup(slot);
    }
    if (!extension_ && !slots_.empty() && slots_[0].whole)
        throw InvalidError(
            "[update] parameters: expected setup() again after the optimizer lost its extension, "
            "because it has only parts of them, got none");
    if (checks_links_) report_unlisted();
    checks_links_ = checks_links_ && config().debug;
    if (extension_ && !extension_->begin_update()) return;
    for (const auto& hook : hooks_) hook(*this);
    for (auto& slot : slots_) {  // a parameter may have moved to another device
        const Device device = slot.parameter.variable.device();
        for (Array& state : slot.state) {
            if (state.device() != device) state = state.to(device);
        }
    }
    std::int64_t before = t_++;  // restored if the step fails
    const OnExit restore{[&] { t_ = before; }};
    for (group_ = 0; group_ < groups_.size() && !rule_on_arrays_; ++group_) {
        if (groups_[group_].frozen) continue;
        group_is_read_ = false;
        try {
            const PluginFunction function = step();
            require_group_is_read();
            update_by(function);
        } catch (const NoStep&) {
            rule_on_arrays_ = true;
        }
    }
    if (rule_on_arrays_) update_each();
    before = t_;
    if (extension_) extension_->end_update();
}

void Optimizer::update_by(const PluginFunction& function) {
    if (!is_counted_) require_same_each_time(function.descriptor());
    SmallVector<Array, 8> inputs;
    const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
        const Variable& variable = slots_[i].parameter.variable;
        if (slots_[i].group != group_ || !has_grad(slots_[i])) return {};
        inputs.assign({variable.data(), variable.grad()});
        inputs.append(slots_[i].state.begin(), slots_[i].state.end());
        return {inputs.data(), inputs.size()};
    };
    forward_each(function, slots_.size(), inputs_of, memory_ ? &(*memory_)[group_] : nullptr);
}

void Optimizer::update_each() {
    if (is_counted_)
        throw UnsupportedError(
            "[update] update rule: expected a function of a plugin, because a RecordedStep cannot "
            "record update_one(), which runs on the host");
    for (const Slot& slot : slots_) {
        const Variable& variable = slot.parameter.variable;
        if (has_grad(slot) && is_recorded(variable.device()))
            throw_recorded("update_one()", t_, variable.device());
    }
    for (Slot& slot : slots_) {
        if (!has_grad(slot)) continue;
        group_ = slot.group;
        group_is_read_ = false;
        update_slot(slot);
    }
}

void Optimizer::update_slot(Slot& slot) {
    const auto& [name, variable] = slot.parameter;
    const Array& data = variable.data();
    const using_device scope(data.device());
    const Dtype dtype = state_dtype(data);
    const Array wide = data.astype(dtype);  // data itself, unless in half precision
    Array param = wide;
    std::vector<Array> state = slot.state;
    if (groups_[slot.group] != ParameterGroup()) {  // the rule may ignore them, which is an error
        param = wide.copy();
        for (Array& each : state) each = each.copy();
    }
    update_one(param, variable.grad().astype(dtype), state);
    require_group_is_read();
    for (std::size_t i = 0; i < state.size(); ++i)
        keep(slot.state[i], state[i], name, state_names_[i]);
    keep(wide, param, name, "the parameter");
    if (wide.body() != data.body()) data.copy_from(wide.astype(data.dtype()));
}

PluginFunction Optimizer::step() { throw NoStep(); }

void Optimizer::update_one(Array& param, const Array& grad, std::span<Array> state) {
    if (cuda::is_gpu(param.device())) update_one_gpu(param, grad, state);
    else update_one_cpu(param, grad, state);
}
void Optimizer::update_one_cpu(Array&, const Array&, std::span<Array>) { throw NoStep("cpu"); }
void Optimizer::update_one_gpu(Array&, const Array&, std::span<Array>) { throw NoStep("gpu"); }

std::vector<Array> Optimizer::init_state(const Array& param) {
    return cuda::is_gpu(param.device()) ? init_state_gpu(param) : init_state_cpu(param);
}
std::vector<Array> Optimizer::init_state_cpu(const Array& param) { return zeros(param); }
std::vector<Array> Optimizer::init_state_gpu(const Array& param) { return zeros(param); }

std::vector<Array> Optimizer::zeros(const Array& param) const {
    std::vector<Array> state;
    for (std::size_t i = 0; i < state_names_.size(); ++i)
        state.push_back(Array::zeros(param.shape(), state_dtype(param), param.device()));
    return state;
}

std::vector<std::string> Optimizer::with_state(bool is_there, std::string name,
                                               std::vector<std::string> names) {
    if (is_there) names.push_back(std::move(name));
    return names;
}

double Optimizer::bias_corrected(double alpha, double beta1, double beta2, std::int64_t t) {
    const auto n = static_cast<double>(std::max<std::int64_t>(t, 1));
    return alpha * std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n));
}

void Optimizer::prepare_recording() {
    if (extension_)
        throw UnsupportedError(
            "[RecordedStep] optimizer: expected one of a single process, because a recording "
            "cannot contain communication, got one with an extension");
    if (!memory_) memory_ = std::make_shared<std::vector<AttributeMemory>>(groups_.size());
}

void Optimizer::prepare_launch() {
    std::int64_t before = t_++;
    const OnExit restore{[&] { t_ = before; }};
    for (group_ = 0; group_ < groups_.size(); ++group_) (*memory_)[group_].write(step());
    before = t_;
}

std::vector<const void*> Optimizer::identity() const {
    std::vector<const void*> list = {memory_.get()};
    for (const Slot& slot : slots_) {
        list.push_back(slot.parameter.variable.data().body());
        for (const Array& state : slot.state) list.push_back(state.body());
    }
    return list;
}

// Throws if the rule has an attribute t and a parameter's device records: launches would repeat the same t.
void Optimizer::require_same_each_time(const catena_function& f) const {
    if (std::none_of(f.attrs, f.attrs + f.n_attrs,
                     [](const catena_attr_spec* a) { return std::string_view(a->name) == "t"; }))
        return;
    for (const auto& slot : slots_) {
        const Variable& variable = slot.parameter.variable;
        if (!has_grad(slot) || !is_recorded(variable.device())) continue;
        throw_recorded(f.name, t_, variable.device());
    }
}

// Throws if the shape or dtype changed since setup(). Called for all parameters before any is updated.
void Optimizer::require_as_at_setup(const Slot& slot) {
    const Array& data = slot.parameter.variable.data();
    if (data.shape() == slot.shape && state_dtype(data) == slot.dtype) return;
    const auto text = [](const Shape& shape, Dtype dtype) {
        return fmt::format("{} {}", to_string(shape), name(dtype));
    };
    fail<InvalidError>("[update] {}: expected {} as at setup(), got {}", slot.parameter.name,
                       text(slot.shape, slot.dtype), text(data.shape(), state_dtype(data)));
}

void Optimizer::cleargrads() const {
    if (extension_) extension_->cleargrads();
    for (const auto& slot : slots_) slot.parameter.variable.cleargrad();
}

void Optimizer::zero_grads() const {
    if (extension_) extension_->cleargrads();
    for (const auto& slot : slots_) slot.parameter.variable.zerograd();
}

// Returns the sum over all gradients, or an empty array if there are none. Sums on each device, then on
// the device of the first gradient. The host does not wait for the sum, so that it can be recorded.
Array Optimizer::sum_of_squares() const {
    static const PluginFunction join("catena.concat", {{"axis", std::int64_t{0}}});
    const auto total = [](const std::vector<Array>& terms) {
        if (terms.size() == 1) return terms[0];
        const Array all = join.forward(terms)[0];
        return plain<"catena.sum">().forward(std::span(&all, 1))[0].reshape({1});
    };
    if (extension_) extension_->prepare_grads();
    std::vector<std::vector<Array>> sums;  // one list for each device
    for (const auto& slot : slots_) {
        if (!has_grad(slot)) continue;
        const Array& gradient = slot.parameter.variable.grad();
        const Array own =
            plain<"catena.sum_of_squares">().forward(std::span(&gradient, 1))[0].reshape({1});
        const auto there = std::find_if(sums.begin(), sums.end(), [&](const auto& others) {
            return others[0].device() == own.device();
        });
        if (there == sums.end()) sums.push_back({own});
        else there->push_back(own);
    }
    std::vector<Array> totals;
    for (const std::vector<Array>& terms : sums) totals.push_back(total(terms));
    for (Array& each : totals) each = each.to(totals[0].device());
    Array result = totals.empty() ? Array() : total(totals).reshape(Shape{});
    if (!extension_) return result;
    return extension_->sum_over_parts(result ? result : Array::zeros({}, Dtype::float64));
}

double Optimizer::compute_grads_norm() const {
    const Array sum = sum_of_squares();
    return sum ? std::sqrt(sum.item<double>()) : 0;
}

void Optimizer::clip_grads(double maxnorm) const {
    if (!(maxnorm >= 0))
        fail<InvalidError>("[clip_grads] maxnorm: expected at least 0, got {}", maxnorm);
    if (std::isinf(maxnorm)) return;  // no norm is above it
    const Array sum = sum_of_squares();
    if (!sum) return;
    const Array factor =
        with<"catena.clip_factor", "maxnorm">(maxnorm).forward(std::span(&sum, 1))[0];
    if (factor.device().host_accessible() && factor.item<double>() == 1) return;
    scale_by(factor);
}

void Optimizer::scale_grads(double factor) const { scale_by(Array::from({factor}, {})); }

void Optimizer::scale_by(const Array& factor) const {
    if (extension_) extension_->prepare_grads();
    std::vector<Array> factors;  // one for each device and dtype
    const auto factor_for = [&](const Array& gradient) {
        const Dtype dtype = state_dtype(gradient);
        for (const Array& each : factors) {
            if (each.device() == gradient.device() && each.dtype() == dtype) return each;
        }
        return factors.emplace_back(factor.to(gradient.device()).astype(dtype));
    };
    Array inputs[2];
    const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
        if (!has_grad(slots_[i])) return {};
        inputs[0] = own_gradient(slots_[i].parameter.variable);
        inputs[1] = factor_for(inputs[0]);
        return inputs;
    };
    forward_each(plain<"catena.scale_update">(), slots_.size(), inputs_of);
}

void Optimizer::weight_decay(double decay) const {
    if (extension_) extension_->prepare_grads();
    Array inputs[2];
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (groups_[group].frozen) continue;
        const auto inputs_of = [&](std::size_t i) -> std::span<const Array> {
            if (slots_[i].group != group) return {};
            const Variable& variable = slots_[i].parameter.variable;
            if (!variable.grad()) variable.zerograd();
            inputs[0] = own_gradient(variable);
            inputs[1] = variable.data();
            return inputs;
        };
        forward_each(with<"catena.decay_update", "rate">(decay * groups_[group].decay),
                     slots_.size(), inputs_of);
    }
}

void Optimizer::accumulate_grads(std::span<const Array> gradients) const {
    std::vector<NamedParameter> parameters;
    for (const Slot& slot : slots_) parameters.push_back(slot.parameter);
    add_gradients("accumulate_grads", parameters, gradients);
}

void Optimizer::set_rate(double /*rate*/) {
    throw UnsupportedError(
        "[Optimizer] set_rate: expected an optimizer with a rate, got one without");
}

void Optimizer::visit(Visitor& visitor) {
    visitor("t", t_)("epoch", epoch_);
    for (auto& slot : slots_) {
        std::int64_t t = t_;  // Chainer stores t for each parameter
        visitor(slot.parameter.name + "/t", t);
        for (std::size_t i = 0; i < state_names_.size(); ++i) {
            const std::string name = slot.parameter.name + '/' + state_names_[i];
            if (slot.whole) visitor.part(name, slot.state[i], slot.begin, slot.whole.shape());
            else visitor(name, slot.state[i]);
        }
    }
    for (const auto& [name, whole] : absent_) {
        std::int64_t t = t_;
        visitor(name + "/t", t);
        for (const std::string& state : state_names_) {
            Array none;
            visitor.part(name + '/' + state, none, 0, whole.shape());
        }
    }
}

}  // namespace catena

namespace catena::optimizers {

namespace {

struct Entry {
    std::string_view name;
    std::optional<double> default_rate;  // none: it has no rate
    std::unique_ptr<Optimizer> (*make)(std::optional<double> rate);
};

template <class T>
constexpr std::optional<double> rate_of{};
template <class T>
    requires(T::default_rate > 0)
constexpr std::optional<double> rate_of<T> = T::default_rate;

// Passes the rate, if the optimizer has one, as the constructor's first argument.
template <class T>
std::unique_ptr<Optimizer> make_one(std::optional<double> rate) {
    if constexpr (rate_of<T>.has_value())
        return std::make_unique<T>(rate ? *rate : T::default_rate);
    else return std::make_unique<T>();
}

constexpr auto all = []<class... T>(const std::tuple<T...>*) {
    return std::array{Entry{T::name, rate_of<T>, make_one<T>}...};
}(static_cast<const All*>(nullptr));

const Entry& find(std::string_view name) {
    const auto found = std::ranges::find(all, name, &Entry::name);
    if (found != all.end()) return *found;
    fail<InvalidError>("[optimizers] name: expected one of {}, got '{}'", fmt::join(names(), ", "),
                       name);
}

}  // namespace

std::vector<std::string_view> names() {
    std::vector<std::string_view> result;
    for (const Entry& optimizer : all) result.push_back(optimizer.name);
    return result;
}

std::optional<double> default_rate(std::string_view name) { return find(name).default_rate; }

std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate) {
    const Entry& optimizer = find(name);
    if (rate && !optimizer.default_rate)
        fail<InvalidError>("[optimizers] rate of {}: expected none, as it has no rate, got {}",
                           name, *rate);
    return optimizer.make(rate);
}

}  // namespace catena::optimizers
