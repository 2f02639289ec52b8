// See optimizers.hpp.
#include "optimizers.hpp"

#include "operators.hpp"

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

std::vector<std::string> texts_of(PyObject* list) {
    const Owned tuple = checked(PySequence_Tuple(list));
    std::vector<std::string> texts;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple.get()); ++i)
        texts.emplace_back(text_of(PyTuple_GetItem(tuple.get(), i)));
    return texts;
}

std::vector<Variable> parameters_of(PyObject* list) {
    expect(PyList_Check(list) != 0, "[catena.Optimizer] parameters", "a list", list);
    std::vector<Variable> variables;
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
        PyObject* const each = PyList_GetItem(list, i);
        if (!is_variable(each) || !as<PyVariable>(each)->variable)
            raise(PyExc_TypeError,
                  "[catena.Optimizer] parameters: expected variables with arrays, "
                  "got " +
                      type_name(each));
        variables.push_back(as<PyVariable>(each)->variable);
    }
    return variables;
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
struct PyUpdate {
    PyObject_HEAD std::unique_ptr<Steps> steps;
};
PyTypeObject* update_type = nullptr;
Steps& steps_of(PyObject* self) { return *as<PyUpdate>(self)->steps; }

// Update(function, attributes, state_names)
PyObject* new_update(PyTypeObject* type, PyObject* args, PyObject*) {
    return guarded([&] {
        const char* function = nullptr;
        PyObject *attributes = nullptr, *state = nullptr;
        if (PyArg_ParseTuple(args, "sOO:Update", &function, &attributes, &state) == 0)
            throw PythonError();
        auto steps = std::make_unique<Steps>();
        steps->rule = std::make_unique<Rule>(function, texts_of(attributes), texts_of(state));
        Owned made = checked(PyType_GenericAlloc(type, 0));
        new (&as<PyUpdate>(made.get())->steps) auto(std::move(steps));
        return made.release();
    });
}
// setup(parameters, state, t): state has one list of arrays, in the order of parameters and names.
PyObject* update_setup(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 3) raise(PyExc_TypeError, "setup() takes 3 arguments");
        Steps& steps = steps_of(self);
        InUse::before_change(&steps);
        steps.parameters.clear();
        const std::vector<Variable> parameters = parameters_of(args[0]);
        std::vector<Array> state;
        expect(PyList_Check(args[1]) != 0, "[update] state", "a list", args[1]);
        for (Py_ssize_t i = 0; i < PyList_Size(args[1]); ++i)
            state.push_back(array_of(PyList_GetItem(args[1], i), "[update] state"));
        const long long t = PyLong_AsLongLong(args[2]);
        if (PyErr_Occurred() != nullptr) throw PythonError();
        Optimizer& optimizer = *steps.rule;
        optimizer.setup(named(parameters));
        Restore restore(std::move(state), t);
        optimizer.visit(restore);
        for (const Variable& each : parameters) steps.parameters.emplace_back(each);
        Py_RETURN_NONE;
    });
}

// run(parameters, values, t): step t of these parameters. Returns False, and does nothing, unless
// setup() was called for them, with their shapes, dtypes and devices, and the last step was t - 1.
PyObject* update_run(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 3) raise(PyExc_TypeError, "run() takes 3 arguments");
        expect(PyList_Check(args[0]) != 0, "[update] parameters", "a list", args[0]);
        expect(PyTuple_Check(args[1]) != 0, "[update] values", "a tuple", args[1]);
        Steps& steps = steps_of(self);
        Optimizer& optimizer = *steps.rule;
        const long long t = PyLong_AsLongLong(args[2]);
        if (PyErr_Occurred() != nullptr) throw PythonError();
        if (t != optimizer.t() + 1 ||
            PyList_Size(args[0]) != static_cast<Py_ssize_t>(steps.parameters.size()))
            Py_RETURN_FALSE;
        for (std::size_t i = 0; i < steps.parameters.size(); ++i) {
            PyObject* const each = PyList_GetItem(args[0], static_cast<Py_ssize_t>(i));
            if (!is_variable(each) || !as<PyVariable>(each)->variable ||
                !steps.parameters[i].is(as<PyVariable>(each)->variable))
                Py_RETURN_FALSE;
        }
        steps.rule->values.clear();
        for (Py_ssize_t i = 0; i < PyTuple_Size(args[1]); ++i)
            steps.rule->values.push_back(scalar_of(PyTuple_GetItem(args[1], i)).value());
        {
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
        }
        Py_RETURN_TRUE;
    });
}

// ---- functions of all gradients together

class Gradients final : public Optimizer {
public:
    explicit Gradients(PyObject* list) { setup(named(parameters_of(list))); }
};

double number_of(PyObject* const* args, Py_ssize_t n) {
    if (n != 2) raise(PyExc_TypeError, "expected 2 arguments");
    return scalar_of(args[1]).value();
}
#define CATENA_OF_GRADIENTS(NAME, METHOD)                                              \
    PyObject* NAME(PyObject*, PyObject* const* args, Py_ssize_t n) {                   \
        return guarded([&]() -> PyObject* {                                            \
            const double value = number_of(args, n);                                   \
            const Gradients gradients(args[0]);                                        \
            {                                                                          \
                const Variables used = parameters_of(args[0]);                         \
                const WithoutLockOn others(InUse::By::gradients, pointers_to({used})); \
                gradients.METHOD(value);                                               \
            }                                                                          \
            Py_RETURN_NONE;                                                            \
        });                                                                            \
    }
CATENA_OF_GRADIENTS(clip_gradients, clip_grads)
CATENA_OF_GRADIENTS(scale_gradients, scale_grads)
CATENA_OF_GRADIENTS(decay_weights, weight_decay)
#undef CATENA_OF_GRADIENTS

PyObject* gradients_norm(PyObject*, PyObject* list) {
    return guarded([&] {
        const Gradients gradients(list);
        const Variables used = parameters_of(list);
        const double norm = [&] {
            const WithoutLockOn others(InUse::By::gradients, pointers_to({used}));
            return gradients.compute_grads_norm();
        }();
        return PyFloat_FromDouble(norm);
    });
}
// Gives each parameter that has an array, but no gradient, a gradient of zeros.
PyObject* make_gradients(PyObject*, PyObject* list) {
    return guarded([&]() -> PyObject* {
        expect(PyList_Check(list) != 0, "[make_gradients] parameters", "a list", list);
        for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
            PyObject* const each = PyList_GetItem(list, i);
            expect(is_variable(each), "[make_gradients] parameters", "variables", each);
            const Variable& variable = as<PyVariable>(each)->variable;
            InUse::before_gradient(variable);
            if (variable && !variable.grad()) variable.zerograd();
        }
        Py_RETURN_NONE;
    });
}

// Later gradients are added to the arrays that the parameters have now, as in Chainer 1.
PyObject* keep_gradients(PyObject*, PyObject* list) {
    return guarded([&]() -> PyObject* {
        for (const Variable& each : parameters_of(list)) each.node().grad_in_place = true;
        Py_RETURN_NONE;
    });
}

}  // namespace

void add_optimizers(PyObject* module) {
    static PyMethodDef methods[] = {fast("setup", update_setup, nullptr),
                                    fast("run", update_run, nullptr),
                                    {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>("Steps of an update rule on many parameters.")},
        {Py_tp_new, reinterpret_cast<void*>(new_update)},
        {Py_tp_dealloc, reinterpret_cast<void*>(free_object<PyUpdate>)},
        {Py_tp_methods, methods},
        {0, nullptr}};
    static PyType_Spec spec{"catena.Update", sizeof(PyUpdate), 0, Py_TPFLAGS_DEFAULT, slots};
    update_type = add_type(module, spec);
    static PyMethodDef functions[] = {fast("clip_gradients", clip_gradients, nullptr),
                                      fast("scale_gradients", scale_gradients, nullptr),
                                      fast("decay_weights", decay_weights, nullptr),
                                      {"gradients_norm", gradients_norm, METH_O, nullptr},
                                      {"keep_gradients", keep_gradients, METH_O, nullptr},
                                      {"make_gradients", make_gradients, METH_O, nullptr},
                                      {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, functions));
}

}  // namespace catena::python
