"""Matplotlib's SVG made fit to be laid into an HTML page: it has a name, and its ids are its own."""

from __future__ import annotations

import hashlib
import io
import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def embeddable(figure: Figure, *, title: str, description: str) -> str:
    """
    Return a figure as an SVG element for a page that may hold several.

    It is an image with a title and a description for a screen reader. Ids and the references to them get a
    prefix, since those of Matplotlib repeat from picture to picture. Its metadata, which names hosts, is left
    out, and its style, which would be that of the whole page.
    """
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    # S314: the text is Matplotlib's own, made a moment ago.
    root = ElementTree.fromstring(text.getvalue())  # noqa: S314
    prefix = "p" + hashlib.sha256(title.encode()).hexdigest()[:8] + "-"
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _prefix_ids(element, prefix)
    _name(root, prefix, title, description)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _prefix_ids(element: ElementTree.Element, prefix: str) -> None:
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, prefix + value)
        elif name == f"{{{XLINK}}}href" and value.startswith("#"):
            element.set(name, f"#{prefix}{value[1:]}")
        elif "url(#" in value:
            element.set(name, _REFERENCE.sub(rf"url(#{prefix}\1)", value))


def _name(root: ElementTree.Element, prefix: str, title: str, description: str) -> None:
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}title {prefix}desc")
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    # The view box stays, so that the page can set the width.
    root.attrib.pop("width", None)
    root.attrib.pop("height", None)
    for place, (tag, text) in enumerate([("title", title), ("desc", description)]):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": prefix + tag})
        element.text = text
        root.insert(place, element)
