"""Inputs as short recipes: pieces that are repeated, each a share of the whole, so that one recipe grows to any size.

In a piece `%d` stands for the number of its repetition, so that no two are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

PIECES_MAX: Final = 6
UNIT_MAX: Final = 400


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes, and their share of the input; a share of 0 is once."""

    unit: bytes
    share: int = 1

    def grown(self, size: int) -> bytes:
        """The piece repeated to about that size."""
        if not self.unit or not size:
            return self.unit
        if b"%d" not in self.unit:
            return self.unit * max(1, size // len(self.unit))
        times = max(1, size // (len(self.unit) + 3))
        before, _, behind = self.unit.partition(b"%d")
        return b"".join(before + b"%d" % number + behind for number in range(times))


Genome = tuple[Piece, ...]


def grown(genome: Genome, size: int) -> bytes:
    """The input of a recipe, of at most that size."""
    shares = sum(piece.share for piece in genome) or 1
    once = sum(len(piece.unit) for piece in genome if not piece.share)
    room = max(0, size - once)
    return b"".join(piece.grown(room * piece.share // shares) for piece in genome)[:size]


def changed(genome: Genome, words: tuple[bytes, ...], dice: random.Random) -> Genome:
    """A recipe that differs a little."""
    pieces = list(genome) or [_new(words, dice)]
    for _ in range(dice.choice((1, 1, 2, 3))):
        at = dice.randrange(len(pieces))
        kind = dice.randrange(7)
        if kind == 0 and len(pieces) < PIECES_MAX:
            pieces.insert(at, _new(words, dice))
        elif kind == 1 and len(pieces) > 1:
            del pieces[at]
        elif kind == 2:
            pieces[at] = Piece(pieces[at].unit, dice.choice((0, 1, 1, 2, 5)))
        elif kind == 3:
            pieces[at] = _new(words, dice)
        else:
            pieces[at] = Piece(_changed(pieces[at].unit, words, dice), pieces[at].share)
    return tuple(pieces)


def crossed(first: Genome, second: Genome, dice: random.Random) -> Genome:
    """The beginning of one and the end of another."""
    return (first[: dice.randint(1, len(first))] + second[dice.randrange(len(second)) :])[:PIECES_MAX]


def simpler(genome: Genome) -> list[Genome]:
    """Recipes that are a piece, or half a piece, shorter."""
    without = [genome[:at] + genome[at + 1 :] for at in range(len(genome)) if len(genome) > 1]
    halves = [
        (*genome[:at], Piece(half, piece.share), *genome[at + 1 :])
        for at, piece in enumerate(genome)
        if len(piece.unit) > 1
        for half in (piece.unit[: len(piece.unit) // 2], piece.unit[len(piece.unit) // 2 :])
    ]
    return without + halves


def _new(words: tuple[bytes, ...], dice: random.Random) -> Piece:
    return Piece(b"".join(dice.choices(words, k=dice.choice((1, 1, 2, 3, 5)))), dice.choice((0, 1, 1, 1)))


def _changed(unit: bytes, words: tuple[bytes, ...], dice: random.Random) -> bytes:
    at = dice.randint(0, len(unit))
    kind = dice.randrange(5)
    if kind == 0 and unit:
        return unit[:at] + unit[at + dice.randint(1, 8) :]
    if kind == 1:
        return unit[:at] + bytes([dice.choice(b"\x00\t\n\x1b !\"#$%&'*+,-./:;<=>?@[]a1\x7f\x80\xc3\xff")]) + unit[at:]
    if kind == 2:
        return (unit * 2)[:UNIT_MAX]
    return (unit[:at] + dice.choice(words) + unit[at:])[:UNIT_MAX]
