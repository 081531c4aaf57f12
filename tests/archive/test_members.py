"""Names and digests in little room: what goes in comes out, in its order."""

import hashlib
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.archive import sums
from evidence.archive.members import Members


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


HASHES = [digest(str(n)) for n in range(8)]
NAMES = st.sampled_from(["a/bodies/", "a/bodies/", "b/bodies/", "b/", ""]).flatmap(
    lambda folder: st.sampled_from([*HASHES, *(name.upper() for name in HASHES), "x.json"]).map(lambda n: folder + n)
)


@given(st.dictionaries(NAMES, st.sampled_from(HASHES)))
def test_a_mapping_like_any_other(rows):
    members = Members()
    for name in sorted(rows):
        members.add(name, rows[name])
    assert list(members.rows()) == sorted(rows.items())
    assert list(members) == sorted(rows)
    assert (len(members), dict(members), members) == (len(rows), rows, rows)
    for folder in ("a/bodies/", "b/", "c/"):
        for name in (*HASHES, HASHES[0].upper(), "x.json", "z" * 64):
            assert members.get(folder + name) == rows.get(folder + name)
    assert sums.digest(members) == hashlib.sha256(sums.render(rows)).hexdigest()


def test_a_body_under_a_wrong_name_stands_where_it_stood():
    members, rows = Members(), [(f"bodies/{name}", name) for name in sorted(HASHES)]
    rows[3] = (rows[3][0], "0" * 64)
    for row in rows:
        members.add(*row)
    assert list(members.rows()) == rows
    assert members[rows[3][0]] == "0" * 64
    assert members[rows[5][0]] == rows[5][1]
    again = Members()
    for row in rows:
        again.add(*row)
    assert members == again
    again.add("x", "0" * 64)
    assert members != again


def test_digests_that_only_look_like_one_between_two_are_not_found():
    first, second = sorted(HASHES)[:2]
    members = Members()
    members.add(f"bodies/{first}", first)
    members.add(f"bodies/{second}", second)
    straddling = (first + second)[2:66]
    with pytest.raises(KeyError):
        members[f"bodies/{straddling}"]


def test_a_hundred_thousand_bodies_take_less_than_eight_megabytes():
    chance = random.Random(1)
    tracemalloc.start()
    try:
        members = Members()
        for folder in range(400):
            for name in sorted(chance.randbytes(32).hex() for _ in range(250)):
                members.add(f"results/settings/{folder:04}/bodies/{name}", name)
        assert tracemalloc.get_traced_memory()[0] < 8 << 20
    finally:
        tracemalloc.stop()
    assert len(members) == 100_000
