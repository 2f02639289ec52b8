// Which checks may be left out for a function of catena.
#pragma once

#include <catena/testing/report.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace catena::testing {

// Reasons that follow from the definition of a function.
inline constexpr std::string_view definitions[] = {
    "a composition: ",
    "a view: ",
    "a single output: ",
    "it accepts every rank, ",
    "it accepts every shape, ",
    "it has no inputs",
    "it has no kernel: ",
    "it updates its inputs: ",
    "no backward kernel: ",
    "not differentiable",
    "one kernel for each row of dtypes",
    "refused with a message: every input needs axes",
};

// Functions that refuse calls which others accept: empty ones, extents of 1, many elements.
inline const std::map<Check, std::set<std::string_view>> exceptions = {
    {Check::empty,
     {"catena.argmax_crf1d", "catena.classification_summary", "catena.clip_factor", "catena.crf1d",
      "catena.f1_score", "catena.lstm_sequence", "catena.n_step_bigru", "catena.n_step_bilstm",
      "catena.n_step_birnn", "catena.n_step_gru", "catena.n_step_lstm", "catena.n_step_rnn",
      "catena.precision", "catena.put_item", "catena.recall", "catena.set_slice"}},
    {Check::size_one,
     {"catena.n_step_bigru", "catena.n_step_bilstm", "catena.n_step_birnn", "catena.n_step_gru",
      "catena.n_step_lstm", "catena.n_step_rnn", "catena.spatial_transformer_grid",
      "catena.unpooling_3d"}},
    {Check::threads, {"catena.clip_factor", "catena.lstm_sequence", "catena.put_item"}},
};

// Fails each check that was left out for another reason, and each exception that is not needed.
inline void check_gaps(Report& report) {
    for (std::size_t i = 0; i < n_checks; ++i) {
        const Check check = static_cast<Check>(i);
        const auto found = exceptions.find(check);
        const bool excepted =
            found != exceptions.end() && found->second.contains(report.function());
        const std::string reason = report[check].text;
        const bool gap = report[check].verdict == Verdict::not_applicable &&
                         std::ranges::none_of(
                             definitions, [&](auto start) { return reason.starts_with(start); });
        if (gap && !excepted) report.fail(check, "left out: " + reason);
        if (!gap && excepted) report.fail(check, "it is listed in exceptions.hpp, but passes");
    }
}

}  // namespace catena::testing
