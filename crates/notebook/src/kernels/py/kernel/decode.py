# Values of the host: messages as objects of Python.
#
# In: the nodes and the blobs of a message, as the host writes them, and its place for errors. Out:
# an object, or a SerializationError for a value that Python does not have. Nothing recurses.

# The formats of views by their kinds, and the bytes of their elements; other views are bytes.
VIEWS = {1: "b", 4: "h", 5: "H", 6: "i", 7: "I", 8: "q", 9: "Q", 10: "e", 11: "f", 12: "d"}
VIEW_BYTES = {"b": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "Q": 8, "e": 2, "f": 4, "d": 8}


class Filling:
    """A container whose members are being read."""

    def __init__(self, add, target, left=None):
        # Reads the next member, and says whether there was one.
        self.add, self.target, self.left = add, target, left
        # The members of one that is filled at its end.
        self.members = []


class Decoder:
    def __init__(self, nodes, blobs, root):
        self.nodes, self.blobs, self.root = nodes, blobs, root
        self.at = 0
        self.objects, self.keys, self.open = [], [], []

    def decode(self):
        value = self.node()
        while self.open:
            filling = self.open[-1]
            # A member that is a container itself is read before the next member.
            if not filling.add(filling):
                self.open.pop()
        return value

    def node(self):
        tag = self.byte()
        if tag in (0x00, 0x01, 0x0F):
            return None
        if tag in (0x02, 0x03):
            return tag == 0x02
        if tag == 0x04:
            zigzag = self.varint()
            return (zigzag >> 1) ^ -(zigzag & 1)
        if tag == 0x05:
            return number_of(*self.unpack("<d"))
        if tag == 0x06:
            is_negative = self.byte()
            magnitude = int.from_bytes(self.take(self.varint()), "little")
            return -magnitude if is_negative else magnitude
        if tag in (0x07, 0x08):
            return self.text(tag == 0x08)
        if tag == 0x10:
            return self.objects[self.varint()]
        container = self.container(tag)
        if container is None:
            value = self.leaf(tag)
        else:
            self.open.append(container)
            value = container.target
        self.objects.append(value)
        return value

    def container(self, tag):
        if tag == 0x11:
            return Filling(self.add_property, {})
        if tag == 0x12:
            return Filling(self.add_element, [], self.varint())
        if tag == 0x13:
            length = self.varint()
            if length > MOST_ELEMENTS:
                self.refuse("an array of many holes")
            return Filling(self.add_sparse, [None] * length)
        if tag == 0x14:
            return Filling(self.add_entry, {}, 2 * self.varint())
        if tag == 0x15:
            return Filling(self.add_member, set(), self.varint())
        return None

    def add_property(self, filling):
        kind = self.varint()
        if kind == 0:
            return False
        if kind in (1, 2):
            self.keys.append(self.text(kind == 2))
            key = self.keys[-1]
        else:
            key = self.keys[kind - 3]
        filling.target[key] = self.node()
        return True

    def add_element(self, filling):
        if filling.left == 0:
            return False
        filling.left -= 1
        filling.target.append(self.node())
        return True

    def add_sparse(self, filling):
        index = self.varint()
        if index == 0:
            return False
        filling.target[index - 1] = self.node()
        return True

    def add_entry(self, filling):
        if filling.left:
            filling.left -= 1
            filling.members.append(self.node())
            return True
        keys, values = filling.members[::2], filling.members[1::2]
        try:
            filling.target.update(zip(keys, values, strict=True))
        except TypeError:
            self.refuse("a Map with a key that has no hash")
        if len(filling.target) < len(keys):
            self.refuse("a Map with keys that are one in Python")
        return False

    def add_member(self, filling):
        if filling.left:
            filling.left -= 1
            filling.members.append(self.node())
            return True
        try:
            filling.target.update(filling.members)
        except TypeError:
            self.refuse("a Set with a member that has no hash")
        if len(filling.target) < len(filling.members):
            self.refuse("a Set with members that are one in Python")
        return False

    def leaf(self, tag):
        if tag == 0x16:
            return self.date(*self.unpack("<d"))
        if tag == 0x18:
            self.byte()
            name, message, _, _ = (self.node() for _ in range(4))
            error = error_of_host(name, message)
            error.name, error.message = name, message
            return error
        if tag == 0x19:
            return self.blobs[self.unpack("<I")[0]]
        if tag == 0x1A:
            kind, blob, offset, length = self.unpack("<BIQQ")
            form = VIEWS.get(kind)
            data = self.blobs[blob][offset : offset + length * VIEW_BYTES.get(form, 1)]
            return data if form is None else memoryview(data).cast(form)
        return self.refuse("a RegExp" if tag == 0x17 else "a function or a promise")

    def date(self, time):
        import datetime

        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        try:
            return epoch + datetime.timedelta(milliseconds=time)
        except (OverflowError, ValueError):
            return self.refuse("a Date that is out of range")

    def text(self, is_utf16):
        if is_utf16:
            return self.take(2 * self.varint()).decode("utf-16-le", "surrogatepass")
        return self.take(self.varint()).decode()

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def byte(self):
        byte = self.nodes[self.at]
        self.at += 1
        return byte

    def take(self, length):
        data = self.nodes[self.at : self.at + length]
        self.at += length
        return data

    def refuse(self, kind):
        raise SerializationError(f"{self.root}: {kind} cannot be cloned")


def number_of(value):
    """A whole number that is exact is an int; -0.0 stays a float."""
    is_whole = abs(value) <= MOST_SAFE and value == int(value)
    return int(value) if is_whole and (value or math.copysign(1, value) > 0) else value
