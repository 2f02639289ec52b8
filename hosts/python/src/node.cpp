#include "node.hpp"

#include "operators.hpp"

#include <structmember.h>

#include <unordered_map>

namespace catena::python {
namespace {

class PythonNode;

struct PyNode {
    PyObject_HEAD PythonNode* node;  // while forward() runs or the graph has it; the graph owns it
    GraphNode* call;                 // while the graph has it
    PyObject* dict;
    PyObject* weak_references;
};
PyTypeObject* node_type = nullptr;

// A call of another kind, for Variable.creator.
struct PyCall {
    PyObject_HEAD Ref<GraphNode> call;
};
PyTypeObject* call_type = nullptr;

// The calls that Python defined. Only used with the interpreter's lock.
std::unordered_map<const GraphNode*, PyNode*>& python_calls() {
    static auto* const calls = new std::unordered_map<const GraphNode*, PyNode*>();
    return *calls;
}

Owned method_of(PyObject* object, const char* name) {
    return checked(PyObject_GetAttrString(object, name));
}

// Arrays for Python: numpy.ndarray on the host; None for a missing one.
Owned tuple_of(std::span<const Array> arrays) {
    Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arrays.size())));
    for (std::size_t i = 0; i < arrays.size(); ++i)
        checked(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                                to_python(arrays[i]).release()));
    return tuple;
}

// The calls of a class's methods from C++. The Python object is alive as long as the graph has it.
class PythonNode final : public FunctionNode {
public:
    explicit PythonNode(PyObject* object) : object_(object) { Py_INCREF(object_); }
    PythonNode(const PythonNode&) = delete;
    PythonNode& operator=(const PythonNode&) = delete;
    ~PythonNode() override {
        if (!interpreter_runs()) return;
        const WithLock lock;
        PyNode& self = *as<PyNode>(object_);
        if (self.call != nullptr) python_calls().erase(self.call);
        self.node = nullptr;
        self.call = nullptr;
        Py_DECREF(object_);
    }

    std::string label() const override {
        const WithLock lock;
        const Owned text = method_of(object_, "label");
        return PyUnicode_Check(text.get()) != 0 ? std::string(text_of(text.get()))
                                                : type_name(object_);
    }

    using FunctionNode::get_retained_inputs, FunctionNode::get_retained_outputs,
        FunctionNode::retain_inputs, FunctionNode::retain_outputs;

private:
    Arrays forward(ArraySpan inputs) override {
        const WithLock lock;
        const Owned arguments = tuple_of(inputs);
        const Owned method = method_of(object_, "forward");
        const Owned result =
            checked(PyObject_CallFunctionObjArgs(method.get(), arguments.get(), nullptr));
        Arrays outputs;
        const auto add = [&](PyObject* output) {
            outputs.push_back(array_of(
                output, '[' + label() + "] forward: output " + std::to_string(outputs.size())));
        };
        if (PyTuple_Check(result.get()) == 0 && PyList_Check(result.get()) == 0) {
            add(result.get());
            return outputs;
        }
        const Owned list = checked(PySequence_Tuple(result.get()));
        for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i)
            add(PyTuple_GetItem(list.get(), i));
        return outputs;
    }

    Variables backward(Targets targets, VariableSpan grad_outputs) override {
        const WithLock lock;
        const Owned indexes = checked(PyTuple_New(static_cast<Py_ssize_t>(targets.size())));
        for (std::size_t i = 0; i < targets.size(); ++i)
            checked(PyTuple_SetItem(indexes.get(), static_cast<Py_ssize_t>(i),
                                    checked(PyLong_FromSize_t(targets[i])).release()));
        const Owned grads = wrap_all({grad_outputs.begin(), grad_outputs.end()});
        const Owned method = method_of(object_, "backward");
        const Owned result = checked(
            PyObject_CallFunctionObjArgs(method.get(), indexes.get(), grads.get(), nullptr));
        const std::string what = '[' + label() + "] backward: gradient";
        if (result.get() == Py_None) return Variables(targets.size());
        return variables_of(result.get(), what);
    }

    PyObject* object_;
};

PyNode& node_self(PyObject* object) { return *as<PyNode>(object); }

PythonNode& applied(PyObject* object, const char* method) {
    PythonNode* const node = node_self(object).node;
    if (node == nullptr)
        raise(PyExc_RuntimeError,
              '[' + type_name(object) + "] " + method + ": only within forward() and backward()");
    return *node;
}

// apply(inputs): runs forward() and records the call. Returns a tuple of variables.
PyObject* apply(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 1) raise(PyExc_TypeError, "apply() takes one argument: a tuple of variables");
        PyNode& object = node_self(self);
        if (object.node != nullptr)
            throw GraphError('[' + type_name(self) +
                             "] apply: expected a new node for each call, got one that was applied "
                             "before");
        const Variables inputs = variables_of(args[0], '[' + type_name(self) + "] apply: input");
        auto node = std::make_shared<PythonNode>(self);
        object.node = node.get();
        Variables outputs = node->apply(inputs);
        for (const Variable& output : outputs) {
            if (output.creator() == nullptr) continue;
            object.call = output.creator();
            python_calls().emplace(object.call, &object);
            break;
        }
        return wrap_all(std::move(outputs)).release();
    });
}

std::vector<std::size_t> indexes_of(PyObject* object, const char* what) {
    std::vector<std::size_t> indexes;
    for (const std::int64_t i : integers_of(object, what)) {
        if (i < 0) raise(PyExc_ValueError, std::string(what) + ": expected indexes, got -1");
        indexes.push_back(static_cast<std::size_t>(i));
    }
    return indexes;
}

PyObject* retain_inputs(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n != 1) raise(PyExc_TypeError, "retain_inputs() takes one argument: indexes");
        applied(self, "retain_inputs").retain_inputs(indexes_of(args[0], "[retain_inputs]"));
        Py_RETURN_NONE;
    });
}
PyObject* retain_outputs(PyObject* self, PyObject* const* args, Py_ssize_t n) {
    return guarded([&]() -> PyObject* {
        if (n < 1) raise(PyExc_TypeError, "retain_outputs() takes one argument: indexes");
        applied(self, "retain_outputs").retain_outputs(indexes_of(args[0], "[retain_outputs]"));
        Py_RETURN_NONE;
    });
}
PyObject* get_retained_inputs(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] {
        return wrap_all(applied(self, "get_retained_inputs").get_retained_inputs()).release();
    });
}
PyObject* get_retained_outputs(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&] {
        return wrap_all(applied(self, "get_retained_outputs").get_retained_outputs()).release();
    });
}
PyObject* node_unchain(PyObject* self, PyObject* const*, Py_ssize_t) {
    return guarded([&]() -> PyObject* {
        if (GraphNode* const call = node_self(self).call) call->unchain();
        Py_RETURN_NONE;
    });
}

// A tuple of variables that share the graph's nodes; None for missing ones.
Owned inputs_of(GraphNode* call) {
    if (call == nullptr) return Owned::borrow(Py_None);
    Variables inputs;
    for (const Ref<VariableNode>& input : call->inputs())
        inputs.push_back(input ? Variable(input) : Variable());
    return wrap_all(std::move(inputs));
}
Owned outputs_of(GraphNode* call) {
    if (call == nullptr) return Owned::borrow(Py_None);
    Variables outputs;
    for (VariableNode* output : call->outputs())
        outputs.push_back(output != nullptr ? Variable(Ref<VariableNode>(output)) : Variable());
    return wrap_all(std::move(outputs));
}

PyObject* node_inputs(PyObject* self, void*) {
    return guarded([&] { return inputs_of(node_self(self).call).release(); });
}
PyObject* node_outputs(PyObject* self, void*) {
    return guarded([&] { return outputs_of(node_self(self).call).release(); });
}
PyObject* node_rank(PyObject* self, void*) {
    GraphNode* const call = node_self(self).call;
    return PyLong_FromLong(call != nullptr ? call->rank() - 1 : 0);
}

PyObject* new_node(PyTypeObject* type, PyObject*, PyObject*) {
    return PyType_GenericAlloc(type, 0);
}
int node_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    Py_VISIT(node_self(object).dict);
    return 0;
}
int node_clear(PyObject* object) {
    Py_CLEAR(node_self(object).dict);
    return 0;
}
void free_node(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (node_self(object).weak_references != nullptr) PyObject_ClearWeakRefs(object);
    node_clear(object);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

// ---- other calls

void free_call(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    as<PyCall>(object)->call.~Ref();
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}
GraphNode& call_of(PyObject* object) { return *as<PyCall>(object)->call; }
PyObject* call_label(PyObject* self, void*) {
    return guarded([&] { return python_text(call_of(self).label()).release(); });
}
PyObject* call_rank(PyObject* self, void*) { return PyLong_FromLong(call_of(self).rank() - 1); }
PyObject* call_inputs(PyObject* self, void*) {
    return guarded([&] { return inputs_of(&call_of(self)).release(); });
}
PyObject* call_outputs(PyObject* self, void*) {
    return guarded([&] { return outputs_of(&call_of(self)).release(); });
}
PyObject* call_repr(PyObject* self) {
    return guarded([&] {
        return python_text("<catena call of " + std::string(call_of(self).label()) + '>').release();
    });
}
PyObject* call_compare(PyObject* left, PyObject* right, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(right) != call_type) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    return PyBool_FromLong((&call_of(left) == &call_of(right)) == (operation == Py_EQ));
}
Py_hash_t call_hash(PyObject* self) {
    return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(&call_of(self)) >> 4);
}

}  // namespace

Owned python_call(GraphNode& call) {
    const auto found = python_calls().find(&call);
    if (found != python_calls().end())
        return Owned::borrow(reinterpret_cast<PyObject*>(found->second));
    auto* const made = as<PyCall>(PyType_GenericAlloc(call_type, 0));
    if (made == nullptr) throw PythonError();
    new (&made->call) Ref<GraphNode>(&call);
    return Owned(reinterpret_cast<PyObject*>(made));
}

// A graph can contain objects of Python that refer to its results: such cycles can only be found
// if every object on the way is reached by this variable alone.
int visit_graph(const Variable& variable, visitproc visit, void* argument) {
    if (python_calls().empty() || !variable.node().unique()) return 0;
    SmallVector<const VariableNode*, 64> todo;
    todo.push_back(&variable.node());
    while (!todo.empty()) {
        const VariableNode* const node = todo.back();
        todo.pop_back();
        GraphNode* const call = node->creator.get();
        if (call == nullptr || !call->unique()) continue;
        const auto found = python_calls().find(call);
        if (found != python_calls().end()) {
            const int stop = visit(reinterpret_cast<PyObject*>(found->second), argument);
            if (stop != 0) return stop;
        }
        for (const Ref<VariableNode>& input : call->inputs())
            if (input && input->unique()) todo.push_back(input.get());
    }
    return 0;
}

void add_nodes(PyObject* module) {
    static PyGetSetDef node_attributes[] = {
        {"inputs", node_inputs, nullptr, "The inputs of the call, or None without a graph.",
         nullptr},
        {"outputs", node_outputs, nullptr, "The results of the call.", nullptr},
        {"rank", node_rank, nullptr, "The most calls on any path from a leaf.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyMethodDef node_methods[] = {
        fast("_apply", apply, nullptr),
        fast("retain_inputs", retain_inputs, "Keeps the data of inputs for backward()."),
        fast("retain_outputs", retain_outputs, "Keeps the data of outputs for backward()."),
        fast("get_retained_inputs", get_retained_inputs, "The kept inputs as variables."),
        fast("get_retained_outputs", get_retained_outputs, "The kept outputs as variables."),
        fast("unchain", node_unchain, "Removes the call from the graph."),
        {nullptr, nullptr, 0, nullptr}};
    static PyMemberDef node_members[] = {
        {"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak_references), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr}};
    static PyType_Slot node_slots[] = {
        {Py_tp_doc, const_cast<char*>("A call of a function that Python defines.")},
        {Py_tp_new, reinterpret_cast<void*>(new_node)},
        {Py_tp_dealloc, reinterpret_cast<void*>(free_node)},
        {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
        {Py_tp_getset, node_attributes},
        {Py_tp_methods, node_methods},
        {Py_tp_members, node_members},
        {0, nullptr}};
    static PyType_Spec node_spec{"catena._core.FunctionNodeBase", sizeof(PyNode), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                 node_slots};
    node_type = add_type(module, node_spec);

    static PyGetSetDef call_attributes[] = {
        {"label", call_label, nullptr, "The name of the function.", nullptr},
        {"rank", call_rank, nullptr, "The most calls on any path from a leaf.", nullptr},
        {"inputs", call_inputs, nullptr, "The inputs as variables.", nullptr},
        {"outputs", call_outputs, nullptr, "The results as variables.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyType_Slot call_slots[] = {{Py_tp_doc, const_cast<char*>("A call in the graph.")},
                                       {Py_tp_dealloc, reinterpret_cast<void*>(free_call)},
                                       {Py_tp_repr, reinterpret_cast<void*>(call_repr)},
                                       {Py_tp_richcompare, reinterpret_cast<void*>(call_compare)},
                                       {Py_tp_hash, reinterpret_cast<void*>(call_hash)},
                                       {Py_tp_getset, call_attributes},
                                       {0, nullptr}};
    static PyType_Spec call_spec{"catena._core.Call", sizeof(PyCall), 0, Py_TPFLAGS_DEFAULT,
                                 call_slots};
    call_type = add_type(module, call_spec);
}

}  // namespace catena::python
