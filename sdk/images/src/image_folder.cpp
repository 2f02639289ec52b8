// Listing folders.
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/images/image_folder.hpp>
#include <catena/random.hpp>
#include <catena/text.hpp>

#include <boost/algorithm/string/case_conv.hpp>

#include <cmath>

namespace catena {
namespace fs = std::filesystem;

namespace {

template <class Wanted>
std::vector<fs::path> entries(const fs::path& folder, Wanted wanted) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (wanted(entry)) found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace

bool is_image_file(const fs::path& file) {
    const std::string ending = boost::to_lower_copy(file.extension().string());
    return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

ImageFolder list_images(const fs::path& root) {
    std::error_code error;
    if (!fs::is_directory(root, error))
        fail<DataError>("[list_images] {}: expected a folder of folders, got {}", root.string(),
                        error ? error.message() : "none");
    ImageFolder result;
    for (const fs::path& folder :
         entries(root, [](const fs::directory_entry& e) { return e.is_directory(); })) {
        const auto files = entries(folder, [](const fs::directory_entry& e) {
            return e.is_regular_file() && is_image_file(e.path());
        });
        if (files.empty()) continue;
        const auto label = static_cast<std::int32_t>(result.classes.size());
        const std::string name = folder.filename();
        if (!is_utf8(name) || name.find('\n') != name.npos)
            fail<DataError>(
                "[list_images] {}: expected folder names in UTF-8 without line breaks, got '{}'",
                root.string(), name);
        result.classes.push_back(name);
        result.files.insert(result.files.end(), files.begin(), files.end());
        result.labels.resize(result.files.size(), label);
    }
    if (result.files.empty())
        fail<DataError>(
            "[list_images] {}: expected folders of PNG or JPEG files, one for each class, got none",
            root.string());
    return result;
}

std::pair<ImageFolder, ImageFolder> hold_out(const ImageFolder& folder, double share,
                                             std::uint64_t seed) {
    ImageFolder rest{folder.classes, {}, {}}, held{folder.classes, {}, {}};
    Generator generator(seed ^ 0x686f6c646f757421u);
    for (std::size_t begin = 0; begin < folder.files.size();) {
        std::size_t end = begin;
        while (end < folder.files.size() && folder.labels[end] == folder.labels[begin]) ++end;
        const std::size_t n = end - begin;
        auto wanted = static_cast<std::size_t>(std::floor(share * static_cast<double>(n)));
        if (share > 0 && n > 1) wanted = std::clamp<std::size_t>(wanted, 1, n - 1);
        for (std::size_t i = begin; i < end; ++i) {  // each as likely as any other
            const bool take = generator.below(end - i) < wanted;
            ImageFolder& to = take ? held : rest;
            to.files.push_back(folder.files[i]);
            to.labels.push_back(folder.labels[i]);
            if (take) --wanted;
        }
        begin = end;
    }
    return {std::move(rest), std::move(held)};
}

}  // namespace catena
