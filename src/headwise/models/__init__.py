"""Whole models around the attention layer."""

from headwise.models.bert import BertEmbeddings, BertEncoder, mean_pool
from headwise.models.bert_config import BertConfig
from headwise.models.bert_tokens import BertTokens, TokenBatch
from headwise.models.bert_weights import find_bert, load_bert
from headwise.models.building import AttentionFactory, attention_from
from headwise.models.decoder import Decoder, DecoderLayer
from headwise.models.decoder_caches import DecoderCaches
from headwise.models.embeddings import Embeddings, TokenEmbedding
from headwise.models.encoder import Encoder, EncoderLayer
from headwise.models.feed_forward import FeedForward
from headwise.models.language_model import LanguageModel, LanguageModelConfig
from headwise.models.log_mel import LogMel
from headwise.models.parameters import ParameterCounts, count_parameters
from headwise.models.pointer import Pointer
from headwise.models.speech import SpeechConfig, SpeechTransformer
from headwise.models.table3 import TABLE_3
from headwise.models.text_encoder import (
    SequenceClassifier,
    SpanReader,
    TextEncoder,
    TextEncoderConfig,
    best_spans,
)
from headwise.models.transformer import Transformer
from headwise.models.transformer_config import TransformerConfig
from headwise.models.vision import VisionConfig, VisionTransformer

__all__ = [
    "TABLE_3",
    "AttentionFactory",
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertTokens",
    "Decoder",
    "DecoderCaches",
    "DecoderLayer",
    "Embeddings",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LanguageModel",
    "LanguageModelConfig",
    "LogMel",
    "ParameterCounts",
    "Pointer",
    "SequenceClassifier",
    "SpanReader",
    "SpeechConfig",
    "SpeechTransformer",
    "TextEncoder",
    "TextEncoderConfig",
    "TokenBatch",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "VisionConfig",
    "VisionTransformer",
    "attention_from",
    "best_spans",
    "count_parameters",
    "find_bert",
    "load_bert",
    "mean_pool",
]
