r"""The table of warnings: of each its code, its severity, its name, what it says, and its cure.

A note is about input that is read as most people expect, so that runs print what it says alone; a
warning is about a result that may not be what was wanted, and is printed with its cure. `rerank
check --explain CODE` and the reference print all of a row. Readers and runs name the row where they
count a warning, as `notices.add("duplicate-hypothesis", source=…, line=…)`, with the values of its
fields: `{name=lm}` stands for the value of `name`, and `lm` is that of the example.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rerank.errors import UsageError

_FIELD = re.compile(r"\{([a-z]+)=([^{}]*)\}")
_ROW = re.compile(  # code, severity, name; a sentence; a cure
    r"(R\d{3}) (note|warning) ([a-z0-9-]+): (.+\n(?:  [^> ].*\n)*)((?:  > .+\n(?:    .+\n)*)?)"
)
_TABLE = r"""
R001 note byte-order-mark: byte-order mark at the start, removed
  > rerank check --fix OUT removes it
R002 note inner-byte-order-mark: byte-order mark inside the text, kept
  > rerank check --fix OUT removes it
R003 note crlf-line-ends: CRLF line ends, read as LF
  > rerank check --fix OUT writes LF
R004 warning carriage-return: carriage return inside a line, kept
  > write LF for it, if it is the line end of an old Mac
R005 note trailing-bytes: bytes after the end of the {format=gzip} data, ignored
  > rerank check --fix OUT writes the data alone
R006 note separator-other-than-lf: separator other than LF (VT, FF, FS-US, NEL, U+2028, U+2029),
  kept inside its line
  > replace them by spaces, if the source has spaces there
R007 note no-break-space: no-break space U+00A0, kept; words are split on ASCII space only
  > replace them by ASCII spaces, if the models have learnt them so
R008 note ideographic-space: ideographic space U+3000, kept; words are split on ASCII space only
  > replace them by ASCII spaces, if the models have learnt them so
R009 note zero-width-space: zero-width space U+200B, kept; words are split on ASCII space only
  > remove them, if the models have not learnt them
R010 note soft-hyphen: soft hyphen U+00AD, kept; words are split on ASCII space only
  > remove them, if the models have not learnt them
R011 note bidirectional-control: bidirectional control character, kept
  > remove them, if the models have not learnt them
R012 note replaced-bytes: bytes that are not {encoding=gb18030}, read as U+FFFD
  > name the encoding of the list with --encoding
R101 note empty-hypothesis: empty hypothesis
  > translate these lines again, if the sources are not empty
R102 note duplicate-hypothesis: duplicate hypothesis, kept
  > let the decoder write distinct hypotheses, as with Moses' `distinct`
R103 note equal-samples: equal texts of a sentence, kept; --agreement counts each sample as a vote
  > nothing to do, if they are samples
R104 warning unlabelled-costs: hypothesis with numbers without labels, positive in all of the list,
  that look like costs
  > give --kbest-format nematus, or weights with a negative sign
R105 warning likely-costs: likely costs (positive, and rising in each list) in place of scores
  > give negative weights
R106 warning first-is-not-best: first candidate whose {name=total} is not the largest, in {n=37} of
  {lists=60} sentences
  > if the list was sorted or merged, rerank decode --default-weight 0 with the weights
    {"{name=total}": 1} chooses the largest ones; of samples, rerank decode --agreement chooses
    those that agree most
R107 note special-word: hypothesis that contains <s>, </s>, <unk> or <pad>, read as an ordinary word
  > remove control words of the decoder, or escape them
R108 note nothing-to-rerank: list with one hypothesis per sentence, so there is nothing to rerank
  > let the decoder write n-best lists
R109 note interleaved-ids: interleaved ids, grouped by sentence
  > rerank check --fix OUT sorts the list
R110 note order-of-batches: sentences in the order of batches, sorted by id
R111 note source-line-without-hypotheses: source line without hypotheses (ids {ids=3, 7}){hint=}
  > translate these lines again, accept empty lines of the output, or give --missing source
R112 note source-as-translation: source line that is its own translation, for lack of hypotheses
  (ids {ids=3, 7}){hint=}
  > nothing to do, or translate these lines again
R113 note blank-line: blank line, skipped
  > rerank check --fix OUT leaves them out
R114 note padding: blank line that fills up a list, skipped
  > nothing to do, if the decoder has found fewer translations
R115 note blank-hypothesis: blank hypothesis between TABs, skipped
  > nothing to do, if the decoder has found fewer translations
R116 note scores-beside-hypotheses: scores beside the hypotheses, read as features F0, F1, …
  > nothing to do; weights name them so
R117 note number-as-hypothesis: number between TABs, read as a hypothesis
  > leave it out, if it is a score
R118 warning unlike-candidates: candidates of a sentence that are no more alike than those of two
  sentences
  > is {k=4} the number of lines of each sentence, and do these stand together?
R119 warning columns-as-text: {columns=3 TAB-separated} columns on each line, as {example='0.2'} in
  one, read as parts of the hypothesis
  > give the texts alone; columns are read as scores if all lines have decimals in them, as -0.41
R120 warning id-as-word: id on each line, as {example='utt1'} at its {end=start}, read as a word of
  the hypothesis
  > remove it
R121 warning number-as-word: number on each line, as {example='-0.41'} at its {end=end}, read as a
  word of the hypothesis
  > if it is a score, write a TAB between it and the text
R122 warning tab-in-hypothesis: TAB in a hypothesis, read as part of a word
  > write spaces
R123 note tab-in-text: TAB inside a text, read as a space
  > nothing to do, if the TAB is only layout
R124 note infinite-number: infinite number, clipped
  > nothing to do, if the value is what such candidates deserve
R125 note renamed-feature: feature renamed to letters and digits
  > nothing to do; weights may have either name
R126 note sparse-features: line with sparse features (labels with '_')
  > nothing to do; tune-mert leaves their weights as they are
R127 note no-total: no total column
  > nothing to do, unless the feature `total` is used
R128 warning numbers-not-read: column of numbers after features and total, not read
  > cut it off, or label its numbers
R129 warning bars-in-hypothesis: hypothesis that contains '|||', kept
  > escape it as &#124;&#124;&#124;
R130 note old-labels: old Moses labels, as in 'lm: -3.2'
R131 note glued-labels: no blank between label and value, as in Marian's 'F0=-3.2'
  > nothing to do, if Marian wrote the list
R132 note word-scores: Marian's word scores among the features, ignored
R133 note unlabelled-features: features without labels, called F0, F1, …
  > let Moses write labels: -labeled-n-best-list true
R134 note glued-bars: '|||' without blanks around it
  > nothing to do; other tools may need blanks
R135 note word-scores-left-out: line with Marian's word scores, which a Moses list cannot hold; left
  out
  > nothing to do, or write another format that has them
R136 note soft-alignment: column with a soft alignment, which a Moses list cannot hold; left out
  > nothing to do, or write another format that has it
R137 note unknown-column: column that is no alignment or segmentation, left out
  > nothing to do, or write it as a feature with a label
R138 note absent-features: hypothesis without some of the features, read as 0
  > nothing to do, if the decoder leaves out zeros
R139 note many-features: many features (more than 1,000); those that some hypotheses lack are read
  as sparse{renamed=}, and tune-mert leaves their weights as they are
  > nothing to do, or let the decoder write fewer
R140 note no-output-of-fairseq: line that is no output of fairseq (logging), skipped
  > nothing to do; log to another file next time
R141 note no-token-scores: hypothesis without P- lines; its feature is the score of H-, normalised
  by length, in nats
  > give fairseq-generate no --quiet, and keep its P- lines
R142 note source-again: source that comes again, as of a second run; its hypotheses are put
  together
  > give one run, if they are not of one
R143 warning unread-number: number of candidates that is not read
  > to have it read, write it into the object features of each candidate
R144 warning unread-numbers: list of numbers beside the candidates that is not read
  > to have it read, write it into the objects features of the candidates
R145 warning unread-texts: further text of candidates that is not read
  > nothing to do, or write it as a candidate
R146 warning unread-reference: reference in a list, which is not read
  > give --ref a file of references
R147 warning sample-in-id: id with a part that seems to name a sample, as texts that differ in it
  alone are alike; read as a sentence each
  > if it is a sample, leave the part out
R148 warning further-id: further id, not read, though it counts otherwise than what is read
  > to have it read, write it at the key custom_id
R149 note failed-answer: answer without candidates, as of a request that failed, read as an empty
  list
  > send these requests again
R150 warning candidate-as-sentence: object of one candidate without an id, read as a sentence
  > give the candidates of a sentence its id
R151 warning unsorted-batch: answer of a batch without a number as id, in the order of the file
  > servers may change this order: give each request the number of its line as custom_id
R152 note joined-words: list of words or subwords, joined to a text: at blanks, or as SentencePiece
  does at ▁
R153 warning scattered-id: objects of one id that stand apart, put together
  > number them anew if they are of several runs
R154 warning scattered-document: objects of a document that stand apart, in the order in which the
  documents begin
  > references and sources must be in this order, too
R155 note order-of-sockeye: sentence_id that does not rise by 1, not read: sentences are in the
  order of the file
  > nothing to do, if the lines of the source have this order
R156 note line-end-in-text: line end inside a text, read as a space
  > nothing to do, if the line end is only layout
R201 warning mark-of-a-tool: {ours=hypotheses} have {what=words that end in @@ (subwords of
  subword-nmt)}, {theirs=references} do not
  > {cure=join them with: sed -E 's/@@( |$)//g'}
R202 warning control-word: {ours=hypotheses} have {what=__en__ (a language code)},
  {theirs=references} do not
  > {cure=remove them from the hypotheses}
R203 warning characters-as-words: {ours=hypotheses} have {what=blanks between words},
  {theirs=references} do not
  > {cure=part the words of the references, or give --tokenize char}
R204 warning other-language: {ours=hypotheses} have {what=words such as the, of, and},
  {theirs=references} do not
  > {cure=are both in the same language?}
R205 warning other-case: {ours=references} have {what=capitals}, {theirs=hypotheses} do not
  > {cure=restore them in the hypotheses, or compare in lower case}
R206 warning other-spaces: {ours=hypotheses} have {what=spaces before punctuation},
  {theirs=references} do not
  > {cure=tokenise the references or detokenise the hypotheses, as sacremoses does}
R207 warning text-at-line-ends: {ours=hypotheses} have {what='</s>' at the end}, {theirs=references}
  do not
  > {cure=prepare both alike}
R208 warning other-characters: {ours=references} have {what=“ ” in place of "}, {theirs=hypotheses}
  do not
  > {cure=write the same characters in both}
R209 warning unexplained-difference: {ours=hypotheses} have {what='♪' (eighth note)},
  {theirs=references} do not
  > {cure=prepare both alike}
R210 warning ids-in-both: every line of {ours=hypotheses} and of {theirs=references} {end=begins}
  with an id such as {id=utt-001}{order=}
  > remove it from both
R211 warning unsegmented-script: {text=hypotheses} in {script=Han} without spaces between words, of
  which BLEU with tok:{tokenize=none} makes one word
  > give --tokenize {better=zh}
R212 warning detokenised-line: line that looks detokenised, while BLEU counts words between white
  space
  > give --tokenize 13a
R213 warning detokenised-text: {text=references} look detokenised, {others=hypotheses} tokenised,
  while BLEU counts words between white space
  > give --tokenize 13a
R214 warning mixed-escaping: mixed escaping: {ours=hypotheses} contain {escape=&apos;} and similar,
  {theirs=references} do not
  > {cure=unescape the hypotheses with Moses' deescape-special-chars.perl}
R216 warning mixed-normal-forms: {ours=hypotheses} in Unicode form NFD, {theirs=references} in NFC:
  equal words differ
  > give --normalize nfc
R217 warning other-order: {ours=hypotheses} fit {theirs=references} of other lines, as line {at=3}
  that of line {other=8}
  > put both files in the same order
R218 warning shifted-lines: {ours=hypotheses} of lines {first=12} to {last=200} fit
  {theirs=references} {where=1 line later}
  > is a line missing or too many before these? align both files
R219 warning unlike-lines: {ours=hypotheses} are no more like the {theirs=references} of their lines
  than like others
  > are both files in the same order and language?
R220 warning repeated-line: {ours=hypotheses} of many lines are the same, {text='...'},
  {theirs=references} differ
  > did what wrote them fail there? write these lines again, or leave them out
R221 note identical-to-reference: hypotheses identical to reference {number=1}
  > is a reference given as a system's output?
R222 warning equal-references: references identical to those of {first=ref.0}
  > give each once
R223 note blank-reference: blank reference
  > leave such sentences out of tuning and evaluation sets
R224 note placeholder-reference: reference that only says there is no translation
  > leave such sentences out of tuning and evaluation sets
R225 warning nearer-to-another-source: candidate that is nearer to another source line than to its
  own
  > does the list number its sentences as the lines of --source?
R226 warning fields-as-text: {n=3} fields parted by {mark=TABs} on {where=each line}, read as one
  text
  > {cure=give the text alone}
R227 warning named-as-reference: translation named as a further reference
  > if it is one, give it as --ref FILE
R228 warning length-ratio: length ratio {ratio=1.204}, in tuning {tuned=1.012}: the weights were
  tuned on documents of another kind
  > give the output of the start weights as --baseline to see whether they gain
R229 note metric-left-out: metric {name=pronouns} left out: the references have nothing that it
  counts
R230 note reviewed-text: table of reviewers, who edited {edited=8} of {rows=1455} rows; scores
  against it say how much of a text was kept, not how good it is
R301 note segment-without-source: segment that the source does not have, left out
  > nothing to do, if the source is that of these documents
R302 note segment-without-translation: segment without translation, read as an empty one
  > translate it
R303 note segment-without-candidate: segment without translation, for which the system has no
  candidate
  > translate it
R304 note reference-as-translation: file without outputs of a system, its reference read as the
  translation
  > nothing to do, if it is meant so
R305 note sentence-without-reference: sentence without reference, left out (--drop-unreferenced)
R306 note no-translation: NO BEST TRANSLATION, read as an empty translation
  > translate these segments again
R307 warning joined-documents: document of --docs that joins documents which {list=dev.jsonl} itself
  has
  > leave out --docs, or give that of these lists
R308 warning documents-of-one-sentence: document of one sentence{ids= whose id ends in a number that
  counts on}
  > if these are sentences of documents, {cure=give --docs-format numbered-docids}
R309 note empty-document: empty document
R310 warning ordered-segments: segments put in the order of their ids
  > line i of a plain text must be segment i in this order
R311 warning bad-source: segment whose source is marked as bad (is_bad_source), kept
  > leave it out of all files, as the authors of WMT24++ do
R312 note unread-text-key: unread key that looks like that of a text
  > nothing to do, or write the text under a key that is read
R313 note omitted-segment: segment without text, which the document leaves out
  > look at these segments
R314 note merged-segment: merged segment, whose text is in the one beside it
  > look at these segments
R315 note repeated-sentence: repeated sentence, more often than in the references, in a segment
  > look at these segments
R316 warning aligned-as-one: documents of a text not found, which is aligned as one
  > a folder of files named by document ids, or JSON lines with doc_id and hypothesis, has them
R318 note row-of-another-system: row of a system that is no candidate, ignored; there are
  {systems=A, B}
  > name the systems as in the table of scores
R319 note row-of-another-segment: row of a segment that the lists do not have, ignored
  > nothing to do, if the table is of more documents
R320 note sentence-without-trace: sentence that the trace has not, taken as one without candidates,
  whose translation is empty
  > give the trace of the whole run
R401 note feature-without-weight: feature without weight; {value=0.5}{origin=} is used
  > give its weight in the file
R402 note absent-feature: weight of a feature that no line of the list has, ignored
  > nothing to do, if the decoder leaves out zeros
R403 note renamed-weight: weight of a feature that the list has in letters and digits
R404 note untuned-weight: weight that Moses never tunes, ignored
R405 note weights-by-place: weights without names, applied by place: {pairs=F0 → LM0, F1 → WP0}
  > give them names as in the list
R406 note weight-file-ignored: [weight-file] ignored; its weights are not read
  > add its weights to the file
R407 note untuned-in-file: weight of a feature that is never tuned, left out, as k-best lists leave
  it out
R408 note untuneable-component: UNTUNEABLECOMPONENT, left out, as k-best lists leave it out
R409 note ranges-of-mert: init.opt of Moses' mert; its start weights are read, and not its ranges
  > give ranges with --range
R410 note weight-in-two-places: weight in [weight] and in the file of [weight-file]; that of
  [weight] is used
  > give it once
R411 warning appended-weight: weight appended
  > Moses refuses the file unless it has this feature
R412 note alpha-not-kept: alpha, the scale of mbr and sampling, is not kept by the format
  {name=dense}
  > nothing to do, or write weights as json
R413 note sparse-feature-without-weight: sparse feature without weight, counted as 0
R414 warning wrong-totals: total that is not the weighted sum of the features (largest difference
  {largest=0.25})
  > are these the weights that the decoder had?
R415 warning other-ranges: ranges other than 0 to 1, which weights may leave, as they may in Moses'
  mert
  > --range keeps weights within a range
R416 note constant-feature: constant feature, whose weight stays as given
R417 note equal-features: feature that equals another, so that only the sum of their weights counts
  > leave one of them out
R418 note nothing-to-tune: tuning {why=without a feature that varies within a list}: the weights
  stay as given
  > nothing to do, or add features
R419 note too-few-lists: too few lists for cross-validation: tuned weights are taken as they are
  > tune on more lists
R420 warning no-alpha: no alpha is fitted: {why=the best candidates do not score above the others}
  > where one is needed, give --alpha
R421 warning worse-than-first: tuned weights are worse on held-out lists than their first hypotheses
  > give the weights that made the lists with --init
R422 warning other-model: weights tuned with another model, or other options of it, as {name=lm}
  > give {option=--lm lm=models/lm} as in tuning, or tune again
R501 warning unknown-words: word unknown to {name=lm} ({share=20.0%} of the {text=list}'s words,
  {trained=1.0%} of its training text's; most frequent: {words='&apos;', '@-@'})
  > check case, escaping (&apos;), tokenisation and subwords; the {text=list}s must look like the
    training text{cure=}
R502 warning foreign-text: {unit=word} unknown to {name=lm} ({share=93.0%} of them; most frequent:
  {words='der', 'und'})
  > expected the language and the segmentation that it was trained with; {cure=give the model of
    this language}
R503 warning no-unknown-word: n-gram model without <unk>: unknown words get the log10 probability
  -100, as in KenLM
  > train it with an unknown class if the texts have such words
R504 note out-of-memory: language model that ran out of memory and went on with smaller batches
  > nothing to do, or give a device with more memory
R505 warning long-context: context longer than the {positions=1,024} positions of {name=gpt}: its
  earliest sentences were left out
  > give a window (,sentences=N) to choose it
R506 note long-text: text longer than the {positions=1,024} positions of {name=gpt}, {shortened=cut}
  > nothing to do, if that is meant
R507 warning unused-term: term of the glossary that no source sentence has
  > is --source the text as it was, and should inflection=yes stand behind the file?
R508 warning markup-in-text: mark-up in a line ({marks=<p>, <seg>}), read as words
  > {cure=remove it}
R509 warning mark-in-text: mark in a line ({marks=<eos>}), read as a word
  > if it is no word, {cure=remove it}
R510 warning markdown-in-text: heading or rule of Markdown, read as a sentence
  > write blank lines, which part documents
R511 note unknown-word-counted: unknown word in the text ({marks=<unk>}), counted as any word
  outside the vocabulary
R512 warning unknown-word-in-text: unknown word in the text ({marks=<UNK>}), read as a word like
  others
  > if it stands for unknown words, give --unknown '{word=<UNK>}'
R513 warning tab-in-line: TAB in a line, read as part of a word
  > write spaces
R514 warning paragraphs-as-documents: document of one sentence, as most here
  > do blank lines part sentences, paragraphs or headings? leave them between documents only, or
    give --across-documents
R515 warning one-document: training text is one document
  > {cure=part documents with blank lines}
R516 note blank-sentence: blank line read as a sentence without words, as --documents equals says
R517 warning barely-trained: model barely trained, in {epochs=0.41} epochs
  > give {cure=--minutes 25 --resume for an epoch}
R518 warning cut-candidate: candidate cut at --longest {longest=64}
  > raise it, if sources are as long
R519 note long-candidate: candidate whose text has more tokens than the model has positions, left
  out
R520 warning blank-source-line: blank source line, whose candidates are invented
  > write its sentence
R521 note condition-left-out: condition left out: no other context for each item, because more
  than half of the items have the same one
  > nothing to do, if the items are meant so
R522 warning pieces-in-text: line with {what=words that end in @@ (subwords of subword-nmt)}, whose
  pieces --tokenizer cuts once more
  > {cure=join them with: sed -E 's/@@ //g'}; or leave --tokenizer out
R523 warning other-answers: {share=80%} of the probability of {name=j} is on other answers than
  those that it is asked for
  > take another model, or give it another prompt=
R601 note damaged-cache: damaged score cache shard, computed again
R602 warning large-document: document with more scores than the cache may hold, not kept
  > raise RERANK_CACHE_GB
R603 note cache-not-written: score cache not written: {reason=no space left on device}
  > make room, or name another folder with --cache
R604 note impossible-document: document in which no possible path was found, left with its first
  candidates
  > look at scores that are minus infinity
R701 warning control-token: {candidate=candidate} with a control token of a model, as <|im_end|>
  > rerank convert --clean takes them away; with --defects avoid or drop others are chosen
R702 warning text-around: {candidate=candidate} with words around the translation, as `Here is the
  translation:`, or in a code fence
  > with --defects avoid or drop others are chosen
R703 warning byte-tokens: {candidate=candidate} with bytes as <0xC3>, or letters of byte-level BPE
  > rerank convert --clean joins them; with --defects avoid or drop others are chosen
R704 warning reasoning: {candidate=candidate} with the reasoning of a model, as <think>
  > rerank convert --clean takes away what is closed; with --defects avoid or drop others are chosen
R705 warning prompt: {candidate=candidate} that begins with the prompt
  > rerank convert --clean takes it away
R706 warning cut-off: {candidate=candidate} that was cut off
  > give the model more tokens; with --defects avoid or drop others are chosen
R707 warning loop: {candidate=candidate} that repeats itself
  > with --defects avoid or drop others are chosen
R708 warning other-script: {candidate=candidate} in another script than nearly all others
  > with --defects avoid or drop others are chosen
R709 warning untranslated: {candidate=candidate} that has the source, or much of it, untranslated
  > with --defects avoid or drop others are chosen
R710 warning refusal: {candidate=candidate} that is a refusal, or speaks about the task
  > with --defects avoid or drop others are chosen
"""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A kind of warning: a row of the table."""

    code: str
    is_note: bool
    name: str
    sentence: str
    cure: str

    @property
    def label(self) -> str:
        """`R102 duplicate-hypothesis`, as messages end in it."""
        return f"{self.code} {self.name}"

    def sentence_of(self, values: Mapping[str, object]) -> str:
        """What a warning with these values of the fields says."""
        return _FIELD.sub(lambda field: str(values[field[1]]), self.sentence)

    def cure_of(self, values: Mapping[str, object]) -> str:
        """What to do about it."""
        return _FIELD.sub(lambda field: str(values[field[1]]), self.cure)

    def explained(self) -> str:
        """The row for people, with an example of its message in a run."""
        sentence, cure = (_FIELD.sub(r"\2", text) for text in (self.sentence, self.cure))
        printed = sentence if self.is_note else f"{sentence}; {cure}"
        severity = "note" if self.is_note else "warning"
        return (
            f"{self.label} ({severity})\n{sentence}\ncure: {cure}\n"
            f"example: warning: 3 x {printed}, first at dev.kbest:7 [{self.label}]"
        )


@cache
def diagnostics() -> Mapping[str, Diagnostic]:
    """All rows of the table by name. ValueError for a row that cannot be read."""
    rows = {}
    for found in _ROW.finditer(_TABLE):
        code, severity, name, *texts = found.groups()
        sentence, cure = (" ".join(text.split()).removeprefix("> ") for text in texts)
        cure = cure or "nothing to do"
        rows[name] = Diagnostic(code, severity == "note", name, sentence, cure)
    if len(rows) != _TABLE.count("\nR"):
        raise ValueError("a row of the table of diagnostics cannot be read, or a name is twice")
    return rows


def diagnostic(word: str) -> Diagnostic:
    """The row of a code or a name; UsageError with the nearest one if there is none."""
    rows = diagnostics()
    by_code = {one.code: one for one in rows.values()}
    if word in rows or word.upper() in by_code:
        return rows[word] if word in rows else by_code[word.upper()]
    near = difflib.get_close_matches(word, [*rows, *by_code], n=1)
    hint = f"did you mean {near[0]}?" if near else "warnings end in theirs, as [R113 blank-line]"
    raise UsageError(f"no kind of warning {word!r}; {hint}")
