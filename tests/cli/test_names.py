"""Names of a registry as values of an option."""

import click
import pytest

from rerank.cli.names import MemberName
from rerank.registry import Registry

TYPE = MemberName(Registry("decoder", {"beam": "m:beam", "viterbi": "m:viterbi"}), "auto")


def test_built_in_names_are_taken_unloaded_and_others_are_refused_with_the_nearest() -> None:
    assert [TYPE.convert(name, None, None) for name in ("auto", "beam")] == ["auto", "beam"]
    with pytest.raises(click.BadParameter, match="no decoder 'viterbo'; did you mean viterbi"):
        TYPE.convert("viterbo", None, None)


def test_help_and_completion_show_the_names() -> None:
    option = click.Option(["--search"], type=TYPE)
    context = click.Context(click.Command("decode"))
    assert TYPE.get_metavar(option, context) == "[auto|beam|viterbi]"
    assert [item.value for item in TYPE.shell_complete(context, option, "b")] == ["beam"]
