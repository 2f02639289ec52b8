#include "torch.hpp"

#include "dlpack.hpp"
#include "variable.hpp"

#include <catena/core/grad.hpp>

namespace catena::python {
namespace {

// What was computed from the memory of tensors. It keeps the graph, but only those arrays that the
// graph's gradients read.
struct Recorded {
    std::vector<Ref<VariableNode>> inputs, outputs;  // null for a missing output
    std::vector<Array> in, out;                      // until results()
    bool are_gradients = false;
};
struct PyRecorded {
    PyObject_HEAD Recorded recorded;
};
PyTypeObject* recorded_type = nullptr;

Owned wrap_recorded(const Variables& inputs, const Variables& outputs, bool are_gradients) {
    Owned made = checked(PyType_GenericAlloc(recorded_type, 0));
    Recorded& self = *new (&as<PyRecorded>(made.get())->recorded) Recorded();
    self.are_gradients = are_gradients;
    const auto add = [](const Variable& from, auto& nodes, std::vector<Array>& arrays) {
        nodes.push_back(from.node_ref());
        arrays.push_back(from ? from.data() : Array());
    };
    for (const Variable& x : inputs) add(x, self.inputs, self.in);
    for (const Variable& y : outputs) add(y, self.outputs, self.out);
    return made;
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

Variable variable_of_tensor(PyObject* tensor, bool needs_gradient) {
    const Owned dense = checked(PyObject_CallMethod(tensor, "contiguous", nullptr));
    Variable x(from_dlpack(dense.get(), "[catena.torch] tensor", true));
    if (!needs_gradient) x.set_requires_grad(false);
    return x;
}

PyObject* item_of(PyObject* tuple, std::size_t i) {
    PyObject* const item = PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
    if (item == nullptr) throw PythonError();
    return item;
}
std::size_t size_of_tuple(PyObject* tuple) {
    const Py_ssize_t n = PyTuple_Size(tuple);
    checked(static_cast<int>(n));
    return static_cast<std::size_t>(n);
}

// variables_of_tensors(tensors, needs_gradient)
PyObject* variables_of_tensors(PyObject*, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        Variables made;
        for (std::size_t i = 0; i < size_of_tuple(args[0]); ++i)
            made.push_back(variable_of_tensor(item_of(args[0], i), item_of(args[1], i) == Py_True));
        return wrap_all(std::move(made)).release();
    });
}

// Recorded(inputs, outputs)
PyObject* new_recorded(PyTypeObject*, PyObject* args, PyObject*) {
    return guarded([&] {
        PyObject *inputs = nullptr, *outputs = nullptr;
        if (PyArg_ParseTuple(args, "OO:Recorded", &inputs, &outputs) == 0) throw PythonError();
        const std::string_view what = "[catena.torch] the function's result";
        return wrap_recorded(variables_of(inputs, what), variables_of(outputs, what), false)
            .release();
    });
}
void free_recorded(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    as<PyRecorded>(self)->recorded.~Recorded();
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// results(tensors, type, from_dlpack): the outputs as tensors; the tensors that gradients need,
// beginning with the inputs that require a gradient; the outputs that have no gradient.
PyObject* recorded_results(PyObject* object, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        Recorded& self = as<PyRecorded>(object)->recorded;
        PyObject *const tensors = args[0], *const type = args[1], *const from = args[2];
        const auto list_of = [](auto& items) {
            Owned list = checked(PyList_New(0));
            for (const auto& item : items) checked(PyList_Append(list.get(), item.get()));
            return list;
        };
        // An output that is an input becomes the tensor itself. No others share memory, because
        // PyTorch would not know it.
        std::vector<Owned> results(self.out.size());
        for (std::size_t i = 0; i < self.out.size(); ++i) {
            Array& y = self.out[i];
            if (!y) results[i] = Owned::borrow(Py_None);
            for (std::size_t k = 0; k < self.in.size() && !results[i]; ++k) {
                if (y.body() != self.in[k].body()) continue;
                results[i] = Owned::borrow(item_of(tensors, k));
                y = Array();
            }
            const auto shares = [&](const Array& other) { return overlap(y, other); };
            if (y &&
                (std::any_of(self.in.begin(), self.in.end(), shares) ||
                 std::any_of(self.out.begin(), self.out.begin() + static_cast<long>(i), shares) ||
                 (self.are_gradients && !y.body()->exclusive())))
                y = y.copy();
        }
        std::vector<bool> kept;  // whether the graph has the array
        for (const std::vector<Array>& arrays : {std::cref(self.in), std::cref(self.out)})
            for (const Array& array : arrays) kept.push_back(array && !array.body()->exclusive());
        for (std::size_t i = 0; i < self.out.size(); ++i) {
            if (results[i]) continue;
            results[i] = export_as(type, self.out[i]);
            if (!results[i])
                results[i] =
                    checked(PyObject_CallFunctionObjArgs(from, wrap(self.out[i]).get(), nullptr));
        }
        std::vector<Owned> saved, constant;
        for (const bool target : {true, false})
            for (std::size_t k = 0; k < self.in.size(); ++k)
                if (self.inputs[k]->requires_grad == target && (target || kept[k]))
                    saved.push_back(Owned::borrow(item_of(tensors, k)));
        for (std::size_t i = 0; i < self.out.size(); ++i) {
            if (kept[self.in.size() + i]) saved.push_back(Owned::borrow(results[i].get()));
            if (self.outputs[i] && !self.outputs[i]->requires_grad)
                constant.push_back(Owned::borrow(results[i].get()));
        }
        self.in.clear();
        self.out.clear();
        return checked(Py_BuildValue("NNN", list_of(results).release(), list_of(saved).release(),
                                     list_of(constant).release()))
            .release();
    });
}

// gradients(outputs, tensors, needs_gradient): computes the gradients of the inputs that require
// one, from those of some outputs, which are the first tensors. Gradients that the tensors need are
// recorded.
PyObject* recorded_gradients(PyObject* object, PyObject* const* args, Py_ssize_t) {
    return guarded([&] {
        const Recorded& self = as<PyRecorded>(object)->recorded;
        Variables outputs, targets, given;
        bool create = false;
        for (const std::int64_t i : integers_of(args[0], "[catena.torch] outputs")) {
            const std::size_t k = given.size();
            const bool needs = item_of(args[2], k) == Py_True;
            outputs.emplace_back(self.outputs.at(static_cast<std::size_t>(i)));
            given.push_back(variable_of_tensor(item_of(args[1], k), needs));
        }
        for (std::size_t i = 0; i < size_of_tuple(args[2]); ++i)
            create = create || item_of(args[2], i) == Py_True;
        for (const Ref<VariableNode>& x : self.inputs)
            if (x->requires_grad) targets.emplace_back(x);
        const Variables found = [&] {
            const WithoutLock others;
            return grad(outputs, targets, given, {}, {.enable_double_backprop = create});
        }();
        given.insert(given.end(), targets.begin(), targets.end());
        return wrap_recorded(given, found, true).release();
    });
}

}  // namespace

void add_torch(PyObject* module) {
    static PyMethodDef methods[] = {fast("results", recorded_results, nullptr),
                                    fast("gradients", recorded_gradients, nullptr),
                                    {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A graph behind tensors.")},
                                  {Py_tp_new, reinterpret_cast<void*>(new_recorded)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(free_recorded)},
                                  {Py_tp_methods, methods},
                                  {0, nullptr}};
    static PyType_Spec spec{"catena._core.Recorded", sizeof(PyRecorded), 0, Py_TPFLAGS_DEFAULT,
                            slots};
    recorded_type = add_type(module, spec);
    static PyMethodDef functions[] = {fast("variables_of_tensors", variables_of_tensors, nullptr),
                                      {nullptr, nullptr, 0, nullptr}};
    checked(PyModule_AddFunctions(module, functions));
}

}  // namespace catena::python
