"""Names that break whoever forgets to escape them: in HTML, SVG, Markdown, XML, CSV, Prometheus, on a terminal."""

from __future__ import annotations

_HTML = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><svg/onload=alert(1)>",
    "<!-- ]]> -->",
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    "`backticks` and ``two``",
    "a & b &amp; c &#x3c;",
    "javascript:alert(1)",
)

_TEMPLATES = ("{{7*7}}", "{% raw %}", "${7*7}", "#{7*7}", "datum['x'] + 1")

_DIRECTIONS = (
    "מבחן ביצועים 17",
    "اختبار الأداء",
    "before\u202eafter",
    "\u2067isolated\u2069 and \u202bembedded",
)

_PICTURES = ("👩\u200d💻 coder", "🏳️\u200d🌈🧪", "e\u0301 and é", "zero\u200bwidth")

_MARKUP = (
    "| a | b |",
    "[link](https://example.invalid) ![image](x)",
    "**bold** _it_ ~~no~~ # head",
    "[bold red]rich[/]",
    "back\\slash\\n",
    "100 % {le=\"1\",x='2'} %s %(a)s",
    "::error file=a,line=1::b",
)

_SPACE = ("two\nlines", "a\ttab", " leading and trailing ", "\x1b[31mred\x07")

_FORMULAS = ("=1+1", "+1", "-1", "@x", 'a,b;"c"')

#: Each of another danger, and no two alike.
HOSTILE_NAMES: tuple[str, ...] = (
    *_HTML,
    *_TEMPLATES,
    *_DIRECTIONS,
    *_PICTURES,
    *_MARKUP,
    *_SPACE,
    *_FORMULAS,
    "long-" * 60,
)
