"""What other libraries call the arguments of a layer, and what to write instead."""

from headwise.kernels.other_names import CAUSAL, DROPOUT, IGNORED_KEYS, WEIGHTS

BY_PLACE = (
    "write layer(x), layer(x, memory), or layer(x, memory, values=v) where they are not read from memory"
)
_AT_THE_CALL = "masks are given at the call: layer(x, mask=Causal())"

LAYER = {
    "embed_dim": "write d_model=",
    "hidden_size": "write d_model=",
    "dim": "write d_model=",
    "n_heads": "write num_heads=",
    "n_head": "write num_heads=",
    "nhead": "write num_heads=",
    "heads": "write num_heads=",
    "head_dim": "write d_k= and d_v=",
    "dim_head": "write d_k= and d_v=",
    "kdim": "write memory_dim=",
    "vdim": "write value_dim=",
    "num_key_value_heads": "write num_kv_heads=",
    "n_kv_heads": "write num_kv_heads=",
    "bias": "write projection_bias=True for q, k and v (and the output, unless out_bias= says otherwise)",
    "qkv_bias": "write projection_bias=",
    "dropout_p": DROPOUT,
    "attn_drop": "write dropout=",
    "batch_first": "leave it out; x is always [batch, length, width]",
    "add_bias_kv": "headwise.interop.torch.MultiheadAttention has it; see sinks= too",
    "add_zero_attn": "headwise.interop.torch.MultiheadAttention has it; see sinks= too",
    "is_causal": _AT_THE_CALL,
    "causal": _AT_THE_CALL,
    "mask": _AT_THE_CALL,
}

CALL = {
    "query": "write layer(x), the layer makes queries, keys and values of it; or layer(x, memory)",
    "key": "write memory=",
    "value": "write values=",
    "hidden_states": "write x=",
    "encoder_hidden_states": "write memory=",
    "context": "write memory=",
    "is_causal": CAUSAL,
    "causal": CAUSAL,
    "attn_mask": (
        "write mask=Allow(~attn_mask) where it is bool and True means ignore, as in "
        "torch.nn.MultiheadAttention, bias=attn_mask where it is added to scores"
    ),
    "attention_mask": IGNORED_KEYS.replace("~mask", "mask.bool()").replace("ignore", "may attend"),
    "key_padding_mask": IGNORED_KEYS,
    "need_weights": WEIGHTS,
    "average_attn_weights": f"{WEIGHTS}, one matrix for each head",
    "output_attentions": WEIGHTS,
    "past_key_value": "write cache=GrowingCache(), made once and given at each step",
    "past_key_values": "write cache=GrowingCache(), made once and given at each step",
    "use_cache": "write cache=GrowingCache(), made once and given at each step",
    "position_ids": "write positions=",
    "dropout": "it belongs to the layer: MultiHeadAttention(..., dropout=p), applied while layer.training",
    "scale": "it belongs to the layer: MultiHeadAttention(..., scale=...)",
    "softcap": "it belongs to the layer: MultiHeadAttention(..., softcap=...)",
}
