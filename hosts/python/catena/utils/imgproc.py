"""Crops of images."""
from typing import Any

import numpy


def oversample(images, crop_dims) -> Any:
    """Ten crops of each image: the corners, the center, and their mirror images.

    Args:
        images: arrays (channel, height, width) of one shape.
        crop_dims: height and width of the crops.
    """
    (channels, height, width), (h, w) = images[0].shape, crop_dims
    corners = [(0, 0), (0, width - w), (height - h, 0), (height - h, width - w),
               (int(height / 2 - h / 2), int(width / 2 - w / 2))]
    crops = numpy.empty((len(images), 2, 5, channels, h, w), images[0].dtype)
    for i, image in enumerate(images):
        for j, (y, x) in enumerate(corners):
            crops[i, 0, j] = image[:, y:y + h, x:x + w]
    crops[:, 1] = crops[:, 0, ..., ::-1]
    return crops.reshape(-1, channels, h, w)
