// How calls from Python reach C++: signatures, the values of arguments, and docstrings.
#include "call.hpp"

#include <algorithm>

namespace catena::python {
namespace {

// A function is bound to a module with one pointer: copy and pickle know functions of modules.
PyModuleDef definition{PyModuleDef_HEAD_INIT, "catena._core.Callable", nullptr, sizeof(Callable*)};
Callable*& callable_of(PyObject* module) {
    return *static_cast<Callable**>(PyModule_GetState(module));
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
    return guarded([&] {
        Callable& callable = *callable_of(self);
        PyObject* values[most_parameters];
        const std::size_t size = callable.signature().size();
        callable.signature().parse(args, n, keywords, values);
        return callable.call(std::span<PyObject* const>(values, size)).release();
    });
}

std::vector<Signature::Parameter> parameters_in(std::string_view text) {
    std::vector<Signature::Parameter> parameters;
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(", "));
        text.remove_prefix(std::min(one.size() + 2, text.size()));
        const std::size_t name = std::min(one.find('='), one.size());
        parameters.push_back({std::string(one.substr(0, name)),
                              std::string(one.substr(std::min(name + 1, one.size())))});
    }
    return parameters;
}

}  // namespace

Signature::Signature(std::string name, std::vector<Parameter> parameters)
    : name_(std::move(name)), parameters_(std::move(parameters)) {
    for (const Parameter& parameter : parameters_) {
        names_.push_back(checked(PyUnicode_InternFromString(parameter.name.c_str())).release());
        if (parameter.def.empty()) ++required_;
    }
}

Signature::Signature(std::string_view text)
    : Signature(
          std::string(text.substr(0, text.find('('))),
          parameters_in(text.substr(text.find('(') + 1, text.rfind(')') - text.find('(') - 1))) {}

std::string Signature::text() const {
    std::string text = name_ + '(';
    for (const Parameter& parameter : parameters_) {
        if (text.back() != '(') text += ", ";
        text += parameter.name;
        if (!parameter.def.empty()) text += '=' + parameter.def;
    }
    return text + ')';
}

void Signature::parse(PyObject* const* args, Py_ssize_t n, PyObject* keywords,
                      PyObject** values) const {
    const std::size_t given = static_cast<std::size_t>(n);
    if (given > parameters_.size())
        raise(PyExc_TypeError, name_ + "() takes at most " + std::to_string(parameters_.size()) +
                                   " arguments, got " + std::to_string(given));
    std::copy_n(args, given, values);
    std::fill(values + given, values + parameters_.size(), nullptr);
    const Py_ssize_t n_keywords = keywords == nullptr ? 0 : PyTuple_Size(keywords);
    for (Py_ssize_t k = 0; k < n_keywords; ++k) {
        PyObject* const name = PyTuple_GetItem(keywords, k);
        auto found = std::find(names_.begin(), names_.end(), name);
        if (found == names_.end())
            found = std::find_if(names_.begin(), names_.end(), [&](PyObject* known) {
                return PyUnicode_Compare(known, name) == 0;
            });
        if (found == names_.end())
            raise(PyExc_TypeError, name_ + "() got an unexpected argument '" +
                                       std::string(text_of(name)) + "'; its arguments are " +
                                       text().substr(name_.size()));
        PyObject*& value = values[found - names_.begin()];
        if (value != nullptr)
            raise(PyExc_TypeError,
                  name_ + "() got the argument '" + std::string(text_of(name)) + "' twice");
        value = args[n + k];
    }
    if (given >= required_) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (values[i] == nullptr && parameters_[i].def.empty())
            raise(PyExc_TypeError, name_ + "() lacks the argument '" + parameters_[i].name + "'");
    }
}

PyObject* Signature::default_of(std::size_t i) const {
    if (defaults_ == nullptr) {
        std::string code = "(";
        for (const Parameter& parameter : parameters_)
            code += (parameter.def.empty() ? "None" : parameter.def) + ", ";
        const Owned builtins = checked(PyImport_ImportModule("builtins"));
        defaults_ =
            checked(PyObject_CallMethod(builtins.get(), "eval", "s{}", (code + ")").c_str()))
                .release();
    }
    return PyTuple_GetItem(defaults_, static_cast<Py_ssize_t>(i));
}

Callable::Callable(Signature signature, std::string doc)
    : signature_(std::move(signature)),
      doc_(signature_.text() + "\n--\n\n" + std::move(doc)),
      method_{signature_.name().c_str(),
              reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run)),
              METH_FASTCALL | METH_KEYWORDS, doc_.c_str()} {}

Callable* callable_of_function(PyObject* object) {
    if (PyObject_TypeCheck(object, &PyCFunction_Type) == 0) return nullptr;
    PyObject* const self = PyCFunction_GetSelf(object);
    const bool ours =
        self != nullptr && PyModule_Check(self) != 0 && PyModule_GetDef(self) == &definition;
    return ours ? callable_of(self) : nullptr;
}

Owned python_function(Callable& callable, const char* module) {
    const Owned self = checked(PyModule_Create(&definition));
    callable_of(self.get()) = &callable;
    const Owned name = python_text(module);
    return checked(PyCFunction_NewEx(&callable.method_, self.get(), name.get()));
}

}  // namespace catena::python
