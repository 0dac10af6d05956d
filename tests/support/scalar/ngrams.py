"""N-gram models from the formulas of the papers: dictionaries of counts, one word at a time."""

from collections import Counter
from collections.abc import Sequence

Words = tuple[str, ...]


def counted(sentences: Sequence[str], n: int) -> Counter[Words]:
    """How often each n-gram occurs."""
    marked = [["<s>", *sentence.split(), "</s>"] for sentence in sentences]
    return Counter(tuple(own[i : i + n]) for own in marked for i in range(len(own) - n + 1))


def adjusted(sentences: Sequence[str], n: int, order: int) -> Counter[Words]:
    """Numbers of words before each n-gram; counts at the highest order and behind `<s>`."""
    counts = counted(sentences, n)
    if n < order:
        longer = counted(sentences, n + 1)
        counts = Counter(
            {
                ngram: count
                if ngram[0] == "<s>"
                else len({other[0] for other in longer if other[1:] == ngram})
                for ngram, count in counts.items()
            }
        )
    if n == 1:
        del counts[("<s>",)]
    return counts


class ScalarKneserNey:
    """Chen & Goodman 1999: p(w | h) by the recursion, for discounts (D1, D2, D3+) of each order."""

    def __init__(
        self,
        sentences: Sequence[str],
        order: int,
        discounts: Sequence[tuple[float, float, float]] = (),
    ) -> None:
        self.counts = [adjusted(sentences, n, order) for n in range(1, order + 1)]
        self.order = order
        self.words = sorted({w for (w,) in self.counts[0]} | {"<unk>"})
        self.discounts = discounts or [self.closed_form(counts) for counts in self.counts]

    @staticmethod
    def closed_form(counts: Counter[Words]) -> tuple[float, float, float]:
        """Equation 26."""
        n1, n2, n3, n4 = (sum(count == c for count in counts.values()) for c in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2)
        return 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3

    def prob(self, word: str, history: Words) -> float:
        """p(word | history), of which the last N − 1 words count."""
        history = history[max(0, len(history) - self.order + 1) :]
        shorter = self.prob(word, history[1:]) if history else 1 / len(self.words)
        counts, discounts = self.counts[len(history)], self.discounts[len(history)]
        after = {ngram[-1]: c for ngram, c in counts.items() if ngram[:-1] == history}
        total = sum(after.values())
        if not total:
            return shorter
        count = after.get(word, 0)
        discount = discounts[min(count, 3) - 1] if count else 0.0
        gamma = sum(discounts[min(c, 3) - 1] for c in after.values()) / total
        return (count - discount) / total + gamma * shorter


class ScalarStupidBackoff:
    """Brants et al. 2007, equation 5; an unseen word has α / V behind the empty history."""

    def __init__(self, sentences: Sequence[str], order: int) -> None:
        self.counts = [counted(sentences, n) for n in range(1, order + 1)]
        self.order = order
        self.n_words = len({w for (w,) in self.counts[0]} | {"<unk>"}) - 1
        self.size = sum(self.counts[0].values()) - self.counts[0][("<s>",)]

    def score(self, word: str, history: Words) -> float:
        """S(word | history), of which the last N − 1 words count."""
        history = history[max(0, len(history) - self.order + 1) :]
        count = self.counts[len(history)][(*history, word)]
        if not history:
            return count / self.size if count else 0.4 / self.n_words
        if count:
            return count / self.counts[len(history) - 1][history]
        return 0.4 * self.score(word, history[1:])
