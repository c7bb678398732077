"""Declared stand-ins: printed on every page, counted by no identity, and passed on to no class."""

import pytest
from omegaconf import OmegaConf

from ner_experiments.config.compose import compose, resolved
from ner_experiments.config.identity import experiment
from ner_experiments.config.stand_ins import build_part, declared
from ner_experiments.experiment_data import source

VECTORS = "random character vectors in place of those of Li et al. (2018)"


def test_a_paper_names_what_it_has_in_place_of_something_else() -> None:
    assert declared(resolved(("paper=yang2020", "data=msra"))) == (VECTORS,)
    assert declared(resolved(("paper=yang2020_en", "data=conll2003"))) == ()
    (nadam,) = declared(resolved(("paper=li2020", "data=wnut17")))
    assert "schedule" in nadam
    of_ontonotes = declared(resolved(("paper=li2020", "data=ontonotes5")))
    assert nadam in of_ontonotes
    assert any("-LRB-" in text for text in of_ontonotes)
    assert declared(resolved(("paper=yang2020_bert", "data=msra"))) == ()


def test_a_run_with_another_bert_can_declare_it() -> None:
    other = ("words.input.path=tiny", "words.stand_in='a tiny BERT, in place of BERT-Base'")
    bert = ("paper=yang2020_bert", "data=msra", *other)
    assert declared(resolved(bert)) == ("a tiny BERT, in place of BERT-Base",)
    assert experiment(compose(bert)) == experiment(compose(bert[:2]))


def test_the_real_thing_takes_its_place() -> None:
    given = ("paper=yang2020", "data=msra", "words=vectors", "words.input.path=sgns.char")
    assert declared(resolved(given)) == ()
    assert declared(resolved(("paper=li2020", "data=wnut17", "optimizer=adam"))) == ()


def test_without_a_paper_nothing_is_a_stand_in() -> None:
    assert declared(resolved(("optimizer=nadam",))) == ()


@pytest.mark.parametrize("overrides", [["paper=li2020", "data=ontonotes5"], ["paper=yang2020", "data=msra"]])
def test_no_identity_counts_it(overrides: list[str]) -> None:
    cfg = compose(overrides)
    other = OmegaConf.create(OmegaConf.to_container(cfg, resolve=False))
    for part in (other.words, other.optimizer, other.data):
        part.pop("stand_in", None)
    assert experiment(cfg) == experiment(other)


def test_no_class_is_given_it() -> None:
    cfg = compose(["paper=li2020", "data=ontonotes5", "data_dir=corpora"])
    assert "corpora" in str(source(cfg).folder)  # type: ignore[attr-defined]
    assert build_part(cfg.optimizer).keywords["lr"] == cfg.optimizer.lr
