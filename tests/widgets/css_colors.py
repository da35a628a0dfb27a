"""The colours of a style sheet, computed as a browser does: variables, mixtures, transparency.

**Source:** W3C, CSS Color Module Level 5 (``color-mix``, in sRGB with premultiplied alpha); W3C,
Web Content Accessibility Guidelines 2.2, relative luminance and contrast ratio.
"""

import re

# Red, green, blue and alpha, each from 0 to 1.
CLEAR = (0.0, 0.0, 0.0, 0.0)


def declarations(css, is_dark):
    """The variables of a style sheet in a light or dark scheme: the last declaration holds."""
    plain, blocks = _media(css)
    dark = blocks.get("(prefers-color-scheme: dark)", "") if is_dark else ""
    return dict(re.findall(r"(--dlc-[\w-]+):\s*([^;]+);", plain + dark))


def _media(css):
    """What stands outside of ``@media``, and what in each of them."""
    plain, blocks, at = "", {}, 0
    for match in re.finditer(r"@media ([^{]*)\{", css):
        plain += css[at : match.start()]
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(css[at], 0)
            at += 1
        condition = match[1].strip()
        blocks[condition] = blocks.get(condition, "") + css[match.end() : at - 1]
    return plain + css[at:], blocks


def color(text, variables):
    """What a colour is: ``var``, ``color-mix``, ``rgba``, ``#rrggbb``, ``transparent``."""
    name, parts = _call(text.strip())
    if name == "var":
        known = variables.get(parts[0])
        return color(known if known is not None else ", ".join(parts[1:]), variables)
    if name == "color-mix":
        first, share = parts[1].rsplit(" ", 1)
        return mixed(color(first, variables), color(parts[2], variables), float(share[:-1]) / 100)
    if name in ("rgb", "rgba"):
        red, green, blue, *alpha = map(float, parts)
        return (red / 255, green / 255, blue / 255, *(alpha or [1.0]))
    if text.strip() == "transparent":
        return CLEAR
    digits = text.strip().removeprefix("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    return (*(int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)), 1.0)


def _call(text):
    """A function and its arguments, which may be calls themselves."""
    match = re.fullmatch(r"([\w-]+)\((.*)\)", text, re.DOTALL)
    if not match:
        return "", []
    parts, depth = [""], 0
    for letter in match[2]:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return match[1], [part.strip() for part in parts]


def mixed(a, b, share):
    """`share` of `a`, the rest of `b`, mixed with premultiplied alpha."""
    alpha = a[3] * share + b[3] * (1 - share)
    if alpha == 0:
        return CLEAR
    pairs = zip(a[:3], b[:3], strict=True)
    return (*((x * a[3] * share + y * b[3] * (1 - share)) / alpha for x, y in pairs), alpha)


def over(top, ground, opacity=1.0):
    """What shows of a colour over an opaque one."""
    alpha = top[3] * opacity
    pairs = zip(top[:3], ground[:3], strict=True)
    return (*(x * alpha + y * (1 - alpha) for x, y in pairs), 1.0)


def contrast(a, b):
    """Contrast ratio of two opaque colours, from 1 to 21."""
    first, second = sorted((_luminance(a), _luminance(b)))
    return (second + 0.05) / (first + 0.05)


def _luminance(value):
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in value[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
