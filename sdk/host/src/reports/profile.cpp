// Profile: sums up the kernel calls that it observes, and writes a table and a trace.
#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>
#include <catena/profile.hpp>
#include <catena/write_file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace catena {
namespace {

constexpr std::size_t most_events = 1'000'000;

// Returns the plugin whose table has the kernel, or "" for work that is not a registered kernel.
std::string plugin_of(const catena_kernel* kernel) {
    for (const PluginTable& plugin : plugin_tables()) {
        for (std::uint32_t i = 0; i < plugin.table->n_kernels; ++i) {
            if (plugin.table->kernels[i] == kernel) return plugin.id;
        }
    }
    return "";
}

std::string describe(const catena_kernel* kernel) {
    std::string text = plugin_of(kernel);
    for (const char* part : {kernel->variant, kernel->isa, kernel->name}) {
        if (part && *part) text += (text.empty() ? "" : " ") + std::string(part);
    }
    return text;
}

const char* direction_of(std::int32_t phase) {
    return phase == CATENA_PHASE_BACKWARD ? "backward" : "forward";
}

std::string megabytes(std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Profile::Profile() : begin_(call_time()) {
    if (call_observer())
        throw InvalidError("[Profile] expected no other observer of calls, got another profile");
    set_call_observer(this);
}
Profile::~Profile() { set_call_observer(nullptr); }

void Profile::called(const KernelCall& call) noexcept {
    const CallGroup* group = call.group;
    while (group && group->outer) group = group->outer.get();
    const Key key{call.function, call.kernel, call.phase, call.device.state(),
                  group ? group->name : std::string_view()};
    const std::lock_guard lock(mutex_);
    Sum& sum = sums_.try_emplace(key, Sum{call.device}).first->second;
    const std::int64_t duration = call.end - call.begin;
    ++sum.calls;
    sum.nanoseconds += duration;
    sum.longest = std::max(sum.longest, duration);
    sum.bytes += call.bytes;
    sum.memory = std::max(sum.memory, call.memory);
    if (events_.size() == most_events) {
        ++missed_;
        return;
    }
    const auto next = static_cast<std::uint32_t>(threads_.size());
    const auto thread = threads_.try_emplace(std::this_thread::get_id(), next).first->second;
    events_.push_back({key, call.begin, call.end, call.bytes, call.memory, thread, Ref(group)});
}

Profile::Row Profile::row(const Key& key, const Sum& sum) const {
    return {std::string(key.group),
            key.function->name,
            direction_of(key.phase),
            std::string(sum.device.name()),
            describe(key.kernel),
            sum.calls,
            static_cast<double>(sum.nanoseconds) / 1e9,
            static_cast<double>(sum.longest) / 1e9,
            sum.bytes,
            sum.memory};
}

std::vector<Profile::Row> Profile::rows() const {
    const std::lock_guard lock(mutex_);
    std::vector<Row> rows;
    for (const auto& [key, sum] : sums_) rows.push_back(row(key, sum));
    std::ranges::stable_sort(rows, std::greater(), &Row::seconds);
    return rows;
}

std::string Profile::table(std::size_t most) const {
    const std::vector<Row> all = rows();
    const auto add = [](Row& sum, const Row& row) {
        sum.calls += row.calls;
        sum.seconds += row.seconds;
        sum.longest = std::max(sum.longest, row.longest);
        sum.bytes += row.bytes;
        sum.memory = std::max(sum.memory, row.memory);
    };
    // The sums of compositions among the other rows, each before its parts.
    Row total;
    std::map<std::string, Row> groups;
    for (const Row& row : all) {
        add(total, row);
        if (row.group.empty()) continue;
        Row& group = groups.try_emplace(row.group).first->second;
        group.function = row.group;
        add(group, row);
    }
    std::vector<Row> tops, lines;
    for (const Row& row : all)
        if (row.group.empty()) tops.push_back(row);
    for (const auto& [name, group] : groups) tops.push_back(group);
    std::ranges::stable_sort(tops, std::greater(), &Row::seconds);
    Row rest;
    for (std::size_t i = 0; i < tops.size(); ++i) {
        if (i >= most) {
            add(rest, tops[i]);
            continue;
        }
        lines.push_back(tops[i]);
        for (const Row& row : all)
            if (row.group == tops[i].function && tops[i].direction.empty())
                lines.push_back(row), lines.back().function.insert(0, "  ");
    }
    std::size_t name = 8;
    for (const Row& row : lines) name = std::max(name, row.function.size());
    std::string text =
        fmt::format("{:<{}}  {:<8}  {:>9}  {:>10}  {:>6}  {:>9}  {:>9}  {:>10}  {:>8}  {:<7}  {}\n",
                    "function", name, "", "calls", "total ms", "share", "mean us", "most us",
                    "written MB", "held MB", "device", "kernel");
    for (const Row& row : lines) {
        std::string line = fmt::format(
            "{:<{}}  {:<8}  {:>9}  {:>10.2f}  {:>5.1f}%  {:>9.1f}  {:>9.1f}  {:>10}  {:>8}  {:<7}  "
            "{}",
            row.function, name, row.direction, row.calls, row.seconds * 1e3,
            100 * row.seconds / total.seconds, row.seconds * 1e6 / static_cast<double>(row.calls),
            row.longest * 1e6, megabytes(row.bytes), megabytes(row.memory), row.device, row.kernel);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    if (rest.calls > 0) {
        text += fmt::format("{:<{}}  {:<8}  {:>9}  {:>10.2f}  {:>5.1f}%\n",
                            fmt::format("{} others", tops.size() - most), name, "", rest.calls,
                            rest.seconds * 1e3, 100 * rest.seconds / total.seconds);
    }
    return text + fmt::format("kernels: {:.3f} s, of {:.3f} s since the profile began\n",
                              total.seconds, static_cast<double>(call_time() - begin_) / 1e9);
}

void Profile::write_trace(const std::filesystem::path& file) const {
    const std::lock_guard lock(mutex_);
    std::map<Key, nlohmann::json> known;
    std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    auto add = [&, separator = "\n"](const nlohmann::json& json) mutable {
        text += separator + json.dump();
        separator = ",\n";
    };
    for (const auto& [id, thread] : threads_)
        add({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", 1},
             {"tid", thread},
             {"args", {{"name", fmt::format("thread {}", thread)}}}});
    // A composition lasts from its first part to its last one.
    const auto end_group = [&](const Event& first, std::int64_t end) {
        if (!first.group) return;
        add({{"name", std::string(first.key.group) + " " + direction_of(first.key.phase)},
             {"cat", "composition"},
             {"ph", "X"},
             {"pid", 1},
             {"tid", first.thread},
             {"ts", static_cast<double>(first.begin - begin_) / 1e3},
             {"dur", static_cast<double>(end - first.begin) / 1e3}});
    };
    std::map<std::uint32_t, std::pair<const Event*, std::int64_t>> running;  // of each thread
    for (const Event& event : events_) {
        auto& [first, end] = running.try_emplace(event.thread, &event, event.end).first->second;
        if (first->group != event.group || first->key.phase != event.key.phase) {
            end_group(*first, end);
            first = &event;
        }
        end = event.end;
    }
    for (const auto& [thread, group] : running) end_group(*group.first, group.second);
    for (const Event& event : events_) {
        auto& json = known[event.key];
        if (json.is_null()) {
            const Row what = row(event.key, sums_.at(event.key));
            json = {{"name", what.function + " " + what.direction},
                    {"cat", what.device},
                    {"ph", "X"},
                    {"pid", 1},
                    {"args", {{"kernel", what.kernel}}}};
        }
        json["tid"] = event.thread;
        json["ts"] = static_cast<double>(event.begin - begin_) / 1e3;
        json["dur"] = static_cast<double>(event.end - event.begin) / 1e3;
        json["args"]["written bytes"] = event.bytes;
        json["args"]["held bytes"] = event.memory;
        add(json);
    }
    text += fmt::format("\n], \"otherData\": {{\"calls not shown\": {}}}}}\n", missed_);
    write_file(file, text);
}

}  // namespace catena
