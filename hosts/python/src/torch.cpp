// The C++ part of catena.torch: graphs behind the tensors of PyTorch.
#include "dlpack.hpp"
#include "parts.hpp"
#include "variable.hpp"

#include <catena/core/grad.hpp>

namespace catena::python {
namespace {

// A call on the memory of tensors. It keeps the graph, but only those arrays that gradients read.
struct Recorded {
    std::vector<Ref<VariableNode>> inputs, outputs;  // null for a missing output
    std::vector<Array> in, out;                      // until results()
    bool are_gradients = false;
    bool is_one = false;  // results() gives the only output instead of a tuple
};
PyTypeObject* recorded_type = nullptr;

Owned wrap_recorded(const Variables& inputs, const Variables& outputs) {
    Recorded self;
    const auto add = [](const Variable& from, auto& nodes, std::vector<Array>& arrays) {
        nodes.push_back(from.node_ref());
        arrays.push_back(from ? from.data() : Array());
    };
    for (const Variable& x : inputs) add(x, self.inputs, self.in);
    for (const Variable& y : outputs) add(y, self.outputs, self.out);
    return hold(recorded_type, std::move(self));
}

bool overlap(const Array& a, const Array& b) {
    const auto range = [](const Array& array) {
        const catena_tensor& t = array.body()->tensor;
        const char* const begin = static_cast<const char*>(t.dl.data) + t.dl.byte_offset;
        return std::pair(begin, begin + (t.dl.data != nullptr ? t.nbytes : 0));
    };
    if (!a || !b) return false;
    const auto [a_begin, a_end] = range(a);
    const auto [b_begin, b_end] = range(b);
    return std::less<>()(a_begin, b_end) && std::less<>()(b_begin, a_end);
}

// A variable on the tensor's memory; PyTorch copies the elements of one that is not dense.
Variable variable_of_tensor(PyObject* tensor, bool needs_gradient) {
    Owned dense = Owned::borrow(tensor);
    for (const char* method : {"detach", "resolve_neg", "contiguous"})
        dense = checked(PyObject_CallMethod(dense.get(), method, nullptr));
    Variable x(from_dlpack(dense.get(), "[catena.torch] tensor"));
    if (!needs_gradient) x.set_requires_grad(false);
    return x;
}

PyObject* item_of(PyObject* tuple, std::size_t i) {
    expect(PyTuple_Check(tuple) != 0, "[catena.torch] tensors and needs_gradient", "tuples", tuple);
    PyObject* const item = PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
    if (item == nullptr) throw PythonError();
    return item;
}
bool any_true(PyObject* tuple) {
    const int found = PySequence_Contains(tuple, Py_True);
    checked(found);
    return found != 0;
}

// A copy of an argument, and of lists and tuples in it, with replace(x) in the place of tensors x.
template <class Replace>
Owned replaced(PyObject* value, PyObject* type, const Replace& replace) {
    if (PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(type)) != 0)
        return replace(value);
    const bool is_list = PyList_Check(value) != 0;
    if (!is_list && PyTuple_Check(value) == 0) return Owned::borrow(value);
    const Py_ssize_t n = PySequence_Size(value);
    Owned copy = checked(is_list ? PyList_New(n) : PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
        const Owned item = checked(PySequence_GetItem(value, i));
        PyObject* const made = replaced(item.get(), type, replace).release();
        checked(is_list ? PyList_SetItem(copy.get(), i, made)
                        : PyTuple_SetItem(copy.get(), i, made));
    }
    return copy;
}
template <class Replace>
Owned replaced_values(PyObject* keywords, PyObject* type, const Replace& replace) {
    Owned copy = checked(PyDict_Copy(keywords));
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &key, &value) != 0;)
        checked(PyDict_SetItem(copy.get(), key, replaced(value, type, replace).get()));
    return copy;
}

void expect_call(PyObject* args, PyObject* kwargs, PyObject* type) {
    expect(PyTuple_Check(args) != 0, "[catena.torch] args", "a tuple", args);
    expect(PyDict_Check(kwargs) != 0, "[catena.torch] kwargs", "a dict", kwargs);
    expect(PyType_Check(type) != 0, "[catena.torch] type", "a type", type);
}

// tensors_in(args, kwargs, type): a tuple.
Owned tensors_in(PyObject*, PyObject* positional, PyObject* keyword, PyObject* type) {
    expect_call(positional, keyword, type);
    const Owned found = checked(PyList_New(0));
    const auto add = [&](PyObject* tensor) {
        checked(PyList_Append(found.get(), tensor));
        return Owned::borrow(tensor);
    };
    replaced(positional, type, add);
    replaced_values(keyword, type, add);
    return checked(PySequence_Tuple(found.get()));
}

// record(function, args, kwargs, type, tensors, needs_gradient): what the function computes from
// variables in the place of the tensors. The graph is recorded if one of them needs a gradient.
Owned record(PyObject*, PyObject* function, PyObject* positional, PyObject* keyword, PyObject* type,
             PyObject* tensors, PyObject* needs) {
    expect_call(positional, keyword, type);
    Variables inputs;
    const auto next = [&](PyObject*) {
        const std::size_t i = inputs.size();
        inputs.push_back(variable_of_tensor(item_of(tensors, i), item_of(needs, i) == Py_True));
        return wrap(inputs.back());
    };
    const Owned variables = replaced(positional, type, next);
    const Owned keywords = replaced_values(keyword, type, next);
    const using_config scope(&Config::enable_backprop, any_true(needs));
    const Owned result = checked(PyObject_Call(function, variables.get(), keywords.get()));
    Owned made =
        wrap_recorded(inputs, variables_of(result.get(), "[catena.torch] the function's result"));
    held<Recorded>(made.get()).is_one =
        PyTuple_Check(result.get()) == 0 && PyList_Check(result.get()) == 0;
    return made;
}

// The result of a call without a gradient that is an input: not that tensor, which may require one.
Owned detached(PyObject* tensor) { return checked(PyObject_CallMethod(tensor, "detach", nullptr)); }

// results(tensors, type, from_dlpack, records): the outputs as one tensor or a tuple; the tensors
// that gradients need, beginning with the inputs that require a gradient; the outputs that have no
// gradient.
Owned recorded_results(PyObject* object, PyObject* tensors, PyObject* type, PyObject* from,
                       PyObject* has_graph) {
    Recorded& self = held<Recorded>(object);
    const bool records = has_graph == Py_True;
    const auto as_tuple = [](const std::vector<Owned>& items) {
        return tuple_of(items.size(), [&](std::size_t i) { return Owned::borrow(items[i].get()); });
    };
    // An output that is an input becomes the tensor itself. No others share memory, because
    // PyTorch would not know it.
    std::vector<Owned> results(self.out.size());
    for (std::size_t i = 0; i < self.out.size(); ++i) {
        Array& y = self.out[i];
        if (!y) results[i] = none();
        for (std::size_t k = 0; k < self.in.size() && !results[i]; ++k) {
            if (y.body() != self.in[k].body()) continue;
            PyObject* const tensor = item_of(tensors, k);
            results[i] = records ? Owned::borrow(tensor) : detached(tensor);
            y = Array();
        }
        const auto shares = [&](const Array& other) { return overlap(y, other); };
        if (y && (std::any_of(self.in.begin(), self.in.end(), shares) ||
                  std::any_of(self.out.begin(), self.out.begin() + static_cast<long>(i), shares) ||
                  (self.are_gradients && !y.body()->exclusive())))
            y = y.copy();
    }
    std::vector<bool> kept;  // whether the graph has the array
    for (const auto& arrays : {std::cref(self.in), std::cref(self.out)})
        for (const Array& array : arrays.get()) kept.push_back(array && !array.body()->exclusive());
    for (std::size_t i = 0; i < self.out.size(); ++i) {
        if (results[i]) continue;
        results[i] = export_as(type, self.out[i]);
        if (!results[i])
            results[i] =
                checked(PyObject_CallFunctionObjArgs(from, wrap(self.out[i]).get(), nullptr));
    }
    std::vector<Owned> saved, constant;
    if (records) {
        for (const bool target : {true, false})
            for (std::size_t k = 0; k < self.in.size(); ++k)
                if (self.inputs[k]->requires_grad == target && (target || kept[k]))
                    saved.push_back(Owned::borrow(item_of(tensors, k)));
        for (std::size_t i = 0; i < self.out.size(); ++i) {
            if (kept[self.in.size() + i]) saved.push_back(Owned::borrow(results[i].get()));
            if (self.outputs[i] && !self.outputs[i]->requires_grad)
                constant.push_back(Owned::borrow(results[i].get()));
        }
    }
    self.in.clear();
    self.out.clear();
    Owned outputs = self.is_one ? std::move(results.at(0)) : as_tuple(results);
    return checked(Py_BuildValue("NNN", outputs.release(), as_tuple(saved).release(),
                                 as_tuple(constant).release()));
}

// gradients(outputs, tensors, needs_gradient): the gradients of the inputs that require one, from
// those of some outputs, which are the first tensors. They are recorded if a tensor needs a
// gradient.
Owned recorded_gradients(PyObject* object, PyObject* places, PyObject* tensors, PyObject* needs) {
    const Recorded& self = held<Recorded>(object);
    Variables outputs, targets, given;
    for (const std::int64_t i : integers_of(places, "[catena.torch] outputs")) {
        const std::size_t k = given.size();
        outputs.emplace_back(self.outputs.at(static_cast<std::size_t>(i)));
        given.push_back(variable_of_tensor(item_of(tensors, k), item_of(needs, k) == Py_True));
    }
    for (const Ref<VariableNode>& x : self.inputs)
        if (x->requires_grad) targets.emplace_back(x);
    const bool create = any_true(needs);
    const Variables found = [&] {
        const WithoutLockOn others(InUse::By::gradients, pointers_to({outputs, targets, given}));
        return grad(outputs, targets, given, {}, {.enable_double_backprop = create});
    }();
    given.insert(given.end(), targets.begin(), targets.end());
    Owned made = wrap_recorded(given, found);
    held<Recorded>(made.get()).are_gradients = true;
    return made;
}

}  // namespace

void add_torch(PyObject* module) {
    recorded_type = add_type(
        module,
        {.name = "catena._core.Recorded",
         .doc = "A graph behind tensors.",
         .size = sizeof(Holder<Recorded>),
         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
         .methods = {method<recorded_results>("results"), method<recorded_gradients>("gradients")},
         .slots = {slot(Py_tp_dealloc, free_object<Recorded>)}});
    add_functions(module, {method<tensors_in>("tensors_in"), method<record>("record")});
}

}  // namespace catena::python
