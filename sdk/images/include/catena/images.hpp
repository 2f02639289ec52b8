// Images: reading, scaling, and minibatches of them.
#pragma once

#include <catena/images/image.hpp>
#include <catena/images/image_batches.hpp>
#include <catena/images/image_folder.hpp>
