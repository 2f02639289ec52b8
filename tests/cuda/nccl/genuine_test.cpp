// NVIDIA's NCCL on a machine without a GPU: it has the symbols that the plugin calls, and open() fails
// with the expected error.
#include <algorithm>

#include "ranks.hpp"
// after half.h, whose parameters have the name of one of CUDA's types
#include "declarations.hpp"
#include "library.hpp"

using namespace catena_nccl;

namespace {

// Returns NVIDIA's library, or null with a message if it is not installed.
const Library* genuine() {
    try {
        return &nccl();
    } catch (const Error& error) {
        MESSAGE("skipped: ", error.what());
        return nullptr;
    }
}

}  // namespace

TEST_CASE("NVIDIA's library has all functions, and makes ids without a GPU") {
    const Library* const library = genuine();
    if (library == nullptr) return;
    int version = 0;
    CHECK(library->version(&version) == ncclSuccess);
    MESSAGE("NCCL ", version, ", header ", NCCL_VERSION_CODE);
    CHECK(std::string(library->error_string(ncclInvalidUsage)).find("invalid usage") == 0);
    const std::string id = make_id();
    CHECK(id.size() == sizeof(ncclUniqueId));
    CHECK(std::ranges::any_of(id, [](char c) { return c != 0; }));
    CHECK(make_id() != id);
    CHECK_THROWS_WITH(check("ncclSend", ncclInvalidUsage),
                      doctest::Contains("[nccl] ncclSend: expected success, got invalid usage"));
    // A group without operations ends at once.
    CHECK(library->group_start() == ncclSuccess);
    CHECK(library->group_end() == ncclSuccess);
}

TEST_CASE("NVIDIA's library refuses a communicator without a GPU, and says so") {
    const Library* const library = genuine();
    if (library == nullptr || nccl_test::device_count() > 0) return;
    CHECK_THROWS_WITH(Link(0, 0, 1, make_id(), [] {}), doctest::Contains("[nccl] cuda"));
    ncclUniqueId id = {};
    REQUIRE(library->unique_id(&id) == ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    CHECK(library->init(&comm, 1, id, 0, &config) != ncclSuccess);
}

TEST_CASE("open() without a GPU names the reason") {
    if (nccl_test::device_count() > 0) return;
    const catena_comm_options options = {sizeof options, 0, 1, 0, nullptr, 1};
    catena_comm* comm = nullptr;
    CHECK(nccl_test::table().open(nccl_test::ctx, &options, &comm) == CATENA_E_DEVICE);
    CHECK(nccl_test::failure.find("[open] device: expected a GPU and its driver, got cudaError") ==
          0);
}
