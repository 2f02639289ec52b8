// catena._core.forms: functions of the host SDK, with Chainer's names and arguments. The modules in
// catena/functions give them their places.
#include "forms.hpp"

namespace catena::python {

void add_forms(PyObject* module) {
    Owned forms_module = checked(PyModule_New("catena._core.forms"));
    Forms forms(forms_module.get(), "catena.functions");
    add_shape_forms(forms);
    add_math_forms(forms);
    add_layer_forms(forms);
    add_creation_forms(forms);
    checked(PyObject_SetAttrString(forms_module.get(), "_stubs", python_text(forms.stubs()).get()));
    checked(PyModule_AddObject(module, "forms", forms_module.get()));
    forms_module.release();
}

}  // namespace catena::python
