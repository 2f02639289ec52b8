// catena.Variable.
#include "variable.hpp"

#include "node.hpp"
#include "operators.hpp"

#include <catena/core/grad.hpp>

namespace catena::python {

PyTypeObject* variable_type = nullptr;

namespace {

PyVariable& self_of(PyObject* object) { return *as<PyVariable>(object); }
Waiting& waiting(PyVariable& self) {
    if (!self.waiting) self.waiting = std::make_unique<Waiting>();
    return *self.waiting;
}

// What a variable without an array has, or will have.
const Waiting& properties(PyObject* self) {
    static const Waiting defaults;
    return self_of(self).waiting ? *self_of(self).waiting : defaults;
}

// The Python object for an array: that of the last call, if the array is still the same.
Owned seen(Seen& last, const Array& array) {
    if (!has_memory(array)) return none();
    if (last.object != nullptr && last.array.body() == array.body())
        return Owned::borrow(last.object);
    const Array kept = array;  // others may replace it while Python runs
    Owned now = to_python(kept);
    const Owned before(std::exchange(last.object, Owned::borrow(now.get()).release()));
    last.array = kept;
    return now;
}

void forget(Seen& last) {
    const Array array = std::move(last.array);
    last.array = Array();
    const Owned before(std::exchange(last.object, nullptr));
}

void construct(PyVariable& self, Variable variable) {
    new (&self.variable) Variable(std::move(variable));
    new (&self.data) Seen();
    new (&self.grad) Seen();
    new (&self.waiting) std::unique_ptr<Waiting>();
}

PyObject* new_variable(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* const made = PyType_GenericAlloc(type, 0);
    if (made != nullptr) construct(self_of(made), Variable());
    return made;
}

void refuse_variable(PyObject* value, const char* what) {
    if (is_variable(value))
        raise(PyExc_TypeError, std::string("[catena.Variable] ") + what +
                                   ": expected an array, got a " + type_name(value));
}

void set_data(PyVariable& self, PyObject* value) {
    const Variable before = self.variable;
    InUse::before_change(before);
    if (value == nullptr || value == Py_None) {
        forget(self.data);
        forget(self.grad);
        if (!before) return;
        self.waiting.reset(new Waiting{before.name(), before.device(), before.requires_grad(),
                                       before.node().is_parameter});
        InUse::drop(self.variable);
        return;
    }
    refuse_variable(value, "array");
    bool same = false;
    Array array = array_of(value, "[catena.Variable] array", &same);
    if (before) {
        before.set_data(array);
    } else {
        Variable made(array);
        if (const Waiting* const known = self.waiting.get()) {
            if (!known->name.empty()) made.set_name(known->name);
            if (!known->requires_grad) made.set_requires_grad(false);
            made.node().is_parameter = known->is_parameter;
        }
        self.variable = std::move(made);
        self.waiting.reset();
    }
    forget(self.data);
    if (same) {
        self.data.object = Owned::borrow(value).release();
        self.data.array = std::move(array);
    }
}

void set_grad(PyObject* object, PyObject* value) {
    PyVariable& self = self_of(object);
    InUse::before_gradient(self.variable);
    forget(self.grad);
    if (value == nullptr || value == Py_None) {
        if (self.variable) self.variable.cleargrad();
        else if (self.waiting && self.waiting->is_parameter) self.waiting->first_grad = '0';
        return;
    }
    refuse_variable(value, "grad");
    const Variable variable = present(object);
    bool same = false;
    Array array = array_of(value, "[catena.Variable] grad", &same);
    variable.set_grad(array);
    if (same && variable.grad().body() == array.body()) {
        Py_INCREF(value);
        self.grad.object = value;
        self.grad.array = std::move(array);
    }
}

void remember_grad_variable(PyVariable& self, PyObject* variable) {
    Py_XDECREF(std::exchange(self.grad_variable, PyWeakref_NewRef(variable, nullptr)));
    if (self.grad_variable == nullptr) throw PythonError();
}

// The object that grad_var last returned, if it exists and is still the gradient's variable.
Owned known_grad_variable(const PyVariable& self, const Variable& grad) {
    if (self.grad_variable == nullptr) return {};
    const Owned object = checked(PyObject_CallNoArgs(self.grad_variable));
    const bool same = is_variable(object.get()) && self_of(object.get()).variable &&
                      &self_of(object.get()).variable.node() == &grad.node();
    return same ? Owned::borrow(object.get()) : Owned();
}

void set_grad_var(PyObject* object, PyObject* value) {
    if (value == nullptr || value == Py_None) return set_grad(object, nullptr);
    if (!is_variable(value))
        raise(PyExc_TypeError,
              "[catena.Variable] grad_var: expected a catena.Variable, got a " + type_name(value));
    PyVariable& self = self_of(object);
    InUse::before_gradient(self.variable);
    forget(self.grad);
    present(object).set_grad(self_of(value).variable);
    remember_grad_variable(self, value);
    self.grad.array = self_of(value).data.array;
    self.grad.object = Owned::borrow(self_of(value).data.object).release();
}

void set_name(PyVariable& self, PyObject* value) {
    if (value != nullptr && value != Py_None && PyUnicode_Check(value) == 0)
        raise(PyExc_TypeError,
              "[catena.Variable] name: expected a str or None, got a " + type_name(value));
    std::string name(value == nullptr || value == Py_None ? std::string_view() : text_of(value));
    if (self.variable) self.variable.set_name(std::move(name));
    else waiting(self).name = std::move(name);
}

void set_requires_grad(PyVariable& self, bool value) {
    if (self.variable) self.variable.set_requires_grad(value);
    else waiting(self).requires_grad = value;
}

// Chainer 1 also has "on", "off" and "auto", which combines with either, as constants do.
bool volatile_of(PyObject* value) {
    if (value != nullptr && PyUnicode_Check(value) != 0) {
        const std::string_view text = text_of(value);
        if (text == "on" || text == "off" || text == "auto") return text == "on";
    } else if (value == nullptr || PyLong_Check(value) != 0 || value == Py_None) {
        return value != nullptr && truth_of(value);
    }
    raise(PyExc_TypeError,
          "[catena.Variable] volatile: expected a bool, 'on', 'off' or 'auto', got a " +
              type_name(value));
}

int init_variable(PyObject* object, PyObject* args, PyObject* kwargs) {
    return guarded([&] {
        PyObject *data = Py_None, *is_volatile = nullptr, *name = Py_None, *grad = Py_None;
        int requires_grad = 1;
        parse(args, kwargs, "|OO$OOp:Variable",
              {"data", "volatile", "name", "grad", "requires_grad"}, &data, &is_volatile, &name,
              &grad, &requires_grad);
        PyVariable& self = self_of(object);
        set_data(self, nullptr);
        self.waiting.reset();
        set_data(self, data);
        if (volatile_of(is_volatile)) present(object).set_volatile(true);
        if (requires_grad == 0) set_requires_grad(self, false);
        if (name != Py_None) set_name(self, name);
        if (grad != Py_None) set_grad(object, grad);
        return 0;
    });
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    PyVariable& self = self_of(object);
    Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    Py_VISIT(self.dict);
    Py_VISIT(self.data.object);
    Py_VISIT(self.grad.object);
    return visit_graph({&self.variable.node_ref(), 1}, visit, arg);
}

int clear(PyObject* object) {
    PyVariable& self = self_of(object);
    Py_CLEAR(self.dict);
    forget(self.data);
    forget(self.grad);
    InUse::drop(self.variable);
    return 0;
}

void free_variable(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    PyVariable& self = self_of(object);
    if (self.weak_references != nullptr) PyObject_ClearWeakRefs(object);
    clear(object);
    Py_CLEAR(self.grad_variable);
    self.variable.~Variable();
    self.waiting.~unique_ptr();
    self.data.~Seen();
    self.grad.~Seen();
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

Owned get_data(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    return variable ? seen(self_of(self).data, variable.data()) : none();
}
Owned get_grad(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    InUse::before_gradient(variable);
    if (variable) return seen(self_of(self).grad, variable.grad());
    if (properties(self).first_grad == 'n')
        raise(PyExc_RuntimeError,
              "[catena.Parameter] grad: expected cleargrad() or initialize() before, got neither");
    return none();
}
Owned get_grad_var(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    InUse::before_gradient(variable);
    const Variable grad = variable ? variable.grad_variable() : Variable();
    if (!grad) return none();
    // As in Chainer, calls on gradients are recorded.
    if (!grad.creator()) grad.set_requires_grad(is_floating(grad.dtype()));
    Owned object = known_grad_variable(self_of(self), grad);
    if (!object) {
        object = wrap(grad);
        remember_grad_variable(self_of(self), object.get());
    }
    return object;
}
const Variable& known(PyObject* self) { return present(self, PyExc_AttributeError); }
Owned get_shape(PyObject* self) { return python_shape(known(self).shape()); }
int get_ndim(PyObject* self) { return known(self).ndim(); }
std::int64_t get_size(PyObject* self) { return known(self).size(); }
Owned get_dtype(PyObject* self) { return python_dtype(known(self).dtype()); }
Owned get_device(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    if (variable) return python_device(variable.device());
    const Device device = properties(self).device;
    return python_device(device ? device : host_device());
}
int get_rank(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    return variable ? variable.rank() : 0;
}
bool get_requires_grad(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    return variable ? variable.requires_grad() : properties(self).requires_grad;
}
bool get_volatile(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    return variable && variable.is_volatile();
}
Owned get_loss_scale(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    if (!variable || variable.node().loss_scale == 1) return none();
    return checked(PyFloat_FromDouble(variable.node().loss_scale));
}
Owned get_name(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    const std::string name = variable ? variable.name() : properties(self).name;
    return name.empty() ? none() : python_text(name);
}
Owned get_creator(PyObject* self) {
    const Variable& variable = self_of(self).variable;
    if (!variable || variable.creator() == nullptr) return none();
    return python_call(*variable.creator());
}
Owned get_node(PyObject* self) { return python_node(known(self).node()); }
Owned get_array(PyObject* self) { return wrap(data_of(self)); }
std::string get_first_grad(PyObject* self) { return {properties(self).first_grad}; }

void put_data(PyObject* self, PyObject* value) { set_data(self_of(self), value); }
void put_requires_grad(PyObject* self, PyObject* value) {
    set_requires_grad(self_of(self), truth_of(not_deleted(value)));
}
void put_volatile(PyObject* self, PyObject* value) {
    present(self).set_volatile(volatile_of(value));
}
void put_name(PyObject* self, PyObject* value) { set_name(self_of(self), value); }
void put_loss_scale(PyObject* self, PyObject* value) {
    const bool none = not_deleted(value) == Py_None;
    present(self).node().loss_scale = none ? 1 : static_cast<float>(scalar_of(value).value());
}
void put_creator(PyObject* self, PyObject* value) {
    const Variable variable = present(self);
    InUse::before_change(variable);
    if (value == nullptr || value == Py_None) return variable.unchain();
    const bool same = variable.creator() && python_call(*variable.creator()) == value;
    if (!same)
        raise(PyExc_ValueError,
              "[catena.Variable] creator_node: expected None, got a " + type_name(value));
}
void put_first_grad(PyObject* self, PyObject* value) {
    Waiting& known = waiting(self_of(self));
    known.is_parameter = true;
    known.first_grad = text_of(not_deleted(value)).at(0);
}
void put_device(PyObject* self, PyObject* value) {
    waiting(self_of(self)).device = device_from(not_deleted(value));
}

void run_backward(PyObject* self, PyObject* args, PyObject* kwargs) {
    int retain_grad = 0, enable_double_backprop = 0;
    PyObject* loss_scale = Py_None;
    parse(args, kwargs, "|ppO:backward", {"retain_grad", "enable_double_backprop", "loss_scale"},
          &retain_grad, &enable_double_backprop, &loss_scale);
    const Variable variable = present(self);
    const double scale = loss_scale == Py_None ? 1 : scalar_of(loss_scale).value();
    InUse::before_gradient(variable);
    const bool starts = !variable.grad() && variable.size() == 1 && is_floating(variable.dtype());
    if (starts) {
        variable.set_grad(
            Array::full(variable.shape(), scale, variable.dtype(), variable.device()));
    }
    // The next backward() may have another loss_scale. A gradient that the program has set
    // stays, as in Chainer 1.
    const struct Start {
        ~Start() {
            if (removed) variable.cleargrad();
        }
        const Variable& variable;
        bool removed;
    } start{variable, starts && retain_grad == 0 && variable.creator() != nullptr};
    // As in Chainer, nothing happens where C++ reports that there is nothing to compute.
    if (variable.creator() != nullptr || variable.requires_grad()) {
        const Variable* const used[] = {&variable};
        const WithoutLockOn others(InUse::By::gradients, used);
        if (loss_scale == Py_None) {
            variable.backward(retain_grad != 0, enable_double_backprop != 0);
        } else {
            backward({variable}, {},
                     {.retain_grad = retain_grad != 0,
                      .enable_double_backprop = enable_double_backprop != 0,
                      .loss_scale = scale});
        }
    }
}

void clear_grad(PyVariable& self, char first) {
    InUse::before_gradient(self.variable);
    if (!self.variable) {
        if (self.waiting && self.waiting->is_parameter) self.waiting->first_grad = first;
    } else if (first == '0') {
        self.variable.cleargrad();
    } else {
        self.variable.zerograd();
    }
}
void run_cleargrad(PyObject* self) { clear_grad(self_of(self), '0'); }
void run_zerograd(PyObject* self) {
    checked(PyErr_WarnEx(PyExc_DeprecationWarning,
                         "Variable.zerograd is deprecated. Use Variable.cleargrad instead.", 1));
    clear_grad(self_of(self), 'z');
}
void run_unchain_backward(PyObject* self) {
    const Variable variable = present(self);
    const Variable* const used[] = {&variable};
    const InUse graph(InUse::By::gradients, used);
    variable.unchain_backward();
}
void run_unchain(PyObject* self) {
    InUse::before_change(present(self));
    present(self).unchain();
}
void become_parameter(PyObject* self) { present(self).node().is_parameter = true; }
Owned run_item(PyObject* self) { return item(data_of(self)); }

void run_addgrad(PyObject* self, PyObject* other) {
    if (!is_variable(other))
        raise(PyExc_TypeError, "addgrad() takes one argument: a catena.Variable");
    const Variable source = self_of(other).variable;
    InUse::before_gradient(source);
    if (!source || !source.grad()) return;
    const Variable target = present(self);
    InUse::before_gradient(target);
    const Array grad = source.grad().to(target.device());
    target.set_grad(target.grad() ? target.grad() + grad : grad.copy());
}

// Calls a method of the array.
template <const char* name>
Owned of_array(PyObject* self, PyObject* args, PyObject* kwargs) {
    const Owned array = wrap(data_of(self));
    const Owned method = checked(PyObject_GetAttrString(array.get(), name));
    return checked(PyObject_Call(method.get(), args, kwargs));
}
constexpr char as_dlpack[] = "__dlpack__", dlpack_place[] = "__dlpack_device__",
               as_numpy[] = "__array__";

Py_ssize_t variable_length(PyObject* self) {
    return guarded([&]() -> Py_ssize_t { return length(present(self)); });
}
PyObject* variable_subscript(PyObject* self, PyObject* key) {
    return guarded([&] { return wrap(subscript(present(self), key)).release(); });
}
PyObject* variable_item(PyObject* self, Py_ssize_t i) {
    return guarded([&] {
        const Owned key = checked(PyLong_FromSsize_t(i));
        return wrap(subscript(present(self), key.get())).release();
    });
}

}  // namespace

Owned wrap(Variable variable) {
    auto* const made = as<PyVariable>(PyType_GenericAlloc(variable_type, 0));
    if (made == nullptr) throw PythonError();
    construct(*made, std::move(variable));
    return Owned(reinterpret_cast<PyObject*>(made));
}

Owned wrap_all(std::vector<Variable> variables) {
    return tuple_of(variables.size(), [&](std::size_t i) {
        return variables[i] ? wrap(std::move(variables[i])) : none();
    });
}

void raise_without_array(PyObject* error) {
    raise(
        error,
        "[catena.Variable] array: expected an array, got none: initialize() gives a Parameter its "
        "shape");
}

const Array& data_of(PyObject* variable) {
    const Array& array = present(variable).data();
    if (!has_memory(array))
        throw GraphError("[catena.Variable] array: expected data, got only a shape");
    return array;
}

bool has_memory(const Array& array) {
    return array && (array.body()->block != nullptr || array.body()->base != nullptr);
}

const Variable& variable_of(PyObject* object, Variable& made, std::string_view what) {
    if (is_variable(object)) return present(object);
    if (object == Py_None) return made = Variable();
    return made = as_variable(array_of(object, what));
}

std::vector<Variable> variables_of(PyObject* object, std::string_view what) {
    if (is_variable(object) ||
        (PyList_Check(object) == 0 && PyTuple_Check(object) == 0 && is_array_like(object)))
        return {variable_of(object, what)};
    const Owned list = elements_in(object, what, "a list of variables or arrays");
    return vector_of(list.get(), [&](PyObject* each) { return variable_of(each, what); });
}

void add_variable(PyObject* module) {
    Type type{
        .name = "catena.Variable",
        .doc =
            "Variable(data=None, *, name=None, grad=None, requires_grad=True)\n--\n\n"
            "An array that records how it was computed, with its gradient.\n\n"
            "A numpy.ndarray shares its memory if it is dense, aligned, writable and "
            "in native byte order; others are copied.\n\n"
            "Operators broadcast as in NumPy. An array or a number as the other operand "
            "takes the variable's floating dtype. Comparisons, also ==, return masks, "
            "so `x in [y, z]` compares elements: use any(x is v for v in ...). As keys "
            "of dictionaries and in sets, variables are compared by identity.",
        .size = sizeof(PyVariable),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .attributes =
            {property<get_data, put_data>("data", "The array; a numpy.ndarray on the host."),
             property<get_data, put_data>("array", "The array; a numpy.ndarray on the host."),
             property<get_grad, set_grad>("grad", "The array of the gradient, or None."),
             property<get_grad_var, set_grad_var>("grad_var",
                                                  "The gradient as a variable, or None."),
             property<get_shape>("shape"),
             property<get_ndim>("ndim"),
             property<get_size>("size", "The number of elements."),
             property<get_dtype>("dtype"),
             property<get_device>("device"),
             property<get_rank>("rank", "The most calls on any path from a leaf."),
             property<get_requires_grad, put_requires_grad>("requires_grad"),
             property<get_volatile, put_volatile>("volatile", "Calls record no graph (Chainer 1)."),
             property<get_name, put_name>("name"),
             property<get_loss_scale, put_loss_scale>(
                 "loss_scale",
                 "The loss_scale of the backward() that computed the gradient, or None."),
             property<get_loss_scale, put_loss_scale>("_loss_scale",
                                                      "Chainer's name of loss_scale."),
             property<get_creator, put_creator>(
                 "creator_node",
                 "The call that computed it, or None. None can be set, which makes it a leaf."),
             property<get_node>("node", "The variable as the graph sees it."),
             {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
             property<get_array>("_array", "The array as a catena.Array."),
             property<get_first_grad, put_first_grad>("_first_grad"),
             {"_first_device", nullptr, set<put_device>, nullptr, nullptr}},
        .methods =
            {with_keywords<run_backward>(
                 "backward",
                 "backward($self, retain_grad=False, enable_double_backprop=False, "
                 "loss_scale=None)\n--\n\n"
                 "Computes the gradients of all leaves from which this variable was computed. A "
                 "variable of one element starts with its grad or loss_scale (1); others need a "
                 "grad, which stays set afterwards."),
             method<run_cleargrad>("cleargrad", "Removes the gradient."),
             method<run_zerograd>("zerograd", "Sets the gradient to zeros."),
             method<run_unchain>("unchain", "Removes the call that computed this variable."),
             method<run_unchain_backward>("unchain_backward",
                                          "Removes all calls that led to this variable."),
             method<run_addgrad>("addgrad", "Adds the gradient of another variable."),
             method<run_item>("item", "The only element as a number."),
             method<become_parameter>("_become_parameter"),
             with_keywords<of_array<as_dlpack>>("__dlpack__",
                                                "A DLPack capsule that shares the memory."),
             with_keywords<of_array<dlpack_place>>("__dlpack_device__",
                                                   "DLPack's device type and number."),
             with_keywords<of_array<as_numpy>>("__array__", "The elements as a numpy.ndarray.")},
        .slots = {slot(Py_tp_new, new_variable), slot(Py_tp_init, init_variable),
                  slot(Py_tp_dealloc, free_variable), slot(Py_tp_traverse, traverse),
                  slot(Py_tp_clear, clear), slot(Py_tp_hash, hash_address),
                  slot(Py_sq_length, variable_length), slot(Py_sq_item, variable_item),
                  slot(Py_mp_length, variable_length), slot(Py_mp_subscript, variable_subscript)},
        .members = {{"__dictoffset__", T_PYSSIZET, offsetof(PyVariable, dict), READONLY, nullptr},
                    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyVariable, weak_references),
                     READONLY, nullptr}}};
    const auto operators = number_slots<Variable>();
    type.slots.insert(type.slots.end(), operators.begin(), operators.end());
    variable_type = add_type(module, std::move(type));
}

}  // namespace catena::python
