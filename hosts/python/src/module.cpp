// The extension module catena._core. Python code in catena/ builds the package on it.
#include "dlpack.hpp"
#include "node.hpp"
#include "parts.hpp"

namespace {

PyModuleDef definition{PyModuleDef_HEAD_INIT, "catena._core", "The C++ part of catena.", -1};

}  // namespace

PyMODINIT_FUNC PyInit__core() {
    using namespace catena::python;
    // PyGILState_Ensure() never returns in a thread of another interpreter.
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "[catena] import: expected the main interpreter, got another one");
        return nullptr;
    }
    return guarded([] {
        Owned module = checked(PyModule_Create(&definition));
        checked(PyModule_AddStringConstant(module.get(), "__version__", CATENA_PYTHON_VERSION));
        add_errors(module.get());
        add_array(module.get());
        add_dlpack();
        add_variable(module.get());
        add_nodes(module.get());
        add_plugin_functions(module.get());
        add_forms(module.get());
        add_kernels(module.get());
        add_optimizers(module.get());
        add_serializers(module.get());
        add_settings(module.get());
        add_torch(module.get());
        add_data(module.get());
        add_gradient_check(module.get());
        check_signals_in_backward();
        return module.release();
    });
}
