"""What must be true of a crash experiment: phases, events and their times, detection, cooldown, recovery.

A `recovery_request` event is written when a request has ended, with the statuses of all its tries. Callers are told
502 while the engine cools down, 503 with Retry-After while it loads, and 200 once, at last.
"""

from __future__ import annotations

import re
from typing import Any, Iterator, List, Optional, Tuple

from checking.rules.lifecycle_record import Record, differ, model_names
from checking.rules.lifecycle_shape import Fault, show

EVENTS = "/selected_lifecycle_events"


def _events(experiment: Record, name: str) -> List[Tuple[str, Any]]:
    """(JSON pointer, event) of the events of one name, in order."""
    listed = enumerate(experiment["selected_lifecycle_events"])
    return [("%s/%d" % (EVENTS, number), event) for number, event in listed if event["event"] == name]


def _when(experiment: Record, name: str) -> Optional[Any]:
    found = _events(experiment, name)
    return found[0][1]["seconds_after_crash"] if found else None


def crash_parties_are_models(experiment: Record) -> Iterator[Fault]:
    """The pinned healthy model and the victim are two different models of the experiment."""
    protocol, names = experiment["protocol"], model_names(experiment)
    for key in ("pinned_healthy_model", "victim_model"):
        if protocol[key] not in names:
            yield Fault("/protocol/" + key, show(protocol[key]), "a model of the experiment")
    if protocol["pinned_healthy_model"] == protocol["victim_model"]:
        yield Fault("/protocol/victim_model", show(protocol["victim_model"]), "another model than the healthy one")


def phases_are_as_requested(experiment: Record) -> Iterator[Fault]:
    """Before and after hold exactly the requested samples, during at least one and at most its limit."""
    protocol, counts = experiment["protocol"], experiment["measurements"]["phase_counts"]
    place = "/measurements/phase_counts/"
    yield from differ(place + "before", counts["before"], protocol["requested_before_samples"], "as requested")
    yield from differ(place + "after", counts["after"], protocol["requested_after_samples"], "as requested")
    limit = protocol["during_phase_sample_limit"]
    if not 1 <= counts["during"] <= limit:
        yield Fault(place + "during", show(counts["during"]), "from 1 to the limit of %d" % limit)


def phases_sum(experiment: Record) -> Iterator[Fault]:
    """The healthy requests are the sum of the phases."""
    measured = experiment["measurements"]
    counts = measured["phase_counts"]
    expected = counts["before"] + counts["during"] + counts["after"]
    found = measured["healthy_requests_total"]
    yield from differ("/measurements/healthy_requests_total", found, expected, "the sum of the phases")


def healthy_requests_succeed(experiment: Record) -> Iterator[Fault]:
    """The healthy model completed all of its requests."""
    measured = experiment["measurements"]
    found, total = measured["healthy_requests_successful"], measured["healthy_requests_total"]
    yield from differ("/measurements/healthy_requests_successful", found, total, "all of them")


def events_are_in_order(experiment: Record) -> Iterator[Fault]:
    """Crash first and at 0, then detection, recovery requests, recovered last; times never go back."""
    events = experiment["selected_lifecycle_events"]
    names = [event["event"] for event in events]
    place = EVENTS + "/0/seconds_after_crash"
    yield from differ(place, events[0]["seconds_after_crash"], 0, "the crash is the origin")
    rank = ["crash", "crash_detected", "recovery_request", "recovered"]
    if [rank.index(name) for name in names] != sorted(rank.index(name) for name in names):
        yield Fault(EVENTS, " ".join(names), "crash, crash_detected, recovery_request ..., recovered")
    for name in ("crash_detected", "recovery_request", "recovered"):
        if name not in names or (names.count(name) > 1 and name != "recovery_request"):
            yield Fault(EVENTS, "%d %s" % (names.count(name), name), "exactly one, of requests at least one")
    before = None
    for number, event in enumerate(events):
        now = event["seconds_after_crash"]
        if before is not None and now < before:
            yield Fault("%s/%d/seconds_after_crash" % (EVENTS, number), show(now), "at least %s" % before)
        if event["event"] == "crash_detected" and now <= 0:
            yield Fault("%s/%d/seconds_after_crash" % (EVENTS, number), show(now), "after the crash")
        before = now


def crashes_are_counted(experiment: Record) -> Iterator[Fault]:
    """As many crashes as crash events, one a run."""
    protocol = experiment["protocol"]
    expected = len(_events(experiment, "crash")) * protocol["recorded_completed_runs"]
    yield from differ("/protocol/crashes", protocol["crashes"], expected, "crash events x runs")


def markers_are_the_events(experiment: Record) -> Iterator[Fault]:
    """Detection and recovery are at the times of their events."""
    measured = experiment["measurements"]
    for key, name in (
        ("detection_after_crash_s", "crash_detected"),
        ("recovery_complete_marker_after_crash_s", "recovered"),
    ):
        expected = _when(experiment, name)
        yield from differ("/measurements/" + key, measured[key], expected, "the event %s" % name)


def recovery_is_in_time(experiment: Record) -> Iterator[Fault]:
    """Recovery took at most its time-out, which is at most the harness's deadline."""
    protocol = experiment["protocol"]
    found, limit = experiment["measurements"]["recovery_complete_marker_after_crash_s"], protocol["recovery_timeout_s"]
    if found > limit:
        yield Fault("/measurements/recovery_complete_marker_after_crash_s", show(found), "at most %s" % limit)
    if limit > protocol["harness_deadline_s"]:
        yield Fault(
            "/protocol/recovery_timeout_s", show(limit), "at most the deadline %s" % protocol["harness_deadline_s"]
        )


def deadline_holds_the_run(experiment: Record) -> Iterator[Fault]:
    """The pauses of the phases before and after and the window during the crash fit in the harness's deadline."""
    protocol, measured = experiment["protocol"], experiment["measurements"]
    pause, counts = protocol["pause_between_healthy_requests_s"], measured["phase_counts"]
    window = measured["during_phase_window_relative_to_crash_s"]
    least = pause * max(0, counts["before"] - 1) + pause * max(0, counts["after"] - 1) + window["last_response"]
    if least > protocol["harness_deadline_s"]:
        yield Fault("/protocol/harness_deadline_s", show(protocol["harness_deadline_s"]), "at least %s" % least)


def window_brackets_the_recovery(experiment: Record) -> Iterator[Fault]:
    """The healthy model was sampled from before the detection until after the recovery."""
    measured = experiment["measurements"]
    window, place = (
        measured["during_phase_window_relative_to_crash_s"],
        "/measurements/during_phase_window_relative_to_crash_s",
    )
    detected, recovered = measured["detection_after_crash_s"], measured["recovery_complete_marker_after_crash_s"]
    if window["first_request"] > detected:
        yield Fault(place + "/first_request", show(window["first_request"]), "at most the detection at %s" % detected)
    if window["last_response"] < recovered:
        yield Fault(place + "/last_response", show(window["last_response"]), "at least the recovery at %s" % recovered)


def window_holds_its_pauses(experiment: Record) -> Iterator[Fault]:
    """The requests during the crash, each a pause after the one before, fit in their window."""
    window = experiment["measurements"]["during_phase_window_relative_to_crash_s"]
    pauses = experiment["measurements"]["phase_counts"]["during"] - 1
    least = pauses * experiment["protocol"]["pause_between_healthy_requests_s"]
    found = window["last_response"] - window["first_request"]
    if found < least:
        place = "/protocol/pause_between_healthy_requests_s"
        yield Fault(place, "%d pauses in a window of %s s" % (pauses, found), "at least %s s" % least)


def statuses_tell_the_recovery(experiment: Record) -> Iterator[Fault]:
    """Callers see 502 (cooldown), then 503s (loading), then exactly one 200, which is the last; only requests have any."""
    seen: List[int] = []
    for number, event in enumerate(experiment["selected_lifecycle_events"]):
        place, statuses = "%s/%d/response_statuses" % (EVENTS, number), event["response_statuses"]
        if (event["event"] == "recovery_request") != bool(statuses):
            yield Fault(place, show(str(statuses)), "statuses of requests, and of nothing else")
        for at, status in enumerate(statuses):
            if status not in (200, 502, 503):
                yield Fault("%s/%d" % (place, at), show(status), "502, 503 or 200")
            elif status == 502 and 503 in seen:
                yield Fault("%s/%d" % (place, at), "502 after 503", "no second failure once it loads")
            elif status == 502 and at < len(statuses) - 1:
                yield Fault(
                    "%s/%d" % (place, at), "502 and another try", "502 as the last of its request, which ends there"
                )
            elif 200 in seen:
                yield Fault("%s/%d" % (place, at), "%d after 200" % status, "the 200 last")
            seen.append(status)
    if not seen or seen[0] != 502:
        yield Fault(EVENTS, "first status %s" % (seen[0] if seen else "none"), "502 of the cooldown")
    if seen and seen[-1] != 200:
        yield Fault(EVENTS, "last status %d" % seen[-1], "200")


def reloads_are_counted(experiment: Record) -> Iterator[Fault]:
    """As many reloads as the victim answered again after a crash: one a crash."""
    answered = sum(event["response_statuses"].count(200) for _, event in _events(experiment, "recovery_request"))
    found = experiment["measurements"]["successful_reloads"]
    yield from differ("/measurements/successful_reloads", found, answered, "answers of the victim after the crash")
    yield from differ("/measurements/successful_reloads", found, experiment["protocol"]["crashes"], "one a crash")


def cooldown_is_respected(experiment: Record) -> Iterator[Fault]:
    """Between the last 502 and the next answer of another kind lies the whole cooldown."""
    cooldown, failed = experiment["protocol"]["cooldown_s"], None
    for place, event in _events(experiment, "recovery_request"):
        others = [status for status in event["response_statuses"] if status != 502]
        if failed is not None and others and event["seconds_after_crash"] < failed + cooldown:
            found = show(event["seconds_after_crash"])
            yield Fault(place + "/seconds_after_crash", found, "at least %s + the cooldown %s" % (failed, cooldown))
        failed = event["seconds_after_crash"] if 502 in event["response_statuses"] else None if others else failed
    detected = _when(experiment, "crash_detected")
    first = _events(experiment, "recovery_request")
    if detected is not None and first:
        recovered = experiment["measurements"]["recovery_complete_marker_after_crash_s"]
        if recovered < detected + cooldown:
            yield Fault("/protocol/cooldown_s", show(cooldown), "at most recovery - detection")


def retries_take_their_time(experiment: Record) -> Iterator[Fault]:
    """A request that was told 503 n times waited Retry-After between its tries: they fit since the event before."""
    wait = experiment["protocol"].get("retry_after_s")
    if wait is None:
        said = [re.search(r"\bRetry-After: ([0-9]+)\b", text) for text in experiment.get("caller_behavior", [])]
        wait = next((int(match.group(1)) for match in said if match), 0)
    before = _when(experiment, "crash_detected") or 0
    for place, event in _events(experiment, "recovery_request"):
        least = max(0, len(event["response_statuses"]) - 1) * wait
        found = event["seconds_after_crash"] - before
        if found < least:
            yield Fault(
                place + "/response_statuses",
                "%d tries within %s s" % (len(event["response_statuses"]), found),
                "at least %s s" % least,
            )
        before = event["seconds_after_crash"]


def detection_precedes_the_error(experiment: Record) -> Iterator[Fault]:
    """The recovery marker follows the successful answer at once: within a second and never before it."""
    answered = [
        event["seconds_after_crash"]
        for _, event in _events(experiment, "recovery_request")
        if 200 in event["response_statuses"]
    ]
    recovered = experiment["measurements"]["recovery_complete_marker_after_crash_s"]
    for when in answered:
        if not when <= recovered <= when + 1:
            place = "/measurements/recovery_complete_marker_after_crash_s"
            yield Fault(place, show(recovered), "within a second after the answer at %s" % when)
