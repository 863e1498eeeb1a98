"""Reading many files a few at a time."""

from __future__ import annotations

from perfsuite.device.stability.rotation import Rotation, Source


def rotation(*n_reads: int) -> tuple[Rotation[int], list[int]]:
    """Sources of so many files each, and which of them were read; each tells how often it was."""
    read = list[int]()

    def source(place: int, n_files: int) -> Source[int]:
        def tell() -> int:
            read.append(place)
            return read.count(place)

        return Source(n_reads=n_files, read=tell)

    return Rotation(sources=[source(place, each) for place, each in enumerate(n_reads)]), read


def test_each_source_has_its_turn() -> None:
    """No look reads more files than the limit, and the next one goes on where it stopped."""
    found, read = rotation(1, 2, 2, 1)
    for seen in ([0, 1], [2, 3], [0, 1], [2, 3]):
        read.clear()
        found.read_some(3)
        assert read == seen


def test_few_sources_are_read_once() -> None:
    """A look never reads a source twice."""
    found, read = rotation(1, 1)
    found.read_some(10)
    assert read == [0, 1]


def test_a_source_beyond_the_limit_is_read_alone() -> None:
    """It has to be read whole."""
    found, read = rotation(5, 1)
    found.read_some(3)
    assert read == [0]
    found.read_some(3)
    assert read == [0, 1]


def test_what_was_told_last_stands() -> None:
    """A source that was never read tells nothing; others tell what they told last."""
    found, _ = rotation(1, 1, 1)
    assert found.told == ()
    found.read_some(2)
    assert found.told == (1, 1)
    found.read_all()
    assert found.told == (2, 2, 1)


def test_nothing_to_read_costs_nothing() -> None:
    """A device without such files has no looks."""
    found, _ = rotation()
    found.read_some(3)
    assert found.told == ()
