// Reading and scaling images, and minibatches of images.
#pragma once

#include <catena/images/image.hpp>
#include <catena/images/image_batches.hpp>
#include <catena/images/image_folder.hpp>
