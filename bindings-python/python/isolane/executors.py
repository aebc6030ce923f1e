"""Executors of code that a model wrote, and the loop in which it writes code, sees what came of it,
and goes on until it answers.

An executor runs code: in a subprocess, in a container, confined, or in an isolate. Anybody can
write one: an object with a method `execute_code(ctx, input)`, or a function.
"""

from ._code_loop import (
    AsText,
    CodeEvent,
    CodeExecutor,
    CodeLoop,
    Content,
    FinishEvent,
    LoopEvent,
    LoopResult,
    LoopStream,
    Model,
    OutputEvent,
    Reason,
    ResultEvent,
    RetryEvent,
    TextEvent,
    TurnEvent,
)
from ._executor_data import (
    CodeExecutionInput,
    CodeExecutionResult,
    ExecFile,
    ExecutorError,
    ExecutorErrorKind,
    InvocationContext,
    Outcome,
)
from ._executors import (
    ConfinedCodeExecutor,
    ContainerCodeExecutor,
    LocalCodeExecutor,
    RequiredItem,
)
from ._isolate_executor import IsolateCodeExecutor, Isolation
from ._scripted_model import ScriptedModel

__all__ = [
    "AsText",
    "CodeEvent",
    "CodeExecutionInput",
    "CodeExecutionResult",
    "CodeExecutor",
    "CodeLoop",
    "ConfinedCodeExecutor",
    "ContainerCodeExecutor",
    "Content",
    "ExecFile",
    "ExecutorError",
    "ExecutorErrorKind",
    "FinishEvent",
    "InvocationContext",
    "IsolateCodeExecutor",
    "Isolation",
    "LocalCodeExecutor",
    "LoopEvent",
    "LoopResult",
    "LoopStream",
    "Model",
    "Outcome",
    "OutputEvent",
    "Reason",
    "RequiredItem",
    "ResultEvent",
    "RetryEvent",
    "ScriptedModel",
    "TextEvent",
    "TurnEvent",
]
