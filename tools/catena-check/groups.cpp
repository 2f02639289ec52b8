// Groups of ranks that are threads of this process.
#include "groups.hpp"

#include <thread>

namespace catena::check {

std::string Problems::need_failure(const std::string& what, const CallResult& result,
                                   const std::vector<std::string>& words) {
    if (result) add(what, "expected a failure, got success");
    else if (result.status != CATENA_E_DEVICE)
        add(what, "expected CATENA_E_DEVICE, got {}: {}", result.status, result.text);
    else
        for (const std::string& word : words)
            if (result.text.find(word) == std::string::npos)
                add(what, "expected a text with '{}', got '{}'", word, result.text);
    return result.text;
}

Groups::Groups(const catena_communicator& its_table, unsigned its_seed)
    : table(its_table), seed(its_seed) {
    CallResult results[2];
    const auto open = [&](int rank) {
        const CommRank own =
            CommRank::open(table, testing::comm_options(rank, 2, "catena-check", 2), results[rank]);
    };
    doing("{}: open() of rank 1 of 2 on another thread", table.name);
    std::thread other(open, 1);
    open(0);
    other.join();
    for (const CallResult& result : results)
        if (!result) why_one_ = result.text.empty() ? "no text" : result.text;
}

void Groups::run(int wanted, double timeout, const std::function<void(CommRank&)>& body) const {
    if (several()) return testing::run_ranks(table, wanted, timeout, body);
    CallResult result;
    CommRank own = CommRank::open(table, testing::comm_options(-1, 0, nullptr, timeout), result);
    if (!result) throw testing::Failure(result.status, "open() of one rank: " + result.text);
    body(own);
}

// Why a group of another device than the CPU cannot be opened on this machine; empty if it can.
std::string Groups::without_device() const {
    if (std::string_view(table.devices).find("cpu") != std::string_view::npos) return {};
    CallResult result;
    const CommRank own = CommRank::open(table, testing::comm_options(-1, 0, nullptr, 5), result);
    return result.status == CATENA_E_DEVICE ? result.text : std::string();
}

void each_communicator(const Subject& subject, Findings& findings, CheckOfGroups body,
                       bool several) {
    testing::World world{std::vector<std::string>()};
    const testing::detail::Module module(subject.file);
    const catena_plugin& plugin = module.table(testing::World::host(), world, true);
    std::string without = "it has no communicator";
    bool any = false;
    for (const catena_extension* e : std::span(plugin.extensions, plugin.n_extensions)) {
        if (std::string_view(e->id) != CATENA_COMMUNICATOR_1) continue;
        Groups groups(*static_cast<const catena_communicator*>(e->table), subject.seed32());
        const std::string reason = several && !groups.several()
                                       ? "it has one rank in a process: " + groups.why_one()
                                       : groups.without_device();
        if (!reason.empty()) {
            without = reason;
            continue;
        }
        any = true;
        Problems problems(findings);
        doing("{}", groups.table.name);
        body(groups, problems);
    }
    if (!any) findings.skip("{}", without);
}

void run_form(const CommRank& own, const Form& form, Problems& problems) {
    const int rank = own.rank(), size = own.size();
    const std::string what =
        fmt::format("{}, root {}, rank {} of {}", form.text(), form.root, rank, size);
    const Exchange exchange(form, rank, size);
    if (problems.need(what, own.run(exchange.operation))) problems.need_right(what, exchange);
}

}  // namespace catena::check
