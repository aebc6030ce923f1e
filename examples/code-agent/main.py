"""A model that writes a program, sees it fail, mends it, and answers. The model is scripted; put
your own in its place."""

from __future__ import annotations

import asyncio
import json

from isolane.executors import CodeLoop, ExecFile, IsolateCodeExecutor, LoopEvent, ScriptedModel

ORDERS = "city,euros\nOslo,120\nLima,80\nOslo,n/a\nBern,45\n"

FIRST = r"""The file has the columns `city` and `euros`. I sum them up.
```ts
import { readText } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\n').map((line) => line.split(','));
const total = rows.reduce((sum, [, euros]) => sum + BigInt(euros), 0n);
console.log('total', total);
```
The total is 1,000 euros."""

SECOND = r"""One row has no amount. I leave it out, and say so.
```ts
import { readText, write } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\n').map((line) => line.split(','));
const valid = rows.filter(([, euros]) => /^\d+$/.test(euros));
console.warn(`${rows.length - valid.length} of ${rows.length} rows left out`);
const totals = new Map<string, number>();
for (const [city, euros] of valid) totals.set(city, (totals.get(city) ?? 0) + Number(euros));
write('totals.json', JSON.stringify(Object.fromEntries(totals)));
totals
```"""

ANSWER = "Oslo spent 120 euros, Lima 80 and Bern 45. One order of Oslo has no amount."


def show(event: LoopEvent) -> None:
    if event["type"] == "turn":
        print(f"\n=== turn {event['turn']}")
    elif event["type"] == "text":
        print(event["text"], end="")
    elif event["type"] == "output":
        print(("! " if event["stream"] == "stderr" else "") + event["text"], end="")
    elif event["type"] == "code":
        print(f"\n--- a program in {event['language']}")
    elif event["type"] == "retry":
        print(f"--- again: {event['error']}")
    elif event["type"] == "result":
        print(f"--- {event['outcome']} in {event['duration_ms']:.1f} ms")
    else:
        print(f"\n=== {event['reason']}")


async def main() -> None:
    model = ScriptedModel()
    # In pieces, as models stream. The model invents the text behind the code, and nobody sees it.
    model.push_stream([f"{word} " for word in FIRST.split(" ")])
    model.push_text(SECOND)
    model.push_text(ANSWER)
    code_loop = CodeLoop(
        model,
        # For code of strangers: `isolation="process"`.
        IsolateCodeExecutor(),
        instruction="Solve problems by writing and running TypeScript.",
        files=[ExecFile("orders.csv", ORDERS.encode(), "text/csv")],
    )
    stream = code_loop.stream("How much did each city spend?")
    async for event in stream:
        show(event)

    result = stream.result
    assert result is not None
    [totals] = result.files
    print(f"\n{totals.name}: {totals.content.decode()}")
    assert (result.reason, result.turns) == ("answered", 3)
    assert totals.content == b'{"Oslo":120,"Lima":80,"Bern":45}'
    said = json.dumps(result.contents)
    assert "1,000" not in said, said
    assert "invalid BigInt literal" in said, said


asyncio.run(main())
