"""Systems by the arguments of a command line."""

from pathlib import Path

import pytest

from ner_experiments import compare
from ner_experiments.comparison.systems import are_files


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("a=pred.conll", True),
        ("a=pred.conll b=typo.conll", True),
        ("a-1.0=pred-*.conll", True),
        ("a=conll2003", True),  # a folder of BRAT
        ("layers output_dir=conll2003", False),
        ("model=residual layers=2,3 output_dir=conll2003", False),
        ("data=conll2003 model=residual layers=2,3", False),
        ("words.input.path=pred.conll model=residual layers=2,3", False),
    ],
)
def test_overrides_that_name_files_are_no_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, expected: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pred.conll").touch()
    Path("pred-1.conll").touch()
    Path("conll2003").mkdir()
    assert are_files(arguments.split()) is expected


def test_files_in_python_are_by_system_and_may_be_patterns(tmp_path: Path) -> None:
    for name in ("gold", "seed-2", "seed-10"):
        (tmp_path / f"{name}.conll").write_text("anna B-PER\n")
    found = compare(tmp_path / "gold.conll", {"a": f"{tmp_path}/seed-*.conll", "b": tmp_path / "gold.conll"})
    assert [*found.page.results[0].runs] == [2, 10]
    assert repr(found).startswith(
        "<Comparison: 2 systems on gold.conll. By F1 over 1 to 2 seeds, the order of "
    )
    with pytest.raises(ValueError, match="expected the files of each system by its name"):
        compare(tmp_path / "gold.conll", [tmp_path / "gold.conll"])  # type: ignore[arg-type]
