# Displays: a value of Python as text, markdown, JSON or images.
#
# In: values. Out: messages for the host, in the order of the calls. Libraries are asked only if
# the code has imported them.

import base64

# The methods of a value by the kind of content that they give, in the order in which they are
# asked.
REPRS = {
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "text/markdown": "_repr_markdown_",
    "text/html": "_repr_html_",
    "application/json": "_repr_json_",
    "image/svg+xml": "_repr_svg_",
}
SVG = "image/svg+xml"
# The modes of PIL's images that PNG has.
PNG_MODES = frozenset(["1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"])
SAFE_INTEGER = 2**53 - 1
# Nested levels of a JSON value; deeper ones are text.
JSON_DEPTH = 100


def messages_of(value, *, is_last=False):
    """The messages that show a value. `is_last`: that of the last expression, quoted if text."""
    if isinstance(value, str) and not is_last:
        return [{"type": "text", "text": str(value)}]
    if isinstance(value, (dict, list, tuple)) and not has_reprs(value):
        return [{"type": "json", "value": json_of(value, [])}]
    png = picture(value)
    if png is not None:
        return [image("image/png", png)]
    return messages_of_bundle(bundle_of(value), value)


def messages_of_bundle(bundle, value=None):
    for kind in ("image/png", "image/jpeg"):
        if bundle.get(kind) is not None:
            return [image(kind, bundle[kind])]
    # It is for people: a model gets the text.
    drawn = [] if bundle.get(SVG) is None else [image(SVG, encoded(bundle[SVG]))]
    return [*drawn, *text_of_bundle(bundle, value)]


def text_of_bundle(bundle, value):
    if bundle.get("text/markdown") is not None:
        return [{"type": "markdown", "text": str(bundle["text/markdown"])}]
    if bundle.get("text/html") is not None:
        text = markdown_of_html(str(bundle["text/html"]))
        # Pictures and scripts alone have none.
        if text.strip() or (value is None and bundle.get("text/plain") is None):
            return [{"type": "markdown", "text": text}]
    if bundle.get("application/json") is not None:
        return [{"type": "json", "value": json_of(bundle["application/json"], [])}]
    if bundle.get("text/plain") is not None:
        return [{"type": "text", "text": str(bundle["text/plain"])}]
    return [{"type": "text", "text": repr(value)}] if value is not None or not bundle else []


def has_reprs(value):
    names = ("_repr_mimebundle_", *REPRS.values())
    return any(hasattr(type(value), name) for name in names)


def bundle_of(value):
    """The contents that the methods of a value give. A method that fails is passed over, and the
    standard error tells it."""
    bundle = {}
    if isinstance(value, type):
        return {"text/plain": repr(value)}
    if hasattr(type(value), "_repr_mimebundle_"):
        given = asked(value, "_repr_mimebundle_", include=None, exclude=None)
        given = given[0] if isinstance(given, tuple) else given
        bundle.update(given if isinstance(given, dict) else {})
    for kind, name in REPRS.items():
        if kind not in bundle and hasattr(type(value), name):
            given = asked(value, name)
            bundle[kind] = content_of_repr(given)
    if all(bundle.get(kind) is None for kind in (*REPRS, "text/plain") if kind != SVG):
        bundle["text/plain"] = repr(value)
    return bundle


def content_of_repr(given):
    """The content that a method gave, alone or with its metadata."""
    is_pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)
    return given[0] if is_pair else given


def asked(value, name, **keywords):
    try:
        return getattr(value, name)(**keywords)
    except Exception as error:
        if not isinstance(error, NotImplementedError):
            print(
                f"{type(value).__name__}.{name} failed: {type(error).__name__}: {error}",
                file=sys.stderr,
            )
        return None


def image(kind, data):
    text = data if isinstance(data, str) else base64.b64encode(bytes(data)).decode()
    return {"type": "image", "mimeType": kind, "data": "".join(text.split())}


def picture(value):
    """A figure of Matplotlib or an image of PIL, in PNG."""
    figures, images = sys.modules.get("matplotlib.figure"), sys.modules.get("PIL.Image")
    if figures is not None and isinstance(value, getattr(figures, "Figure", ())):
        file = io.BytesIO()
        value.savefig(file, format="png", bbox_inches="tight")
        plots = sys.modules.get("matplotlib.pyplot")
        if plots is not None:
            # It is shown now, so not once more at the end of the cell.
            plots.close(value)
        return file.getvalue()
    if images is not None and isinstance(value, getattr(images, "Image", ())):
        file = io.BytesIO()
        if value.mode not in PNG_MODES:
            value = value.convert("L" if value.mode == "F" else "RGB")
        value.save(file, format="PNG")
        return file.getvalue()
    return None


def open_figures():
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is None or not hasattr(plots, "get_fignums"):
        return []
    return [plots.figure(number) for number in plots.get_fignums()]


def json_of(value, parents):
    """A value that JSON has. Others are text: numbers that are not exact in a double, dates, any
    object."""
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value) if abs(value) <= SAFE_INTEGER else str(int(value))
    if isinstance(value, float):
        return float(value) if abs(value) != float("inf") and value == value else repr(float(value))
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        if any(parent is value for parent in parents):
            return "[Circular]"
        if len(parents) >= JSON_DEPTH:
            return "…"
        inside = [*parents, value]
        if not isinstance(value, dict):
            return [json_of(item, inside) for item in value]
        if all(isinstance(key, (str, int, float, bool, type(None))) for key in value):
            return {
                key if isinstance(key, str) else str(key): json_of(item, inside)
                for key, item in value.items()
            }
        return [[json_of(key, inside), json_of(item, inside)] for key, item in value.items()]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if any(parent is value for parent in parents):
        return "[Circular]"
    if len(parents) >= JSON_DEPTH:
        return "…"
    try:
        converted = in_json_sense(value)
    except Exception:
        return repr(value)
    return repr(value) if converted is value else json_of(converted, [*parents, value])


def markdown_of_html(html):
    """Tables, headings, lists, links and emphasis of HTML in markdown; of all else the text."""
    from html.parser import HTMLParser

    marks = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`"}

    class Reader(HTMLParser):
        def __init__(self):
            super().__init__(convert_charrefs=True)
            self.out, self.hidden, self.rows, self.cell, self.links = [], 0, None, None, []

        def put(self, text):
            (self.out if self.cell is None else self.cell).append(text)

        def handle_starttag(self, tag, attributes):
            if tag in ("script", "style", "head"):
                self.hidden += 1
            elif tag == "table":
                self.rows = []
            elif tag == "tr" and self.rows is not None:
                self.rows.append([])
            elif tag in ("td", "th") and self.rows:
                self.cell = []
            elif tag in marks:
                self.put(marks[tag])
            elif tag == "a":
                self.links.append(dict(attributes).get("href") or "")
                self.put("[")
            elif tag == "li":
                self.put("\n- ")
            elif len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
                self.put("\n\n" + "#" * int(tag[1]) + " ")
            elif tag in ("p", "div", "pre", "ul", "ol"):
                self.put("\n\n")
            elif tag == "br":
                self.put("\n")

        def handle_endtag(self, tag):
            if tag in ("script", "style", "head"):
                self.hidden = max(0, self.hidden - 1)
            elif tag in ("td", "th") and self.cell is not None:
                text = " ".join("".join(self.cell).split()).replace("|", "\\|")
                self.rows[-1].append(text)
                self.cell = None
            elif tag == "table" and self.rows is not None:
                rows, self.rows, self.cell = [row for row in self.rows if row], None, None
                self.put(table(rows))
            elif tag in marks:
                self.put(marks[tag])
            elif tag == "a" and self.links:
                self.put(f"]({self.links.pop()})")

        def handle_data(self, data):
            if not self.hidden and (self.rows is None or self.cell is not None):
                self.put(data if data.strip() else " ")

    def table(rows):
        width = max((len(row) for row in rows), default=0)
        rows = [row + [""] * (width - len(row)) for row in rows]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + " --- |" * width)
        return "\n\n" + "\n".join(lines) + "\n\n"

    reader = Reader()
    reader.feed(html)
    reader.close()
    lines = [line.rstrip() for line in "".join(reader.out).split("\n")]
    shown = []
    for written in lines:
        line = written if written.startswith(("|", "- ")) else written.strip()
        if line or (shown and shown[-1]):
            shown.append(line)
    return "\n".join(shown).strip()
