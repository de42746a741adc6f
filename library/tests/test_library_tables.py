"""Tests specifications and tables: files, rows, explanations, plots and conversions."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

import remy_farm as rf
from library.tests.library_examples import NETWORK, joint_spec, small_table

_VOID = {"br", "hr", "img", "input", "link", "meta"}


class _TagBalance(HTMLParser):
    """Checks that HTML elements are closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.mismatched: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.mismatched.append(tag)


def is_well_formed(text: str) -> bool:
    balance = _TagBalance(text)
    return bool(balance.tags) and not balance.open and not balance.mismatched


def test_a_specification_round_trips_through_a_dictionary_and_a_file(tmp_path: Path) -> None:
    spec = joint_spec()
    spec.save(tmp_path / "spec.yaml")
    assert rf.load_spec(tmp_path / "spec.yaml") == spec
    assert rf.Spec(spec.to_dict()) == spec
    assert rf.load_spec(tmp_path / "spec.yaml").digest == spec.digest


def test_replace_changes_only_the_given_setting() -> None:
    spec = joint_spec()
    changed = spec.replace({"objective.delta": 0.1}, name="other")
    assert (changed.name, changed.to_dict()["objective"]["delta"]) == ("other", 0.1)
    assert spec.to_dict()["objective"]["delta"] == 1
    assert changed.replace({"objective.delta": 1}, name="small") == spec


def test_all_mistakes_of_a_specification_are_reported() -> None:
    network = {**NETWORK, "rtt_ms": -1, "sendrs": 3}
    with pytest.raises(rf.SpecError) as caught:
        rf.Spec(name="x", network=network)
    assert {each.path for each in caught.value.violations} >= {"network.rtt_ms", "network.sendrs"}
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_reported_with_one_sentence() -> None:
    for load in (rf.load_spec, rf.load_table, rf.load_network, rf.load_scores, rf.load_run):
        with pytest.raises(rf.FileError, match=r"none\.json: cannot be read \(no such file"):
            load("none.json")


@pytest.mark.parametrize("suffix", [".json", ".dna"])
def test_a_saved_table_loads_unchanged(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tiny{suffix}"
    small_table().save(path)
    loaded = rf.load_table(path)
    assert loaded == small_table()
    assert (loaded.name, loaded.digest) == ("tiny", small_table().digest)


def test_an_installed_table_is_loaded_by_name() -> None:
    assert "generalist" in rf.shipped_tables()
    table = rf.load_table("generalist")
    assert table.name == "generalist"
    assert table.kind == "scale_free"


def test_a_table_has_a_row_per_rule_and_units_in_its_columns() -> None:
    frame = small_table().to_pandas()
    assert len(frame) == 8
    first = frame.iloc[0]
    assert (first["send_ewma_ms_below"], first["rec_ewma_ms_below"]) == (2.0, 3.0)
    assert first["rtt_ratio_below"] == 1.25
    assert (first["window_multiple"], first["window_increment_packets"]) == (0.9, 4.0)
    assert first["intersend_ms"] == 1.5
    assert frame["send_ewma_ms_from"].isna().sum() == 4
    assert frame["intersend_ratio"].isna().all()
    assert small_table().to_arrow().column_names == [*frame.columns]


def test_rules_are_explained_in_sentences() -> None:
    assert small_table().explain().splitlines()[1] == (
        "Rule 1: where send_ewma is at least 2 ms and rec_ewma is below 3 ms and rtt_ratio is "
        "below 1.25, set the window to 0.9 of itself plus 4 packets and send packets at least "
        "1.5 ms apart."
    )


def test_an_explanation_with_networks_has_the_use_of_each_rule() -> None:
    explanation = rf.explain(small_table(), joint_spec(), networks=2)
    shares = explanation.to_pandas()["use_share"]
    assert shares.sum() == pytest.approx(1)
    assert "% of look-ups" in repr(explanation).splitlines()[0]
    used = [rule.use_share or 0 for rule in explanation.table.rules]
    most = used.index(max(used))
    assert repr(explanation).startswith(f"Rule {most} ")


def test_signal_worth_needs_a_specification_and_has_a_row_per_signal() -> None:
    with pytest.raises(rf.SpecError, match="spec is missing"):
        rf.explain(small_table()).signal_worth()
    worth = rf.explain(small_table(), joint_spec(), networks=2).signal_worth().to_pandas()
    assert {*worth["signal"]} == {"send_ewma", "rec_ewma", "rtt_ratio"}
    assert "difference_mean" in worth


def test_rules_with_equal_actions_are_merged() -> None:
    merged = rf.explain(small_table(), joint_spec(), networks=2).merged_table()
    assert len(merged) == 1
    assert merged.rules[0].window_increment == 4.0


def test_a_table_has_no_difference_from_itself() -> None:
    difference = rf.explain(small_table()).difference(small_table())
    assert difference.to_dict()["regions_changed"] == 0
    assert len(difference.rows()) == 0


def test_the_html_of_a_table_has_its_rules_and_the_live_network() -> None:
    html = rf.Table(small_table().remycc, "<tiny & co>")._repr_html_()
    assert is_well_formed(html)
    assert "&lt;tiny &amp; co&gt;" in html
    assert html.count("<li>") == 8
    assert "<iframe " in html
    assert is_well_formed(joint_spec()._repr_html_())


def test_a_table_is_plotted_in_the_format_of_the_file_name(tmp_path: Path) -> None:
    picture = small_table().plot()
    picture.save(tmp_path / "rules.png")
    picture.save(tmp_path / "rules.svg")
    assert (tmp_path / "rules.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "rules.svg").read_text()
    with pytest.raises(rf.FileError, match=r"rules\.doc must be a name that ends in .*\.png"):
        picture.save(tmp_path / "rules.doc")


def test_the_text_of_rows_is_truncated_with_a_count() -> None:
    rows = rf.load_table("generalist").rows()
    lines = repr(rows).splitlines()
    assert lines[0].split()[:2] == ["rule", "send_ratio_from"]
    assert len(lines) == 22
    assert lines[-1] == f"... and {len(rows) - 20} more"
    assert is_well_formed(rows._repr_html_())
    assert len(repr(small_table().rows()).splitlines()) == 9


def test_rows_are_saved_in_the_format_of_the_file_name(tmp_path: Path) -> None:
    rows = small_table().rows()
    rows.save(tmp_path / "rules.csv")
    assert (tmp_path / "rules.csv").read_text().startswith("rule,send_ewma_ms_from,")
    rows.save(tmp_path / "rules.parquet")
    with pytest.raises(rf.FileError, match=r"ends in \.csv, \.json, \.parquet"):
        rows.save(tmp_path / "rules.txt")


def test_a_scale_free_table_is_converted_to_absolute_with_its_loss(tmp_path: Path) -> None:
    scale_free = rf.load_table("generalist").without_path_model()
    spec = rf.Spec(
        name="small",
        network={
            "rate_mbps": {"uniform": [10, 12]},
            "rtt_ms": 100,
            "senders": 2,
            "traffic": {"exponential_time": {"mean_ms": 1000}, "mean_off_ms": 1000},
        },
        search={"simulated_seconds": 1},
    )
    exported = scale_free.absolute(spec, cells=1, networks=4)
    assert exported.table.kind == "absolute"
    exported.table.save(tmp_path / "table.dna")
    assert len(rf.load_table(tmp_path / "table.dna")) == len(exported.table)
    frame = exported.to_pandas()
    assert list(frame["table"]) == ["scale-free", "exported"]
    assert list(frame["rules"]) == [len(scale_free), len(exported.table)]
    assert exported.loss.difference is not None
    difference = frame["score_mean"][1] - frame["score_mean"][0]
    assert exported.loss.difference.mean == pytest.approx(difference)
    assert "the score changed by" in repr(exported)
    with pytest.raises(ValueError, match="its rules are already absolute"):
        exported.table.absolute(spec)
