"""Analyses finished designs and tables: reports, plots, explanations, campaigns, benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_farm.analysis.campaign import MEMBER_EXPLANATION as MEMBER_EXPLANATION
    from remy_farm.analysis.campaign import MEMBER_HEAD as MEMBER_HEAD
    from remy_farm.analysis.campaign import Member as Member
    from remy_farm.analysis.campaign import MemberRecord as MemberRecord
    from remy_farm.analysis.campaign import compare_member as compare_member
    from remy_farm.analysis.campaign import member_cells as member_cells
    from remy_farm.analysis.campaign import members_dict as members_dict
    from remy_farm.analysis.campaign import members_of as members_of
    from remy_farm.analysis.campaign import parse_sweep as parse_sweep
    from remy_farm.analysis.campaign_run import CAMPAIGN_HTML as CAMPAIGN_HTML
    from remy_farm.analysis.campaign_run import CAMPAIGN_JSON as CAMPAIGN_JSON
    from remy_farm.analysis.campaign_run import CAMPAIGN_PNG as CAMPAIGN_PNG
    from remy_farm.analysis.campaign_run import CampaignObserver as CampaignObserver
    from remy_farm.analysis.campaign_run import run_campaign as run_campaign
    from remy_farm.analysis.capture import MAX_PACKET_BYTES as MAX_PACKET_BYTES
    from remy_farm.analysis.capture import capture_of_simulation as capture_of_simulation
    from remy_farm.analysis.design_report import design_files as design_files
    from remy_farm.analysis.explain import Difference as Difference
    from remy_farm.analysis.explain import SignalStudy as SignalStudy
    from remy_farm.analysis.explained import action_of as action_of
    from remy_farm.analysis.explained import rule_after as rule_after
    from remy_farm.analysis.export import ExportError as ExportError
    from remy_farm.analysis.export import best_export as best_export
    from remy_farm.analysis.export import measure_loss as measure_loss
    from remy_farm.analysis.history import collect_history as collect_history
    from remy_farm.analysis.live_page import live_network_page as live_network_page
    from remy_farm.analysis.merging import Merging as Merging
    from remy_farm.analysis.merging import is_without_loss as is_without_loss
    from remy_farm.analysis.plots import plot_score as plot_score
    from remy_farm.analysis.recording import plot_recording as plot_recording
    from remy_farm.analysis.recording import recording_of_simulation as recording_of_simulation
    from remy_farm.analysis.recording import sender_points as sender_points
    from remy_farm.analysis.report import REPORT_FILES as REPORT_FILES
    from remy_farm.analysis.report import Gain as Gain
    from remy_farm.analysis.report import action_cells as action_cells
    from remy_farm.analysis.report import action_head as action_head
    from remy_farm.analysis.report import region_cells as region_cells
    from remy_farm.analysis.report import use_cell as use_cell
    from remy_farm.analysis.rows import FORMATS as FORMATS
    from remy_farm.analysis.rows import to_csv as to_csv
    from remy_farm.analysis.trees import ExplainError as ExplainError
    from remy_farm.analysis.trees import pacing_rate as pacing_rate
    from remy_farm.analysis.trees import pacing_rate_mbps as pacing_rate_mbps
    from remy_farm.analysis.trees import settled_window as settled_window
    from remy_farm.analysis.trees import settled_window_packets as settled_window_packets
    from remy_farm.analysis.wording import count as count
    from remy_farm.analysis.wording import duration as duration
    from remy_farm.analysis.wording import enum_name as enum_name
    from remy_farm.analysis.wording import estimate_fields as estimate_fields
    from remy_farm.analysis.wording import format_estimate as format_estimate
    from remy_farm.analysis.wording import number as number
    from remy_farm.analysis.wording import percentage as percentage
    from remy_farm.analysis.wording import plural as plural
    from remy_farm.analysis.wording import stall_sentence as stall_sentence
    from remy_farm.analysis.wording import stop_reason as stop_reason
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
