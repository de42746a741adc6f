"""The farm's page works in a browser, with a real coordinator and its designs.

Designs wait for workers unless a test starts one, so that nothing is simulated needlessly.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.programs import REMY_FARM, ROOT
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.remycc import RemyCC, write_remycc
from remy_farm.specification import parse_spec, to_yaml
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_rpc.settings import parse_listen_address
from remy_services.coordinator.access import Role
from remy_services.stores.archive import seal_archive, unseal_archive
from remy_simulator import RuleTable
from services.tests.coordinator.role_tokens import TOKENS, tokens_file
from services.tests.coordinator.running_server import Client, RunningServer, settings_for
from services.tests.coordinator.test_evaluations import small_request, submit_evaluation
from services.tests.stores.certificates import make_certificates
from tests.children import killed_with_parent
from tests.live.pages import PICTURES, needs_chromium, throughput, violations
from tests.observability.local_worker import LocalWorker
from tests.waiting import wait_until

BUILT = ROOT / "services/src/remy_services/web/page"
MOST_PAGE_BYTES = 500_000  # compressed
DEADLINE_MS = 60_000
ENDLESS = small_joint_spec(
    steps=1_000_000,
    steps_per_epoch=10,
    simulated_seconds=10,
    edition=2,
    signals="send_ratio, rtt_ratio",
)
DROP = """text => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], "ten.json"));
  const event = new DragEvent("drop", { dataTransfer: transfer, bubbles: true });
  document.querySelector("main").dispatchEvent(event);
}"""
EPOCHS_SHOWN = 6
#: At the end no worker completes the current steps of designs.
WITHOUT_WORKERS = {"evaluator": "workers", "grace_seconds": 1.0}
HOSTILE = "<img src=x onerror=alert(1)>"

Work = Callable[[], LocalWorker]

pytestmark = needs_chromium
expect.set_options(timeout=DEADLINE_MS)


class PageServer:
    """`remy-farm ui` in a process."""

    def __init__(self, coordinator: str, *flags: str, **environment: str) -> None:
        command = [REMY_FARM, "ui", "--coordinator", coordinator, "--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            killed_with_parent(*command, "--no-browser", *flags),
            stdout=subprocess.PIPE,
            text=True,
            env=environment or None,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert "The farm's page is at" in line
        self.address = line.split()[-1]
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])

    def line(self) -> str:
        """Returns the next line that the process prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        self._process.terminate()
        code = self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def ask(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, Any]:
        """Sends a request and returns the response's status, headers and content."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        content = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, content, named)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        try:
            return response.status, response.headers, json.loads(data)
        except ValueError:
            return response.status, response.headers, data.decode()

    def sign_in(self, role: Role) -> dict[str, str]:
        """Signs in and returns the headers of the session."""
        status, headers, answer = self.ask("POST", "/api/session", {"token": TOKENS[role]})
        assert (status, answer["role"]) == (200, role)
        return {"Cookie": headers["Set-Cookie"].split(";")[0], "X_CSRF_Token": answer["csrf"]}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("farm")
    settings = settings_for(folder, tokens_file=tokens_file(folder), **WITHOUT_WORKERS)
    with RunningServer(settings) as server:
        yield server


@pytest.fixture(scope="module")
def work(farm: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Returns a context manager within which the farm has a worker."""
    folder = tmp_path_factory.mktemp("worker")
    token = folder / "token"
    token.write_text(TOKENS[Role.WORKER], encoding="ascii")
    return lambda: LocalWorker(farm.address, folder / "worker.log", f"--token-file={token}")


@pytest.fixture
def worker(work: Work) -> Iterator[None]:
    with work():
        yield


@pytest.fixture(scope="module")
def admin(farm: RunningServer) -> Client:
    return Client(farm.channel(), TOKENS[Role.ADMIN])


@pytest.fixture(scope="module")
def server(farm: RunningServer) -> Iterator[PageServer]:
    server = PageServer(farm.address)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def running(admin: Client, work: Work) -> Iterator[job_pb2.Job]:
    """An unfinished job of the administrator, with a few epochs."""
    job = admin.submit(ENDLESS, name="endless")
    with work():
        job = admin.until(job.id, lambda shown: shown.progress.epoch >= 2)
    yield job
    admin.call("CancelJob", messages.CancelJobRequest(job=job.id))


class Farm:
    """The page of a signed-in user, with the errors that it has caused."""

    def __init__(self, browser: Browser, address: str, token: str = "", **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(DEADLINE_MS)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.on(
            "console",
            # The console also reports responses with an error status.
            lambda line: (
                self.wrong.append(line.text)
                if line.type == "error" and "Failed to load resource" not in line.text
                else None
            ),
        )
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        if token:
            self.page.get_by_label("Your token").fill(token)
            self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Jobs")).to_be_visible()

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def close(self) -> None:
        assert self.wrong == []
        self.context.close()


@pytest.fixture
def seen(browser: Browser, server: PageServer, request: pytest.FixtureRequest) -> Iterator[Farm]:
    """The page of an administrator, or of the role that the test's mark names."""
    role = getattr(request, "param", Role.ADMIN)
    seen = Farm(browser, server.address, TOKENS[role])
    yield seen
    seen.close()


def shown_state(seen: Farm) -> Any:
    return seen.page.locator("header.job .state")


@pytest.mark.usefixtures("worker")
def test_design_is_submitted_watched_paused_and_forked(seen: Farm, admin: Client) -> None:
    page = seen.page
    page.get_by_role("link", name="Submit").click()
    page.get_by_label("Specification (YAML)").fill(to_yaml(ENDLESS))
    page.get_by_label("Name").fill("watched")
    seen.button("Submit").click()
    expect(page.get_by_role("heading", name="watched", exact=True)).to_be_visible()
    job = page.locator("header.job code").inner_text()
    # The curve is updated without a reload.
    step = "document.querySelector('.figures dd') && [...document.querySelectorAll('.figures div')]"
    step += ".find(each => each.firstChild.textContent === 'step').lastChild.textContent"
    page.wait_for_function(f"() => parseInt({step}) > 3")
    before = page.evaluate(step)
    page.wait_for_function(f"before => parseInt({step}) > parseInt(before) + 3", arg=before)
    expect(page.locator(".curve canvas")).to_be_visible()
    expect(page.locator(".short tbody tr").nth(1)).to_be_visible()
    seen.button("Pause").click()
    expect(shown_state(seen)).to_have_text("paused")
    assert admin.get(job).state == job_pb2.JOB_STATE_PAUSED
    seen.button("Extend or priority").click()
    page.get_by_label("Priority").fill("7")
    seen.button("Change it").click()
    expect(page.locator(".notice")).to_contain_text("watched is paused")
    assert admin.get(job).priority == 7
    seen.button("Fork").click()
    page.get_by_label("Begins with").select_option("0")
    page.get_by_label("Name").fill("forked")
    page.get_by_label("Settings that differ").fill("objective.delta=0.25\n")
    seen.button("Fork it").click()
    expect(page.get_by_role("heading", name="forked", exact=True)).to_be_visible()
    fork = admin.get(page.locator("header.job code").inner_text())
    assert (fork.fork.job_id, fork.fork.epoch, fork.spec.objective.delta) == (job, 0, 0.25)
    seen.button("Cancel").click()
    seen.button("End it").click()
    expect(shown_state(seen)).to_have_text("cancelled")
    page.go_back()
    seen.button("Resume").click()
    expect(shown_state(seen)).to_have_text("running")
    admin.call("CancelJob", messages.CancelJobRequest(job=job))
    expect(shown_state(seen)).to_have_text("cancelled")


def test_specification_is_checked_like_remy_farm_validate(seen: Farm, tmp_path: Path) -> None:
    text = f"name: '{HOSTILE}'\nnetwork: {{rtt_ms: -5, rate_mbps: 10, senders: 2}}\n"
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    page = seen.page
    page.get_by_role("link", name="Submit").click()
    page.get_by_label("Specification (YAML)").fill(text)
    seen.button("Check").click()
    page.wait_for_selector("#problems li")
    shown = page.locator("#problems li").all_inner_texts()
    printed = subprocess.run(
        [REMY_FARM, "validate", path], capture_output=True, text=True, check=False
    ).stderr.splitlines()
    assert [f"remy-farm: {path}: {each}" for each in shown] == printed
    assert any(HOSTILE in each for each in shown)
    page.get_by_label("Specification (YAML)").fill(to_yaml(ENDLESS))
    seen.button("Check").click()
    expect(page.locator("#problems")).to_contain_text("would accept it")
    page.get_by_label("Search the reference").fill("rtt_ms")
    expect(page.locator(".reference code").first).to_have_text("rtt_ms")


def test_table_of_any_epoch_is_played(seen: Farm, running: job_pb2.Job, tmp_path: Path) -> None:
    page = seen.page
    page.get_by_role("link", name="endless").first.click()
    page.get_by_role("link", name="Play epoch 1", exact=True).click()
    network = page.frame_locator("iframe")
    expect(network.get_by_label("Sender A runs")).to_have_value("table:endless, epoch 1")
    frame = page.frames[-1]
    frame.wait_for_function(throughput(0))
    table_file = tmp_path / "ten.json"
    write_remycc(table_file, RemyCC(RuleTable([0], [([], (0, 10, 0.1))])))
    frame.evaluate(DROP, table_file.read_text(encoding="utf-8"))
    expect(network.get_by_label("Sender A runs")).to_have_value("table:ten")
    frame.wait_for_function(throughput(0))


def test_changes_between_epochs_are_shown(seen: Farm, running: job_pb2.Job) -> None:
    page = seen.page
    page.goto(page.url + f"jobs/{running.id}")
    page.get_by_label("From epoch").select_option("0")
    page.get_by_label("To epoch").select_option("1")
    expect(page.locator("figure canvas")).to_have_count(2)
    expect(page.locator("summary", has_text="changed")).to_be_visible()


def test_jobs_are_compared(seen: Farm, admin: Client, running: job_pb2.Job) -> None:
    other = admin.submit(replace_delta(0.5), name="other", priority=-5)
    for name in ("endless", "other"):
        seen.page.get_by_label(f"Compare {name}").first.check()
    seen.button("Compare 2").click()
    row = seen.page.locator("tr", has=seen.page.get_by_text("objective.delta"))
    expect(row.locator("td")).to_have_text(["1", "0.5"])
    admin.call("CancelJob", messages.CancelJobRequest(job=other.id))


def replace_delta(delta: float) -> Any:
    spec = type(ENDLESS)()
    spec.CopyFrom(ENDLESS)
    spec.objective.delta = delta
    return spec


@pytest.fixture
def hostile(admin: Client, running: job_pb2.Job) -> Iterator[job_pb2.Job]:
    """A job whose name has HTML, which this version refuses but an older one may have accepted."""
    parts = admin.call("ExportJob", messages.ExportJobRequest(job=running.id))
    archive = unseal_archive(b"".join(each.part for each in parts))
    archive.record.job.id = "0123456789abcdef01"
    archive.record.job.name = archive.record.job.owner = HOSTILE
    request = messages.ImportJobRequest(part=seal_archive(archive))
    job = admin.stub.ImportJob(iter([request]), metadata=admin.metadata, timeout=60).job
    yield job
    admin.call("DeleteJob", messages.DeleteJobRequest(job=job.id))


def test_html_in_a_name_is_escaped(seen: Farm, hostile: job_pb2.Job, running: job_pb2.Job) -> None:
    """All pages with the name are visited; a script in it would cause an error."""
    page = seen.page
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", name=HOSTILE, exact=True)).to_be_visible()
    expect(page.locator("figure canvas").first).to_be_visible()
    assert HOSTILE in page.title()
    page.get_by_role("link", name="Play its table").click()
    network = page.frame_locator("iframe")
    expect(network.get_by_label("Sender A runs")).to_have_value(f"table:{HOSTILE}")
    assert [frame.locator("img").count() for frame in page.frames] == [0, 0]
    page.goto(f"{page.url.split('jobs')[0]}compare?job={hostile.id}&job={running.id}")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    assert page.locator("img").count() == 0


def test_throughput_and_delay_of_epochs_are_shown(seen: Farm, running: job_pb2.Job) -> None:
    page = seen.page
    page.goto(f"{page.url}jobs/{running.id}")
    points = page.locator("svg.pareto circle")
    expect(points.nth(1)).to_be_attached()
    expect(page.locator("svg.pareto")).to_have_attribute("aria-label", re.compile("On the front: "))


@pytest.mark.usefixtures("worker")
def test_evaluation_job_has_no_controls_of_designs(seen: Farm, admin: Client) -> None:
    requests = [small_request(run) for run in (0, 2)]
    job = submit_evaluation(admin, requests, name="cells-of-a-study")
    page = seen.page
    # An evaluation job cannot be compared.
    row = page.locator(f"tr[data-job='{job.id}']")
    expect(row).to_contain_text("admin-1 · evaluation")
    expect(row.get_by_role("checkbox")).to_have_count(0)
    page.goto(f"{page.url}jobs/{job.id}")
    expect(shown_state(seen)).to_have_text("succeeded")
    expect(page.locator("dl.figures div", has_text="parts")).to_contain_text("2, 100 % done")
    expect(seen.button("Priority")).to_be_visible()
    for heading in ("Score", "Epochs", "Throughput and delay", "Tables", "Specification"):
        expect(page.get_by_role("heading", name=heading)).to_have_count(0)
    for name in ("Fork", "Extend or priority"):
        expect(seen.button(name)).to_have_count(0)
    expect(page.get_by_role("link", name="Play its table")).to_have_count(0)
    seen.button("Priority").click()
    expect(page.get_by_label("Epochs in all")).to_have_count(0)
    page.get_by_role("spinbutton", name="Priority").fill("3")
    seen.button("Change it").click()
    wait_until(lambda: admin.get(job.id).priority == 3)


def test_workers_table_is_shown(browser: Browser, tmp_path: Path) -> None:
    """The data comes from the workers' streams to the coordinator."""
    with RunningServer(settings_for(tmp_path, **WITHOUT_WORKERS)) as farm:
        job = farm.client().submit(ENDLESS, name="worked-on")
        server = PageServer(farm.address)
        try:
            with LocalWorker(farm.address, tmp_path / "worker.log"):
                seen = Farm(browser, server.address)
                seen.page.get_by_role("link", name="worked-on").click()
                # The keyboard is used, because arriving epochs move the elements under a pointer.
                seen.page.get_by_text("What its workers say").press("Enter")
                expect(seen.page.locator(".lines li").first).to_contain_text("info: connected")
                seen.close()
                command = (REMY_FARM, "logs", job.id, "--coordinator", farm.address)
                printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            assert f"info: connected coordinator={farm.address}" in printed
        finally:
            server.stop()


def test_pages_of_studies_are_shown_without_running_scripts(
    browser: Browser, farm: RunningServer, tmp_path: Path
) -> None:
    folder = tmp_path / "my-league"
    folder.mkdir()
    page = "<h1>Who wins</h1><img src=x onerror=alert(1)><script>alert(2)</script>"
    (folder / "index.html").write_text(page, encoding="utf-8")
    server = PageServer(farm.address, "--studies", str(folder))
    try:
        assert server.ask("GET", "/studied/my-league")[0] == 401
        seen = Farm(browser, server.address, TOKENS[Role.VIEWER])
        seen.page.get_by_role("link", name="Studies").click()
        shown = seen.page.frame_locator("iframe")
        expect(shown.get_by_role("heading", name="Who wins")).to_be_visible()
        assert not {"1", "2"} & set(seen.wrong)
        # The console reports what the content security policy blocks.
        seen.wrong.clear()
        seen.close()
        headers = server.sign_in(Role.VIEWER)
        assert server.ask("GET", "/studied/other", **headers)[0] == 404
    finally:
        server.stop()


@pytest.mark.parametrize("seen", [Role.VIEWER, Role.SUBMITTER], indirect=True)
def test_forbidden_actions_have_no_buttons(seen: Farm, running: job_pb2.Job, request: Any) -> None:
    """A submitter may only fork the jobs of others."""
    page = seen.page
    page.get_by_role("link", name="endless").first.click()
    expect(page.locator(".short tbody tr").first).to_be_visible()
    is_submitter = "submitter" in request.node.name
    for name in ("Pause", "Cancel", "Extend or priority"):
        expect(seen.button(name)).to_have_count(0)
    expect(seen.button("Fork")).to_have_count(int(is_submitter))
    expect(page.get_by_role("link", name="Submit")).to_have_count(int(is_submitter))


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER])
def test_forbidden_requests_are_refused(
    server: PageServer, running: job_pb2.Job, role: Role
) -> None:
    headers = server.sign_in(role)
    status, _, answer = server.ask("POST", f"/api/jobs/{running.id}/pause", {}, **headers)
    assert status == 403
    assert answer["error"]


def test_cross_site_requests_are_refused(server: PageServer, running: job_pb2.Job) -> None:
    headers = server.sign_in(Role.ADMIN)
    path = f"/api/jobs/{running.id}/pause"
    without = {name: value for name, value in headers.items() if name == "Cookie"}
    assert server.ask("POST", path, {})[0] == 401
    assert server.ask("POST", path, {}, **without)[0] == 403
    assert server.ask("POST", path, {}, **{**headers, "X_CSRF_Token": "guessed"})[0] == 403
    assert server.ask("POST", path, {}, **headers, Origin="http://example.org")[0] == 403
    assert server.ask("POST", path, {}, **headers, Sec_Fetch_Site="cross-site")[0] == 403
    assert server.ask("GET", "/", Host="example.org")[0] == 421
    assert server.ask("POST", "/api/session", {"token": "guessed"})[0] == 401
    assert server.ask("POST", "/api/session", {"token": "x" * (2 << 20)})[0] == 413
    assert server.ask("DELETE", "/api/session", **headers)[0] == 200
    assert server.ask("GET", f"/api/jobs/{running.id}", **headers)[0] == 401


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/api/compare?job=one", "1 jobs were given; 2 to 16 are allowed"),
        ("/live", "0 tables were given; 1 to 16 are allowed"),
        ("/live?" + "&".join(["table=one"] * 17), "17 tables were given; 1 to 16 are allowed"),
    ],
)
def test_too_many_compared_jobs_are_refused(server: PageServer, path: str, why: str) -> None:
    status, _, answer = server.ask("GET", path, **server.sign_in(Role.VIEWER))
    assert (status, answer) == (400, {"error": why})


def test_responses_have_security_headers(server: PageServer) -> None:
    _, headers, _ = server.ask("POST", "/api/session", {"token": TOKENS[Role.VIEWER]})
    attributes = {each.strip().lower() for each in headers["Set-Cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    _, headers, _ = server.ask("GET", "/")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_token_is_stored_only_in_memory(seen: Farm) -> None:
    token = TOKENS[Role.ADMIN]
    seen.page.get_by_role("link", name="Submit").click()
    kept = seen.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert token not in kept + seen.page.content() + "".join(seen.asked)
    assert all(token not in str(cookie) for cookie in seen.context.cookies())
    assert seen.page.evaluate("document.cookie") == ""
    outside = [url for url in seen.asked if not url.startswith(("http://127.0.0.1", "data:"))]
    assert outside == []


def test_session_cookie_is_sent_only_over_tls(
    browser: Browser, farm: RunningServer, tmp_path: Path
) -> None:
    made = make_certificates(tmp_path)
    files = ("--page-cert", str(made.certificate), "--page-key", str(made.key))
    server = PageServer(farm.address, *files)
    try:
        assert server.address.startswith("https://")
        seen = Farm(browser, server.address, TOKENS[Role.VIEWER], ignore_https_errors=True)
        (cookie,) = seen.context.cookies()
        assert cookie["name"].startswith("__Host-")
        assert cookie["secure"]
        found = seen.context.request.get(server.address)
        assert "max-age" in found.headers["strict-transport-security"]
        seen.close()
        # Kubernetes replaces files in this way while the server runs.
        make_certificates(tmp_path)
        renewed = made.certificate.read_text(encoding="ascii")
        wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", server.port)) == renewed)
    finally:
        server.stop()


def test_page_is_small() -> None:
    weight = sum(
        len(gzip.compress((BUILT / name).read_bytes()))
        for name in ("farm.html", "farm.js", "farm.css")
    )
    assert weight <= MOST_PAGE_BYTES


def test_own_token_is_used_with_a_sign_in_code(browser: Browser, farm: RunningServer) -> None:
    server = PageServer(farm.address, REMY_FARM_TOKEN=TOKENS[Role.SUBMITTER], HOME="/nowhere")
    try:
        line = server.line()
        code = line.split()[-1]
        assert TOKENS[Role.SUBMITTER] not in line
        seen = Farm(browser, server.address, code)
        expect(seen.page.locator(".who")).to_contain_text("submitter-1")
        seen.close()
    finally:
        server.stop()


def test_page_includes_its_first_data(seen: Farm, running: job_pb2.Job) -> None:
    """Requests for the data fail in this test, so that it must come with the page."""
    page = seen.page
    page.route("**/api/**", lambda route: route.abort())
    row = page.locator(f"tr[data-job='{running.id}']")

    def shown() -> bool:
        # The included data may be older than the job, or not be ready in time.
        page.goto(page.url)
        expect(page.locator(".who")).to_contain_text("admin-1")
        return row.count() > 0

    wait_until(shown, "a page with its jobs")
    expect(row).to_contain_text("endless")
    expect(page.locator(".who")).to_contain_text("admin-1")
    expect(page.locator(".trouble")).to_contain_text("cannot be reached")
    page.unroute("**/api/**")
    # The included data does not replace later data.
    expect(page.locator(".trouble")).to_have_count(0)
    seen.button("Sign out").click()
    expect(page.get_by_label("Your token")).to_be_visible()


def included_data(page: str) -> Any:
    """Returns the data that a page includes."""
    (text,) = re.findall(r'<script type="application/json" id="first">(.*?)</script>', page)
    return json.loads(text)


def page_with_jobs(server: PageServer) -> tuple[Any, Any] | None:
    """Returns a page's headers and included data; None if the jobs were not ready in time."""
    _, headers, page = server.ask("GET", "/", Sec_Fetch_Dest="document")
    found = included_data(page)
    return (headers, found) if found and found["jobs"] else None


def test_no_sign_in_without_tokens(server: PageServer, tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, **WITHOUT_WORKERS)) as farm:
        farm.client().submit(ENDLESS, name="first")
        open_to_all = PageServer(farm.address)
        headers, found = wait_until(lambda: page_with_jobs(open_to_all), "a page with its jobs")
        assert [row["name"] for row in found["jobs"]["rows"]] == ["first"]
        cookie = headers["Set-Cookie"].split(";")[0]
        status, _, answer = open_to_all.ask("GET", "/api/session", Cookie=cookie)
        assert (status, answer["csrf"]) == (200, found["session"]["csrf"])
        # A request that is not for a page starts no session.
        _, headers, page = open_to_all.ask("GET", "/")
        assert (headers["Set-Cookie"], included_data(page)) == (None, None)
    for asked in (open_to_all, server):
        # An absent coordinator, and one that requires a token.
        _, headers, page = asked.ask("GET", "/", Sec_Fetch_Dest="document")
        assert (headers["Set-Cookie"], included_data(page)) == (None, None)
    assert open_to_all.stop() == 0


def test_browsers_cache_files_by_versioned_urls(server: PageServer) -> None:
    _, headers, page = server.ask("GET", "/")
    assert headers["Cache-Control"] == "no-store"
    named = re.findall(r'"(/assets/[^"]+)"', page)
    assert len(named) == 2
    for path in named:
        assert "immutable" in server.ask("GET", path)[1]["Cache-Control"]
        assert server.ask("GET", path.partition("?")[0])[1]["Cache-Control"] == "no-store"


def test_phone_shows_the_state_of_each_job(
    browser: Browser, server: PageServer, running: job_pb2.Job
) -> None:
    size = {"width": 375, "height": 700}
    seen = Farm(browser, server.address, TOKENS[Role.VIEWER], viewport=size)
    row = seen.page.locator(f"tr[data-job='{running.id}']")
    for cell in (row.get_by_role("link"), row.locator(".state"), row.locator("td").nth(3)):
        expect(cell).to_be_in_viewport(ratio=1)
    scrolled = "each => each.scrollWidth - each.clientWidth"
    assert seen.page.locator(".table-scroll").evaluate(scrolled) == 0
    seen.close()


def test_newest_of_many_jobs_are_shown_first(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, **WITHOUT_WORKERS)) as farm:
        client = farm.client()
        for number in range(105):
            client.submit(ENDLESS, name=f"job-{number}")
        server = PageServer(farm.address)
        try:
            _, headers, _ = server.ask("POST", "/api/session", {"token": ""})
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            cookie = headers["Set-Cookie"].split(";")[0]
            connection.request("GET", "/api/updates", headers={"Cookie": cookie})
            response = connection.getresponse()
            events: list[dict[str, Any]] = []
            while len(events) < 2:
                line = response.readline().decode()
                if line.startswith("data: "):
                    events.append(json.loads(line.removeprefix("data: ")))
            connection.close()
        finally:
            server.stop()
    newest, everything = events
    assert (newest["kind"], newest["more"], len(newest["rows"])) == ("jobs", True, 60)
    assert newest["rows"][0]["name"] == "job-104"
    assert everything["kind"] == "jobs"
    assert "more" not in everything
    assert len(everything["rows"]) == 105


def test_page_waits_for_a_restarting_coordinator(browser: Browser, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, **WITHOUT_WORKERS)
    with RunningServer(settings) as first:
        address = first.address
        job = first.client().submit(ENDLESS, name="survivor")
        server = PageServer(address)
        # Neither the coordinator nor the page requires a token.
        seen = Farm(browser, server.address)
        page = seen.page
        page.get_by_role("link", name="survivor").click()
        expect(shown_state(seen)).to_have_text("running")
    try:
        expect(page.locator(".trouble")).to_contain_text("cannot be reached")
        seen.button("Pause").click()
        expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        with RunningServer(replace(settings, listen=parse_listen_address(address))) as second:
            expect(page.locator(".trouble")).to_have_count(0)
            expect(shown_state(seen)).to_have_text("running")
            seen.button("Pause").click()
            expect(shown_state(seen)).to_have_text("paused")
            assert second.client().get(job.id).state == job_pb2.JOB_STATE_PAUSED
        seen.close()
    finally:
        server.stop()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (375, "light")])
def test_page_has_no_accessibility_violations(
    browser: Browser, server: PageServer, running: job_pb2.Job, width: int, scheme: Any
) -> None:
    seen = Farm(
        browser,
        server.address,
        TOKENS[Role.ADMIN],
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    page = seen.page
    for path, sign in (
        ("", "tbody tr[data-job]"),
        (f"jobs/{running.id}", "figure canvas"),
        ("submit", ".reference article"),
    ):
        page.goto(server.address + path)
        page.wait_for_selector(sign)
        assert violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    seen.button("Sign out").click()
    page.wait_for_selector("input[type=password]")
    assert violations(page) == []
    seen.close()


@pytest.mark.skipif(PICTURES is None, reason="REMY_PICTURES names no folder for pictures")
def test_pictures(browser: Browser, tmp_path: Path) -> None:
    """The farm designs examples/demo.yaml with several objectives."""
    assert PICTURES is not None
    text = (ROOT / "examples/demo.yaml").read_text(encoding="utf-8")
    with RunningServer(settings_for(tmp_path, threads=2)) as farm:
        client = farm.client()

        def submit(name: str, steps: int, *, delta: float = 1) -> str:
            spec = parse_spec(text)
            spec.objective.delta = delta
            spec.search.joint.steps = steps
            return client.submit(spec, name=name, campaign="demo").id

        over = [submit("throughput", 45, delta=0.1), submit("delay", 60, delta=10)]
        job = submit("demo", 420)
        wait_until(lambda: client.get(job).progress.epoch >= EPOCHS_SHOWN, seconds=3600)
        wait_until(
            lambda: all(client.get(each).HasField("end_time") for each in over), seconds=3600
        )
        submit("demo-once-more", 420)
        server = PageServer(farm.address)
        seen = Farm(browser, server.address, viewport={"width": 1300, "height": 860})
        page = seen.page
        page.set_viewport_size({"width": 1300, "height": 1280})
        page.goto(f"{server.address}jobs/{job}")
        page.wait_for_selector("figure canvas")
        page.wait_for_timeout(5_000)
        page.screenshot(path=Path(PICTURES) / "ui-job.png")
        page.set_viewport_size({"width": 1300, "height": 860})
        page.goto(server.address)
        page.wait_for_selector("svg.spark")
        page.wait_for_timeout(5_000)
        page.screenshot(
            path=Path(PICTURES) / "ui-jobs.png", clip={"x": 0, "y": 0, "width": 1300, "height": 370}
        )
        page.goto(f"{server.address}compare?" + "&".join(f"job={each}" for each in (*over, job)))
        page.wait_for_selector("svg.pareto circle")
        page.wait_for_timeout(3_000)
        page.screenshot(path=Path(PICTURES) / "ui-compare.png", full_page=True)
        page.goto(f"{server.address}submit")
        page.wait_for_selector(".reference article")
        page.get_by_label("Specification (YAML)").fill(text.replace("delta: 1", "delta: -1"))
        seen.button("Check").click()
        page.wait_for_selector("#problems li")
        page.screenshot(path=Path(PICTURES) / "ui-submit.png")
        seen.close()
        server.stop()
