// Names that functions have in PyTorch, TensorFlow and NumPy.
#include <catena/diagnostics/kernels.hpp>

#include <algorithm>
#include <ranges>

namespace catena {
namespace {

struct OtherName {
    std::string_view there, here;
};
constexpr OtherName other_names[] = {
    {"affine_grid", "spatial_transformer_grid"},
    {"amax", "max"},
    {"amin", "min"},
    {"atanh", "arctanh"},
    {"avg_pool1d", "average_pooling_1d"},
    {"avg_pool2d", "average_pooling_2d"},
    {"avg_pool3d", "average_pooling_3d"},
    {"batch_norm", "batch_normalization"},
    {"batch_norm1d", "batch_normalization"},
    {"batch_norm2d", "batch_normalization"},
    {"batch_norm3d", "batch_normalization"},
    {"bce_with_logits_loss", "sigmoid_cross_entropy"},
    {"binary_cross_entropy_with_logits", "sigmoid_cross_entropy"},
    {"bmm", "matmul"},
    {"cat", "concat"},
    {"chunk", "split_axis"},
    {"clamp", "clip"},
    {"concatenate", "concat"},
    {"conv1d", "convolution_1d"},
    {"conv2d", "convolution_2d"},
    {"conv2d_transpose", "deconvolution_2d"},
    {"conv3d", "convolution_3d"},
    {"conv_transpose1d", "deconvolution_1d"},
    {"conv_transpose2d", "deconvolution_2d"},
    {"conv_transpose3d", "deconvolution_3d"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"cross_entropy_loss", "softmax_cross_entropy"},
    {"ctc_loss", "connectionist_temporal_classification"},
    {"dense", "linear"},
    {"embedding", "embed_id"},
    {"embedding_lookup", "embed_id"},
    {"grid_sample", "spatial_transformer_sampler"},
    {"group_norm", "group_normalization"},
    {"hardsigmoid", "hard_sigmoid"},
    {"index_select", "take"},
    {"instance_norm", "instance_normalization"},
    {"interpolate", "resize_images"},
    {"layer_norm", "layer_normalization"},
    {"local_response_norm", "local_response_normalization"},
    {"masked_fill", "where"},
    {"max_pool1d", "max_pooling_1d"},
    {"max_pool2d", "max_pooling_2d"},
    {"max_pool3d", "max_pooling_3d"},
    {"mm", "matmul"},
    {"movedim", "moveaxis"},
    {"mse_loss", "mean_squared_error"},
    {"permute", "transpose"},
    {"pixel_shuffle", "depth2space"},
    {"pixel_unshuffle", "space2depth"},
    {"reduce_max", "max"},
    {"reduce_mean", "mean"},
    {"reduce_min", "min"},
    {"reduce_sum", "sum"},
    {"repeat_interleave", "repeat"},
    {"rms_norm", "rms_normalization"},
    {"sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy"},
    {"softmax_cross_entropy_with_logits", "softmax_cross_entropy"},
    {"split", "split_axis"},
    {"triplet_margin_loss", "triplet"},
    {"unfold", "im2col"},
    {"unsqueeze", "expand_dims"},
    {"view", "reshape"},
};

// Compares names without underscores and the case of letters: BatchNorm is batch_norm.
bool alike(std::string_view a, std::string_view b) noexcept {
    const auto letters = [](std::string_view name) {
        return name | std::views::filter([](char c) { return c != '_'; }) |
               std::views::transform(
                   [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
    };
    return std::ranges::equal(letters(a), letters(b));
}

}  // namespace

std::string_view name_here(std::string_view other) noexcept {
    const auto* found = std::ranges::find_if(
        other_names, [&](const OtherName& each) { return alike(each.there, other); });
    return found != std::ranges::end(other_names) ? found->here : "";
}

}  // namespace catena
