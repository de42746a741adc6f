"""Sibling rules that can be merged without loss, or are not worth their price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remy_farm.analysis.explain import NetworkSample, OnProgress, PairedScores, unheard
from remy_farm.analysis.trees import (
    ActionScale,
    Branch,
    Leaf,
    Tree,
    map_leaves,
    table_of,
    tree_of,
)
from remy_farm.evaluation.measures import Estimate
from remy_farm.remycc import ReadableRule, readable_rules, start_rule
from remy_simulator import RuleTable
from remy_simulator.messages import Action

# A loss of fewer standard errors may be chance.
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class WeighedRule:
    """An action and how often it was used."""

    action: Action
    uses: int


Path = tuple[int, ...]
"""The way from the root to a node: the numbers of the children."""


@dataclass(frozen=True, slots=True)
class Merge:
    """One inner node tried as a single rule."""

    rule: ReadableRule
    """What the node's rules became; `number` is that in the table with this merge alone."""
    rules: int
    """How many rules it took the place of."""
    difference: Estimate | None
    """Score with this merge alone minus score without, on top of what earlier rounds merged."""
    accepted: bool


@dataclass(frozen=True, slots=True)
class Merging:
    """A table, and the same with all accepted merges."""

    table: RuleTable
    merges: tuple[Merge, ...]
    """All that were tried, in the order in which they were weighed."""
    scores: PairedScores
    """Of the original table and the merged one, on the specimens that merges were chosen on."""
    fresh: PairedScores
    """The same on specimens that nothing was chosen on."""


def merge_siblings(
    table: RuleTable,
    sample: NetworkSample,
    on_progress: OnProgress = unheard,
    price: float | None = None,
) -> Merging:
    """Merges inner nodes whose children are all rules, while the table loses nothing by it.

    A merged rule has the mean action of the rules, weighted by their use. In each round every such
    node is tried alone. Then, from the best on, those that lose less than two standard errors alone
    are applied one upon the other, and stay if the table so far loses less than two standard errors
    against the original. Rounds follow until none merges anything, because merged rules may make
    their parent one whose children are all rules. The rule with which scale-free rules begin has no
    siblings: it is in other units.

    With a `price`, in the objective's unit, a rule is kept only if it is worth that much: a merge
    may lose the price of each rule that it saves, alone, and with all before it.
    """
    scale = ActionScale((table.action(rule) for rule in range(table.rule_count)), table.rules)
    original = sample.trial(table)
    tree = map_leaves(
        tree_of(table), lambda rule: WeighedRule(table.action(rule), original.rule_uses[rule])
    )
    current = original
    merges: list[Merge] = []
    tried: set[Path] = set()
    rounds = 0

    def is_accepted(difference: Estimate | None, saved: int) -> bool:
        if price is None:
            return is_without_loss(difference)
        return difference is not None and -difference.mean <= price * saved

    while paths := [path for path in _families(tree, table) if path not in tried]:
        rounds += 1
        tried.update(paths)
        alone: list[tuple[Path, Estimate | None]] = []
        saved = {path: _siblings(tree, path) - 1 for path in paths}
        for path in paths:
            on_progress(f"merges, round {rounds}", len(alone), len(paths))
            trial = sample.trial(_to_table(_merged(tree, path, scale), table))
            alone.append((path, sample.scores(current, trial).difference))
        begin = tree
        ranked = sorted(alone, key=lambda one: _preference(one[1]) - (price or 0.0) * saved[one[0]])
        for number, (path, difference) in enumerate(ranked):
            on_progress(f"merges, round {rounds}, together", number, len(ranked))
            accepted = False
            if is_accepted(difference, saved[path]):
                candidate = _merged(tree, path, scale)
                trial = sample.trial(_to_table(candidate, table))
                accepted = is_accepted(
                    sample.scores(original, trial).difference,
                    table.rule_count - sum(1 for _ in _rules(candidate)),
                )
                if accepted:
                    tree, current = candidate, trial
            merges.append(_describe(begin, path, scale, table, difference, accepted))
    merged = _to_table(tree, table)
    fresh = sample.fresh()
    return Merging(
        table=merged,
        merges=tuple(merges),
        scores=sample.scores(original, current),
        fresh=fresh.scores(fresh.trial(table), fresh.trial(merged)),
    )


def is_without_loss(difference: Estimate | None) -> bool:
    """Whether the loss is at most two standard errors; of one specimen, whether there is none."""
    if difference is None:
        return False
    return -difference.mean <= _STANDARD_ERRORS * (difference.standard_error or 0.0)


def _describe(
    tree: Tree[WeighedRule],
    path: Path,
    scale: ActionScale,
    table: RuleTable,
    difference: Estimate | None,
    accepted: bool,
) -> Merge:
    merged = _merged(tree, path, scale)
    rows = list(_rules(merged))
    number = [place for place, _ in rows].index(path)
    readable = readable_rules(_to_table(merged, table), [rule.uses for _, rule in rows])[number]
    return Merge(readable, _siblings(tree, path), difference, accepted)


def _siblings(tree: Tree[WeighedRule], path: Path) -> int:
    """How many rules are right below a node."""
    return sum(place[:-1] == path for place, _ in _rules(tree))


def _families(tree: Tree[WeighedRule], like: RuleTable) -> list[Path]:
    """The inner nodes whose children are all rules, none of them that of a start."""
    start = start_rule(_to_table(tree, like))
    parents = [] if start is None else [[path for path, _ in _rules(tree)][start][:-1]]
    return [path for path in _parents_of_rules(tree) if path not in parents]


def _parents_of_rules(tree: Tree[WeighedRule], path: Path = ()) -> Iterator[Path]:
    if isinstance(tree, Leaf):
        return
    if all(isinstance(child, Leaf) for child in tree.children):
        yield path
    for number, child in enumerate(tree.children):
        yield from _parents_of_rules(child, (*path, number))


def _rules(tree: Tree[WeighedRule], path: Path = ()) -> Iterator[tuple[Path, WeighedRule]]:
    if isinstance(tree, Leaf):
        yield path, tree.value
        return
    for number, child in enumerate(tree.children):
        yield from _rules(child, (*path, number))


def _merged(tree: Tree[WeighedRule], path: Path, scale: ActionScale) -> Tree[WeighedRule]:
    """The tree with the node at `path` made one rule."""
    if path and isinstance(tree, Branch):
        children = list(tree.children)
        children[path[0]] = _merged(children[path[0]], path[1:], scale)
        return Branch(tree.thresholds, tuple(children))
    rules = [rule for _, rule in _rules(tree)]
    uses = [rule.uses for rule in rules]
    return Leaf(WeighedRule(scale.mean([rule.action for rule in rules], uses), sum(uses)))


def _to_table(tree: Tree[WeighedRule], like: RuleTable) -> RuleTable:
    actions = map_leaves(tree, lambda rule: rule.action)
    return table_of(actions, like.signals, like.domain_upper, like.rules)


def _preference(difference: Estimate | None) -> float:
    return -difference.mean if difference else 0.0
