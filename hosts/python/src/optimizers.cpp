// Update rules of optimizers: state and hyperparameters belong to Python, the steps are C++.
#include "operators.hpp"
#include "parts.hpp"

#include <catena/optimizers.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena::python {
namespace {

// An update rule of Python: a function of a plugin. The caller gives the values of its attributes,
// except of t, the number of the step, and the state.
class Rule final : public Optimizer {
public:
    Rule(std::string function, std::vector<std::string> attributes, std::vector<std::string> state)
        : Optimizer(state),
          name_(std::move(function)),
          attributes_(std::move(attributes)),
          n_state_(state.size()),
          update_(name_, std::vector<std::string_view>(attributes_.begin(), attributes_.end())) {
        const catena_function& f = function_descriptor(name_);
        for (const std::string& name : attributes_)
            is_bool_.push_back(std::any_of(f.attrs, f.attrs + f.n_attrs, [&](const auto* a) {
                return a->name == name && a->kind == CATENA_ATTR_BOOL;
            }));
    }

    std::vector<double> values;

private:
    PluginFunction step() override {
        (void)group();  // Python has rates of its own for single parameters
        SmallVector<AttributeView, 16> views;
        std::size_t next = 0;
        for (std::size_t i = 0; i < attributes_.size(); ++i) {
            if (attributes_[i] == "t") views.push_back(t());
            else if (is_bool_[i]) views.push_back(values.at(next++) != 0);
            else views.push_back(values.at(next++));
        }
        return update_(std::span<const AttributeView>(views.data(), views.size()));
    }
    // setup() takes no memory for state that Restore replaces.
    std::vector<Array> init_state(const Array& param) override {
        return {n_state_, Array::empty({0}, param.dtype(), param.device())};
    }

    std::string name_;
    std::vector<std::string> attributes_;
    std::vector<bool> is_bool_;  // for each attribute
    std::size_t n_state_;
    BoundFunction update_;
};

// Replaces the state, in the order of visit(), and t.
class Restore final : public Visitor {
public:
    Restore(std::vector<Array> state, std::int64_t t) : state_(std::move(state)), t_(t) {}

private:
    void array(const std::string&, Array& value) override { value = state_.at(next_++); }
    void integer(const std::string& path, std::int64_t& value) override {
        if (path == "t") value = t_;
    }

    std::vector<Array> state_;
    std::size_t next_ = 0;
    std::int64_t t_;
};

std::vector<Variable> parameters_of(PyObject* list) {
    constexpr std::string_view what = "[catena.Optimizer] parameters";
    expect(PyList_Check(list) != 0, what, "a list", list);
    return vector_of(list, [&](PyObject* each) {
        const bool has_array = is_variable(each) && as<PyVariable>(each)->variable;
        expect(has_array, what, "variables with arrays", each);
        return as<PyVariable>(each)->variable;
    });
}

std::vector<NamedParameter> named(const std::vector<Variable>& variables) {
    std::vector<NamedParameter> list;
    for (const Variable& each : variables)
        list.push_back({fmt::format("parameter {}{}{}", list.size(), each.name().empty() ? "" : " ",
                                    each.name()),
                        each});
    return list;
}

// A parameter and what its array was at setup().
struct Known {
    explicit Known(Variable x)
        : variable(std::move(x)),
          shape(variable.shape()),
          dtype(variable.dtype()),
          device(variable.device()) {}
    bool is(const Variable& x) const {
        return x.node_ref() == variable.node_ref() && x.device() == device && x.dtype() == dtype &&
               x.shape() == shape;
    }
    Variable variable;
    Shape shape;
    Dtype dtype;
    Device device;
};
struct Steps {
    std::unique_ptr<Rule> rule;
    std::vector<Known> parameters;
};
PyTypeObject* update_type = nullptr;

// Update(function, attributes, state_names)
PyObject* new_update(PyTypeObject* type, PyObject* args, PyObject*) {
    return result_of([&] {
        const char* function = nullptr;
        PyObject *attributes = nullptr, *state = nullptr;
        parse(args, "sOO:Update", &function, &attributes, &state);
        auto rule = std::make_unique<Rule>(function, texts_of(attributes), texts_of(state));
        return hold(type, Steps{std::move(rule), {}});
    });
}
// setup(parameters, state, t): state has one list of arrays, in the order of parameters and names.
void update_setup(PyObject* self, PyObject* list, PyObject* arrays, PyObject* step) {
    Steps& steps = held<Steps>(self);
    InUse::before_change(&steps);
    steps.parameters.clear();
    const std::vector<Variable> parameters = parameters_of(list);
    expect(PyList_Check(arrays) != 0, "[update] state", "a list", arrays);
    std::vector<Array> state =
        vector_of(arrays, [](PyObject* each) { return array_of(each, "[update] state"); });
    Restore restore(std::move(state), integer_of(step));
    Optimizer& optimizer = *steps.rule;
    optimizer.setup(named(parameters));
    optimizer.visit(restore);
    for (const Variable& each : parameters) steps.parameters.emplace_back(each);
}

// run(parameters, values, t): step t of these parameters. Returns False, and does nothing, unless
// setup() was called for them, with their shapes, dtypes and devices, and the last step was t - 1.
bool update_run(PyObject* self, PyObject* list, PyObject* numbers, PyObject* step) {
    expect(PyList_Check(list) != 0, "[update] parameters", "a list", list);
    expect(PyTuple_Check(numbers) != 0, "[update] values", "a tuple", numbers);
    Steps& steps = held<Steps>(self);
    Optimizer& optimizer = *steps.rule;
    if (integer_of(step) != optimizer.t() + 1 ||
        PyList_Size(list) != static_cast<Py_ssize_t>(steps.parameters.size()))
        return false;
    for (std::size_t i = 0; i < steps.parameters.size(); ++i) {
        PyObject* const each = PyList_GetItem(list, static_cast<Py_ssize_t>(i));
        if (!is_variable(each) || !as<PyVariable>(each)->variable ||
            !steps.parameters[i].is(as<PyVariable>(each)->variable))
            return false;
    }
    steps.rule->values = vector_of(numbers, [](PyObject* each) { return scalar_of(each).value(); });
    Variables used;
    std::vector<Array> arrays;
    for (const Known& each : steps.parameters) {
        used.push_back(each.variable);
        arrays.push_back(each.variable.data());
    }
    // As in Chainer: GANs update one net between the calls and the backward pass of another.
    const KeepVersions kept(arrays);
    const WithoutLockOn others(InUse::By::gradients, pointers_to({used}), true, &steps);
    optimizer.update();
    return true;
}

// ---- functions of all gradients together

class Gradients final : public Optimizer {
public:
    explicit Gradients(PyObject* list) { setup(named(parameters_of(list))); }
};

// A method of all gradients with a number.
template <void (Optimizer::*change)(double) const>
void change_gradients(PyObject*, PyObject* list, PyObject* number) {
    const double value = scalar_of(number).value();
    const Gradients gradients(list);
    const Variables used = parameters_of(list);
    const WithoutLockOn others(InUse::By::gradients, pointers_to({used}));
    (gradients.*change)(value);
}
double gradients_norm(PyObject*, PyObject* list) {
    const Gradients gradients(list);
    const Variables used = parameters_of(list);
    const WithoutLockOn others(InUse::By::gradients, pointers_to({used}));
    return gradients.compute_grads_norm();
}
// Gives each parameter that has an array, but no gradient, a gradient of zeros.
void make_gradients(PyObject*, PyObject* list) {
    expect(PyList_Check(list) != 0, "[make_gradients] parameters", "a list", list);
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
        PyObject* const each = PyList_GetItem(list, i);
        expect(is_variable(each), "[make_gradients] parameters", "variables", each);
        const Variable& variable = as<PyVariable>(each)->variable;
        InUse::before_gradient(variable);
        if (variable && !variable.grad()) variable.zerograd();
    }
}

// Later gradients are added to the arrays that the parameters have now, as in Chainer 1.
void keep_gradients(PyObject*, PyObject* list) {
    for (const Variable& each : parameters_of(list)) each.node().grad_in_place = true;
}

}  // namespace

void add_optimizers(PyObject* module) {
    update_type = add_type(
        module, {.name = "catena.Update",
                 .doc = "Steps of an update rule on many parameters.",
                 .size = sizeof(Holder<Steps>),
                 .methods = {method<update_setup>("setup"), method<update_run>("run")},
                 .slots = {slot(Py_tp_new, new_update), slot(Py_tp_dealloc, free_object<Steps>)}});
    add_functions(
        module, {method<change_gradients<&Optimizer::clip_grads>>("clip_gradients"),
                 method<change_gradients<&Optimizer::scale_grads>>("scale_gradients"),
                 method<change_gradients<&Optimizer::weight_decay>>("decay_weights"),
                 method<gradients_norm>("gradients_norm"), method<keep_gradients>("keep_gradients"),
                 method<make_gradients>("make_gradients")});
}

}  // namespace catena::python
