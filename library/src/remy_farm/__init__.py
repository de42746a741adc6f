"""remy-farm, the library: design, score and simulate congestion control.

    import remy_farm as rf

    spec = rf.load_spec("examples/general-purpose-delta1.yaml")
    result = rf.design(spec, seconds=60)
    scores = rf.evaluate([result.table, "cubic", "bbr"], spec, networks=128)
    network = rf.Network(rate_mbps=15, rtt_ms=150, senders=[result.table, "cubic"])
    run = rf.simulate(network, seconds=60)

The names below are documented in docs/reference/library.md. The packages (`remy_farm.designer` and
others) may be imported, too; docs/explanation/architecture.md says what each promises. A name is
imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_farm.api.designing import Design as Design
    from remy_farm.api.designing import Progress as Progress
    from remy_farm.api.designing import design as design
    from remy_farm.api.designing import load_design as load_design
    from remy_farm.api.explaining import Explained as Explained
    from remy_farm.api.explaining import Explanation as Explanation
    from remy_farm.api.explaining import explain as explain
    from remy_farm.api.scoring import Scores as Scores
    from remy_farm.api.scoring import evaluate as evaluate
    from remy_farm.api.scoring import load_scores as load_scores
    from remy_farm.api.showing import Plot as Plot
    from remy_farm.api.showing import Rows as Rows
    from remy_farm.api.simulating import Network as Network
    from remy_farm.api.simulating import Run as Run
    from remy_farm.api.simulating import load_network as load_network
    from remy_farm.api.simulating import load_run as load_run
    from remy_farm.api.simulating import simulate as simulate
    from remy_farm.api.spec import Spec as Spec
    from remy_farm.api.spec import load_spec as load_spec
    from remy_farm.api.sweeping import Sweep as Sweep
    from remy_farm.api.sweeping import load_sweep as load_sweep
    from remy_farm.api.sweeping import sweep as sweep
    from remy_farm.api.table import Table as Table
    from remy_farm.api.table import load_table as load_table
    from remy_farm.designer import DesignerError as DesignerError
    from remy_farm.files import FileError as FileError
    from remy_farm.shipped import shipped_tables as shipped_tables
    from remy_farm.specification import SpecError as SpecError
    from remy_laboratory.kernel.bench import check_on_kernel as check_on_kernel
    from remy_laboratory.kernel.bench import measure_on_kernel as measure_on_kernel
    from remy_laboratory.kernel.bench import verify_on_kernel as verify_on_kernel
    from remy_laboratory.kernel.exporting import export as export
    from remy_laboratory.studies.certification import certify_table as certify_table
    from remy_laboratory.studies.counterexamples import attack as attack
    from remy_laboratory.studies.reproduction import Reproduction as Reproduction
    from remy_laboratory.studies.reproduction import reproduce as reproduce
    from remy_laboratory.studies.standings import League as League
    from remy_laboratory.studies.standings import league as league
    from remy_services.client.jobs import Client as Client
    from remy_services.client.jobs import Job as Job
    from remy_services.client.status import ServiceError as ServiceError
    from remy_simulator import InvalidRequest as InvalidRequest
else:
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        __file__,
        {
            "remy_laboratory": "remy-farm[laboratory]",
            "remy_services": "remy-farm[service]",
        },
    )
