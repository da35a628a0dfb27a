"""Format numbers with three digits and a unit."""

from __future__ import annotations


def format_bytes(size: float) -> str:
    """Return a number of bytes in powers of 1024.

    Examples
    --------
    >>> format_bytes(640), format_bytes(4096), format_bytes(12_582_912), format_bytes(1500)
    ('640 B', '4 KiB', '12 MiB', '1.46 KiB')
    >>> format_bytes(3 << 60)
    '3 EiB'
    """
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{_digits(value)} {unit}"


def format_count(count: float) -> str:
    """Return a number of things: whole below 100,000, else in powers of 1000.

    Examples
    --------
    >>> format_count(65536), format_count(2_147_483_648), format_count(1_200_000)
    ('65,536', '2.15 G', '1.2 M')
    """
    if count < 100_000:
        return f"{count:,}"
    value, unit = float(count), ""
    for larger in (" k", " M", " G", " T", " P", " E"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{_digits(value)}{unit}"


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.3g}"


def percent(share: float) -> str:
    """Return a share as text, with at least one digit that is not 0 if it is not tiny.

    Examples
    --------
    >>> percent(0), percent(0.0004), percent(0.5), percent(0.99999), percent(8.6e-6)
    ('0%', '0.04%', '50%', '99.999%', '< 0.001%')
    """
    if 0 < share < 0.00001:
        return "< 0.001%"
    if 0 < share < 0.01:
        return f"{100 * share:.1g}%"
    if 0.99 < share < 1:
        return f"{100 - float(f'{100 * (1 - share):.1g}'):.6g}%"
    return f"{share:.0%}"
