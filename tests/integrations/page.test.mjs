// The recipes that use libraries for agents, carried out with scripted models, and those for web servers.
//
// In: the blocks of `docs/recipes.md` that are tagged `js integrated` and `py integrated`. Out: a test for each, in which
// `model` is a model of the library that answers as a model would, or clients call `app`. The program that prepares the
// test installs the libraries: `npm run test:integrations`.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { ROOT, blocks } from '../docs/markdown.mjs';
import { CEILING_MS, hostProgram, pythonProgram, run } from '../docs/programs.mjs';

const PAGE = 'docs/recipes.md';
const here = fileURLToPath(new URL('.', import.meta.url));
// Below the root, so that programs there find `isolane`.
const folder = fileURLToPath(new URL('target/integrations-page/', ROOT));

before(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  symlinkSync(`${here}node_modules`, `${folder}node_modules`, 'junction');
});

after(() => rmSync(folder, { recursive: true, force: true }));

const CODE = "const open = await orders({ status: 'open' }); export default open.map((order) => order.customer);";

/** Calls the tool with code that has a mistake, then with code that has none, and answers with the result. */
const SDK_MODEL = `
  import { MockLanguageModelV3 } from 'ai/test';
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const answer = (content, unified) => ({ content: [content], finishReason: { unified, raw: undefined }, usage, warnings: [] });
  const call = (code) => answer({ type: 'tool-call', toolCallId: code, toolName: 'run_code', input: JSON.stringify({ code }) }, 'tool-calls');
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const output = prompt.at(-1).role === 'tool' ? prompt.at(-1).content[0].output.value : undefined;
      if (output === undefined) return call('export default order');
      if (output.error?.startsWith("ReferenceError: order is not defined")) return call(${JSON.stringify(CODE)});
      return answer({ type: 'text', text: output.result.join() }, 'stop');
    },
  });
`;

const PYDANTIC_MODEL = `
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def respond(messages, info):
    part = messages[-1].parts[-1]
    if part.part_kind == "user-prompt":
        return ModelResponse(parts=[ToolCallPart("run_code", {"code": "export default order"})])
    if "order is not defined" in str(part.content):
        return ModelResponse(parts=[ToolCallPart("run_code", {"code": ${JSON.stringify(CODE)}})])
    return ModelResponse(parts=[TextPart(",".join(part.content))])

model = FunctionModel(respond)
`;

/** Serves `app` and calls it as clients do: to the end, beyond the deadline, away before the answer, and too many. */
const FASTAPI_CLIENTS = `
import httpx
import uvicorn

began = ended = None

async def search(word):
    if word != "slow":
        return [word]
    began.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()

async def call(client, code):
    response = await client.post("/run", json={"code": code}, timeout=60)
    return response.status_code, response.json()

async def main():
    global began, ended, DEADLINE_S
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        assert await call(client, "export default await search('lamp')") == (200, {"status": "success", "result": ["lamp"]})
        assert await call(client, "export default lamp") == (
            422, {"status": "error", "error": "lamp is not defined; the globals of this sandbox are: search"})
        assert (await client.post("/run", json={})).status_code == 422

        began, ended, DEADLINE_S = asyncio.Event(), asyncio.Event(), 0.05
        assert await call(client, "export default await search('slow')") == (504, {"error": "the deadline has passed"})
        if began.is_set():
            await asyncio.wait_for(ended.wait(), 60)

        began, ended, DEADLINE_S = asyncio.Event(), asyncio.Event(), 3600
        waiting = asyncio.create_task(call(client, "export default await search('slow')"))
        await asyncio.wait_for(began.wait(), 60)
        waiting.cancel()
        await asyncio.wait_for(ended.wait(), 60)
    while runtime.stats().settled["terminated"] < 2:
        await asyncio.sleep(0.01)
    server.should_exit = True
    await serving
    try:
        runtime.run_code("export default 1")
        raise AssertionError("the runtime is open")
    except isolane.RuntimeClosedError:
        pass

asyncio.run(main())
`;

/** The program of a recipe in Python, with those who use it. */
function pythonRecipe(block) {
  return block.text.includes('FastAPI') ? block.text + FASTAPI_CLIENTS : PYDANTIC_MODEL + pythonProgram(block);
}

const found = (tag) => blocks(PAGE).filter((block) => block.tag === tag);

test('the page has these recipes', () => {
  assert.deepEqual(['js integrated', 'py integrated'].map((tag) => found(tag).length), [1, 2]);
});

for (const block of found('js integrated')) {
  const { tag, line } = block;
  test(`${PAGE}:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    const { code, output } = await run(tag, SDK_MODEL + hostProgram(block), folder);
    assert.equal(code, 0, output);
  });
}

for (const block of found('py integrated')) {
  const { tag, line } = block;
  test(`${PAGE}:${line} (${tag})`, { timeout: CEILING_MS }, async () => {
    const env = { ...process.env, PYTHONPATH: fileURLToPath(new URL('bindings-python/python', ROOT)) };
    await promisify(execFile)(`${here}.venv/bin/python`, ['-c', pythonRecipe(block)], { cwd: folder, env, timeout: CEILING_MS });
  });
}
