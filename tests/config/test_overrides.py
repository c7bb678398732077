"""Overrides that `compose` accepts and refuses, and its messages."""

import pytest

from ner_experiments.config.compose import compose


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        (["data=conll", "data.comments=null"], "data.comments"),
        (["data=msra", "data.empty_tag=null"], "data.empty_tag"),
    ],
)
def test_null_is_accepted_where_the_parameter_may_be_none(overrides: list[str], key: str) -> None:
    part, _, name = key.partition(".")
    assert compose(overrides)[part][name] is None


@pytest.mark.parametrize("key", ["data.encoding", "data.tag_style", "seed"])
def test_null_is_refused_elsewhere(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} must be .*, got null"):
        compose(["data=conll", f"{key}=null"])
