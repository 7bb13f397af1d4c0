// House rules about documents: the product's own parser accepts their examples, their links and paths exist, and the
// commands, settings, refusals and metrics that they name are the code's.

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import type { Command } from '../../src/commands/command/command.ts';
import { parseConfigurationFile } from '../../src/domain/configuration/parse-configuration-file.ts';
import { PRESETS } from '../../src/domain/configuration/presets.ts';
import { REFUSAL_RULES } from '../../src/domain/refusals/refusal-rules.ts';
import { SERVICE_ACCOUNT_KEY } from '../support/google-account-key.ts';
import { ROOT, sourcesIn } from './sources.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'benchmarks/README.md',
  'src/simulator/README.md',
  'test/RUNS.md',
  'test/isolation/README.md',
  ...globSync('docs/*.md', { cwd: ROOT }).sort(),
].map((path) => ({ path, text: read(path) }));
/**
 * Documents about the present version. The changelog also describes earlier versions, so it may name what no longer
 * exists.
 */
const PRESENT = DOCUMENTS.filter(({ path }) => path !== 'CHANGELOG.md');
const PACKAGE = JSON.parse(read('package.json')) as { version: string; scripts: Readonly<Record<string, string>> };

const README_LINES_MAX = 149;
const ARCHITECTURE_BYTES_MAX = 14 * 1024;
const LINE_CHARACTERS_MAX = 120;
const DECISION_LINES_MAX = 3;

describe('documents', () => {
  test('are complete, with the license and the script of continuous integration', () => {
    const pages = [
      'configuration',
      'providers',
      'routing',
      'money-and-limits',
      'administration',
      'own-keys',
      'operation',
      'clients',
      'api-errors',
      'decisions',
    ];
    for (const file of [...pages.map((page) => `docs/${page}.md`), 'LICENSE', '.ci/run'])
      assert.ok(existsSync(join(ROOT, file)), `${file} is missing`);
  });

  test('every configuration example is valid', () => {
    const examples = PRESENT.flatMap(({ path, text }) =>
      [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, example = '']) => ({ path, example })),
    );
    assert.ok(examples.length > 0, 'there is an example');
    const environment = {
      OPENAI_API_KEY: 'sk-test',
      AZURE_OPENAI_API_KEY: 'sk-test',
      ACME_KEY: 'sk-test',
      AZURE_CLIENT_SECRET: 'secret',
      AWS_SECRET_ACCESS_KEY: 'secret',
      GOOGLE_CREDENTIALS: JSON.stringify({
        type: 'service_account',
        client_email: 'gateway@acme-1.test',
        private_key: SERVICE_ACCOUNT_KEY,
      }),
      WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
    };
    for (const { path, example } of examples) {
      const parsed = parseConfigurationFile(example, environment);
      assert.deepEqual(parsed.ok ? [] : parsed.errors, [], path);
    }
  });

  test('every relative link leads to a file, and to a heading in it', () => {
    for (const { path, text } of DOCUMENTS) {
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = '', heading] = target.split('#');
        const linked = file === '' ? path : join(dirname(path), file);
        assert.ok(existsSync(join(ROOT, linked)), `${path}: ${target}`);
        if (heading !== undefined)
          assert.ok(anchorsOf(read(linked)).has(heading), `${path}: there is no heading ${target}`);
      }
    }
  });

  test('every path of the repository that is named exists', () => {
    for (const { path, text } of PRESENT) {
      for (const [, named = ''] of text.matchAll(
        /[`\s]((?:src|test|jobs|workers|benchmarks|simulator|check|deploy|docs)\/[\w./*-]*[\w*/])[`\s]/g,
      )) {
        assert.ok(globSync(named, { cwd: ROOT }).length > 0, `${path}: ${named}`);
      }
    }
  });

  test('every `tollgate` command and action that is named exists', async () => {
    for (const { path, text } of PRESENT) {
      for (const [, name = '', actions = ''] of text.matchAll(
        /(?:`|npx )tollgate ([a-z-]+)(?: ([a-z|\\]+)(?![.\w]))?/g,
      )) {
        assert.ok(existsSync(join(ROOT, 'src/commands', `${name}.ts`)), `${path}: tollgate ${name}`);
        const usage = (await commandNamed(name)).usage.join('\n').replaceAll('|', ' ');
        for (const action of actions.split(/\\?\|/).filter((word) => word !== ''))
          assert.match(usage, new RegExp(`\\b${action}\\b`), `${path}: ${name} ${action}`);
      }
    }
  });

  test('docs/administration.md has every command with its actions', async () => {
    const rows = read('docs/administration.md')
      .split('\n')
      .filter((line) => line.startsWith('| `tollgate '));
    for (const [, name = ''] of read('src/commands/command-line.ts').matchAll(/^ {2}'?([a-z-]+)'?: async /gm)) {
      const named = rows.filter((row) => new RegExp(`\\b${name}\\b`).test(row.split(' | ')[0] ?? '')).join('\n');
      assert.notEqual(named, '', name);
      for (const line of (await commandNamed(name)).usage) {
        for (const action of /^tollgate \S+ ([a-z][a-z|]*)(?: |$)/.exec(line)?.[1]?.split('|') ?? [])
          assert.match(named, new RegExp(`\\b${action}\\b`), `${name} ${action}`);
      }
    }
  });

  test('every npm script that is named exists, and every one is in CONTRIBUTING', () => {
    const known = ['ci', 'test', 'start', ...Object.keys(PACKAGE.scripts)];
    for (const { path, text } of DOCUMENTS) {
      for (const [, script = ''] of text.matchAll(/\bnpm run ([a-z:]+)/g))
        assert.ok(known.includes(script), `${path}: npm run ${script}`);
    }
    const contributing = read('CONTRIBUTING.md');
    for (const script of Object.keys(PACKAGE.scripts))
      assert.ok(contributing.includes(script), `${script} is not in CONTRIBUTING.md`);
  });

  test('docs/configuration.md has every setting and no other', () => {
    const settings = [...read('src/config.ts').matchAll(/^ {2}([A-Z][A-Z_]+): /gm)].map(([, name = '']) => name);
    const rows = read('docs/configuration.md').split('\n');
    const documented = rows.flatMap((row) =>
      [...(/^\| (`[A-Z][^|]*) \|/.exec(row)?.[1] ?? '').matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
    );
    assert.deepEqual(documented.sort(), settings.sort());
  });

  test('docs/api-errors.md has every refusal with its status and whether to retry', () => {
    const text = read('docs/api-errors.md');
    const rows = new Map(
      [...text.matchAll(/^\| `([a-z_0-9]+)` \| (\d{3}) \| (yes|no)/gm)].map(
        ([, code = '', status = '', retry = '']) => [code, `${status} ${retry}`],
      ),
    );
    for (const [kind, rule] of Object.entries(REFUSAL_RULES)) {
      const code = 'code' in rule ? rule.code : kind;
      // A refusal that no route gives yet has a sentence instead of a row.
      const expected = `${rule.status} ${rule.retryable ? 'yes' : 'no'}`;
      assert.ok(
        rows.get(code) === expected || text.includes(`\`${code}\` (${rule.status})`),
        `${code}: ${expected}, found ${rows.get(code) ?? 'nothing'}`,
      );
    }
    const codes = new Set(Object.entries(REFUSAL_RULES).map(([kind, rule]) => ('code' in rule ? rule.code : kind)));
    assert.deepEqual(
      [...rows.keys()].filter((code) => !codes.has(code)),
      [],
    );
  });

  test('docs/providers.md has every preset, with the key that it takes', () => {
    const page = PRESENT.find(({ path }) => path === 'docs/providers.md')?.text ?? '';
    const rows = page.split('\n').filter((line) => line.startsWith('| `'));
    for (const [name, { keyVariable }] of Object.entries(PRESETS)) {
      const row = rows.find((line) => (line.split('|')[1] ?? '').includes(`\`${name}\``));
      assert.ok(row?.includes(keyVariable === null ? '| none |' : `\`${keyVariable}\``), name);
    }
  });

  test('every metric that is named is one that the product has', () => {
    const product = sourcesIn('src', 'jobs').map(({ text }) => text);
    for (const { path, text } of PRESENT) {
      for (const [name] of text.matchAll(/\btollgate_[a-z_]+[a-z]/g)) {
        assert.ok(
          product.some((source) => source.includes(name)),
          `${path}: ${name}`,
        );
      }
    }
  });

  test(
    `README fits a screen or three, ARCHITECTURE fits ${ARCHITECTURE_BYTES_MAX} bytes, and lines ` +
      `fit ${LINE_CHARACTERS_MAX} characters`,
    () => {
      assert.ok(read('README.md').trimEnd().split('\n').length <= README_LINES_MAX);
      assert.ok(Buffer.byteLength(read('ARCHITECTURE.md')) <= ARCHITECTURE_BYTES_MAX);
      const long = DOCUMENTS.flatMap(({ path, text }) =>
        text
          .split('\n')
          .flatMap((line, index) =>
            line.length > LINE_CHARACTERS_MAX && !line.trimStart().startsWith('|') ? [`${path}:${index + 1}`] : [],
          ),
      );
      assert.deepEqual(long, []);
    },
  );

  test(`every decision has its date and at most ${DECISION_LINES_MAX} lines`, () => {
    const decisions = read('docs/decisions.md')
      .split(/^(?=- )/m)
      .slice(1);
    assert.ok(decisions.length > 50);
    for (const decision of decisions) {
      const lines = decision.split(/\n\n/)[0]?.trimEnd().split('\n') ?? [];
      assert.match(lines[0] ?? '', /^- \*\*20\d\d-\d\d-\d\d /);
      assert.ok(lines.length <= DECISION_LINES_MAX, lines[0]);
    }
  });

  test('the newest version of the changelog is the one of package.json and of the lock file', () => {
    const newest = /^## (\d+\.\d+\.\d+) /m.exec(read('CHANGELOG.md'))?.[1];
    assert.equal(newest, PACKAGE.version);
    const lock = JSON.parse(read('package-lock.json')) as {
      version: string;
      packages: Readonly<Record<string, { version?: string }>>;
    };
    assert.deepEqual([lock.version, lock.packages['']?.version], [newest, newest]);
  });

  test('name no document outside the repository, and no path on somebody’s machine', () => {
    for (const { path, text } of DOCUMENTS) {
      assert.doesNotMatch(text, /\b(DESIGN|STYLE|SPEC|ATTACK|PERFORMANCE)(\.md|\b \d)/, path);
      assert.doesNotMatch(text, /["'`\s(](\/home\/\w+|\/Users\/\w+|\/root\b|\/work\/\w+|\/tmp\/\w+)/, path);
    }
  });
});

/** The anchors that GitHub makes of headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

async function commandNamed(name: string): Promise<Command> {
  const module = (await import(`../../src/commands/${name}.ts`)) as Readonly<Record<string, Command>>;
  const command = module[`${name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())}Command`];
  assert.ok(command !== undefined, `src/commands/${name}.ts has no ${name}Command`);
  return command;
}
