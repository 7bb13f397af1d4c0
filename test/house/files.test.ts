// House rules about files: how they open, how long they are, how they are named, and what they may not contain.

import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { ALL_SOURCES, listBreaches, ROOT, type SourceFile, sourcesIn } from './sources.ts';

const PRODUCT = sourcesIn('src', 'workers', 'jobs');

const LINES_MAX = 400;
/** Files that may be longer than 400 lines, each with its reason. */
const LONG_FILES: Readonly<Record<string, string>> = {
  'src/generation/request/scan/request-scanner.as.ts': 'one grammar, compiled to one WebAssembly module',
};

/** The clocks of the gateway and of the console, which may read the time. */
const CLOCKS = ['src/platform/clock.ts', 'src/console/state/clock.ts'];

const LINE_CHARACTERS_MAX = 120;

const EMPTY_NAMES = /(^|[/-])(utils?|helpers?|common|misc|managers?|services?|data|info|stuff)(\.|\/|-|$)/;

describe('files', () => {
  test('there are files to look at', () => {
    assert.ok(PRODUCT.length > 50, `only ${PRODUCT.length} found`);
  });

  test('each opens with a sentence about what it owns', () => {
    const breaches = listBreaches(ALL_SOURCES, ({ text }) => {
      const comment = openingComment(text);
      if (comment === null) return 'does not open with a comment line';
      return /[.:?]$/.test(comment) ? null : `its opening comment is not a sentence: "${comment}"`;
    });
    assert.deepEqual(breaches, []);
  });

  test(`none is longer than ${LINES_MAX} lines, except the listed ones`, () => {
    const lines = ({ text }: SourceFile) => text.split('\n').length - 1;
    assert.deepEqual(
      listBreaches(
        PRODUCT.filter(({ path }) => !(path in LONG_FILES)),
        (file) => (lines(file) > LINES_MAX ? `${lines(file)} lines` : null),
      ),
      [],
    );
    for (const path of Object.keys(LONG_FILES)) {
      const file = PRODUCT.find((candidate) => candidate.path === path);
      assert.ok(file !== undefined && lines(file) > LINES_MAX, `${path} no longer needs its exception`);
    }
  });

  test('none names a document that is not in the repository', () => {
    const sources = ALL_SOURCES.filter(({ path }) => !path.startsWith('test/house/'));
    const page = /\b(DESIGN|STYLE|ATTACK|PERFORMANCE)(\.md|\s+((\/\/|\*) )?\d)/;
    assert.deepEqual(
      listBreaches(sources, ({ text }) => page.exec(text)?.[0] ?? null),
      [],
    );
  });

  test('no contract test asks with fetch: httpCall holds every answer against the OpenAPI document', () => {
    const contract = ALL_SOURCES.filter(({ path }) => path.startsWith('test/contract/'));
    assert.ok(contract.length > 40, `${contract.length} files`);
    assert.deepEqual(
      listBreaches(contract, ({ text }) => /\bfetch\(/.exec(text)?.[0] ?? null),
      [],
    );
  });

  test(`no line is longer than ${LINE_CHARACTERS_MAX} characters`, () => {
    const widest = ({ text }: SourceFile, counts: (line: string) => boolean) => {
      const index = text.split('\n').findIndex((line) => line.length > LINE_CHARACTERS_MAX && counts(line));
      return index === -1 ? null : `line ${index + 1} is too long`;
    };
    assert.deepEqual(
      listBreaches(sourcesIn('src', 'workers', 'jobs', 'benchmarks'), (file) => widest(file, () => true)),
      [],
    );
    // Tests quote requests, replies, patterns and configuration files as they are.
    assert.deepEqual(
      listBreaches(sourcesIn('test'), (file) => widest(file, (line) => /^\s*(\/\/|\/?\*)/.test(line))),
      [],
    );
  });

  test('members that only their class uses are `private`, in one style', () => {
    assert.deepEqual(
      listBreaches(
        sourcesIn('src', 'workers', 'jobs', 'benchmarks'),
        ({ text }) => /^\s+(?:(?:static|readonly|async|get|set) )*\*?#\w+/m.exec(text)?.[0] ?? null,
      ),
      [],
    );
  });

  test('names are words of the trade, in kebab-case, and say which', () => {
    const breaches = listBreaches(ALL_SOURCES, ({ path }) => {
      if (/[A-Z_ ]/.test(path)) return 'is not kebab-case';
      return EMPTY_NAMES.test(path) ? 'is named after nothing in particular' : null;
    });
    assert.deepEqual(breaches, []);
    assert.deepEqual(
      listBreaches(ALL_SOURCES, ({ path }) =>
        /\/index\.[jt]s$/.test(path) ? 'is a barrel: import the file that owns the thing' : null,
      ),
      [],
    );
  });

  test('nothing is left for later without saying so in an issue', () => {
    const marks = new RegExp(
      `\\b(${['FIX', 'TO', 'XX', 'HA'].map((mark, index) => mark + ['ME', 'DO', 'X', 'CK'][index]).join('|')})\\b`,
    );
    assert.deepEqual(
      listBreaches(ALL_SOURCES, ({ text }) => marks.exec(text)?.[0] ?? null),
      [],
    );
  });

  test('no test is skipped or singled out for good', () => {
    const breach = ({ text }: SourceFile) =>
      /\b(test|describe|it)\.(only|skip|todo)\(|\{\s*(only|skip|todo): true/.exec(text)?.[0] ?? null;
    assert.deepEqual(
      listBreaches(
        sourcesIn('test').filter(({ path }) => path !== 'test/house/files.test.ts'),
        breach,
      ),
      [],
    );
  });

  test('the machine is read in one place: time by the clock, the environment by the configuration', () => {
    // The linter has the same rule. This test also finds what the linter cannot, such as `new Date()` and
    // destructuring.
    const time = ({ text }: SourceFile) => /\bDate\.now\b|\bnew Date\(\)/.exec(text)?.[0] ?? null;
    assert.deepEqual(
      listBreaches(
        sourcesIn('src', 'workers', 'jobs').filter(
          ({ path }) => !CLOCKS.includes(path) && !path.startsWith('src/simulator/'),
        ),
        time,
      ),
      [],
    );
    // uWebSockets.js reads its header limit from the environment when it is loaded.
    const allowed = ['src/config.ts', 'src/http/fronts/load-uws.ts'];
    const environment = ({ text }: SourceFile) => /\bprocess\.env\b|\benv\b[^;]*\} = process\b/.exec(text)?.[0] ?? null;
    assert.deepEqual(
      listBreaches(
        sourcesIn('src', 'workers', 'jobs').filter(
          ({ path }) => !allowed.includes(path) && !path.startsWith('src/simulator/'),
        ),
        environment,
      ),
      [],
    );
  });

  test('nothing names a place on somebody’s machine', () => {
    const breach = ({ text }: SourceFile) =>
      /["'`\s(](\/home\/\w+|\/Users\/\w+|\/root\b|\/work\/\w+)/.exec(text)?.[1] ?? null;
    assert.deepEqual(
      listBreaches(
        ALL_SOURCES.filter(({ path }) => path !== 'test/house/files.test.ts'),
        breach,
      ),
      [],
    );
  });

  test('a path relative to a module leads somewhere, also after the module has moved', () => {
    const relative = /new URL\('(\.[^']*)', import\.meta\.url\)/g;
    // A build makes these files: a fresh checkout does not have them.
    const built = join(ROOT, 'src/console/built');
    const breach = ({ path, text }: SourceFile) => {
      const targets = [...text.matchAll(relative)].map(([, target = '']) => join(ROOT, dirname(path), target));
      return targets.find((target) => target !== built && !existsSync(target)) ?? null;
    };
    assert.deepEqual(listBreaches(PRODUCT, breach), []);
  });

  test('every spec contract file is named for its section', () => {
    const names = globSync('test/contract/*.test.ts', { cwd: ROOT }).map((path) => path.slice('test/contract/'.length));
    assert.deepEqual(
      names.filter((name) => !/^\d+(\.\d+)?-[a-z0-9-]+(\.long)?\.test\.ts$/.test(name)),
      [],
    );
  });
});

/** The first comment as one text; null when the file begins with anything else. */
function openingComment(text: string): string | null {
  const lines = text.split('\n').filter((line, index) => !(index === 0 && line.startsWith('#!')));
  const end = lines.findIndex((line) => !line.startsWith('//'));
  const comment = lines
    .slice(0, end === -1 ? undefined : end)
    .map((line) => line.slice(2).trim())
    .join(' ');
  // A picture or an indented list may follow the sentence.
  return comment === '' ? null : (comment.split('  ')[0] ?? '').trim();
}
