"""The pictures of a static page: images whose source is an SVG file."""

import xml.etree.ElementTree as ET
from urllib.parse import unquote

START = "data:image/svg+xml;charset=utf-8,"
SVG = "{http://www.w3.org/2000/svg}"


def pictures_in(html):
    """Return the SVG of each image in a well-formed fragment, without its namespace."""
    sources = [image.get("src") for image in ET.fromstring(str(html)).iter("img")]
    assert all(source.startswith(START) for source in sources)
    return [_parsed(unquote(source.removeprefix(START))) for source in sources]


def _parsed(text):
    root = ET.fromstring(text)
    for node in root.iter():
        assert node.tag.startswith(SVG)
        node.tag = node.tag.removeprefix(SVG)
    return root
