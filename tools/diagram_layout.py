"""Where the blocks of a diagram stand: in ranks from the input at the bottom to the tags at the top.

A layered layout (Sugiyama, Tagawa & Toda 1981). A block's rank is the longest way to it from the input. An
arrow that passes ranks has a place in each of them, a bend, and so runs around blocks and not through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from diagram_blocks import Block

GAP, RISE, MARGIN = 22.0, 24.0, 8.0
"""Between neighbours, between ranks, and around it all, in pixels."""
LINE, LETTER = 15.0, 7.0
CHANNEL = 10.0
"""The width that is kept free for an arrow that passes."""
SWEEPS = 40


@dataclass(eq=False)
class Node:
    """A block, or where an arrow passes a rank (`block` is None). `x` and `y` are its middle."""

    block: Block | None
    rank: int
    width: float = CHANNEL
    height: float = 0.0
    below: list[Node] = field(default_factory=list, repr=False)
    above: list[Node] = field(default_factory=list, repr=False)
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True)
class Layout:
    nodes: list[Node]
    """Of the blocks, in their order."""
    arrows: list[list[Node]]
    """From a block to the one that reads it, by way of the bends between them."""
    width: float
    height: float


def arrange(blocks: Sequence[Block]) -> Layout:
    nodes: list[Node] = []
    arrows: list[list[Node]] = []
    for block in blocks:
        read = [nodes[place] for place in block.reads]
        rank = 1 + max((node.rank for node in read), default=-1)
        nodes.append(Node(block, rank, *size(block, read)))
        arrows += [route(node, nodes[-1]) for node in read]
    bends = [bend for arrow in arrows for bend in arrow[1:-1]]
    ranks: list[list[Node]] = [[] for _ in range(1 + max(node.rank for node in nodes))]
    for node in [*nodes, *bends]:
        ranks[node.rank].append(node)
    untangle(ranks)
    place(ranks)
    straighten(ranks, arrows)
    widen(nodes[0])
    width, height = frame(ranks)
    return Layout(nodes, arrows, width, height)


def size(block: Block, reads: Sequence[Node]) -> tuple[float, float]:
    """Joins are as wide as what they join."""
    lines = block.label.split("\n")
    if block.kind == "sum" and block.label == "+":
        return 24.0, 24.0
    width = LETTER * max(map(len, lines)) + 18
    if block.kind == "join":
        width = max(width, sum(node.width for node in reads) + GAP * (len(reads) - 1))
    return width, LINE * len(lines) + 11


def route(start: Node, end: Node) -> list[Node]:
    arrow = [start, *(Node(None, rank) for rank in range(start.rank + 1, end.rank)), end]
    for lower, upper in pairwise(arrow):
        lower.above.append(upper)
        upper.below.append(lower)
    return arrow


def untangle(ranks: list[list[Node]]) -> None:
    """Sorts each rank by where its neighbours stand, if fewer arrows cross then; bends start at the right."""
    best, fewest = [[*rank] for rank in ranks], crossings(ranks)
    for sweep in range(SWEEPS):
        upwards = sweep % 2 == 0
        for rank in ranks[1:] if upwards else ranks[-2::-1]:
            at = {id(node): place for row in ranks for place, node in enumerate(row)}
            beside = {id(node): node.below if upwards else node.above for node in rank}
            rank.sort(key=lambda node: mean([at[id(each)] for each in beside[id(node)]], at[id(node)]))
        if (now := crossings(ranks)) < fewest:
            best, fewest = [[*rank] for rank in ranks], now
    for rank, order in zip(ranks, best, strict=True):
        rank[:] = order


def mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def crossings(ranks: list[list[Node]]) -> int:
    number = 0
    for lower, upper in pairwise(ranks):
        at = {id(node): place for place, node in enumerate(upper)}
        ends = [at[id(node)] for start in lower for node in sorted(start.above, key=lambda n: at[id(n)])]
        starts = [place for place, start in enumerate(lower) for _ in start.above]
        number += sum(
            starts[i] < starts[j] and ends[i] > ends[j] for i in range(len(ends)) for j in range(i, len(ends))
        )
    return number


def place(ranks: list[list[Node]]) -> None:
    """Each block over the middle of those beside it; blocks outweigh bends."""
    for rank in ranks:
        spread(rank, [0.0 for _ in rank])
    for _ in range(SWEEPS):
        for rank in [*ranks, *reversed(ranks)]:
            spread(rank, [between(node) for node in rank])


def between(node: Node) -> float:
    """The middle of its neighbours; the fewer others a neighbour has on that side, the more it counts."""
    weights = {each: len(each.above) ** -4 for each in node.below} | {
        each: len(each.below) ** -4 for each in node.above
    }
    if any(each.block for each in weights):
        weights = {each: weight for each, weight in weights.items() if each.block}
    total = sum(weights.values())
    return sum(each.x * weight for each, weight in weights.items()) / total if total else node.x


def spread(rank: list[Node], wanted: Sequence[float]) -> None:
    """As near to what is wanted as order and gaps allow, by least squares (pool adjacent violators)."""
    offsets = [0.0]
    for left, right in pairwise(rank):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + GAP)
    pools: list[tuple[float, float, int]] = []
    for node, x, offset in zip(rank, wanted, offsets, strict=True):
        pool = (x - offset, 1e4 if node.block else 1.0, 1)
        while pools and pools[-1][0] > pool[0]:
            middle, weight, number = pools.pop()
            total = weight + pool[1]
            pool = ((middle * weight + pool[0] * pool[1]) / total, total, number + pool[2])
        pools.append(pool)
    shifts = [middle for middle, _, number in pools for _ in range(number)]
    for node, shift, offset in zip(rank, shifts, offsets, strict=True):
        node.x = shift + offset


def straighten(ranks: list[list[Node]], arrows: list[list[Node]]) -> None:
    """The bends of an arrow stand one above the other, as far out as the outermost of them."""
    for arrow in arrows:
        if bends := arrow[1:-1]:
            middle = mean([arrow[0].x, arrow[-1].x], 0)
            outermost = max((bend.x for bend in bends), key=lambda x: abs(x - middle))
            for bend in bends:
                bend.x = outermost
    for rank in ranks:
        spread(rank, [node.x for node in rank])


def widen(first: Node) -> None:
    """What is read by many is as wide as they stand; alone in its rank, it has the room."""
    if first.above:
        places = [node.x for node in first.above]
        first.width = max(first.width, max(places) - min(places) + 2 * GAP)


def frame(ranks: list[list[Node]]) -> tuple[float, float]:
    """Gives every rank its height, the last one on top, and moves all to the margin; the picture's size."""
    y = MARGIN
    for rank in reversed(ranks):
        tall = max(node.height for node in rank)
        for node in rank:
            node.y = y + tall / 2
            node.height = node.height if node.block else tall
        y += tall + RISE
    every = [node for rank in ranks for node in rank]
    left = min(node.x - node.width / 2 for node in every)
    for node in every:
        node.x += MARGIN - left
    return max(node.x + node.width / 2 for node in every) + MARGIN, y - RISE + MARGIN
