// Functions of the module: arguments by position or name, defaults, docstrings and signatures.
#pragma once

#include "python.hpp"

#include <memory>
#include <span>
#include <vector>

namespace catena::python {

// "x, axis=None, keepdims=False" as names and defaults.
class Signature {
public:
    struct Parameter {
        std::string name;
        std::string def;  // the text of the default, in Python; "": required
    };
    Signature(std::string name, std::vector<Parameter> parameters);
    // "concat(xs, axis=1)"; no default contains ", "
    explicit Signature(std::string_view text);

    const std::string& name() const { return name_; }
    std::size_t size() const { return parameters_.size(); }
    const Parameter& operator[](std::size_t i) const { return parameters_[i]; }
    std::string text() const;
    // Stores one argument for each parameter, NULL where the caller gave none. The arguments are
    // those of METH_FASTCALL | METH_KEYWORDS. Raises TypeError as Python's own functions do.
    void parse(PyObject* const* args, Py_ssize_t n, PyObject* keywords, PyObject** values) const;
    // The value of the default, evaluated once.
    PyObject* default_of(std::size_t i) const;

private:
    std::string name_;
    std::vector<Parameter> parameters_;
    std::vector<PyObject*> names_;  // interned
    std::size_t required_ = 0;
    mutable PyObject* defaults_ = nullptr;
};

inline constexpr std::size_t most_parameters = 64;

// A function that Python calls. Lives as long as the process.
class Callable {
public:
    Callable(Signature signature, std::string doc);
    virtual ~Callable() = default;
    const Signature& signature() const { return signature_; }
    const std::string& doc() const { return doc_; }
    // values: one for each parameter, NULL if it was not given.
    virtual Owned call(std::span<PyObject* const> values) = 0;

private:
    friend Owned python_function(Callable& callable, const char* module);
    Signature signature_;
    std::string doc_;
    PyMethodDef method_;
};

Owned python_function(Callable& callable, const char* module);
// The Callable of a function from python_function(), or NULL for another object.
Callable* callable_of_function(PyObject* object);

}  // namespace catena::python
