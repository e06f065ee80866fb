"""Ids as the paper's pages have them, and the places that they name: asked of a guide, and of the search."""

PLACES = (
    "p1",
    "abstract1",
    "S3",
    "S3.SS2.SSS2",
    "S3.SS2.SSS2.p1",
    "S3.SS1.SSS0.Px1.p1",
    "S3.I1.i2",
    "S3.I1.i2.p1",
    "S3.E1",
    "S3.Ex2",
    "S3.F2",
    "S4.T1",
    "footnote1",
    "bib.bib13",
)

ONE_PLACE = {
    **{place: place for place in PLACES},
    "p1.1": "p1",
    "S3.SS2.SSS2.p1.6": "S3.SS2.SSS2.p1",
    "S3.SS2.SSS2.p1.1": "S3.SS2.SSS2.p1",
    "S3.SS1.SSS0.Px1.p1.4": "S3.SS1.SSS0.Px1.p1",
    "S3.I1.i2.p1.12": "S3.I1.i2.p1",
}
"""Ids of one place: converters number paragraphs differently (arXiv/html_feedback#1509)."""

WITHIN = {
    "S3.SS2.SSS2.p1.6.m3.1": "S3.SS2.SSS2.p1",
    "S4.T1.4": "S4.T1",
    "S4.T1.4.2": "S4.T1",
    "S3.F2.g1": "S3.F2",
    "S3.E1.m1.1": "S3.E1",
    "S3.Ex2.2": "S3.Ex2",
    "footnote1.1": "footnote1",
    "bib.bib13.2": "bib.bib13",
}
"""Ids of what lies within a place. A guide names the place itself; a search leads to it."""

NOWHERE = ("S4.T2", "S4.T", "S3.SS2.SSS2.p11", "S3.SS2.SSS2.p2.1", "S3.7", "S3.I1.i2.1", "p1.x", "p1. 2", "")
"""Ids of no place, though one above them may be there."""
