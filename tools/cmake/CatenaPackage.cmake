# cpack: a Debian package that depends on the system's libraries; an archive (tools/cmake/bundle.cmake)
# and Python's wheels (tools/cmake/wheel.cmake) that contain them. tools/package runs cpack.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME catena)
set(CPACK_PACKAGE_VERSION "${CATENA_VERSION}")
set(CPACK_DEBIAN_PACKAGE_VERSION "${CATENA_DEBIAN_VERSION}")
set(CPACK_CATENA_PYTHON_VERSION "${CATENA_PYTHON_VERSION}")
set(CPACK_PACKAGE_VENDOR "The catena authors")
set(CPACK_PACKAGE_CONTACT "The catena authors <catena@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "define-by-run deep learning from plugins behind a C ABI")
set(CPACK_PACKAGE_DESCRIPTION
"Networks are what runs: any C++ control flow is part of the model. Every
function and every device is a plugin, a shared library behind one small C ABI.
.
This package has the libraries, the plugins and the programs, and all that it
takes to make more: headers, packages for CMake and pkg-config, a scaffold, a
validator, examples and documents.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_CATENA_PLATFORM)
set(CPACK_PACKAGE_FILE_NAME "catena-${CATENA_VERSION}-${CPACK_CATENA_PLATFORM}")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-openmp | libopenblas0")  # opened at run time
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config, python3-numpy")

set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/bundle.cmake")
set(CPACK_CATENA_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
set(CPACK_CATENA_DATADIR "${CMAKE_INSTALL_DATADIR}")
set(CPACK_CATENA_DOCDIR "${CMAKE_INSTALL_DOCDIR}")
set(CPACK_CATENA_OPENBLAS "${CATENA_OPENBLAS}")
set(CPACK_CATENA_README "${CMAKE_CURRENT_LIST_DIR}/bundle.txt.in")
set(CPACK_EXTERNAL_ENABLE_STAGING ON)
set(CPACK_EXTERNAL_PACKAGE_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/wheel.cmake")
set(CPACK_CATENA_WHEEL_TOOLS "${PROJECT_BINARY_DIR}/python/wheel")
set(CPACK_CATENA_PYTHON_README "${PROJECT_SOURCE_DIR}/hosts/python/README.md")
include(CPack)
