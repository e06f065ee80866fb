"""The local server: built pages, grading, progress and live heads, for this machine alone."""
