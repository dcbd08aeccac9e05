"""Small coloured boxes of text for verdicts and quiz feedback, in a light and in a dark JupyterLab alike.

Serves all chapters.
"""

import html
import re

import ipywidgets

_LOOKS = {  # sign, JupyterLab's own colour, and what stands in for it elsewhere
    "right": ("✓", "--jp-success-color1", "#2e7d32"),
    "wrong": ("✗", "--jp-error-color1", "#c62828"),
    "open": ("○", "--jp-border-color1", "#9e9e9e"),
}


def formatted(text: str) -> str:
    """Escape a text for HTML and set `code`, **strong** and *emphasised* words; $...$ stays for the mathematics."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    for place, part in enumerate(parts):
        escaped = html.escape(part, quote=False)
        if part.startswith("`") and len(part) > 1:
            escaped = f"<code>{escaped[1:-1]}</code>"
        elif not part.startswith("$"):
            escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
            escaped = re.sub(r"\*(\S(?:.*?\S)?)\*", r"<em>\1</em>", escaped)
        parts[place] = escaped
    return "".join(parts)


def panel_html(kind: str, heading: str, text: str) -> str:
    """The box's HTML: a coloured edge, a sign and a heading, and the text below; kind is right, wrong or open."""
    sign, variable, fallback = _LOOKS[kind]
    colour = f"var({variable}, {fallback})"
    below = f'<div style="margin-top: 2px">{formatted(text)}</div>' if text else ""
    return (
        f'<div style="border-left: 4px solid {colour}; padding: 4px 12px; margin: 2px 0; line-height: 1.5">'
        f'<span style="color: {colour}; font-weight: bold">{sign}</span> '
        f"<strong>{formatted(heading)}</strong>{below}</div>"
    )


def panel(kind: str, heading: str, text: str) -> ipywidgets.HTMLMath:
    """The box as a widget; mathematics between $ signs is typeset."""
    return ipywidgets.HTMLMath(panel_html(kind, heading, text))
