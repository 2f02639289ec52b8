// Texts of errors, and the conversion of exceptions to a status and a text for the host.
#include "catena/plugin/tables.hpp"

#include <cstdarg>
#include <cstdio>
#include <new>

namespace catena::plugin {

std::string text_of(double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.push_back('0');
    return text;
}
std::string text_of(Shape shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}
std::string text_of(catena_dtype dtype) {
    const char* const names[] = {"int", "uint", "float", "?", "bfloat", "?", "bool"};
    const std::string name = names[dtype.code < 7 ? dtype.code : 3];
    return dtype.code == CATENA_CODE_BOOL ? name : name + std::to_string(dtype.bits);
}
std::string text_of_element(const char* name, std::int64_t i, Shape shape) {
    std::string place;
    for (std::size_t d = shape.size(); d-- > 0; i /= shape[d])
        place = std::to_string(i % shape[d]) + (place.empty() ? "" : ", " + place);
    return place.empty() ? name : name + ("[" + place + "]");
}

catena_status fail(catena_ctx* ctx, catena_status status, const char* format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return host().fail(ctx, status, text);
}

namespace detail {

void fail(catena_status status, const char* function, const char* what, const std::string& expected,
          const std::string& got) {
    throw Error(status, std::string("[") + function + "] " + what + ": expected " + expected +
                            ", got " + got);
}

catena_status caught(catena_ctx* ctx) noexcept {
    try {
        throw;
    } catch (const Error& e) {
        return e.what()[0] == '\0' ? e.status() : host().fail(ctx, e.status(), e.what());
    } catch (const std::bad_alloc&) {
        return host().fail(ctx, CATENA_E_NOMEM, "out of host memory");
    } catch (const std::exception& e) {
        return host().fail(ctx, CATENA_E_INTERNAL, e.what());
    } catch (...) {
        return host().fail(ctx, CATENA_E_INTERNAL, "an exception of unknown type");
    }
}

}  // namespace detail
}  // namespace catena::plugin
