// `runCode` as a tool for a model: its description, and its results, errors included, as text that a model can use.

import { describe, runCode } from 'isolane';

/** A tool that runs the model's code with `imports`, and with no more than two seconds and 64 MiB. */
export function codeTool(imports) {
  const listing = Object.entries(imports).map(([specifier, entry]) => `${specifier}: ${Object.keys(entry).join(', ')}`);
  return {
    name: 'run_code',
    description: `Runs a TypeScript module; its default export is the answer. Importable: ${listing.join('; ')}.`,
    input_schema: { type: 'object', properties: { code: { type: 'string' } }, required: ['code'] },
    async call({ code }) {
      try {
        const run = runCode(code, { imports, memoryLimitBytes: 64 * 1024 * 1024, filename: 'code.ts' });
        const deadline = setTimeout(() => run.terminate('2 s budget'), 2_000);
        const { status, result, error } = await run.finally(() => clearTimeout(deadline));
        // Every value has a text: bigints, Maps, Errors and circles, which JSON does not have.
        if (status === 'success') return { is_error: false, content: describe(result) };
        const place = error.line === undefined ? '' : `\n    at ${error.filename}:${error.line}:${error.column}`;
        return { is_error: true, content: `${status}: ${error.stack ?? `${error.name}: ${error.message}${place}`}` };
      } catch (misuse) {
        // `code` is no string, or the runtime takes no run at the moment.
        return { is_error: true, content: describe(misuse) };
      }
    },
  };
}

// An agent loop would use it like this; the model's part is played here:
const forecast = async (city) => {
  if (city === 'Atlantis') throw new Error(`no such city: ${city}`);
  return { city, celsius: [17, 21, 19] };
};
const tool = codeTool({ weather: { forecast } });
console.log(tool.description);
for (const code of [
  `import { forecast } from 'weather';\nconst { celsius } = await forecast('Porto');\nexport default Math.max(...celsius);`,
  `import { forecast } from 'weather';\nexport default new Map([['Porto', await forecast('Porto')]]);`,
  `export default [2n ** 64n, new TypeError('as a value'), new Date(0)];`,
  `import { forecasts } from 'weather';\nexport default await forecasts('Porto');`,
  `import { forecast } from 'weather';\nexport default await forecast('Atlantis');`,
  `const city: string | undefined = undefined;\nexport default city!.toUpperCase();`,
  undefined,
]) {
  console.log((await tool.call({ code })).content);
}
