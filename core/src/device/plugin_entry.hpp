// A registered plugin, and a backend of it.
#pragma once

#include "device/device_state.hpp"

#include <catena/abi/plugin.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace catena {

struct PluginEntry {
    std::string id;  // of its manifest
    std::filesystem::path file;
    const catena_plugin* table = nullptr;
    int order = 0;  // of loading
};

struct BackendEntry {
    const catena_backend* table;
    const PluginEntry* plugin;
    int index;
    std::vector<std::unique_ptr<DeviceState>> devices;  // by ordinal; null until opened
};

}  // namespace catena
