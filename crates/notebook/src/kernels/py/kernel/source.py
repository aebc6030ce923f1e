# Sources of cells, and the texts of their errors.
#
# In: the code of a cell, and what it raised. Out: compiled code, its last expression apart, and a
# traceback that has the cell's own lines and no frame of this program.

import ast
import linecache
import traceback

import __future__

# Bytes of a traceback, and of a message. Of a longer one the beginning and the end are kept.
TRACEBACK_CHARACTERS, MESSAGE_CHARACTERS = 48 << 10, 8 << 10
# The cells whose lines are kept for tracebacks.
KEPT_CELLS = 1000
FEATURES = [getattr(__future__, name) for name in __future__.all_feature_names]


class Compiler:
    """Compiles cells, one after another: an import from `__future__` holds for later ones."""

    def __init__(self):
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.names = []

    def compile(self, code, name):
        """The code of the statements and of the last expression, and the place of that; None if it
        is not there."""
        # Each line ends, as those of files do: carets are placed by that.
        lines = [line + "\n" for line in code.splitlines()]
        linecache.cache[name] = (len(code), None, lines, name)
        self.names.append(name)
        if len(self.names) > KEPT_CELLS:
            linecache.cache.pop(self.names.pop(0), None)
        code, tree = self.parse(code, name)
        last = place = None
        if (
            tree.body
            and isinstance(tree.body[-1], ast.Expr)
            and not ends_with_semicolon(code, tree.body[-1])
        ):
            last = ast.Expression(tree.body.pop().value)
            place = (name, last.body)
        body = self.code_of(tree, name, "exec") if tree.body else None
        return body, last and self.code_of(last, name, "eval"), place

    def parse(self, code, name):
        """The code with its commands and magics as calls, and its tree."""
        while True:
            try:
                tree = compile(
                    code, name, "exec", self.flags | ast.PyCF_ONLY_AST, dont_inherit=True
                )
                return code, with_awaited_helpers(tree)
            except SyntaxError as error:
                replaced = with_call(code, error.lineno or 0)
                if replaced is None:
                    raise
                code = replaced

    def code_of(self, tree, name, mode):
        compiled = compile(tree, name, mode, self.flags, dont_inherit=True)
        for feature in FEATURES:
            self.flags |= compiled.co_flags & feature.compiler_flag
        return compiled


def ends_with_semicolon(code, statement):
    lines = code.encode("utf-8", "replace").split(b"\n")
    rest = lines[statement.end_lineno - 1][statement.end_col_offset :]
    return rest.split(b"#")[0].strip().startswith(b";")


def with_call(code, number):
    """The code with a line that begins with `!` or `%` as a call; None if the line does not."""
    lines = code.split("\n")
    if not 1 <= number <= len(lines):
        return None
    line = lines[number - 1]
    text = line.lstrip()
    if text[:1] not in ("!", "%"):
        return None
    indent = line[: len(line) - len(text)]
    if text.startswith("!"):
        call = f"__isolane_shell__({text[1:].strip()!r})"
    else:
        word, _, rest = text[1:].partition(" ")
        if word not in MAGICS:
            message = f"%{word} is not supported; of magics there are " + ", ".join(
                f"%{name}" for name in MAGICS
            )
            raise SyntaxError(message, ("<magic>", number, len(indent) + 1, line))
        call = f"__isolane_magic__({word!r}, {rest.strip()!r})"
    lines[number - 1] = indent + call + ";"
    return "\n".join(lines)


def shell(command):
    """`!command`: its output is that of the cell."""
    import subprocess

    code = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, check=False).returncode
    if code:
        print(f"exit code {code}", file=sys.stderr)


def change_folder(path):
    os.chdir(os.path.expanduser(path or "~"))
    print(os.getcwd())


MAGICS = {"cd": change_folder, "matplotlib": lambda _: None}


def magic(word, rest):
    MAGICS[word](rest)


def found_of(error, name, place):
    """As `error_of`, or the least of it if the text cannot be made."""
    try:
        return error_of(raised_by_cell(error), name, place)
    except Exception as failed:
        message = f"its text cannot be made: {type(failed).__name__}"
        return {"name": type(error).__name__, "message": message}


def error_of(error, name, place):
    """An error as a message has it. `place` is the expression whose value was being shown."""
    try:
        message = str(error)
    except Exception:
        message = "<its text cannot be made>"
    found = {"name": type(error).__name__, "message": bounded(message, MESSAGE_CHARACTERS)}
    own = (
        isinstance(error, SyntaxError)
        and error.filename in (name, "<magic>")
        and is_of_compiler(error)
    )
    if own:
        error.filename = name
        if error.text is None and error.lineno:
            # The compiler looks for the line in a file.
            error.text = linecache.getline(name, error.lineno)
        text = "".join(traceback.format_exception_only(type(error), error))
        found.update(filename=name, line=error.lineno, column=error.offset)
    else:
        described = traceback.TracebackException(type(error), error, error.__traceback__)
        without_runner(described, set())
        own_frames = [
            frame for frame in described.stack or [] if frame.filename.startswith("<cell ")
        ]
        if place is not None and not own_frames:
            described.stack.insert(0, frame_of(*place))
        text = "".join(described.format())
        for frame in described.stack or []:
            if frame.filename.startswith("<cell "):
                found.update(filename=frame.filename, line=frame.lineno)
                column = getattr(frame, "colno", None)
                found["column"] = None if column is None else column + 1
    found["traceback"] = bounded(text, TRACEBACK_CHARACTERS).rstrip("\n")
    return {key: value for key, value in found.items() if value is not None}


def frame_of(name, expression):
    """The frame of an expression at the top of a cell."""
    if sys.version_info < (3, 11):
        return traceback.FrameSummary(name, expression.lineno, "<module>")
    return traceback.FrameSummary(
        name,
        expression.lineno,
        "<module>",
        end_lineno=expression.end_lineno,
        colno=expression.col_offset,
        end_colno=expression.end_col_offset,
    )


def raised_by_cell(error):
    """The StopIteration that left the code of a cell: Python wraps one that leaves a coroutine."""
    frames = traceback.walk_tb(error.__traceback__)
    is_wrapped = (
        type(error) is RuntimeError
        and isinstance(error.__cause__, StopIteration)
        and all(frame.f_code.co_filename == RUNNER for frame, _ in frames)
    )
    return error.__cause__ if is_wrapped else error


def is_of_compiler(error):
    """Whether the compiler raised it here, and no code of a cell."""
    frames = traceback.extract_tb(error.__traceback__)
    return all(frame.filename == RUNNER for frame in frames)


def without_runner(described, seen):
    if described is None or id(described) in seen:
        return
    seen.add(id(described))
    if described.stack is not None:
        kept = [frame for frame in described.stack if frame.filename != RUNNER]
        described.stack = traceback.StackSummary.from_list(kept)
    without_runner(described.__cause__, seen)
    without_runner(described.__context__, seen)
    for inner in getattr(described, "exceptions", None) or []:
        without_runner(inner, seen)


def bounded(text, limit):
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 4], text[-(limit - limit // 4) :]
    return f"{head}\n… {len(text) - limit:,} characters left out …\n{tail}"
