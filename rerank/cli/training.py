"""`rerank train-lm`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.options import (
    Messages,
    all_of,
    count_option,
    device_option,
    documents_option,
    message_options,
    threads_option,
)
from rerank.cli.side_information import side_of, side_options
from rerank.cli.training_options import of_recipe, training_options
from rerank.registry import MODELS
from rerank.values import FILE, FOLDER, MOST_LINES, TEXT, MemberName, TableName

if TYPE_CHECKING:
    from lm.training.trainer import Report

WIDEST = 1 << 16  # layer that `lm.model.Config` allows


@click.command(
    "train-lm",
    cls=CommandWithHeadings,
    headings={
        "train": "Data and output",
        "model": "Model",
        "initialisation": "Training",
        "device": "Machine",
        "strict": "Messages",
    },
)
@click.option(
    "--train",
    required=True,
    type=FILE,
    help="Training text: one sentence per line, documents parted as --documents says.",
)
@click.option("--valid", required=True, type=FILE, help="Validation text in the same format.")
@all_of(side_options(beside="line of --train, blank where that is blank"))
@all_of(side_options("valid-", "line of --valid"))
@documents_option
@click.option(
    "--unknown",
    type=TEXT,
    metavar="WORD",
    help="Word of the texts that stands for all unknown words, as <unk> always does; UNK in the "
    "data files of Ji et al. 2016.",
)
@click.option(
    "--out",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="New folder for the model.",
)
@click.option("--resume", is_flag=True, help="Continue the interrupted training in --out.")
@count_option(
    "--longest",
    help="Leave sentences of more than N words out of training, also as context of the next ones; "
    "validation has all [default: keep all].",
)
@click.option(
    "--across-documents",
    is_flag=True,
    help="Let contexts cross the ends of documents: each text is one stream, the training text in "
    "4 x --streams stretches.",
)
@count_option(
    "--passages",
    least=2,
    help="Cut documents into passages of N sentences, a shorter rest left out, and predict only "
    "the last sentence of each, given the others: training for the choice of next sentences, as "
    "in Ghosh et al. 2016 with N = 4. Perplexities are of the last sentences [default: predict all "
    "sentences of whole documents].",
)
@click.option(
    "--curve",
    type=FILE,
    help="New file for the learning curve: tab-separated figures of every validation. --resume "
    "extends it.",
)
@click.option(
    "--model",
    required=True,
    type=MemberName(MODELS),
    help="Language model; `rerank list models` shows what each is, and its number of parameters.",
)
@click.option(
    "--recipe",
    type=click.Choice(["strong", "paper", "code"]),
    default="strong",
    help="Defaults of the options for the model and its training: strong for use, shown here; "
    "paper is the training of the model's own paper, code that of its authors' program. The run "
    "prints what it uses.",
)
@count_option(
    "--vocab",
    "vocabulary",
    most=MOST_LINES,
    **of_recipe("10000", "Vocabulary size: the most frequent words of the training text"),
)
@count_option(
    "--vocab-min-count",
    "min_count",
    most=MOST_LINES,
    **of_recipe("1", "Number of times that a word of the vocabulary is in the training text"),
)
@count_option(
    "--source-vocab",
    "source_vocabulary",
    most=MOST_LINES,
    help="Vocabulary size of the source sentences [default: that of --vocab].",
)
@click.option(
    "--source-lm",
    type=FOLDER,
    metavar="DIR",
    help="A dclm trained on source text alone, of the same sizes and parts: the source side of a "
    "bilingual model begins with its embeddings, encoder and recurrence, and has its vocabulary "
    "[default: begin with random weights].",
)
@click.option(
    "--size",
    type=click.Choice(["small", "medium", "large"]),
    help="Defaults of --embed, --hidden and --layers: small 128, 256, 1; medium 256, 512, 1; "
    "large 512, 1024, 2 [default: those of --recipe].",
)
@count_option(
    "--embed",
    most=WIDEST,
    **of_recipe(
        "128",
        "Size of the word embeddings; that of the hidden layers in the models of Lin et al., whose "
        "default it is",
    ),
)
@count_option("--hidden", most=WIDEST, **of_recipe("256", "Size of the hidden layers"))
@count_option("--layers", most=64, **of_recipe("1", "Number of recurrent layers"))
@click.option(
    "--recurrence",
    type=TableName("lm.composition:RECURRENCES"),
    **of_recipe(
        "lstm",
        "Recurrent cell: cifg is the LSTM with coupled gates of Ji et al.'s code, as its library "
        "has it since April 2016; cifg-2015 as it had it in November 2015, when they published, "
        "without a peephole at the first word; rnn is the simple cell with a sigmoid, tanh the "
        "one with tanh, htanh the clipped linear one of Lin et al., whose own models have it in "
        "their form; peephole is the lstm with diagonal peepholes of Graves 2009, the cell of "
        "Ghosh et al.'s models",
    ),
)
@click.option("--tied/--untied", **of_recipe("tied", "Share embeddings with the output layer"))
@click.option(
    "--fusion",
    type=TableName("lm.composition:FUSIONS"),
    help="Where the context enters: input concatenates it to every word, input-sum adds a "
    "projection of it, output adds it to the logits, merge feeds tanh(W h + W' c + b) to the "
    "output, input-merge is input and merge, input-residual feeds tanh(h + Q c + P x), gate adds a "
    "gated projection to the memory cell's output (late fusion), initial begins sentences in a "
    "carried state (drnnlm), input-initial is input and initial [default: that of the model].",
)
@count_option(
    "--attention",
    most=WIDEST,
    help="Size of the hidden layer of the attention, in models that have one [default: --hidden].",
)
@click.option(
    "--encoder",
    type=TableName("lm.composition:ENCODERS"),
    help="How a sentence becomes a vector, in models that have an encoder, such as dclm: bag is "
    "the mean of its words' embeddings, sum their sum, cnn a convolution over windows of three "
    "words with max-pooling, rnn the last state of a recurrence of the kind --recurrence "
    "[default: cnn].",
)
@click.option(
    "--sentence-recurrence",
    type=TableName("lm.composition:RECURRENCES"),
    help="Recurrent cell over the vectors of all earlier sentences, in models that have one, such "
    "as dclm [default: --recurrence].",
)
@click.option(
    "--source-context",
    type=TableName("lm.composition:SOURCE_CONTEXTS"),
    help="What the models that need --source have of it: previous, a vector of the source "
    "sentences before the current one, as in the memo; current, a vector of these and the current "
    "one; or both vectors [default: both].",
)
@click.option(
    "--relation-classifier",
    type=TableName("lm.composition:RELATION_CLASSIFIERS"),
    help="How dclm-auxiliary learns to tell the relation of two sentences from their vectors: "
    "bilinear has a matrix for each relation, mlp a hidden layer over both vectors "
    "[default: bilinear].",
)
@click.option(
    "--head",
    type=TableName("lm.composition:HEADS"),
    help="How words are predicted: unbiased is the softmax without a bias; classes is a softmax "
    "over classes of words and one over the words of a class (exact, scores faster); "
    "self-normalised is trained so that its logits are scores without a normaliser (fastest, error "
    "stated); hashed adds maximum-entropy n-gram features to the softmax (exact) [default: that of "
    "the model].",
)
@count_option(
    "--hash-size",
    most=2**31 - 1,
    help="Numbers in a table of hashed features, 4 bytes each, 12 and gradients in training; "
    "hrnnlm-lin has two tables [default: 10000000].",
)
@count_option(
    "--hash-order",
    least=2,
    most=3,
    help="Longest n-grams of hashed features: 2, or 3 for trigrams as well [default: 2].",
)
@count_option(
    "--thought",
    most=WIDEST,
    help="Size of the thought vector of clstm-thought and hlstm [default: an eighth of --hidden].",
)
@click.option(
    "--topic-model",
    type=TableName("lm.composition:TOPIC_MODELS"),
    help="How the topics of the models clstm-… are learned from the training text before they are "
    "trained: kmeans clusters stretches of ten sentences (TF-IDF, latent semantic analysis), lda "
    "is latent Dirichlet allocation. Training needs the extra `topics` (scikit-learn), use of the "
    "model does not [default: kmeans].",
)
@count_option(
    "--topics-number", most=WIDEST, help="Number of topics of the models clstm-… [default: 100]."
)
@click.option(
    "--backward",
    is_flag=True,
    default=None,
    help="Read sentences from right to left: a feature of its own beside a forward model. The "
    "folder says so, and no command needs the option again.",
)
@click.option(
    "--reverse-documents",
    is_flag=True,
    default=None,
    help="Read documents from the last sentence to the first, the words of each sentence as "
    "usual: contexts are later sentences, a feature of its own beside a forward model. The folder "
    "says so, and no command needs the option again. Not with models without context.",
)
@training_options
@device_option
@threads_option
@message_options
def train_lm(
    train: str,
    valid: str,
    out: Path,
    resume: bool,
    curve: str | None,
    threads: int | None,
    messages: Messages,
    **recipe: Any,
) -> Report | None:
    """Train a document language model.

    \b
    Example:
      rerank train-lm --model codclm --train train.en.gz --valid valid.en --out codclm.lm
    """
    from rerank.commands.texts import TextFiles
    from rerank.pipeline.language_models import train_lm as train_lm_of
    from rerank.pipeline.recipe import Recipe

    def report(r: Report) -> None:
        messages.announce(
            f"epoch {r.epoch:5.2f}  {r.seconds / 60:5.1f} min  {r.words_per_second:7,.0f} words/s  "
            f"train {r.training_nats:.3f} nats  valid {'' if r.predicts_end else 'bag-of-words '}"
            f"{'' if r.causal else 'pseudo-'}perplexity {r.valid_perplexity:.2f}"
            f"{'' if r.stage == 'words' else f' of {r.stage}'}"
            f"{f'  {r.log_z.to_text()}' if r.log_z else ''}{'  best' if r.best else ''}"
        )

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        side, valid_side = side_of(recipe), side_of(recipe, "valid_")
        last = train_lm_of(
            Recipe(**recipe, threads=threads),
            TextFiles(train, side),
            TextFiles(valid, valid_side),
            out,
            notices=notices,
            resume=resume,
            curve=curve,
            report=report,
            announce=messages.announce,
        )
    if last is not None:
        messages.announce(f"model written to {out}")
    return last
