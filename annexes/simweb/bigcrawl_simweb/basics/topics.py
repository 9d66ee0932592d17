"""Topics and their words; no word belongs to two topics, or to the common text of all pages."""

from __future__ import annotations

from typing import Final

TOPICS: Final[tuple[tuple[str, ...], ...]] = (
    ("bees", "honey", "beehive", "beekeeper", "pollen", "swarm", "nectar", "honeycomb"),
    ("sailing", "yacht", "regatta", "mast", "keel", "spinnaker", "jib", "rudder"),
    ("chess", "gambit", "checkmate", "rook", "bishop", "castling", "endgame", "pawn"),
    ("opera", "soprano", "aria", "libretto", "tenor", "overture", "baritone", "maestro"),
    ("volcano", "lava", "magma", "eruption", "crater", "caldera", "basalt", "tephra"),
    ("bakery", "sourdough", "yeast", "flour", "baguette", "dough", "croissant", "rye"),
    ("astronomy", "telescope", "nebula", "comet", "galaxy", "asteroid", "eclipse", "pulsar"),
    ("cycling", "bicycle", "peloton", "derailleur", "velodrome", "pedal", "saddle", "criterium"),
    ("railway", "locomotive", "tramway", "signalman", "sleeper", "shunting", "viaduct", "turntable"),
    ("pottery", "kiln", "glaze", "porcelain", "stoneware", "earthenware", "ceramic", "clay"),
    ("falconry", "falcon", "hawk", "kestrel", "talon", "jesses", "goshawk", "peregrine"),
    ("vineyard", "wine", "grape", "cellar", "riesling", "vintner", "cork", "tannin"),
    ("cryptography", "cipher", "plaintext", "decryption", "keystream", "nonce", "hash", "signature"),
    ("knitting", "wool", "needle", "crochet", "stitch", "yarn", "purl", "sweater"),
    ("glacier", "moraine", "iceberg", "crevasse", "fjord", "icefall", "serac", "permafrost"),
    ("typography", "serif", "kerning", "ligature", "typeface", "italic", "leading", "punchcutter"),
    ("fencing", "epee", "sabre", "foil", "riposte", "parry", "lunge", "piste"),
    ("mushroom", "chanterelle", "mycelium", "spore", "truffle", "fungus", "bolete", "morel"),
    ("beetle", "ladybird", "weevil", "elytra", "larva", "scarab", "entomology", "mandible"),
    ("lighthouse", "foghorn", "lightkeeper", "fresnel", "seamark", "beacon", "daymark", "lightship"),
)
"""A twentieth of a topical web's pages belongs to each."""
