from remy_services.analysis.report import action_cells, region_cells, use_cell
from remy_services.remycc import readable_rules
from remy_simulator import RuleTable


def test_regions_name_only_the_ends_they_have() -> None:
    table = RuleTable([0, 2], [([], (0.5, -3.0, 0.25))]).split(0, [(0, 2.0)]).split(1, [(0, 7.0)])
    cells = [region_cells(rule, table.domain_upper) for rule in readable_rules(table)]
    assert cells == [["< 2", "any"], ["2 .. 7", "any"], [">= 7", "any"]]
    assert action_cells(readable_rules(table)[0]) == ("0.5", "-3", "0.25")


def test_use_is_a_share_of_all_uses() -> None:
    table = RuleTable([0], [([], (1.0, 1.0, 1.0))]).split(0, [(0, 2.0)])
    assert [use_cell(rule) for rule in readable_rules(table, [3, 1])] == ["75 %", "25 %"]
    assert [use_cell(rule) for rule in readable_rules(table, [3, 0])] == ["100 %", "0"]
    assert [use_cell(rule) for rule in readable_rules(table)] == ["-", "-"]


def test_thresholds_next_to_1_can_be_told_from_it() -> None:
    thresholds = (1 - 2.5e-11, 1.0, 1 + 9.3e-10, 1.00001)
    table = RuleTable([2], [([], (1.0, 1.0, 1.0))])
    for number, threshold in enumerate(thresholds):
        table = table.split(number, [(2, threshold)])
    cells = [cell for (cell,) in (region_cells(r, 163840.0) for r in readable_rules(table))]
    assert cells == [
        "< 1 - 2.5e-11",
        "1 - 2.5e-11 .. 1",
        "1 .. 1 + 9.3e-10",
        "1 + 9.3e-10 .. 1.00001",
        ">= 1.00001",
    ]
