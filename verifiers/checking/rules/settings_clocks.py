"""The rows of a comparison's table in which times, memory and builds are held to what tells them a second time."""

from __future__ import annotations

from functools import partial

from checking.later import Later
from checking.rules import clocks, memory
from checking.rules.row import lie, row

clocks_lies, memory_lies = map(Later, ("checking.rules.clocks_lies", "checking.rules.memory_lies"))
forgery = Later("checking.rules.forgery")

CHECKS = (
    row(
        "snapshot-figures",
        "figures of snapshots agree: one size a device, no less in use than its engine holds",
        memory.hold_figures,
        lie("tell less memory in use than the engine holds", memory_lies.hold_less, decide=True),
        lie("let a device grow between snapshots", memory_lies.grow),
        lie("explain why a figure is missing that is there", memory_lies.explain),
    ),
    row(
        "slot-pace",
        "eight requests are open as long as there are offers",
        clocks.hold_pace,
        lie("halve the slowest exchange of a candidate arm", clocks_lies.shorten_slowest, decide=True),
        lie("offer half of a batch later than its slots were free", clocks_lies.load_less),
    ),
    row(
        "engine-times",
        "no answer or first text came sooner than the engine says that it worked at it",
        clocks.hold_work,
        lie("let an engine work for longer than the client waited", clocks_lies.work_longer, forgery.streaming),
        lie("let first texts come before the prompts were read", clocks_lies.read_longer, forgery.streaming),
        lie(
            "let the first texts of an arm come at once",
            clocks_lies.hasten_first_texts,
            forgery.streaming,
            decide=True,
        ),
        lie("let an answer end a second after it was written", clocks_lies.write_a_word, forgery.streaming),
    ),
    row(
        "engine-dates",
        "the engine made each answer within its exchange, by one offset of its clock",
        clocks.hold_dated,
        lie("let an answer have been made the day before", partial(clocks_lies.date_back, "comparison.json")),
        lie("let a comparison have run thirty days after its answers", clocks_lies.move_arms),
    ),
    row(
        "engine-build",
        "one build of the engine is named by all answers of a worker in an arm",
        clocks.hold_build,
        lie("let two answers name two builds", clocks_lies.build_anew),
    ),
)
