// Fields are separated by a control character; what would end a line or a field is escaped.
#include "message.hpp"

#include <cstdlib>

namespace catena::check {
namespace {

constexpr char separator = '\x1f';
constexpr char escape = '\x1b';

}  // namespace

std::string line_of(const Fields& fields) {
    std::string line;
    for (const std::string& field : fields) {
        if (&field != &fields.front()) line += separator;
        for (const char c : field)
            if (c == separator || c == escape || c == '\n' || c == '\0')
                line += {escape, static_cast<char>(c + 64)};
            else line += c;
    }
    return line + '\n';
}

Fields fields_of(std::string_view line) {
    Fields fields(1);
    for (std::size_t i = 0; i < line.size() && line[i] != '\n'; ++i)
        if (line[i] == separator) fields.emplace_back();
        else if (line[i] == escape && i + 1 < line.size())
            fields.back() += static_cast<char>(line[++i] - 64);
        else fields.back() += line[i];
    return fields;
}

std::string joined(const std::vector<int>& numbers) {
    std::string text;
    for (const int n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
    return text;
}
std::vector<int> numbers_in(const std::string& text) {
    std::vector<int> numbers;
    for (std::size_t at = 0; at < text.size(); at = text.find(',', at) + 1) {
        numbers.push_back(std::atoi(text.c_str() + at));
        if (text.find(',', at) == text.npos) break;
    }
    return numbers;
}

}  // namespace catena::check
