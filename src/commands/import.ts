// `tollgate import litellm`: converts a LiteLLM configuration, and lists the parts that it cannot convert.

import { existsSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { importLitellm } from '../domain/litellm/import-litellm.ts';
import type { ImportNote } from '../domain/litellm/litellm-notes.ts';
import { StartFault } from '../installation/start-fault.ts';
import { systemClock } from '../platform/clock.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';
import { mistakesOf, USUAL_FILE, writeWhole } from './configuration-file/configuration-text.ts';
import { loadPriceList, PRICE_LIST_TEXT } from './configuration-file/price-list.ts';

export const importCommand: Command = {
  usage: ['tollgate import litellm CONFIG [--out FILE] [--force]'],
  summary:
    "Makes a configuration file from LiteLLM's config.yaml: providers, models, prices, limits and aliases. Lists " +
    'what it cannot convert, with the line and the reason. Without --out both are printed. --force overwrites ' +
    'FILE.',
  run,
};

const OPTIONS = { out: { type: 'string' }, force: { type: 'boolean', default: false } } as const;

async function run(args: readonly string[], { print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(args, OPTIONS);
  const [kind = '', given = ''] = expectPositionals(positionals, ['litellm', 'CONFIG']);
  if (kind !== 'litellm') throw new UsageFault(`cannot import from "${kind}": it can be litellm`);
  const out = values.out === undefined ? null : resolve(values.out);
  if (out !== null && existsSync(out) && !values.force)
    throw new StartFault(`${out} exists already: --force overwrites it`);
  const list = await loadPriceList();
  const imported = importLitellm(readText(resolve(given)), {
    fileName: basename(given),
    nowMs: systemClock.nowMs(),
    source: PRICE_LIST_TEXT,
    findListed: (provider, model) => list.provider(provider)?.find(model) ?? null,
  });
  if (!imported.ok) throw new StartFault(imported.error);
  const { text, notes, models } = imported;
  const mistakes = mistakesOf(text, out === null ? USUAL_FILE : basename(out));
  if (mistakes.length > 0) throw new StartFault(['the imported file would have mistakes:', ...mistakes].join('\n'));
  const lines = notes.map(describe(basename(given)));
  if (out === null) {
    const heading = lines.length === 0 ? '# All is taken over.' : '# Not taken over:';
    print([text, heading, ...lines.map((line) => `# ${line}`)].join('\n'));
    return 0;
  }
  writeWhole(out, text);
  for (const line of lines) print(line);
  print(
    `${models} model${models === 1 ? '' : 's'} written to ${out}; not converted: ${lines.length} lines, listed above`,
  );
  print(`next: tollgate doctor --config ${out}`);
  return 0;
}

function describe(fileName: string): (note: ImportNote) => string {
  return ({ line, what, why }) => `${fileName}:${line}: ${what}: ${why}`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartFault(`cannot read ${path}: ${(error as Error).message}`, { cause: error });
  }
}
