// Streams, events and graphs: order, waiting, timing, and recorded work.
#include "host.hpp"

using namespace cuda_test;

namespace {

const catena_events& events() { return plugin().extension<catena_events>(CATENA_EVENTS_DRAFT_1); }
const catena_graph& graphs() { return plugin().extension<catena_graph>(CATENA_GRAPH_DRAFT_1); }

bool is_done(Stream& s) {
    int32_t done = -1;
    REQUIRE(events().stream_query(ctx, s.dev, s.stream, &done) == CATENA_OK);
    return done == 1;
}

bool is_done(void* dev, catena_event* event) {
    int32_t done = -1;
    REQUIRE(events().event_query(ctx, dev, event, &done) == CATENA_OK);
    return done == 1;
}

void fill(Stream& s, int* x, int value, std::size_t n) {
    REQUIRE(memory().fill(ctx, s.dev, s.stream, x, &value, 4, n) == CATENA_OK);
}

}  // namespace

TEST_CASE("a stream does its work in order, and says when it is done") {
    Stream s;
    int* x = s.alloc<int>(100);
    CHECK(is_done(s));
    Gate gate(s.stream);
    for (int i = 1; i <= 20; ++i) fill(s, x, i * 257, 100);
    CHECK(!is_done(s));
    gate.go();
    s.sync();
    CHECK(is_done(s));
    CHECK(s.get(x, 100) == std::vector<int>(100, 20 * 257));
}

TEST_CASE("an event makes one stream wait for another, not the host") {
    Stream one;
    Stream two;
    int* x = one.put(std::vector<int>{0});
    one.sync();
    catena_event* event = nullptr;
    catena_event* end = nullptr;
    REQUIRE(events().timed_event_create(ctx, one.dev, &event) == CATENA_OK);
    REQUIRE(events().timed_event_create(ctx, one.dev, &end) == CATENA_OK);
    CHECK(is_done(one.dev, event));  // never recorded
    Gate gate(one.stream);
    fill(one, x, 0x01020304, 1);
    REQUIRE(backend().event_record(ctx, one.dev, event, one.stream) == CATENA_OK);
    REQUIRE(backend().event_wait(ctx, two.dev, event, two.stream) == CATENA_OK);
    fill(two, x, 0x05060708, 1);
    REQUIRE(backend().event_record(ctx, two.dev, end, two.stream) == CATENA_OK);
    CHECK(!is_done(one.dev, event));
    CHECK(!is_done(two));
    double ms = -1;
    CHECK(events().elapsed(ctx, one.dev, event, end, &ms) == CATENA_E_DEVICE);
    CHECK(says("[cuda elapsed] cudaEventElapsedTime on device 0: cudaErrorNotReady"));
    gate.go();
    REQUIRE(events().event_sync(ctx, two.dev, end) == CATENA_OK);
    CHECK(is_done(one.dev, end));
    CHECK(one.get(x, 1)[0] == 0x05060708);
    REQUIRE(events().elapsed(ctx, one.dev, event, end, &ms) == CATENA_OK);
    CHECK(ms >= 0);
    CHECK(ms < 10000);
    backend().event_destroy(one.dev, event);
    backend().event_destroy(one.dev, end);
    backend().event_destroy(one.dev, nullptr);
}

TEST_CASE("events for order alone take no time") {
    Stream s;
    catena_event* event = nullptr;
    REQUIRE(backend().event_create(ctx, s.dev, &event) == CATENA_OK);
    REQUIRE(backend().event_record(ctx, s.dev, event, s.stream) == CATENA_OK);
    s.sync();
    double ms = -1;
    CHECK(events().elapsed(ctx, s.dev, event, event, &ms) == CATENA_E_DEVICE);
    CHECK(says("[cuda elapsed] cudaEventElapsedTime on device 0: cudaErrorInvalidResourceHandle"));
    backend().event_destroy(s.dev, event);
}

TEST_CASE("sync() waits for all streams of the device") {
    Stream one;
    Stream two;
    int* x = one.alloc<int>(1);
    int* y = two.alloc<int>(1);
    fill(one, x, 1234567, 1);
    fill(two, y, 7654321, 1);
    REQUIRE(backend().sync(ctx, one.dev) == CATENA_OK);
    CHECK(is_done(one));
    CHECK(is_done(two));
}

TEST_CASE("a graph: recorded, not done; done as often as it is launched") {
    Stream s;
    int* x = s.put(std::vector<int>(8, 0));
    int* y = s.put(std::vector<int>(8, 0));
    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    fill(s, x, 0x01010102, 8);
    REQUIRE(backend().copy(ctx, s.dev, s.stream, y, x, 32, CATENA_COPY_DEVICE_TO_DEVICE) ==
            CATENA_OK);
    const int zero = 0;
    REQUIRE(memory().fill(ctx, s.dev, s.stream, x, &zero, 4, 4) == CATENA_OK);
    catena_graph_exec* graph = nullptr;
    REQUIRE(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_OK);
    CHECK(graphs().size(graph) == 3);
    CHECK(s.get(y, 1)[0] == 0);
    for (int i = 0; i < 3; ++i) {
        REQUIRE(memory().fill(ctx, s.dev, s.stream, y, &zero, 4, 8) == CATENA_OK);
        REQUIRE(graphs().launch(ctx, s.dev, graph, s.stream) == CATENA_OK);
        CHECK(s.get(y, 8) == std::vector<int>(8, 0x01010102));
        CHECK(s.get(x, 8)[3] == 0);
        CHECK(s.get(x, 8)[4] == 0x01010102);
    }
    graphs().destroy(s.dev, graph);
    graphs().destroy(s.dev, nullptr);
}

// CUDA rejects such calls of the recording thread unless its capture mode is relaxed.
TEST_CASE("questions, and what is made meanwhile, leave a recording alone") {
    Stream s;
    Stream other;
    catena_event* event = nullptr;
    REQUIRE(backend().event_create(ctx, s.dev, &event) == CATENA_OK);
    REQUIRE(backend().event_record(ctx, s.dev, event, other.stream) == CATENA_OK);
    int* x = s.put(std::vector<int>(8, 0));
    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    fill(s, x, 0x01010102, 8);
    int32_t done = -1;
    CHECK(events().event_query(ctx, s.dev, event, &done) == CATENA_OK);
    CHECK(events().stream_query(ctx, s.dev, other.stream, &done) == CATENA_OK);
    CHECK(events().event_sync(ctx, s.dev, event) == CATENA_OK);
    CHECK(backend().stream_sync(ctx, s.dev, other.stream) == CATENA_OK);
    void* handle = nullptr;
    CHECK(plugin()
              .extension<catena_vendor>(CATENA_VENDOR_DRAFT_1)
              .handle(ctx, s.dev, s.stream, "cublas", &handle) == CATENA_OK);
    void* block = nullptr;
    void* pinned = nullptr;
    CHECK(backend().alloc(ctx, s.dev, s.stream, 32, &block) == CATENA_OK);
    CHECK(memory().host_alloc(ctx, s.dev, 32, &pinned) == CATENA_OK);
    CHECK(memory().copy_async(ctx, s.dev, s.stream, pinned, x, 32, CATENA_COPY_DEVICE_TO_HOST) ==
          CATENA_OK);
    catena_graph_exec* graph = nullptr;
    REQUIRE(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_OK);
    CHECK(graphs().size(graph) == 2);
    REQUIRE(graphs().launch(ctx, s.dev, graph, s.stream) == CATENA_OK);
    s.sync();
    CHECK(static_cast<int*>(pinned)[7] == 0x01010102);
    memory().host_free(s.dev, pinned, 32);
    backend().free(s.dev, s.stream, block, 32);
    // The thread's capture mode is as before: a call that waits still invalidates a recording.
    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    CHECK(backend().sync(ctx, s.dev) == CATENA_E_DEVICE);
    catena_graph_exec* none = nullptr;
    CHECK(graphs().end(ctx, s.dev, s.stream, &none) == CATENA_E_DEVICE);
    graphs().destroy(s.dev, graph);
    backend().event_destroy(s.dev, event);
}

TEST_CASE("what cannot be recorded fails, and the stream is as before") {
    Stream s;
    int* x = s.put(std::vector<int>(8, 0));
    s.sync();
    catena_graph_exec* graph = nullptr;

    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    const int host = 5;
    CHECK(backend().copy(ctx, s.dev, s.stream, x, &host, 4, CATENA_COPY_HOST_TO_DEVICE) ==
          CATENA_E_DEVICE);
    CHECK(
        says("[cuda copy] a graph is being recorded on device 0: memory of the host that is read "
             "now cannot be part of it"));
    CHECK(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_OK);  // the copy is not part of it
    CHECK(graphs().size(graph) == 0);
    graphs().destroy(s.dev, graph);

    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    CHECK(backend().stream_sync(ctx, s.dev, s.stream) == CATENA_E_DEVICE);
    CHECK(says("cudaErrorStreamCaptureUnsupported"));
    CHECK(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_E_DEVICE);
    CHECK(
        says("[cuda graph end] cudaStreamEndCapture on device 0: "
             "cudaErrorStreamCaptureInvalidated"));
    CHECK(graph == nullptr);

    REQUIRE(graphs().begin(ctx, s.dev, s.stream) == CATENA_OK);
    CHECK(backend().sync(ctx, s.dev) == CATENA_E_DEVICE);
    CHECK(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_E_DEVICE);
    CHECK(graphs().end(ctx, s.dev, s.stream, &graph) == CATENA_E_DEVICE);
    if (emulated) CHECK(says("cudaErrorStreamCaptureUnmatched"));
    fill(s, x, 0x0a0b0c0d, 8);
    CHECK(s.get(x, 8)[7] == 0x0a0b0c0d);
}
