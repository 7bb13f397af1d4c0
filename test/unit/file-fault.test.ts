// What the system refuses a command about a file: one line that says what, which path and what to do.

import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { runCommandLine } from '../../src/commands/command-line.ts';
import { explainFileFault } from '../../src/installation/file-fault.ts';
import { dataDirectoryProblem } from '../../src/installation/installation-directory.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

async function call(args: readonly string[], dataDirectory: string): Promise<{ code: number; said: string }> {
  let said = '';
  const hear = (text: string): void => void (said += `${text}\n`);
  const code = await runCommandLine(args, { DATA_DIR: dataDirectory }, { print: hear, complain: hear });
  return { code, said };
}

describe('a fault of the file system', () => {
  const refused = (code: string, syscall: string): Error =>
    Object.assign(new Error(`${code}: said by the system`), { code, syscall, path: '/data/supervisor.lock' });

  for (const [error, expected] of [
    [
      refused('EACCES', 'open'),
      /^\/data\/supervisor\.lock cannot be opened \(EACCES\): this user may not; run the comm/,
    ],
    [refused('EACCES', 'scandir'), /^\/data\/supervisor\.lock cannot be listed \(EACCES\): this user may not/],
    [refused('EROFS', 'mkdir'), /^\/data\/supervisor\.lock cannot be made \(EROFS\): its file system is read-only$/],
    [refused('ENOSPC', 'write'), /^\/data\/supervisor\.lock cannot be written \(ENOSPC\): the disk is full$/],
    [
      new Error('cannot read it', { cause: refused('EPERM', 'stat') }),
      /lock cannot be used \(EPERM\): this user may not/,
    ],
  ] as const)
    test(`${error.message}: is told with its path`, () => assert.match(explainFileFault(error) ?? '', expected));

  for (const [what, error] of [
    ['a bug', new TypeError('x is not a function')],
    ['a file that should be there', refused('ENOENT', 'open')],
    ['a signal that may not be sent', Object.assign(new Error('kill EPERM'), { code: 'EPERM', syscall: 'kill' })],
    ['no error', 'EACCES'],
  ] as const)
    test(`${what} is none`, () => assert.equal(explainFileFault(error), null));
});

for (const [directory, expected] of [
  ['/', /^\/ is the root of the file system: name a directory in it$/],
  ['/proc', /^\/proc is the system's view of its processes, where no file can be kept$/],
  ['/proc/x/y', /^\/proc is the system's view of its processes, where no file can be kept$/],
  [`/tmp/${'x'.repeat(300)}`, /^\/tmp\/x+ cannot be used \(ENAMETOOLONG\): its name is too long$/],
  ['/tmp/x', null],
] as const)
  test(`DATA_DIR=${directory.slice(0, 12)}: ${expected === null ? 'is fine' : 'is refused before anything is made'}`, {
    skip: directory.startsWith('/proc') && process.platform !== 'linux' && 'only Linux has /proc',
  }, () => {
    const problem = dataDirectoryProblem(directory);
    if (expected === null) assert.equal(problem, null);
    else assert.match(problem ?? '', expected);
  });

// A user who may do everything is refused these too.
for (const args of [
  ['status'],
  ['logs'],
  ['logs', '-f'],
  ['backup', 'copy'],
  ['org', 'list'],
  ['epoch', 'list'],
  ['start'],
])
  test(`tollgate ${args.join(' ')} on a data directory that is below a file says so in one line`, async (context) => {
    const file = join(temporaryDirectory(context), 'file');
    writeFileSync(file, '');
    const { code, said } = await call(args, join(file, 'data'));
    assert.equal(code, 1);
    assert.match(
      said,
      /^tollgate: [^\n]*file\/data[^\n]*\(ENOTDIR\): what should be a directory on the way to it is a/,
    );
    assert.doesNotMatch(said, /\n./);
  });

test('restore: from what is no directory, and to where none can be, each in one line', async (context) => {
  const directory = temporaryDirectory(context);
  const [file, link, backup] = ['file', 'link', 'backup'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, '');
  symlinkSync(join(directory, 'nowhere'), link);
  mkdirSync(backup);
  const restored = async (from: string, to: string) => (await call(['restore', from], to)).said;
  assert.match(
    await restored(file, join(directory, 'data')),
    /^tollgate: [^\n]*backup\.json cannot be opened \(ENOTDIR\)/,
  );
  assert.match(
    await restored(backup, join(directory, 'data')),
    /^tollgate: [^\n]* is no backup: it has no backup\.json\n$/,
  );
  const manifest = { format: 1, machine: 'here', databasePassword: 'x' };
  writeFileSync(join(backup, 'backup.json'), JSON.stringify(manifest));
  assert.match(
    await restored(backup, link),
    /^tollgate: DATA_DIR: [^\n]* is a symbolic link to [^\n]*, which does not ex/,
  );
});
