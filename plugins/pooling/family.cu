// pooling.cuda.catena, table of contents: windows over images.
#include "average_pooling_2d.cuh"
#include "max_pooling_2d.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.pooling.cuda", "0.1.0", AveragePooling2D, AveragePooling2DGrad,
              MaxPooling2D, MaxPooling2DAt, MaxPooling2DGrad);
