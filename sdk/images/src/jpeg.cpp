// JPEG by libjpeg. Its errors come by longjmp: what is alive then lies outside of the part that jumps.
#include "decode.hpp"

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

namespace catena {
namespace {

struct Jpeg {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    jpeg_progress_mgr progress{};
    std::jmp_buf failed{};
    char message[JMSG_LENGTH_MAX] = {};
    Image image;
    std::vector<std::uint8_t> line;

    Jpeg() {
        info.err = jpeg_std_error(&errors);
        info.client_data = this;
        errors.error_exit = [](j_common_ptr common) {
            auto& self = *static_cast<Jpeg*>(common->client_data);
            common->err->format_message(common, self.message);
            std::longjmp(self.failed, 1);
        };
        // A warning is damage that libjpeg would hide by making pixels up.
        errors.emit_message = [](j_common_ptr common, int level) {
            if (level < 0) common->err->error_exit(common);
        };
        errors.output_message = [](j_common_ptr) {};
        // Progressive files may say next to nothing in each of very many scans.
        progress.progress_monitor = [](j_common_ptr common) {
            constexpr int most_scans = 500;
            auto& self = *static_cast<Jpeg*>(common->client_data);
            if (self.info.input_scan_number <= most_scans) return;
            std::snprintf(self.message, sizeof self.message, "more than %d scans", most_scans);
            std::longjmp(self.failed, 1);
        };
        jpeg_create_decompress(&info);
        info.progress = &progress;
    }
    Jpeg(const Jpeg&) = delete;
    Jpeg& operator=(const Jpeg&) = delete;
    ~Jpeg() { jpeg_destroy_decompress(&info); }

    bool read_header(std::span<const std::byte> bytes) {
        if (setjmp(failed)) return false;
        jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
        jpeg_read_header(&info, TRUE);
        // What cannot become RGB here is converted below.
        const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
        return true;
    }

    bool read_pixels() {
        if (setjmp(failed)) return false;
        jpeg_start_decompress(&info);
        while (info.output_scanline < info.output_height) {
            std::uint8_t* to =
                image.pixels.data() + std::size_t{info.output_scanline} * info.output_width * 3;
            JSAMPROW row = info.out_color_space == JCS_CMYK ? line.data() : to;
            jpeg_read_scanlines(&info, &row, 1);
            if (info.out_color_space == JCS_CMYK) to_rgb(to);
        }
        jpeg_finish_decompress(&info);
        return true;
    }

private:
    void to_rgb(std::uint8_t* to) const {
        const bool inverted = info.saw_Adobe_marker;  // as Adobe's programs write them
        for (JDIMENSION x = 0; x < info.output_width; ++x) {
            const std::uint8_t* cmyk = line.data() + std::size_t{x} * 4;
            for (int i = 0; i < 3; ++i) {
                const int colour = inverted ? cmyk[i] : 255 - cmyk[i];
                const int key = inverted ? cmyk[3] : 255 - cmyk[3];
                *to++ = static_cast<std::uint8_t>(colour * key / 255);
            }
        }
    }
};

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name, std::int64_t least) {
    Jpeg jpeg;
    if (!jpeg.read_header(bytes)) image_error(name, "a JPEG image", jpeg.message);
    const std::int64_t height = jpeg.info.image_height, width = jpeg.info.image_width;
    check_size(name, height, width);
    const std::int64_t shorter = height < width ? height : width;
    while (least > 0 && jpeg.info.scale_denom < 8 && shorter / (2 * jpeg.info.scale_denom) >= least)
        jpeg.info.scale_denom *= 2;
    jpeg_calc_output_dimensions(&jpeg.info);
    jpeg.image = {jpeg.info.output_height, jpeg.info.output_width, {}};
    jpeg.image.pixels.resize(std::size_t{jpeg.info.output_height} * jpeg.info.output_width * 3);
    jpeg.line.resize(std::size_t{jpeg.info.output_width} * 4);
    if (!jpeg.read_pixels()) image_error(name, "a JPEG image", jpeg.message);
    return std::move(jpeg.image);
}

}  // namespace catena
