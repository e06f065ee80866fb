"""What other libraries call the arguments of `attention`, and what to write instead."""

CAUSAL = (
    'write mask=Causal(); the last query is the newest key, and with align="start" the first query is the '
    "first key, as in torch"
)
IGNORED_KEYS = (
    "write mask=Allow(~mask[:, None, None, :]) where True means ignore, or better KeyLengths(lengths)"
)
WEIGHTS = "write observe=[Weights()]; the result is then (output, observations)"
DROPOUT = "write dropout=p"

ATTENTION = {
    "query": "write q=",
    "key": "write k=",
    "value": "write v=",
    "is_causal": CAUSAL,
    "causal": CAUSAL,
    "attn_mask": (
        "write mask=Allow(attn_mask) where it is bool and True means may attend, bias=attn_mask where it is "
        "added to scores"
    ),
    "attention_mask": IGNORED_KEYS.replace("~mask", "mask.bool()").replace("ignore", "may attend"),
    "key_padding_mask": IGNORED_KEYS,
    "block_mask": "write mask= with a Mask, such as Window(127, 0) & Documents(ids)",
    "score_mod": "write bias= with a Bias, softcap=, or mask=",
    "attn_bias": "write bias=attn_bias",
    "attention_bias": "write bias=attention_bias",
    "alibi_slopes": "write bias=ALiBi(slopes)",
    "window_size": "write mask=Window.from_flash_attention(window_size)",
    "dropout_p": f"{DROPOUT}; it is applied whenever it is not 0, there is no training mode here",
    "dropout_rate": DROPOUT,
    "training": "write dropout=p while training, and leave it out otherwise",
    "enable_gqa": "leave it out; k and v may always have fewer heads than q",
    "softmax_scale": "write scale=",
    "logits_soft_cap": "write softcap=",
    "s_aux": "write sinks=",
    "need_weights": WEIGHTS,
    "return_weights": WEIGHTS,
    "return_lse": "write observe=[LogSumExp()]",
}
