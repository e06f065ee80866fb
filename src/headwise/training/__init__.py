"""Training: the loop, its recipe, and what a run leaves behind."""

from headwise.training.average import average_checkpoints
from headwise.training.batches import Collated, token_batches
from headwise.training.checkpoint import Checkpoint, CheckpointError, latest_checkpoint, load_checkpoint
from headwise.training.extras import MissingExtra
from headwise.training.loop import train
from headwise.training.loss import TokenLoss, smoothing_floor, token_loss
from headwise.training.metrics import read_metrics
from headwise.training.random_state import seed_everything
from headwise.training.recipe import Recipe
from headwise.training.report import Report
from headwise.training.runs import LoadedRun, RunError, load_run, read_config
from headwise.training.schedule import ConstantSchedule, CosineSchedule, PaperSchedule, make_schedule
from headwise.training.settings import SettingError, setting_names, with_settings
from headwise.training.stop import TrainingStopped
from headwise.training.task import Loss, Task

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Collated",
    "ConstantSchedule",
    "CosineSchedule",
    "LoadedRun",
    "Loss",
    "MissingExtra",
    "PaperSchedule",
    "Recipe",
    "Report",
    "RunError",
    "SettingError",
    "Task",
    "TokenLoss",
    "TrainingStopped",
    "average_checkpoints",
    "latest_checkpoint",
    "load_checkpoint",
    "load_run",
    "make_schedule",
    "read_config",
    "read_metrics",
    "seed_everything",
    "setting_names",
    "smoothing_floor",
    "token_batches",
    "token_loss",
    "train",
    "with_settings",
]
