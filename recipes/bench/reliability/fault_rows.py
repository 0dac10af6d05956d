"""The catalogue of faults and the tests that hold each of its rows.

python recipes/bench/reliability/fault_rows.py

`--list` prints the tests of each row: rows of the table of faults (`tests/faults/rows`), whose
names begin with its number, or tests by file and name.
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

ROOT = Path(__file__).parents[3]

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
    19: [
        "faults/test_process.py::test_19_neither_the_locale_nor_hashes_change_a_byte_of_the_output"
    ],
    58: [
        "lm/test_checkpoint.py::test_malformed_tensors_are_refused_though_their_digest_is_right",
        "runs/test_cache.py::test_a_right_digest_over_anything_but_safetensors_is_damage",
    ],
    59: [
        "lm/test_checkpoint.py"
        "::test_a_damaged_file_is_named_and_what_is_no_regular_file_is_not_read",
    ],
    63: ["lm/test_checkpoint.py::test_a_manifest_that_does_not_fit_is_reported_with_what_does_not"],
    65: ["lm/test_checkpoint.py::test_vocabularies_that_are_none_are_refused"],
    71: ["commands/test_help.py::test_a_name_in_two_packages_is_a_fault"],
    72: ["commands/test_tune_mert.py::test_lists_without_a_match_leave_the_start"],
    73: [
        "commands/test_tune_mert.py::test_constant_features_keep_their_share_of_the_weights",
        "commands/test_tune_mert.py::test_features_that_are_equal_are_named",
    ],
    74: [
        "commands/test_tune_selection.py::test_a_tuning_with_too_few_lists_takes_the_tuned_weights",
    ],
    75: ["commands/test_tune_mert.py::test_a_feature_in_other_units_has_the_weight_in_other_units"],
    77: ["decoders/test_posteriors.py::test_without_a_possible_path_the_first_candidates_come_out"],
    79: ["faults/test_process.py::test_79_what_latex_and_markdown_read_otherwise_is_escaped"],
    80: ["faults/test_process.py::test_80_a_closed_pipe_ends_the_work_silently"],
    81: [
        "faults/test_process.py::test_81_one_output_that_does_not_fit_keeps_the_old_content_of_all",
        "runs/test_disk.py::test_a_disk_that_fails_at_any_call_leaves_whole_files",
    ],
    84: [
        "faults/test_process.py::test_84_a_signal_leaves_neither_outputs_nor_temporary_files",
        "runs/test_resume.py"
        "::test_a_decoding_that_is_stopped_keeps_its_scores_and_goes_on_from_there",
    ],
    85: [
        "runs/test_resume.py::test_a_tuning_that_is_stopped_goes_on_with_equal_weights",
        "runs/test_resume.py::test_a_training_that_is_stopped_goes_on_as_if_it_had_not_been",
    ],
    86: [
        "recipes/test_reliability.py"
        "::test_a_command_that_is_killed_leaves_whole_files_and_ends_with_equal_bytes",
        "runs/test_resume.py"
        "::test_a_run_that_is_killed_at_any_write_is_completed_by_running_it_again",
    ],
    87: ["runs/test_cache.py::test_two_programs_that_share_a_cold_cache_write_the_bytes_of_one"],
    88: ["runs/test_cache.py::test_scores_of_another_model_form_or_precision_are_never_taken"],
    89: ["runs/test_cache.py::test_a_cut_or_changed_byte_is_noticed"],
    90: [
        "faults/test_process.py"
        "::test_90_an_input_that_changes_during_the_run_ends_it_without_an_output",
    ],
    95: [
        "runs/test_distribution.py::test_a_process_that_waits_hears_of_the_death_of_another",
        "runs/test_distribution.py"
        "::test_a_cluster_gives_the_bytes_of_one_process_though_a_worker_is_killed",
    ],
    96: ["faults/test_process.py::test_96_the_clock_changes_no_byte_of_the_output"],
    99: ["runs/test_distribution.py::test_an_error_names_the_process"],
    100: [
        "commands/test_help.py"
        "::test_help_and_misspelt_options_load_nothing_heavy_and_take_little_time",
        "commands/test_help.py::test_commands_without_a_model_work_without_torch",
    ],
}
"""Tests below `tests/` of rows that are not in the table of faults, or not there alone."""


def rows_of_the_table() -> dict[int, dict[str, str]]:
    """Command of each row of the table of faults (`tests/faults/rows`), by row of the catalogue."""
    sys.path.insert(0, str(ROOT / "tests"))
    found: dict[int, dict[str, str]] = {}
    for path in sorted((ROOT / "tests" / "faults" / "rows").glob("*.py")):
        for fault in import_module(f"faults.rows.{path.stem}").FAULTS:
            if fault.name[:2].isdigit() and fault.name[:2] != "00":
                found.setdefault(int(fault.name[:2]), {})[fault.name] = fault.command
    return found


def evidence() -> dict[int, list[str]]:
    """The tests of each row that is held: names of rows of the table, then `file::test`."""
    result = {row: sorted(names) for row, names in rows_of_the_table().items()}
    for row, tests in HELD.items():
        result[row] = [*result.get(row, []), *tests]
    return result


def commands_of(row: int, tests: Sequence[str]) -> set[str]:
    """The commands that tests of a row run."""
    of_table = rows_of_the_table().get(row, {})
    result = {of_table[test].split()[0] for test in tests if test in of_table}
    return result | {"tests of functions and programs" for test in tests if "::" in test}


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
