"""Studies of published papers as data: simulated networks, published values and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_laboratory.studies.attack import Attack as Attack
    from remy_laboratory.studies.attack import AttackEffort as AttackEffort
    from remy_laboratory.studies.attack import AttackResult as AttackResult
    from remy_laboratory.studies.attack import AttackSpace as AttackSpace
    from remy_laboratory.studies.attack import add_attack_networks as add_attack_networks
    from remy_laboratory.studies.attack import attack_yaml as attack_yaml
    from remy_laboratory.studies.attack import read_attack_file as read_attack_file
    from remy_laboratory.studies.cells import CellBatch as CellBatch
    from remy_laboratory.studies.cells import CellRunner as CellRunner
    from remy_laboratory.studies.cells import CellStore as CellStore
    from remy_laboratory.studies.certification import certify_entrant as certify_entrant
    from remy_laboratory.studies.draws import Draws as Draws
    from remy_laboratory.studies.draws import Half as Half
    from remy_laboratory.studies.league import Entrant as Entrant
    from remy_laboratory.studies.league import LeagueSet as LeagueSet
    from remy_laboratory.studies.league import SetResult as SetResult
    from remy_laboratory.studies.league import league_csv as league_csv
    from remy_laboratory.studies.league import league_page as league_page
    from remy_laboratory.studies.league import network_files as network_files
    from remy_laboratory.studies.league import plan_set as plan_set
    from remy_laboratory.studies.league import plot_set as plot_set
    from remy_laboratory.studies.league import read_set as read_set
    from remy_laboratory.studies.league import run_set as run_set
    from remy_laboratory.studies.league import simulate_command as simulate_command
    from remy_laboratory.studies.networks import reference_folder as reference_folder
    from remy_laboratory.studies.ns3 import Ns3 as Ns3
    from remy_laboratory.studies.page import counts_sentence as counts_sentence
    from remy_laboratory.studies.page import data_digest as data_digest
    from remy_laboratory.studies.page import html_page as html_page
    from remy_laboratory.studies.page import markdown_page as markdown_page
    from remy_laboratory.studies.page import verdict_sentence as verdict_sentence
    from remy_laboratory.studies.page import write_figure as write_figure
    from remy_laboratory.studies.pictures import figure_files as figure_files
    from remy_laboratory.studies.reproduction import figure_dict as figure_dict
    from remy_laboratory.studies.robustness import Certificate as Certificate
    from remy_laboratory.studies.robustness import certificate_dict as certificate_dict
    from remy_laboratory.studies.robustness import certificate_files as certificate_files
    from remy_laboratory.studies.robustness import certify as certify
    from remy_laboratory.studies.robustness import quantity_name as quantity_name
    from remy_laboratory.studies.robustness import read_requirements as read_requirements
    from remy_laboratory.studies.robustness import value_text as value_text
    from remy_laboratory.studies.standings import League as League
    from remy_laboratory.studies.standings import LeagueRun as LeagueRun
    from remy_laboratory.studies.standings import parse_entrant as parse_entrant
    from remy_laboratory.studies.standings import read_sets as read_sets
    from remy_laboratory.studies.standings import rivals as rivals
    from remy_laboratory.studies.study import FigureStudy as FigureStudy
    from remy_laboratory.studies.study import find_studies as find_studies
    from remy_laboratory.studies.study import read_study as read_study
    from remy_laboratory.studies.verdicts import FigureResult as FigureResult
    from remy_laboratory.studies.verdicts import measure_figure as measure_figure
    from remy_laboratory.studies.verdicts import plan_figure as plan_figure
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
