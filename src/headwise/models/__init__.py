"""Whole models around the attention layer."""

from headwise.models.bert import BertEmbeddings, BertEncoder, mean_pool
from headwise.models.bert_config import BertConfig
from headwise.models.bert_tokens import BertTokens, TokenBatch
from headwise.models.bert_weights import find_bert, load_bert
from headwise.models.encoder import Encoder, EncoderLayer
from headwise.models.feed_forward import FeedForward

__all__ = [
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertTokens",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "TokenBatch",
    "find_bert",
    "load_bert",
    "mean_pool",
]
