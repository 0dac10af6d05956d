"""Faults of judges (`--scorer NAME=judge:MODEL`): what they are asked, and how."""

from support.faults import Fault
from support.judge import JudgeStub
from support.world import DECODE, EVALUATE

STUB = JudgeStub()
WITH = DECODE + " --source dev.src --default-weight 1 --scorer j=judge:"
OK = f"{WITH}{STUB.url()}"
AT = r"--scorer j=judge:openai:http\S*: "
WRONG = [  # keys, message, cure
    ("forms=grade", r"no key forms=; did you mean form=\?", f"{OK},form=grade"),
    ("sauce=no", r"no key sauce=; did you mean source=\?", f"{OK},source=yes"),
    ("form=stars", "form: 'stars' is not one of 'rating', 'grade'", f"{OK},form=grade"),
    ("price=3", "price: expected IN/OUT, as 0.15/0.60, found '3'", f"{OK},price=3/4"),
    ("budget=1", "budget= needs price=IN/OUT, of a million tokens", f"{OK},budget=1,price=1/2"),
    ("window=2,before=1", "window= is for rating, grade and errors, and without", f"{OK},window=2"),
    ("window=2,form=pair", "window= is for rating, grade and errors, and without", f"{OK},window=2"),
    ("window=2,margin=1", "margin= leaves out sentences, of which passages are made", f"{OK},window=2"),
    ("passes=5,mean=trimmed", "mean=trimmed is for passes=6 and more", f"{OK},passes=6,mean=trimmed"),
    ("pirce=1/2,budget=2", r"no key pirce=; did you mean price=\?", f"{OK},price=1/2,budget=2"),
    ("stride=2", "stride= is for passages; add window=N", f"{OK},window=2,stride=2"),
    ("passes=2,temperature=0", "several passes have equal answers here; leave passes= out, or give a temperature", f"{OK},passes=2"),
    ("reference=yes", "no key reference=; there are model, form, source", OK),
    ("request=none.json", "request=none.json: no such file or directory", OK),
    ("request=dev.src", "request=dev.src: expected a JSON object", OK),
    ("key-env=NOBODY", "key-env=NOBODY: no such variable of the environment; export it, or leave key-env out", OK),
]
FAULTS = [
    *(Fault(f"--judge-{keys.replace('=', '-').replace(',', '-').replace('/', '-')}", f"{OK},{keys}", AT + message, exit=2, cure=cure) for keys, message, cure in WRONG),
    Fault("--judge-without-a-name", OK.replace("j=judge", "judge"), "expected a name in front, as j=judge:openai", exit=2, cure=OK),
    Fault("--judge-nothing", f"{WITH}gpt", r"expected openai:URL,model=NAME or hf:DIR, and behind it one of model, form, .*; found 'gpt'", exit=2, cure=OK),
    Fault("--judge-without-model", f"{WITH}{STUB.url().partition(',')[0]}", "expected ,model=NAME behind the URL", exit=2, cure=OK),
    Fault("--judge-url", f"{WITH}openai:ftp://x,model=m", "expected a URL as http://localhost:8000/v1", exit=2, cure=OK),
    Fault("--judge-of-a-folder", f"{WITH}hf:.,parallel=3", "parallel= is not used by a model in a folder; leave it out", exit=2, cure=OK),
    Fault("--judge-secret", f"{WITH}openai:http://me:word@x/v1,model=m", r"j=judge:openai:http://…@x/v1: expected a URL without a name", exit=2, cure=OK),
    Fault("--judge-prompt-without-candidate", f"{OK},prompt=p", r"p:1: expected the variable candidate, of form=rating", {"p": "x {{ source }}"}, 3, OK),
    Fault("--judge-metric-of-rankings", f"{EVALUATE} --source dev.src --metric j=judge:{STUB.url()},form=ranking", "form: 'ranking' is not one of 'rating', 'grade', 'errors'", exit=2, cure=f"{EVALUATE} --source dev.src --metric j=judge:{STUB.url()}"),
    Fault("--judge-no-folder", f"{WITH}hf:nobody", "nobody: expected the folder of a Hugging Face model, found none", exit=3, cure=OK),
    Fault("--judge-without-source", f"{DECODE} --default-weight 1 --scorer j=judge:{STUB.url()}", "source", exit=2, cure=f"{DECODE} --default-weight 1 --scorer j=judge:{STUB.url()},source=no"),
    Fault("--judge-variable", f"{OK},prompt=p", r"p:2: no variable 'candidat'; did you mean candidate\?", {"p": "x\n{{ candidat }}"}, 3, OK),
    Fault("--judge-key-over-http", f"{WITH}openai:http://8.8.8.8/v1,model=m", "the key in OPENAI_API_KEY would be sent over http", exit=2, cure="", environment={"OPENAI_API_KEY": "sk-secret"}),
    Fault("--judge-prose", f"{OK.replace('/ok/', '/prose/')},before=1", r"document 'evening', sentence 0 \(counted from 0\): expected an answer as asked for, found 'I would give", exit=1, cure=f"{OK},before=1"),
    Fault("--judge-metric-of-lists", f"{EVALUATE} --source dev.src --metric j=judge:{STUB.url()},top=3", r"no key top=", exit=2, cure=f"{EVALUATE} --source dev.src --metric j=judge:{STUB.url()}"),
    Fault("--judge-of-a-file", f"{DECODE} --config c.toml", r"c\.toml: scorer = j=judge:openai:… asks a server; if it may, add --trust-config", {"c.toml": f"scorer = [\"j=judge:{STUB.url()}\"]\nsource = 'dev.src'\ndefault-weight = 1"}, 2, f"{DECODE} --config c.toml --trust-config"),
]
