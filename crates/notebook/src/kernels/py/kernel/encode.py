# Values for the host: objects of Python as messages.
#
# In: any object, and its place for errors. Out: the nodes and the blobs of a message, in the
# format of the library's module `value`; or a SerializationError. Nothing recurses: memory alone
# bounds the depth. Subclasses of the builtins cross as their base. Libraries are asked only if the
# code has imported them.

import math

MOST_SAFE = 2**53 - 1
MOST_ELEMENTS, MOST_ENTRIES, MOST_PROPERTIES = 1 << 23, 1 << 20, 1 << 19
MOST_KEY_UNITS, MOST_BIGINT_BYTES = 16_383, 128 << 10
# The most conversions of one object, and the steps of a path that are shown.
MOST_CONVERSIONS, MOST_STEPS = 50, 24
# Classes of errors that are the same in JavaScript.
ERROR_CLASSES = {"TypeError": 4, "SyntaxError": 3, "RangeError": 1, "ReferenceError": 2}


class SerializationError(TypeError):
    """A value that cannot cross between the cell and the host."""


class Writing:
    """A container whose members are being written."""

    def __init__(self, members, is_object):
        self.members, self.is_object = members, is_object
        # The step to the member that is written now.
        self.step = ""


class Encoder:
    def __init__(self, root):
        self.root = root
        self.nodes, self.blobs = bytearray(), []
        # The numbers of objects and of keys. Objects are held, so that no id is used again.
        self.objects, self.count, self.held = {}, 0, []
        self.keys = {}
        self.frames = []

    def encode(self, value):
        self.value(value)
        while self.frames:
            frame = self.frames[-1]
            member = next(frame.members, None)
            if member is None:
                self.frames.pop()
                if frame.is_object:
                    self.nodes.append(0)
                continue
            frame.step, key, value = member
            if frame.is_object:
                self.key(key)
            self.value(value)
        return bytes(self.nodes), self.blobs

    def value(self, value):
        for _ in range(MOST_CONVERSIONS):
            if self.node(value):
                return
            value = self.converted(value)
        self.refuse("an object whose conversions have no end")

    def node(self, value):
        """Writes a value without its members; false if it is of no kind that crosses."""
        if value is None:
            self.nodes.append(0x01)
        elif isinstance(value, bool):
            self.nodes.append(0x02 if value else 0x03)
        elif is_of(value, "enum", "Enum"):
            return False
        elif isinstance(value, int):
            self.integer(int.__pos__(value))
        elif isinstance(value, float):
            self.number(float.__pos__(value))
        elif isinstance(value, str):
            self.string(value)
        elif id(value) in self.objects:
            self.nodes.append(0x10)
            self.varint(self.objects[id(value)])
        elif isinstance(value, (bytes, bytearray, memoryview)):
            self.view(value)
        elif isinstance(value, (list, tuple, dict, set, frozenset)):
            self.container(value)
        elif is_of(value, "datetime", "datetime"):
            self.date(value)
        elif isinstance(value, BaseException):
            self.error(value)
        else:
            return False
        return True

    def integer(self, value):
        if -(2**31) <= value < 2**31:
            self.nodes.append(0x04)
            self.varint(value << 1 if value >= 0 else (-value << 1) - 1)
        elif abs(value) <= MOST_SAFE:
            self.nodes += struct.pack("<Bd", 0x05, value)
        else:
            size = (value.bit_length() + 7) // 8
            if size > MOST_BIGINT_BYTES:
                self.refuse(f"an int of more than {MOST_BIGINT_BYTES:,} bytes")
            self.nodes += b"\x06" + (b"\x01" if value < 0 else b"\x00")
            self.varint(size)
            self.nodes += abs(value).to_bytes(size, "little")

    def number(self, value):
        is_int = -(2**31) <= value < 2**31 and value == int(value)
        if is_int and (value or math.copysign(1, value) > 0):
            self.integer(int(value))
        else:
            self.nodes += struct.pack("<Bd", 0x05, value)

    def string(self, text):
        self.text(text, 0x07, 0x08)

    def text(self, text, tag, tag16):
        """Text behind a tag; with lone surrogates behind another one, in UTF-16."""
        data = str.encode(text, "utf-16-le", "surrogatepass") if has_surrogates(text) else None
        if data is not None:
            try:
                text = data.decode("utf-16-le")
            except UnicodeDecodeError:
                self.nodes.append(tag16)
                self.varint(len(data) // 2)
                self.nodes += data
                return
        data = str.encode(text)
        self.nodes.append(tag)
        self.varint(len(data))
        self.nodes += data

    def key(self, key):
        number = self.keys.get(key)
        if number is not None:
            self.varint(number + 3)
            return
        if len(key) > MOST_KEY_UNITS // 2 and utf16_units(key) > MOST_KEY_UNITS:
            self.refuse(f"a key of more than {MOST_KEY_UNITS:,} characters")
        self.keys[key] = len(self.keys)
        self.text(key, 1, 2)

    def view(self, value):
        self.open(value, 0x1A)
        data = bytes(value)
        self.nodes += struct.pack("<BIQQ", 2, len(self.blobs), 0, len(data))
        self.blobs.append(data)

    def container(self, value):
        if isinstance(value, dict):
            # From a copy: a conversion may run code that changes it.
            items = list(dict.items(value))
            if all(isinstance(key, str) for key, _ in items):
                self.open(value, 0x11)
                self.bound(items, MOST_PROPERTIES)
                members = ((step_of(key), plain(key), inner) for key, inner in items)
                self.frames.append(Writing(members, True))
                return
            tag, most, members = 0x14, MOST_ENTRIES, entries(items)
        elif isinstance(value, (set, frozenset)):
            items = list(value)
            tag, most, members = 0x15, MOST_ENTRIES, elements(items, ".values()")
        else:
            items = list(list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value))
            tag, most, members = 0x12, MOST_ELEMENTS, elements(items)
        self.bound(items, most)
        self.open(value, tag)
        self.varint(len(items))
        self.frames.append(Writing(members, False))

    def date(self, value):
        import datetime

        try:
            # A subclass has its own, such as pandas', which takes no local time.
            aware = datetime.datetime.astimezone(value, datetime.timezone.utc)
            epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            since = datetime.datetime.__sub__(aware, epoch)
            time = since // datetime.timedelta(milliseconds=1)
        except (OverflowError, OSError, ValueError):
            self.refuse("a datetime that is out of range")
        self.open(value, 0x16)
        self.nodes += struct.pack("<d", time)

    def error(self, error):
        name = getattr(type(error), "__name__", "Error")
        try:
            message = str(error)
        except Exception:
            message = ""
        self.open(error, 0x18)
        self.nodes.append(ERROR_CLASSES.get(name, 0))
        self.string(name)
        self.string(message)
        self.nodes += b"\x00\x00"

    def open(self, value, tag):
        self.objects[id(value)] = self.count
        self.count += 1
        self.held.append(value)
        self.nodes.append(tag)

    def bound(self, items, most):
        if len(items) > most:
            self.refuse(f"a collection of more than {most:,} members")

    def varint(self, value):
        while value >= 0x80:
            self.nodes.append(value & 0x7F | 0x80)
            value >>= 7
        self.nodes.append(value)

    def converted(self, value):
        """The value in place of an object."""
        kind, converted = type(value), in_json_sense(value)
        if converted is not value:
            return converted
        if hasattr(kind, "tolist"):
            self.refuse(f"an instance of {kind.__name__}", "; use .tolist()")
        if is_of(value, "re", "Pattern"):
            self.refuse("a re.Pattern")
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
            self.refuse("a function")
        if isinstance(value, type):
            self.refuse("a class")
        if isinstance(value, types.GeneratorType):
            self.refuse("a generator")
        return self.refuse(f"an instance of {kind.__name__}")

    def refuse(self, kind, advice=""):
        steps = [frame.step for frame in self.frames]
        if len(steps) > MOST_STEPS:
            steps = [*steps[: MOST_STEPS // 2], "…", *steps[-MOST_STEPS // 2 :]]
        raise SerializationError(f"{self.root}{''.join(steps)}: {kind} cannot be cloned{advice}")


def in_json_sense(value):
    """The value in place of an object of the standard library, of pydantic or of numpy, in the
    sense that JSON gives it; any other object itself."""
    kind = type(value)
    if is_of(value, "enum", "Enum"):
        return value.value
    if is_of(value, "datetime", "date", "time"):
        return value.isoformat()
    if is_of(value, "uuid", "UUID"):
        return str(value)
    if is_of(value, "datetime", "timedelta"):
        return value.total_seconds()
    if is_of(value, "decimal", "Decimal"):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole and value.adjusted() < 4300 else float(value)
    if hasattr(kind, "model_dump"):
        return value.model_dump(mode="python")
    if hasattr(kind, "__dataclass_fields__") and not isinstance(value, type):
        fields = sys.modules["dataclasses"].fields(value)
        return {field.name: getattr(value, field.name) for field in fields}
    if all(hasattr(kind, name) for name in ("dtype", "item", "shape")) and value.shape == ():
        # A long double is its own item.
        item = value.item()
        return value if type(item) is kind else item
    return value


def is_of(value, module, *names):
    """Whether a value is of one of these classes of a module that is imported."""
    module = sys.modules.get(module)
    return module is not None and any(isinstance(value, getattr(module, name)) for name in names)


def plain(text):
    """A text that is no subclass."""
    return text if type(text) is str else str.__str__(text)


def has_surrogates(text):
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return True
    return False


def utf16_units(text):
    return len(str.encode(text, "utf-16-le", "surrogatepass")) // 2


def step_of(key):
    key = plain(key)[:80]
    is_name = key.isascii() and key.isidentifier()
    return f".{key}" if is_name else f"[{json.dumps(key, ensure_ascii=False)}]"


def elements(items, of=""):
    return ((f"{of}[{index}]", None, item) for index, item in enumerate(items))


def entries(items):
    for index, (key, value) in enumerate(items):
        yield f".keys()[{index}]", None, key
        yield f".values()[{index}]", None, value
