"""Errors: the exit code the shell sees, and messages of one form, `file:line: what; cure`."""

import pytest

from rerank.errors import InputError, RerankError, StoppedEarly, UsageError


@pytest.mark.parametrize(
    ("fault", "code"),
    [(RerankError, 1), (UsageError, 2), (InputError, 3), (StoppedEarly, 75)],
)
def test_each_kind_of_fault_has_the_exit_code_of_the_table(
    fault: type[RerankError], code: int
) -> None:
    assert fault.exit_code == code
    assert fault("why").exit_code == code
    assert issubclass(fault, RerankError)
    assert str(fault("why")) == "why"


@pytest.mark.parametrize(
    ("source", "line", "expected"),
    [
        ("dev.kbest", 318, "dev.kbest:318: expected 4 features as on line 1, found 3"),
        ("dev.kbest", None, "dev.kbest: expected 4 features as on line 1, found 3"),
        ("<stdin>", 1, "<stdin>:1: expected 4 features as on line 1, found 3"),
        ("", None, "expected 4 features as on line 1, found 3"),
    ],
)
def test_bad_input_is_located_as_far_as_the_place_is_known(
    source: str, line: int | None, expected: str
) -> None:
    fault = InputError("expected 4 features as on line 1, found 3", source=source, line=line)
    assert str(fault) == expected
    assert (fault.source, fault.line) == (source, line)
