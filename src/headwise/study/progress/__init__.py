"""A learner's progress: reviews, answers and marks in an append-only log, and what follows from it."""

from headwise.study.progress.answers import add_answer, add_mark, latest_answers, latest_marks
from headwise.study.progress.days import now
from headwise.study.progress.erase import erase_progress, kept
from headwise.study.progress.errors import BadImport, Conflict, Damaged, NotSaved, ProgressError, Refused
from headwise.study.progress.places import cache_folder, check_profile, data_folder, progress_file
from headwise.study.progress.queue import DeckCard, Due, Queue, queue
from headwise.study.progress.reviews import Reviewed, add_review, undo_review
from headwise.study.progress.schedule import CardState, Review, fold
from headwise.study.progress.settings import Settings, change_settings, read_settings
from headwise.study.progress.store import Store
from headwise.study.progress.transfer import export_progress, import_progress, import_text

__all__ = [
    "BadImport",
    "CardState",
    "Conflict",
    "Damaged",
    "DeckCard",
    "Due",
    "NotSaved",
    "ProgressError",
    "Queue",
    "Refused",
    "Review",
    "Reviewed",
    "Settings",
    "Store",
    "add_answer",
    "add_mark",
    "add_review",
    "cache_folder",
    "change_settings",
    "check_profile",
    "data_folder",
    "erase_progress",
    "export_progress",
    "fold",
    "import_progress",
    "import_text",
    "kept",
    "latest_answers",
    "latest_marks",
    "now",
    "progress_file",
    "queue",
    "read_settings",
    "undo_review",
]
