// What a wrong call of a command is told: in our own words, with the usage, whichever command it is.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  type Command,
  chooseAction,
  expectAction,
  expectPositionals,
  parseArguments,
  UsageFault,
} from '../../src/commands/command/command.ts';

const DIRECTORY = new URL('../../src/commands/', import.meta.url);

async function loadCommands(): Promise<[string, Command][]> {
  // The folders beside the commands have what they are made of.
  const files = readdirSync(fileURLToPath(DIRECTORY)).filter((name) => name.endsWith('.ts'));
  const modules = await Promise.all(
    files.map(async (file) => (await import(new URL(file, DIRECTORY).href)) as Record<string, unknown>),
  );
  return modules.flatMap((exports) => Object.entries(exports)).filter(isCommand);
}

function isCommand(entry: [string, unknown]): entry is [string, Command] {
  return entry[0].endsWith('Command') && typeof (entry[1] as Partial<Command>).run === 'function';
}

const OPTIONS = { name: { type: 'string' }, prune: { type: 'boolean', default: false } } as const;

describe('arguments', () => {
  for (const [args, complaint] of [
    [['--nam', 'x'], 'unknown option "--nam"'],
    [['--nam=secret'], 'unknown option "--nam"'],
    [['-n', 'x'], 'unknown option "-n"'],
    [['-xyz'], 'unknown option "-x"'],
    [['--no-prune'], 'unknown option "--no-prune"'],
    [['--toString'], 'unknown option "--toString"'],
    [['--name'], '--name needs a value'],
    [['--name', ''], '--name needs a value'],
    [['--name='], '--name needs a value'],
    [['--name', '--prune'], '--name needs a value; one that begins with "-" is written --name=--prune'],
    [['--prune=yes'], '--prune takes no value'],
    [['--name', 'x', '--name=y'], '--name is given twice'],
    [['--prune', '--prune'], '--prune is given twice'],
  ] as const) {
    test(`${args.join(' ')}: ${complaint}`, () => {
      assert.throws(
        () => parseArguments(args, OPTIONS),
        (error: unknown) => error instanceof UsageFault && error.message === complaint,
      );
    });
  }

  test('an argument without a name that is empty is missing, as of a variable that is not set', () => {
    assert.throws(() => expectPositionals([''], ['FILE']), { message: 'FILE is missing' });
  });

  test('an action is one of those that a command has', () => {
    const actions = { add: 1, remove: 2, list: 3 };
    assert.equal(chooseAction(['remove'], actions), 2);
    assert.equal(expectAction(['add'], ['add']), 'add');
    assert.throws(() => expectAction([], ['add']), { message: 'add is missing' });
    for (const [given, complaint] of [
      [[], 'add, remove or list is missing'],
      [[''], 'add, remove or list is missing'],
      [['toString'], 'unknown action "toString"'],
      [['add', 'x'], 'unexpected argument "x"'],
    ] as const)
      assert.throws(
        () => chooseAction(given, actions),
        (error: unknown) => error instanceof UsageFault && error.message === complaint,
      );
  });

  test('that are right are read', () => {
    const read = (...args: string[]) => {
      const { values, positionals } = parseArguments(args, OPTIONS);
      return [values.name, values.prune, [...positionals]];
    };
    assert.deepEqual(read('a', '--name', 'x', 'b', '--prune'), ['x', true, ['a', 'b']]);
    assert.deepEqual(read('--name=-x', '--', '--not-an-option'), ['-x', false, ['--not-an-option']]);
    assert.deepEqual(read('--name', '-'), ['-', false, []]);
    const many = parseArguments(['--name', 'x', '--name', 'y'], { name: { type: 'string', multiple: true } });
    assert.deepEqual(many.values.name, ['x', 'y']);
  });
});

test('every command tells an unknown option by name', async () => {
  const commands = await loadCommands();
  assert.ok(commands.length >= 20, `${commands.length} commands`);
  for (const [name, command] of commands) {
    await assert.rejects(
      async () => command.run(['--no-such-option'], { environment: {}, print: () => undefined }),
      (error: unknown) => error instanceof UsageFault && error.message === 'unknown option "--no-such-option"',
      name,
    );
  }
});

test('every command with actions names them where none is given', async () => {
  for (const [name, command] of await loadCommands()) {
    const actions = command.usage.flatMap((line) => /^tollgate \S+ ([a-z|]+)(?: |$)/.exec(line)?.[1]?.split('|') ?? []);
    // Of some the word is no action: a report, and what has actions beside a usage of its own.
    if (actions.length === 0 || ['reportCommand', 'reconcileCommand'].includes(name)) continue;
    await assert.rejects(
      async () => command.run([], { environment: {}, print: () => undefined }),
      (error: unknown) => error instanceof UsageFault && actions.every((action) => error.message.includes(action)),
      name,
    );
  }
});

describe('a value that an option cannot have is refused in plain words', () => {
  for (const [name, line, complaint] of [
    ['keyCommand', 'create --organization a --name x --expires 2027-02-30', '--expires: must be a date such as'],
    ['byokCommand', 'set --organization a --fee-percent x', '--fee-percent: must be from 0 to 100, with at most two'],
    [
      'byokCommand',
      'set --organization a --fee-per-request x',
      '--fee-per-request: must be dollars as a decimal, such',
    ],
    ['guardrailCommand', 'probe --model m --key k --url x', '--url "x" is not an http:// or https:// address'],
    ['guardrailCommand', 'probe --model m', '--key is missing, and TOLLGATE_KEY is not set'],
  ] as const) {
    test(`${name} ${line}`, async () => {
      const command = (await loadCommands()).find(([found]) => found === name)?.[1];
      await assert.rejects(
        async () => command?.run(line.split(' '), { environment: {}, print: () => undefined }),
        (error: unknown) => error instanceof UsageFault && error.message.startsWith(complaint),
      );
    });
  }
});
