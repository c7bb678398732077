"""The diagrams against the papers: where directions meet, what is summed, and what stands on top."""

from diagram_models import MODELS, below, blocks, kinds, plain, tool


def test_baselines_directions_never_meet_below_the_output() -> None:
    ahead, back = [("ahead", (0,)), ("ahead", (1,))], [("back", (0,)), ("back", (2,))]
    assert plain("baseline") == [
        ("input", ()),
        ahead[0],
        back[0],
        ahead[1],
        back[1],
        ("join", (3, 4)),
        ("dense", (5,)),
        ("decoder", (6,)),
    ]


def test_each_direction_of_cross_reads_both_of_the_layer_below() -> None:
    layers = [
        ("ahead", (0,)),
        ("back", (0,)),
        ("join", (1, 2)),
        ("ahead", (3,)),
        ("back", (3,)),
        ("join", (4, 5)),
    ]
    assert plain("cross") == [("input", ()), *layers, ("dense", (6,)), ("decoder", (7,))]


def test_attentions_heads_read_h_and_the_scores_read_h_beside_them() -> None:
    heads = kinds("attention", "head")
    assert len(heads) == 5
    (h,) = {read for head in heads for read in blocks("attention")[head].reads}
    assert blocks("attention")[heads[-1] + 1].reads == (h, *heads)
    below_h = [kind for kind, _ in plain("attention")[: len(plain("baseline")) - 2]]
    assert below_h == [kind for kind, _ in plain("baseline")[:-2]]


def shortcuts(name: str) -> list[tuple[int, int]]:
    """Of each sum, which outputs of layers it adds up, counted from 1; of a sum in a sum, all."""
    found = plain(name)
    layers = [number for number, (kind, _) in enumerate(found) if kind == "join"]

    def held(number: int) -> tuple[int, ...]:
        kind, reads = found[number]
        return (layers.index(number) + 1,) if kind == "join" else sum((held(read) for read in reads), ())

    return [held(number) for number, (kind, _) in enumerate(found) if kind == "sum"]


def test_the_residual_sum_carries_the_layer_before_and_never_more() -> None:
    """Yang & Xu (2020), eq. 7 and 3; C is the same without dense, norm and ReLU; A adds up all layers."""
    assert shortcuts("residual") == shortcuts("residual_c") == [(1, 2), (2, 3)]
    assert shortcuts("residual_a") == [(1, 2), (1, 2, 3)]
    assert shortcuts("stacked") == []


def test_the_block_of_residual_is_dense_norm_relu_dropout_bilstm() -> None:
    first_sum = kinds("residual", "sum")[0]
    block = [blocks("residual")[number] for number in range(first_sum + 1, first_sum + 8)]
    parts = ["dense", "norm", "activation", "dropout", "ahead", "back", "join"]
    assert [each.kind for each in block] == parts
    assert not kinds("residual_c", "norm", "activation", "dropout")


def test_type_b_adds_before_the_layer_and_its_top_is_in_no_sum() -> None:
    assert shortcuts("residual_b") == [(1, 2)]
    (added,) = kinds("residual_b", "sum")
    assert [blocks("residual_b")[number].kind for number in readers("residual_b", added)] == ["ahead", "back"]
    assert [blocks("residual_b")[-3].kind, blocks("residual_a")[-3].kind] == ["join", "sum"]


def readers(name: str, number: int) -> list[int]:
    return [reader for reader, block in enumerate(blocks(name)) if number in block.reads]


def test_type_d_is_type_c_in_each_direction_by_itself() -> None:
    (top,) = kinds("residual_d", "join")
    ahead, back = blocks("residual_d")[top].reads
    assert {blocks("residual_d")[n].kind for n in below("residual_d", ahead)} == {"input", "ahead", "sum"}
    assert {blocks("residual_d")[n].kind for n in below("residual_d", back)} == {"input", "back", "sum"}
    for direction, kind in ((ahead, "ahead"), (back, "back")):
        layers = [n for n in sorted(below("residual_d", direction)) if blocks("residual_d")[n].kind == kind]
        sums = [
            n
            for n in sorted({*below("residual_d", direction), direction})
            if blocks("residual_d")[n].kind == "sum"
        ]
        assert [blocks("residual_d")[n].reads for n in sums] == [
            (layers[0], layers[1]),
            (layers[1], layers[2]),
        ]


def test_parallel_has_k_units_that_read_the_input_alone() -> None:
    units = tool("diagrams").SMALL["num_units"]
    pairs = [("ahead", (0,)), ("back", (0,))]
    expected = [part for k in range(units) for part in [*pairs, ("join", (3 * k + 1, 3 * k + 2))]]
    ends = tuple(3 * k + 3 for k in range(units))
    top = [("join", ends), ("dense", (3 * units + 1,)), ("decoder", (3 * units + 2,))]
    assert plain("parallel") == [("input", ()), *expected, *top]


def test_on_top_stands_the_decoder_of_the_paper() -> None:
    tops = {name: blocks(name)[-1].label for name in MODELS}
    softmax = {"attention", "baseline", "cross", "parallel"}
    assert tops == {name: "softmax" if name in softmax else "CRF" for name in MODELS}
