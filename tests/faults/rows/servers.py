"""Faults of servers of language models (`--lm NAME=openai:URL`)."""

from support.faults import Fault
from support.server import KEY, STUB
from support.world import DECODE

WITH = DECODE + " --default-weight 1 --lm g=openai:"
OK = f"{WITH}{STUB.url()},model=toy,sentences=1"
AGAIN = "its log may say why, and the same command goes on from what it has answered"
AT = "--lm g=openai:http.* the server "
ECHOES = "returns no log-probabilities of the text .*; vLLM, SGLang and llama_cpp.server .*, llama-server of llama.cpp does not"

CUT = r"of a part of the text that it is given: it cuts texts; show fewer sentences, ,sentences=N, raise its limit, or leave .* \(dev.kbest:\d\)$"


def at(fault: str, more: str = "", retries: int = 0) -> str:
    """The command with a server that goes wrong in this way."""
    return f"{WITH}{STUB.url(fault)},model=toy,sentences=1,retries={retries}{more}"


FAULTS = [
    Fault(f"76-server-{fault}{'-batch' * ('batch=3' in more)}", at(fault, more, int(fault == "half")), f"{AT}{message}", exit=1, cure=cure or OK)
    for fault, more, message, cure in (
        ("slow", ",timeout=0.2", r"gave no answer in 0.2 s; add ,timeout=SECONDS behind the URL \(tries: 1\)", at("slow", ",timeout=9,concurrency=64")),
        ("drip", ",timeout=0.5", r"gave no answer in 0.5 s; add ,timeout=SECONDS behind the URL \(tries: 1\)", ""),
        ("cut", "", r"(cannot be asked|answered with what is no JSON).*tries: 1", ""),
        ("half", "", rf"answered with what is no JSON, or half of it; {AGAIN} \(tries: 2\)", ""),
        ("broken", "", rf"answered 500: no, None; {AGAIN} \(tries: 1\)", ""),
        ("moved", "", "answered 302.*; redirects are not followed: give the URL itself", ""),
        ("long", "", r"answered 400.*; a text may be longer than the model reads: show fewer sentences, ,sentences=N, raise its limit, or leave the candidate out \(dev.kbest:\d\)$", f"{OK[:-1]}0"),
        ("long", ",batch=3", "answered 400.*; to see which of . texts, add ,batch=1 behind the URL", f"{OK[:-1]}0"),
        ("cutting", "", rf"returns \d tokens, {CUT}", ""),
        ("silent", "", ECHOES, ""),
        ("null", "", ECHOES, ""),
        ("zeros", "", "returns 0.0 as the log-probability of each token of a text; vLLM", ""),
        ("nan", "", "expected a log-probability of token 3 of .*, found nan", ""),
        ("huge", "", "expected a log-probability of token 3 of .*, found inf", ""),
        ("true", "", "expected a log-probability of token 3 of .*, found True", ""),
        ("false", "", "expected a log-probability of token 3 of .*, found False", ""),
        ("deep", "", "answered with JSON that is nested too deeply$", ""),
        ("endless", "", r"answered with more than 1,\d+,\d+ bytes, 1 MB and 1,000 for each byte of the request; see that the URL is that of a language model$", ""),
        ("gzip", "", "answered in the encoding gzip, which was not asked for; have it, or the proxy before it, send answers as they are$", ""),
        ("fewer", ",batch=99", r"expected \d+ choices, one a text, found \d+; add ,batch=1 behind the URL", f"{OK},batch=1"),
        ("key", "", "answered 401: no, None; give its key in the environment: OPENAI_API_KEY, or ,key-env=NAME", ""),
    )
]  # fmt: skip
FAULTS += [
    Fault("76-server-wrong", at("wrong"), r"document 'evening': expected tokens of the text that was sent, found 'token_id:7' as token 3; .* \(dev.kbest:\d\)",
          exit=1, cure=OK),
    Fault("76-server-surrogate", at("surrogate"), r"scorer 'g', document 'evening': expected tokens of the text that was sent, found '.*ud800' as token 3; .* \(dev.kbest:\d\)",
          exit=1, cure=OK),
    *(Fault(f"76-server-{one}", at(one, ",key-env=K"), (message, f"!{KEY[:8]}"), exit=1, environment={"K": KEY})
      for one, message in (("shows-key", r"found 'x+.*'… as token 3"), ("named", r"of token 3 of .*, found \*\*\*"))),
    *(Fault(f"76-server-{one}", at(one), rf"the server returns \d tokens, {CUT}", exit=1, cure=OK) for one in ("short", "cropped")),
    Fault("76-server-bare", at("bare"), r"the first token of a text is not predicted; add ,begin=TOKEN .* \(dev.kbest:1\)", exit=1, cure=at("bare", ",begin=<|x|>")),
    Fault("76-server-key-shown", at("broken", ",key-env=K"), (r"answered 500: no, Bearer \*\*\*; .* \(tries: 1\)", f"!{KEY}"), exit=1, cure=OK, environment={"K": KEY}),
    Fault("76-server-down", f"{WITH}http://127.0.0.1:9/v1,model=toy,retries=0,sentences=0", f"{AT}cannot be asked: .*; is it running.", exit=1, cure=OK),
    Fault("62-server-prompt-merged", f"{OK},prompt=p", r"p:1: expected a prompt whose last token ends .* \(dev.kbest:1\)", {"p": "next:"}, cure={"p": "next:\n"}),
    Fault("66-server-key-missing", f"{OK},key-env=K", "key-env=K: no such variable of the environment; export it, or leave key-env out", exit=2, cure=OK),
    Fault("66-server-key-broken", f"{OK},key-env=K", "expected a key of printable ASCII characters in K$", exit=2, cure=OK, environment={"K": "a\nb"}),
    Fault("66-server-key-http", f"{WITH}http://192.0.2.1/v1,model=toy",
          "^rerank: --lm g=openai:http://192.0.2.1/v1: the key in OPENAI_API_KEY would be sent over http, which others can read; give a URL of https, or add ,insecure=yes behind the URL$",
          exit=2, cure=OK, environment={"OPENAI_API_KEY": KEY}),
    Fault("66-server-model", OK.replace(",model=toy", ""), "expected ,model=NAME behind the URL", exit=2, cure=OK),
    Fault("66-server-url", f"{WITH}localhost:8000,model=toy", "expected a URL as http://localhost:8000/v1", exit=2, cure=OK),
    Fault("66-server-url-of-words", f"{DECODE} --default-weight 1 --lm 'g=openai:http://a b/v1,model=toy'",
          "expected a URL of printable ASCII characters", exit=2, cure=OK),
    Fault("66-server-password", f"{WITH}http://me:{KEY}@localhost/v1,model=toy", ("expected a URL without a name, a password and a query", f"!{KEY}"), exit=2, cure=OK),
    Fault("66-server-tokens", f"{OK},tokens=9", "tokens is for hf:DIR, a Hugging Face model", exit=2, cure=OK),
    Fault("66-server-of-texts", f"perplexity hyp.txt --lm openai:{STUB.url()},model=toy", "a server scores candidates of lists; give it to decode, score or tune-mert", exit=2, cure=OK),
    Fault("--config-server", f"{DECODE} --config c.toml", r"c\.toml: lm = g=openai:… .* add --trust-config",
          {"c.toml": f"lm = [\"g=openai:{STUB.url()},model=toy,sentences=1\"]\ndefault-weight = 1"}, exit=2, cure=f"{DECODE} --config c.toml --trust-config"),
]  # fmt: skip
