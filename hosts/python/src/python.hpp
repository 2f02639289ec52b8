// The limited C API of CPython 3.10 and what makes it safe in C++: references, the lock of the
// interpreter, exceptions in both directions. One extension module serves all later versions.
#pragma once

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::python {

// A reference that this object owns.
class Owned {
public:
    Owned() = default;
    explicit Owned(PyObject* object) noexcept : object_(object) {}
    static Owned borrow(PyObject* object) noexcept {
        Py_XINCREF(object);
        return Owned(object);
    }
    Owned(Owned&& other) noexcept : object_(other.release()) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Owned() { Py_XDECREF(object_); }

    PyObject* get() const noexcept { return object_; }
    PyObject* release() noexcept { return std::exchange(object_, nullptr); }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    bool operator==(const PyObject* other) const noexcept { return object_ == other; }

private:
    PyObject* object_ = nullptr;
};

// Stops the thread until the process ends.
[[noreturn]] void wait_for_the_end() noexcept;

// Returns call(), which uses the C API and may wait for the interpreter's lock. At its end, CPython
// before 3.14 ends other threads that wait for the lock by pthread_exit(), which unwinds the stack
// like an exception: C++ code would continue without the lock. Instead, such a thread stops here.
template <class Call>
auto in_python(const Call& call) noexcept {
    try {
        return call();
    } catch (...) {
        wait_for_the_end();
    }
}

// Threads that compute without the lock. The end of the process waits for them, because it frees
// what kernels use. A thread that waits for the lock is not counted.
class Working {
public:
    static void begin() noexcept {
        working_ = true;
        ++count_;
    }
    static void end() noexcept {
        if (std::exchange(working_, false)) --count_;
    }
    static bool here() noexcept { return working_; }
    static int count() noexcept { return count_; }

private:
    static inline std::atomic<int> count_ = 0;
    static inline thread_local bool working_ = false;
};

class InUse;
// Says, with the lock, that the thread does not use its variables now, and that it does again, for
// which it may wait. See in_use.hpp.
InUse* pause_use() noexcept;
void resume_use(InUse* use) noexcept;

// Holds the lock of the interpreter in the scope, from any thread.
class WithLock {
public:
    WithLock() : works_(Working::here()) {
        Working::end();
        state_ = in_python([] { return PyGILState_Ensure(); });
        if (works_) use_ = pause_use();
    }
    WithLock(const WithLock&) = delete;
    WithLock& operator=(const WithLock&) = delete;
    ~WithLock() {
        if (works_) {
            resume_use(use_);
            Working::begin();
        }
        PyGILState_Release(state_);
    }

private:
    bool works_;
    PyGILState_STATE state_;
    InUse* use_ = nullptr;
};

// Lets other threads run Python in the scope, if `worth` it: giving the lock back costs about as
// much as adding a hundred numbers.
class WithoutLock {
public:
    explicit WithoutLock(bool worth = true) {
        if (!worth) return;
        ++count_;
        Working::begin();
        thread_ = PyEval_SaveThread();
    }
    WithoutLock(const WithoutLock&) = delete;
    WithoutLock& operator=(const WithoutLock&) = delete;
    ~WithoutLock() {
        if (thread_ == nullptr) return;
        Working::end();
        in_python([this] { PyEval_RestoreThread(thread_); });
        --count_;
    }
    // Whether a thread is in such a scope and may change graphs. Called with the lock.
    static bool exists() noexcept { return count_ > 0; }

private:
    PyThreadState* thread_ = nullptr;
    static inline int count_ = 0;  // only used with the lock
};

// False after the interpreter began to end: its lock cannot be taken any more. The thread that ends
// it has the lock until the end.
bool interpreter_runs() noexcept;

// Gives up a reference, or null, in any thread.
inline void drop_anywhere(PyObject* object) noexcept {
    if (object == nullptr || !interpreter_runs()) return;
    const WithLock lock;
    Py_DECREF(object);
}

// A Python exception on its way through C++, with its traceback.
class PythonError : public std::exception {
public:
    PythonError();  // takes the current exception; needs the lock
    const char* what() const noexcept override;
    void restore() const;  // makes it the current exception again; needs the lock

private:
    struct State;
    std::shared_ptr<State> state_;
};

inline Owned none() noexcept { return Owned::borrow(Py_None); }

// Throws PythonError if the object is null.
inline Owned checked(PyObject* object) {
    if (object == nullptr) throw PythonError();
    return Owned(object);
}
inline void checked(int status) {
    if (status < 0) throw PythonError();
}
inline bool truth_of(PyObject* object) {
    const int truth = PyObject_IsTrue(object);
    checked(truth);
    return truth != 0;
}
// A tuple of element(0), element(1), ..., element(n - 1).
template <class Element>
Owned tuple_of(std::size_t n, const Element& element) {
    Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(n)));
    for (std::size_t i = 0; i < n; ++i)
        checked(PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), element(i).release()));
    return tuple;
}
// Stores the arguments of a call, as PyArg_ParseTuple() does.
template <class... Values>
void parse(PyObject* args, const char* format, Values*... values) {
    if (PyArg_ParseTuple(args, format, values...) == 0) throw PythonError();
}
template <std::size_t n, class... Values>
void parse(PyObject* args, PyObject* keywords, const char* format, const char* const (&names)[n],
           Values*... values) {
    const char* list[n + 1] = {};
    std::copy_n(names, n, list);
    if (PyArg_ParseTupleAndKeywords(args, keywords, format, const_cast<char**>(list), values...) ==
        0)
        throw PythonError();
}
// convert(item) for each item of what can be iterated.
template <class Convert>
auto vector_of(PyObject* items, const Convert& convert) {
    const Owned tuple = checked(PySequence_Tuple(items));
    std::vector<decltype(convert(items))> values;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple.get()); ++i)
        values.push_back(convert(PyTuple_GetItem(tuple.get(), i)));
    return values;
}
// Throws a Python exception of the given class.
[[noreturn]] void raise(PyObject* type, const std::string& message);

// Turns the C++ exception that is being handled into a Python exception.
void set_python_error() noexcept;

// Runs body(); exceptions become Python exceptions, and the result NULL or -1.
template <class Body>
auto guarded(const Body& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (...) {
        set_python_error();
    }
    if constexpr (std::is_pointer_v<decltype(body())>) return nullptr;
    else return static_cast<decltype(body())>(-1);
}

// A string's UTF-8, which lives as long as the string.
std::string_view text_of(PyObject* string);
inline std::vector<std::string> texts_of(PyObject* items) {
    return vector_of(items, [](PyObject* each) { return std::string(text_of(each)); });
}
inline Owned python_text(std::string_view text) {
    return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}
// Text that may have any bytes, such as the name of a file; and the name of a str, bytes or path object.
Owned text_of_any_bytes(std::string_view text);
std::string path_of(PyObject* object);
// The new value of an attribute. Raises AttributeError if it is deleted.
inline PyObject* not_deleted(PyObject* value) {
    if (value == nullptr) raise(PyExc_AttributeError, "cannot delete the attribute");
    return value;
}
// Raises TypeError unless an argument is what it must be, such as a list for PyList_GetItem().
void expect(bool is, std::string_view what, const char* expected, PyObject* got);
// The text of an error; if it is about a GPU and no plugin for GPUs is installed, with advice.
std::string with_advice(std::string text);
// "numpy.ndarray", "list".
std::string type_name(PyObject* object);

// Creates the exception classes and adds them to the module.
void add_errors(PyObject* module);
PyObject* python_class_of_index_errors();
PyObject* python_class_of_shape_errors();

template <class T>
T* as(PyObject* object) {
    return reinterpret_cast<T*>(object);
}

// ---- slots of types

// The structure of an object without garbage collection that is a value of C++.
template <class T>
struct Holder {
    PyObject_HEAD T value;
};
template <class T>
T& held(PyObject* object) {
    return as<Holder<T>>(object)->value;
}
template <class T>
Owned hold(PyTypeObject* type, T value) {
    static_assert(std::is_nothrow_move_constructible_v<T>);  // free_object() destroys the value
    Owned made = checked(PyType_GenericAlloc(type, 0));
    new (&held<T>(made.get())) T(std::move(value));
    return made;
}
template <class T>
void free_object(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    held<T>(self).~T();
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}
// The result of an operator for operands of other types: Python then calls the other operand's.
inline PyObject* ask_the_other() noexcept {
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}
// == and != of objects that stand for `left` and `right`.
inline PyObject* compare_addresses(const void* left, const void* right, int operation) noexcept {
    return PyBool_FromLong((left == right) == (operation == Py_EQ));
}
inline Py_hash_t hash_of(const void* address) noexcept {
    return static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(address) >> 4);
}
// For objects that are compared element by element, but are keys by identity.
inline Py_hash_t hash_address(PyObject* self) noexcept { return hash_of(self); }

// The result of call() as an object: None if it has none. Exceptions become Python exceptions.
template <class Call>
PyObject* result_of(const Call& call) noexcept {
    return guarded([&]() -> PyObject* {
        using Result = decltype(call());
        if constexpr (std::is_void_v<Result>) {
            call();
            Py_RETURN_NONE;
        } else if constexpr (std::is_same_v<Result, Owned>) {
            return call().release();
        } else if constexpr (std::is_same_v<Result, PyObject*>) {
            return call();
        } else if constexpr (std::is_same_v<Result, bool>) {
            return PyBool_FromLong(call());
        } else if constexpr (std::is_integral_v<Result>) {
            return PyLong_FromLongLong(static_cast<long long>(call()));
        } else if constexpr (std::is_floating_point_v<Result>) {
            return PyFloat_FromDouble(call());
        } else {
            return python_text(call()).release();
        }
    });
}

template <auto function>
struct Method;
template <class Result, class... Objects, Result (*function)(PyObject*, Objects...)>
struct Method<function> {
    static constexpr Py_ssize_t count = sizeof...(Objects);
    static PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t n) noexcept {
        if (n != count) {
            PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", count, n);
            return nullptr;
        }
        return [&]<std::size_t... i>(std::index_sequence<i...>) {
            return result_of([&] { return function(self, args[i]...); });
        }
        (std::index_sequence_for<Objects...>());
    }
    static PyObject* call_with_one(PyObject* self, PyObject* object) noexcept {
        return call(self, &object, count);
    }
    static PyObject* call_with_keywords(PyObject* self, PyObject* args, PyObject* names) noexcept {
        PyObject* const both[] = {args, names};
        return call(self, both, count);
    }
};
// An entry of tp_methods or a module's methods: function(self, arguments...).
template <auto function>
PyMethodDef method(const char* name, const char* doc = nullptr) {
    using M = Method<function>;
    if constexpr (M::count < 2)
        return {name, M::call_with_one, M::count == 0 ? METH_NOARGS : METH_O, doc};
    else
        return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(M::call)),
                METH_FASTCALL, doc};
}
// The same: function(self, tuple of arguments).
template <auto function>
PyMethodDef with_tuple(const char* name, const char* doc = nullptr) {
    return {name, Method<function>::call_with_one, METH_VARARGS, doc};
}
// The same: function(self, tuple of arguments, dict of others or NULL).
template <auto function>
PyMethodDef with_keywords(const char* name, const char* doc) {
    const auto call = Method<function>::call_with_keywords;
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
            METH_VARARGS | METH_KEYWORDS, doc};
}

template <auto function>
PyObject* get(PyObject* self, void*) noexcept {
    return result_of([&] { return function(self); });
}
template <auto function>
int set(PyObject* self, PyObject* value, void*) noexcept {
    return guarded([&] {
        function(self, value);
        return 0;
    });
}
// An attribute of objects: get_it(self) and, unless it is read-only, set_it(self, value).
template <auto get_it>
PyGetSetDef property(const char* name, const char* doc = nullptr) {
    return {name, get<get_it>, nullptr, doc, nullptr};
}
template <auto get_it, auto set_it>
PyGetSetDef property(const char* name, const char* doc = nullptr) {
    return {name, get<get_it>, set<set_it>, doc, nullptr};
}

template <class Function>
PyType_Slot slot(int id, Function* function) {
    return {id, reinterpret_cast<void*>(function)};
}

// A type of the module, and its functions. Lists end without a null entry.
struct Type {
    const char *name, *doc;
    std::size_t size;
    unsigned flags = Py_TPFLAGS_DEFAULT;
    std::vector<PyGetSetDef> attributes;
    std::vector<PyMethodDef> methods;
    std::vector<PyType_Slot> slots;
    std::vector<PyMemberDef> members;
};
// Adds a type, also with what its class in _members.py has, if there is one; its objects are collected
// if it has Py_TPFLAGS_HAVE_GC.
PyTypeObject* add_type(PyObject* module, Type type);
void add_functions(PyObject* module, std::vector<PyMethodDef> functions);
}  // namespace catena::python
