"""Campaigns: one specification with some of its settings varied, a design for each combination."""

from remy_services.campaign.comparison import Comparison, compare_member
from remy_services.campaign.members import Member, members_of
from remy_services.campaign.record import CampaignRecord, MemberRecord
from remy_services.campaign.sweep import Sweep, parse_sweep

__all__ = [
    "CampaignRecord",
    "Comparison",
    "Member",
    "MemberRecord",
    "Sweep",
    "compare_member",
    "members_of",
    "parse_sweep",
]
