"""The catalogue of faults and the tests that hold each of its rows.

python recipes/reliability/fault_rows.py

`--list` prints the tests of each row. Evidence of a row is a row of the table of faults
(`tests/faults/rows`) or a folder of `tests/faults` (by the number and the beginning of its name),
the cases of `rerank check` in `support/broken_files.py` (rows 1 to 57), or a test by file and name.
`tests/recipes/test_reliability.py` checks that all of it exists; that it passes is what the test
suite says.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).parents[2]
FAULTS = ROOT / "tests" / "faults"

NOT_APPLICABLE: Mapping[int, str] = {
    61: "no command reads .npy files",
    70: "no command takes the id of a hub: only folders; nothing is downloaded",
    78: "no command writes CSV; tab-separated values and JSON are raw",
    93: "no command extracts an archive",
}
"""Rows about what the program does not have."""

OPEN: Mapping[int, str] = {}
"""Rows without a test."""

HELD: Mapping[int, Sequence[str]] = {
    19: ["test_faults.py::test_19_the_locale_changes_no_byte_of_the_output"],
    50: ["50-"],
    58: [
        "lm/test_shards.py::test_malformed_tensors_are_refused_though_their_digest_is_right",
        "lm/training/test_state.py::test_a_damaged_state_is_refused_and_named",
        "pipeline/test_topics.py::test_an_altered_folder_is_refused",
    ],
    59: [
        "lm/test_shards.py::test_a_pickle_under_the_name_of_safetensors_is_refused_and_not_run",
        "lm/causal/test_folder.py::test_pickled_weights_are_refused",
    ],
    60: [
        "60-model-is-a-pipe",
        "lm/test_shards.py::test_a_header_that_would_take_much_memory_is_refused",
    ],
    62: [
        "62-",
        "lm/training/test_state.py::test_a_state_whose_values_have_another_type_or_shape_is_refused",
    ],
    63: ["lm/test_shards.py::test_a_newer_format_asks_for_a_newer_program"],
    64: ["95-ngram-cut-short", "61-ngram-text-too-small"],
    65: ["lm/test_vocabulary.py::test_repeated_control_and_empty_words_are_refused"],
    66: ["66-"],
    67: ["67-"],
    68: ["68-weights-in-json"],
    69: ["69-viterbi-of-unbounded-order", "69-"],
    71: ["71-"],
    72: [
        "tuning/mert/test_mert.py"
        "::test_without_a_four_gram_match_the_start_comes_back_with_a_notice"
    ],
    73: [
        "tuning/mert/test_mert.py"
        "::test_constant_features_keep_their_share_of_the_weights_with_a_notice",
        "tuning/mert/test_mert.py::test_duplicated_features_are_reported",
    ],
    74: [
        "tuning/selection/test_cross_validation.py"
        "::test_few_lists_are_a_notice_and_lists_without_a_match_are_none"
    ],
    75: [
        "tuning/tuners/test_table.py::test_a_feature_in_other_units_has_the_weight_in_other_units"
    ],
    76: [
        "scorers/test_language_model.py::test_a_model_that_returns_nan_is_named_with_the_document"
    ],
    77: ["pipeline/test_run_loop.py::test_documents_without_a_possible_path_are_counted"],
    79: ["test_faults.py::test_79_what_latex_and_markdown_read_otherwise_is_escaped"],
    80: ["test_faults.py::test_80_a_closed_pipe_ends_the_work_silently"],
    81: [
        "81-",
        "test_faults.py::test_81_one_output_that_does_not_fit_keeps_the_old_content_of_all",
        "pipeline/test_disk_faults.py::test_a_disk_that_fails_at_any_call_leaves_whole_files",
    ],
    82: ["82-"],
    83: ["83-", "files/test_outputs.py::test_a_link_to_itself_is_refused"],
    84: [
        "test_faults.py::test_84_a_signal_leaves_neither_outputs_nor_temporary_files",
        "pipeline/test_resume.py"
        "::test_a_run_that_is_stopped_keeps_its_scores_and_goes_on_from_there",
    ],
    85: [
        "pipeline/test_resume.py"
        "::test_a_run_that_is_stopped_keeps_its_scores_and_goes_on_from_there",
        "pipeline/test_resume.py::test_a_tuning_that_is_stopped_goes_on_with_equal_weights",
    ],
    86: [
        "recipes/test_reliability.py"
        "::test_a_command_that_is_killed_leaves_whole_files_and_ends_with_equal_bytes",
        "tuning/test_saved.py"
        "::test_a_tuning_that_is_stopped_after_any_search_ends_with_the_same_file",
    ],
    87: ["87-", "pipeline/test_resume.py::test_two_programs_share_a_cold_cache"],
    88: ["88-"],
    89: ["89-"],
    90: ["test_faults.py::test_90_an_input_that_changes_during_the_run_ends_it_without_an_output"],
    91: ["91-"],
    92: ["92-"],
    94: ["94-"],
    95: [
        "pipeline/test_distribution.py::test_a_process_that_waits_hears_of_the_death_of_another",
        "pipeline/test_ray_cluster.py"
        "::test_a_cluster_gives_the_bytes_of_one_process_though_a_worker_is_killed",
    ],
    96: ["test_faults.py::test_96_the_clock_changes_no_byte_of_the_output"],
    97: ["97-"],
    98: [
        "pipeline/test_distribution.py::test_a_shard_that_there_is_not_is_refused_before_any_work",
        "pipeline/test_distribution.py::test_shards_of_another_list_or_model_are_not_mixed_in",
    ],
    99: ["pipeline/test_distribution.py::test_an_error_names_the_process"],
    100: [
        "commands/test_help.py"
        "::test_help_and_misspelt_options_load_nothing_heavy_and_take_little_time",
        "pipeline/test_checking.py::test_check_without_a_model_loads_no_torch",
        "commands/test_help.py::test_commands_without_a_model_work_without_torch",
    ],
}
"""Evidence of the rows that `rerank check` is not the only witness of, below `tests/`."""


def evidence() -> dict[int, list[str]]:
    """The tests of each row that is held."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.broken_files import BROKEN

    found: dict[int, list[str]] = {row: [*tests] for row, tests in HELD.items()}
    for row in range(1, 58):
        own = {case.name for case in BROKEN if case.row == row}
        folders = [path.name for path in FAULTS.glob(f"{row:02}-*") if path.is_dir()]
        named = [*sorted(folders), *sorted(rows_of(f"{row:02}-"))]
        if own or named:
            found[row] = [*found.get(row, []), *(f"check: {name}" for name in sorted(own))]
            found[row] += named
    return found


def rows_of(test: str) -> dict[str, str]:
    """Commands of the rows of the table of faults that evidence names, by the names of the rows."""
    sys.path.insert(0, str(ROOT / "tests"))
    tables = (path.stem for path in sorted((FAULTS / "rows").glob("*.py")))
    faults = (fault for name in tables for fault in import_module(f"faults.rows.{name}").FAULTS)
    return {fault.name: fault.command for fault in faults if fault.name.startswith(test)}


def folders_of(test: str) -> list[Path]:
    """Folders of `tests/faults` that a piece of evidence names; none if it is of another kind."""
    if "::" in test or test.startswith("check: "):
        return []
    return [path for path in sorted(FAULTS.glob(f"{test}*")) if path.is_dir()]


def commands_of(row: int, tests: Sequence[str]) -> set[str]:
    """The commands that tests of a row run; `library` for tests of functions."""
    from support.broken_files import BROKEN

    found = set()
    for test in tests:
        if "::" not in test and not test.startswith("check: "):
            found |= {command.split()[0] for command in rows_of(test).values()}
        for folder in folders_of(test):
            words = (folder / "command").read_text(encoding="utf-8").split()
            found.add(next(word for word in words if "=" not in word))
        if "::" in test:
            found.add("tests of functions and programs")
    for case in BROKEN:
        if case.row == row:
            found |= {"check"} | ({"decode"} if case.decoded is not None else set())
            found |= {"tune-mert"} if case.tuned is not None else set()
    return found


def main() -> None:
    """Print how many rows are held, by command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="the tests of each row")
    options = parser.parse_args()
    held = evidence()
    if options.list:
        for row in range(1, 101):
            for test in held.get(row, [NOT_APPLICABLE.get(row) or OPEN.get(row, "no test")]):
                print(f"{row:3}  {test}")
        return
    counts = Counter(name for row, tests in held.items() for name in commands_of(row, tests))
    print(tabulate(counts.most_common(), headers=["command", "rows"]))
    rows = 100 - len(NOT_APPLICABLE)
    print(f"\nrows held: {len(held)} of {rows}; {len(NOT_APPLICABLE)} of 100 do not apply")


if __name__ == "__main__":
    main()
