// Calls in the graph, functions that Python defines, and what the garbage collector sees of graphs.
#include "node.hpp"

#include "operators.hpp"

#include <catena/checkpoint.hpp>

#include <optional>
#include <unordered_map>

namespace catena::python {
namespace {

class PythonNode;

// Of retain_inputs() or retain_outputs().
struct Retained {
    bool was_called;
    std::vector<std::size_t>* early;  // the arguments before apply(), or null
};

struct PyNode {
    PyObject_HEAD PythonNode* node;  // while forward() runs or the graph has it; the graph owns it
    GraphNode* call;                 // while the graph has it
    Retained inputs, outputs;
    PyObject* dict;
    PyObject* weak_references;
};

// The types of a call of another kind, and of a variable, as the graph sees it: objects hold a Ref<T>.
template <class T>
PyTypeObject* ref_type = nullptr;

// The calls that Python defined. Only used with the interpreter's lock.
std::unordered_map<const GraphNode*, PyNode*>& python_calls() {
    static auto* const calls = new std::unordered_map<const GraphNode*, PyNode*>();
    return *calls;
}

Owned python_attribute(PyObject* object, const char* name) {
    return checked(in_python([&] { return PyObject_GetAttrString(object, name); }));
}
Owned call_method(PyObject* object, const char* name, PyObject* first, PyObject* second = nullptr) {
    const Owned method = python_attribute(object, name);
    return checked(in_python(
        [&] { return PyObject_CallFunctionObjArgs(method.get(), first, second, nullptr); }));
}

// Arrays for Python: numpy.ndarray on the host; None for a missing one.
Owned python_arrays(std::span<const Array> arrays) {
    return tuple_of(arrays.size(), [&](std::size_t i) { return to_python(arrays[i]); });
}

Owned py_checkpoint(PyObject*, PyObject* func, PyObject* xs) {
    const std::shared_ptr<PyObject> function(Owned::borrow(func).release(), drop_anywhere);
    const auto call = [function](const Variables& x) {
        const WithLock lock;
        const Owned inputs = wrap_all(x);
        const Owned y =
            checked(in_python([&] { return PyObject_CallObject(function.get(), inputs.get()); }));
        return variables_of(y.get(), "[forget] func: result");
    };
    return wrap_all(functions::checkpoint(call, variables_of(xs, "[forget] xs")));
}
bool py_in_recomputation(PyObject*) { return in_recomputation(); }

// The calls of a class's methods from C++. The Python object is alive as long as the graph has it.
// It has one reference for each output, which visit_graph() needs.
class PythonNode final : public FunctionNode {
public:
    explicit PythonNode(PyObject* object) : object_(object) { Py_INCREF(object_); }
    void recorded(GraphNode& call) {
        as<PyNode>(object_)->call = &call;
        python_calls().emplace(&call, as<PyNode>(object_));
        for (; references_ < call.outputs().size(); ++references_) Py_INCREF(object_);
    }
    PythonNode(const PythonNode&) = delete;
    PythonNode& operator=(const PythonNode&) = delete;
    ~PythonNode() override {
        std::optional<WithLock> lock;
        if (interpreter_runs()) lock.emplace();
        PyNode& self = *as<PyNode>(object_);
        self.node = nullptr;
        const GraphNode* const call = std::exchange(self.call, nullptr);
        if (!lock) return;
        python_calls().erase(call);
        for (; references_ > 0; --references_) Py_DECREF(object_);
    }

    std::string label() const override {
        const WithLock lock;
        const Owned text = python_attribute(object_, "label");
        return PyUnicode_Check(text.get()) != 0 ? std::string(text_of(text.get()))
                                                : type_name(object_);
    }

    using FunctionNode::get_retained_inputs, FunctionNode::get_retained_outputs;
    template <Retained PyNode::*of>
    void retain(std::vector<std::size_t> indexes) {
        (as<PyNode>(object_)->*of).was_called = true;
        if constexpr (of == &PyNode::inputs) retain_inputs(std::move(indexes));
        else retain_outputs(std::move(indexes));
    }

private:
    Arrays forward(ArraySpan inputs) override {
        const WithLock lock;
        const PyNode& self = *as<PyNode>(object_);
        if (self.inputs.early != nullptr) retain<&PyNode::inputs>(*self.inputs.early);
        if (self.outputs.early != nullptr) retain<&PyNode::outputs>(*self.outputs.early);
        const Owned arguments = python_arrays(inputs);
        const Owned result = call_method(object_, "_checked_forward", arguments.get());
        Arrays outputs;
        const auto add = [&](PyObject* output) {
            const std::string what =
                '[' + label() + "] forward: output " + std::to_string(outputs.size());
            if (is_variable(output))
                raise(PyExc_TypeError, what + ": expected an array, got a " + type_name(output));
            outputs.push_back(array_of(output, what));
        };
        if (PyTuple_Check(result.get()) == 0 && PyList_Check(result.get()) == 0) {
            add(result.get());
            return outputs;
        }
        const Owned list = checked(PySequence_Tuple(result.get()));
        for (Py_ssize_t i = 0; i < PyTuple_Size(list.get()); ++i) {
            PyObject* const output = PyTuple_GetItem(list.get(), i);
            if (output == Py_None) outputs.emplace_back();
            else add(output);
        }
        return outputs;
    }

    Variables backward(Targets targets, VariableSpan grad_outputs) override {
        const WithLock lock;
        const Owned indexes = tuple_of(
            targets.size(), [&](std::size_t i) { return checked(PyLong_FromSize_t(targets[i])); });
        const Owned grads = wrap_all({grad_outputs.begin(), grad_outputs.end()});
        const Owned result = call_method(object_, "backward", indexes.get(), grads.get());
        if (result.get() == Py_None) return Variables(targets.size());
        Variables found = variables_of(result.get(), '[' + label() + "] backward: gradient");
        if (config().enable_backprop) return found;
        // Gradients are summed up in place, but memory of NumPy may have other users.
        for (Variable& gradient : found)
            if (gradient && is_foreign(gradient.data()))
                gradient = as_variable(gradient.data().copy());
        return found;
    }
    static bool is_foreign(const Array& array) {
        const ArrayBody& body = *array.body();
        return (body.base != nullptr ? body.base : &body)->home == nullptr;
    }

    PyObject* object_;
    std::size_t references_ = 1;
};

PyNode& node_self(PyObject* object) { return *as<PyNode>(object); }

// apply(inputs): runs forward() and records the call. Returns a tuple of variables.
Owned apply(PyObject* self, PyObject* arguments) {
    PyNode& object = node_self(self);
    if (object.node != nullptr)
        throw GraphError('[' + type_name(self) +
                         "] apply: expected a new node for each call, got one that was applied "
                         "before");
    const Variables inputs = variables_of(arguments, '[' + type_name(self) + "] apply: input");
    auto node = std::make_shared<PythonNode>(self);
    object.node = node.get();
    object.inputs.was_called = object.outputs.was_called = false;
    Variables outputs = node->apply(inputs);
    for (const Variable& output : outputs) {
        if (!output || output.creator() == nullptr) continue;
        node->recorded(*output.creator());
        break;
    }
    // As in Chainer, None as an output becomes a variable without an array.
    return tuple_of(outputs.size(), [&](std::size_t i) { return wrap(std::move(outputs[i])); });
}

std::vector<std::size_t> indexes_of(PyObject* object, const char* what) {
    std::vector<std::size_t> indexes;
    for (const std::int64_t i : integers_of(object, what)) {
        if (i < 0) raise(PyExc_ValueError, std::string(what) + ": expected indexes, got -1");
        indexes.push_back(static_cast<std::size_t>(i));
    }
    return indexes;
}

// Indexes from before apply() are kept until forward() runs.
template <Retained PyNode::*of>
void retain(PyObject* self, PyObject* object) {
    PyNode& node = node_self(self);
    std::vector<std::size_t> indexes =
        indexes_of(object, of == &PyNode::inputs ? "[retain_inputs]" : "[retain_outputs]");
    if (node.node != nullptr) return node.node->retain<of>(std::move(indexes));
    delete std::exchange((node.*of).early, new std::vector<std::size_t>(std::move(indexes)));
}
template <Retained PyNode::*of>
Owned get_retained(PyObject* self) {
    const PyNode& node = node_self(self);
    if (node.call == nullptr || !(node.*of).was_called) return wrap_all({});
    return wrap_all(of == &PyNode::inputs ? node.node->get_retained_inputs()
                                          : node.node->get_retained_outputs());
}
void node_unchain(PyObject* self) {
    if (node_self(self).call != nullptr) InUse::before_change(node_self(self).call);
    if (GraphNode* const call = node_self(self).call) call->unchain();
}

template <class T>
Owned python_ref(T* object) {
    return object != nullptr ? hold(ref_type<T>, Ref<T>(object)) : none();
}

// A tuple of catena.VariableNodes; None for missing ones, and instead of the tuple without a graph.
Owned inputs_of(GraphNode* call) {
    if (call == nullptr) return none();
    SmallVector<Ref<VariableNode>, 8> inputs;  // the collector may free the call
    for (const Ref<VariableNode>& input : call->inputs()) inputs.push_back(input);
    return tuple_of(inputs.size(), [&](std::size_t i) { return python_ref(inputs[i].get()); });
}
// A tuple of catena.VariableNodes. Chainer's outputs are weak references, which are called; so are
// VariableNodes, and one that is gone is a weak reference to nothing.
Owned outputs_of(GraphNode* call) {
    if (call == nullptr) return none();
    InUse::before_change(call);
    SmallVector<Ref<VariableNode>, 8> outputs;
    for (VariableNode* output : call->outputs()) outputs.push_back(Ref<VariableNode>(output));
    return tuple_of(outputs.size(), [&](std::size_t i) {
        if (outputs[i]) return python_ref(outputs[i].get());
        const Owned gone = checked(PySet_New(nullptr));
        return checked(PyWeakref_NewRef(gone.get(), nullptr));
    });
}

Owned node_inputs(PyObject* self) { return inputs_of(node_self(self).call); }
Owned node_outputs(PyObject* self) { return outputs_of(node_self(self).call); }
int node_rank(PyObject* self) {
    GraphNode* const call = node_self(self).call;
    return call != nullptr ? call->rank() - 1 : 0;
}

int node_traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    Py_VISIT(node_self(object).dict);
    GraphNode* const call = node_self(object).call;
    return call != nullptr ? visit_graph(call->inputs(), visit, arg) : 0;
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
    delete node_self(object).inputs.early;
    delete node_self(object).outputs.early;
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

// ---- other calls, and variables of the graph

template <class T>
T& ref_of(PyObject* object) {
    return *held<Ref<T>>(object);
}
template <class T>
PyObject* compare_refs(PyObject* left, PyObject* right, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(right) != ref_type<T>)
        return ask_the_other();
    return compare_addresses(&ref_of<T>(left), &ref_of<T>(right), operation);
}
template <class T>
Py_hash_t hash_ref(PyObject* self) {
    return hash_of(&ref_of<T>(self));
}
template <class T>
void free_ref(PyObject* object) {
    if constexpr (std::is_same_v<T, VariableNode>) {
        Variable last(std::move(held<Ref<T>>(object)));
        InUse::drop(last);
    }
    free_object<Ref<T>>(object);
}
template <class T>
void add_ref_type(PyObject* module, const char* name, const char* doc,
                  std::vector<PyGetSetDef> attributes, std::vector<PyMethodDef> methods) {
    ref_type<T> = add_type(module, {.name = name,
                                    .doc = doc,
                                    .size = sizeof(Holder<Ref<T>>),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                    .attributes = std::move(attributes),
                                    .methods = std::move(methods),
                                    .slots = {slot(Py_tp_dealloc, free_ref<T>),
                                              slot(Py_tp_richcompare, compare_refs<T>),
                                              slot(Py_tp_hash, hash_ref<T>)}});
}

// The node of an object, when no other thread uses it.
template <class T>
T& idle(PyObject* object) {
    InUse::before_change(&ref_of<T>(object));
    return ref_of<T>(object);
}
std::string_view call_label(PyObject* object) { return idle<GraphNode>(object).label(); }
int call_rank(PyObject* object) { return idle<GraphNode>(object).rank() - 1; }
Owned call_inputs(PyObject* object) { return inputs_of(&idle<GraphNode>(object)); }
Owned call_outputs(PyObject* object) { return outputs_of(&idle<GraphNode>(object)); }
template <class T>
void unchain(PyObject* object) {
    idle<T>(object).unchain();
}

Owned call_forward(PyObject* object, PyObject* objects) {
    const Arrays inputs = arrays_of(objects, "[forward] inputs");
    const GraphNode& self = ref_of<GraphNode>(object);
    return python_arrays([&] {
        const WithoutLockOn others(InUse::By::call, {}, true, &self);
        return self.forward(inputs);
    }());
}
VariableNode& idle_variable(PyObject* object) { return idle<VariableNode>(object); }
Owned variable_shape(PyObject* object) { return python_shape(idle_variable(object).data.shape()); }
Owned variable_dtype(PyObject* object) { return python_dtype(idle_variable(object).data.dtype()); }
Owned variable_data(PyObject* object) {
    const Array& data = idle_variable(object).data;
    return to_python(has_memory(data) ? data : Array());
}
Owned variable_grad(PyObject* object) { return to_python(idle_variable(object).grad); }
Owned variable_grad_var(PyObject* object) {
    const Variable grad = Variable(Ref<VariableNode>(&idle_variable(object))).grad_variable();
    return grad ? wrap(grad) : none();
}
Owned variable_name(PyObject* object) {
    const VariableNode& node = idle_variable(object);
    return node.name && !node.name->empty() ? python_text(*node.name) : none();
}
int variable_rank(PyObject* object) { return idle_variable(object).rank(); }
bool variable_requires_grad(PyObject* object) { return idle_variable(object).requires_grad; }
Owned variable_creator(PyObject* object) {
    const VariableNode& node = idle_variable(object);
    return node.creator ? python_call(*node.creator) : none();
}

Owned get_variable(PyObject* object) {
    return wrap(Variable(Ref<VariableNode>(&idle_variable(object))));
}
Owned get_variable_or_none(PyObject* object) {
    return ref_of<VariableNode>(object).has_users() ? get_variable(object) : none();
}

}  // namespace

Owned python_call(GraphNode& call) {
    const auto found = python_calls().find(&call);
    if (found != python_calls().end())
        return Owned::borrow(reinterpret_cast<PyObject*>(found->second));
    return python_ref(&call);
}

Owned python_node(VariableNode& node) { return python_ref(&node); }

// The garbage collector can free a cycle, such as a call that Python defined with its own result as
// an attribute, only if it knows the owners of all references. A part of the graph belongs to the
// variable or call `roots` of Python if all references to it come from there. The walk follows such
// parts up to the next calls that Python defined, which own what is behind them. A part that several
// variables of Python share belongs to none: a cycle through it is not found.
// Other threads may change graphs while they have given the lock back; then none is visited.
int visit_graph(std::span<const Ref<VariableNode>> roots, visitproc visit, void* argument) {
    if (python_calls().empty() || WithoutLock::exists()) return 0;
    std::unordered_map<const void*, std::uint32_t> found;  // of references
    SmallVector<const VariableNode*, 64> todo;
    const auto owned = [&](const auto* node) {
        const std::uint32_t n = node != nullptr ? node->references() : 0;
        return n == 1 || (n > 1 && ++found[node] == n);
    };
    const auto follow = [&](std::span<const Ref<VariableNode>> nodes) {
        for (const Ref<VariableNode>& node : nodes)
            if (owned(node.get())) todo.push_back(node.get());
    };
    follow(roots);
    while (!todo.empty()) {
        const VariableNode* const node = todo.back();
        todo.pop_back();
        follow({&node->grad_node, 1});
        GraphNode* const call = node->creator.get();
        if (call == nullptr) continue;
        const auto python = python_calls().find(call);
        if (python == python_calls().end()) {
            if (owned(call)) follow(call->inputs());
            continue;
        }
        // The first output that exists counts for those that do not.
        const auto outputs = call->outputs();
        const auto exists = [](const VariableNode* output) { return output != nullptr; };
        const bool first = *std::ranges::find_if(outputs, exists) == node;
        for (std::ptrdiff_t n = first ? std::ranges::count(outputs, nullptr) : 0; n >= 0; --n)
            if (const int stop = visit(reinterpret_cast<PyObject*>(python->second), argument))
                return stop;
    }
    return 0;
}

void add_nodes(PyObject* module) {
    add_type(
        module,
        {.name = "catena._core.FunctionNodeBase",
         .doc = "A call of a function that Python defines.",
         .size = sizeof(PyNode),
         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
         .attributes =
             {property<node_inputs>(
                  "inputs",
                  "The inputs of the call as a tuple of VariableNodes, or None without a graph."),
              property<node_outputs>("outputs", "The results of the call."),
              property<node_rank>("rank", "The most calls on any path from a leaf."),
              {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}},
         .methods = {method<apply>(
                         "apply",
                         "apply($self, inputs, /)\n--\n\nCalls the function on variables or "
                         "arrays and records "
                         "the call. Returns a tuple of variables."),
                     method<retain<&PyNode::inputs>>("retain_inputs",
                                                     "Keeps the data of inputs for backward()."),
                     method<retain<&PyNode::outputs>>("retain_outputs",
                                                      "Keeps the data of outputs for backward()."),
                     method<get_retained<&PyNode::inputs>>("get_retained_inputs",
                                                           "The kept inputs as variables."),
                     method<get_retained<&PyNode::outputs>>("get_retained_outputs",
                                                            "The kept outputs as variables."),
                     method<node_unchain>("unchain", "Removes the call from the graph.")},
         .slots = {slot(Py_tp_new, PyType_GenericNew), slot(Py_tp_dealloc, free_node),
                   slot(Py_tp_traverse, node_traverse), slot(Py_tp_clear, node_clear)},
         .members = {{"__dictoffset__", T_PYSSIZET, offsetof(PyNode, dict), READONLY, nullptr},
                     {"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weak_references), READONLY,
                      nullptr}}});

    add_functions(
        module,
        {method<py_checkpoint>(
             "_checkpoint", "_checkpoint(func, xs, /)\n--\n\nfunc(*xs), which backward repeats."),
         method<py_in_recomputation>("_in_recomputation", "Whether backward repeats a call.")});
    add_ref_type<GraphNode>(
        module, "catena._core.Call", "A call in the graph.",
        {property<call_label>("label", "The name of the function."),
         property<call_rank>("rank", "The most calls on any path from a leaf."),
         property<call_inputs>("inputs", "The inputs as a tuple of VariableNodes."),
         property<call_outputs>("outputs", "The results; None for those without users.")},
        {method<call_forward>(
             "forward",
             "forward($self, inputs, /)\n--\n\nComputes the function from a tuple of other arrays, "
             "with the attributes of this call. Returns a tuple of arrays."),
         method<unchain<GraphNode>>("unchain", "Removes the call from the graph.")});

    add_ref_type<VariableNode>(
        module, "catena.VariableNode", "A variable as the graph sees it.",
        {property<variable_shape>("shape"), property<variable_dtype>("dtype"),
         property<variable_data>("data", "The array, or None if only the graph has the variable."),
         property<variable_grad>("grad"), property<variable_grad_var>("grad_var"),
         property<variable_name>("name"),
         property<variable_rank>("rank", "The most calls on any path from a leaf."),
         property<variable_requires_grad>("requires_grad"),
         property<variable_creator>("creator_node", "The call that computed it, or None.")},
        {method<get_variable>("get_variable", "A variable of this node."),
         method<get_variable_or_none>("get_variable_or_none",
                                      "A variable of this node, or None if only the graph has it."),
         method<unchain<VariableNode>>("unchain", "Removes the call that computed the variable.")});
}

}  // namespace catena::python
