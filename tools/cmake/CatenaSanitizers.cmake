# CATENA_SANITIZE, e.g. "address,undefined" or "thread": in every target; a finding is fatal.
if(CATENA_SANITIZE)
    if(CATENA_SANITIZE MATCHES "thread" AND CATENA_SANITIZE MATCHES "address")
        message(FATAL_ERROR "CATENA_SANITIZE: thread and address exclude each other, "
                            "got '${CATENA_SANITIZE}'")
    endif()
    set(catena_sanitize "-fsanitize=${CATENA_SANITIZE}" -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${catena_sanitize}>")
    add_link_options("$<$<LINK_LANGUAGE:C,CXX>:-fsanitize=${CATENA_SANITIZE}>")
    if(CATENA_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>")
    endif()
    unset(catena_sanitize)
endif()
