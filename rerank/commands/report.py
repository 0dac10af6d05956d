"""`rerank report`: a decoding as a page."""

from __future__ import annotations

from rerank.files.outputs import atomic, check_folder, check_matplotlib, to_json
from rerank.notices import Notices
from rerank.options import Command
from rerank.report.measures import ReportOptions
from rerank.runs.options import printed


@printed
def report(options: ReportOptions, notices: Notices) -> str | None:
    r"""Show a decoding as a page: whether it helped, where, what changed, and why.

    The page is one file, which opens offline in any browser.

    Example:
      rerank report --trace test.trace --summary test.json --weights weights.json \
        --docs test.docids --ref test.en --out report.html
    """
    from rerank.report.figures import write_figures
    from rerank.report.page import render
    from rerank.report.run_report import run_report

    page = options.page
    if page.figures is not None:
        check_matplotlib("--figures")
        check_folder(page.figures, f"--figures {page.figures}")
    result = run_report(options, notices)
    content = render(result).encode() if page.form == "html" else to_json(result.to_dict())
    with atomic(page.out) as file:
        file.write(content)
        if page.figures is not None:
            for path in write_figures(page.figures, result):
                options.messages.announce(f"figure written to {path}")
    if page.out == "-":
        return None
    return "\n".join([*result.verdicts, f"report written to {page.out}"])


COMMAND = Command("report", ReportOptions, report)
