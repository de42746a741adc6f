"""Merges sibling rules whose merge costs no score, or less than a given price per rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from remy_farm.analysis.explain import NetworkSample, OnProgress, PairedScores, no_progress
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

# A loss of at most this many standard errors is not significant.
_STANDARD_ERRORS = 2.0


@dataclass(frozen=True, slots=True)
class WeighedRule:
    """An action, and the number of look-ups that used it."""

    action: Action
    uses: int


Path = tuple[int, ...]
"""Path from the root to a node: the index of the child at each level."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The evaluation of one inner node as a single rule."""

    rule: ReadableRule
    """The merged rule; `number` is its number in the table with this merge only."""
    rules: int
    """Number of rules that were merged."""
    difference: Estimate | None
    """Score with this merge only, minus the score before the round."""
    accepted: bool


@dataclass(frozen=True, slots=True)
class Merging:
    """The result of merging the rules of a table."""

    table: RuleTable
    """The table after all accepted merges."""
    merges: tuple[Merge, ...]
    """All merges that were evaluated, in the order in which they were considered."""
    scores: PairedScores
    """Scores of the original and the merged table, on the specimens of the search for merges."""
    fresh: PairedScores
    """Scores of both tables on fresh specimens, which have no selection bias."""


def merge_siblings(
    table: RuleTable,
    sample: NetworkSample,
    on_progress: OnProgress = no_progress,
    price: float | None = None,
) -> Merging:
    """Merges inner nodes whose children are all rules, as long as the table's score does not fall.

    A merged rule has the mean action of the rules, weighted by their use. In each round every such
    node is evaluated alone. Nodes that lose at most two standard errors are then merged one after
    another, the best first. A merge is kept if the table so far loses at most two standard errors
    against the original. A merge can make the parent a node whose children are all rules, so rounds
    follow until one has no new node. The start rule of scale-free rules has other units and is not
    merged.

    With a `price` per rule, in the objective's unit, a merge may lose the price of each rule that
    it saves: alone, and together with all merges before it.
    """
    scale = ActionScale((table.action(rule) for rule in range(table.rule_count)), table.rules)
    original = sample.trial(table)
    tree = map_leaves(
        tree_of(table), lambda rule: WeighedRule(table.action(rule), original.rule_uses[rule])
    )
    current = original
    merges: list[Merge] = []
    evaluated: set[Path] = set()
    rounds = 0

    def is_accepted(difference: Estimate | None, saved: int) -> bool:
        if price is None:
            return is_without_loss(difference)
        return difference is not None and -difference.mean <= price * saved

    while paths := [path for path in _mergeable_nodes(tree, table) if path not in evaluated]:
        rounds += 1
        evaluated.update(paths)
        alone: list[tuple[Path, Estimate | None]] = []
        saved = {path: _siblings(tree, path) - 1 for path in paths}
        for path in paths:
            on_progress(f"merges, round {rounds}", len(alone), len(paths))
            trial = sample.trial(_to_table(_merged(tree, path, scale), table))
            alone.append((path, sample.scores(current, trial).difference))
        tree_before = tree
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
            merges.append(_describe(tree_before, path, scale, table, difference, accepted))
    merged = _to_table(tree, table)
    fresh = sample.fresh()
    return Merging(
        table=merged,
        merges=tuple(merges),
        scores=sample.scores(original, current),
        fresh=fresh.scores(fresh.trial(table), fresh.trial(merged)),
    )


def is_without_loss(difference: Estimate | None) -> bool:
    """Tells whether a loss is at most two standard errors; without an error, whether it is zero."""
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
    number = [position for position, _ in rows].index(path)
    readable = readable_rules(_to_table(merged, table), [rule.uses for _, rule in rows])[number]
    return Merge(readable, _siblings(tree, path), difference, accepted)


def _siblings(tree: Tree[WeighedRule], path: Path) -> int:
    """Returns the number of rules directly below a node."""
    return sum(position[:-1] == path for position, _ in _rules(tree))


def _mergeable_nodes(tree: Tree[WeighedRule], like: RuleTable) -> list[Path]:
    """Returns the inner nodes whose children are all rules, and not the start rule."""
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
    """Returns the tree with the node at `path` merged into one rule."""
    if path and isinstance(tree, Branch):
        children = list(tree.children)
        children[path[0]] = _merged(children[path[0]], path[1:], scale)
        return Branch(tree.thresholds, tuple(children))
    rules = [rule for _, rule in _rules(tree)]
    uses = [rule.uses for rule in rules]
    return Leaf(WeighedRule(scale.mean([rule.action for rule in rules], uses), sum(uses)))


def _to_table(tree: Tree[WeighedRule], like: RuleTable) -> RuleTable:
    actions = map_leaves(tree, lambda rule: rule.action)
    return table_of(actions, like.signals, like.domain_upper, like.rules, like.path_model)


def _preference(difference: Estimate | None) -> float:
    return -difference.mean if difference else 0.0
