// `tollgate connect` on temporary homes: what a person wrote survives with its comments, undo gives it back byte for
// byte, and no key comes into a file that others see.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { parse } from 'jsonc-parser';
import { connectCommand } from '../../src/commands/connect.ts';
import { setInToml } from '../../src/connect/toml-settings.ts';
import { type LoadTarget, startLoadTarget } from '../support/load-target.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const KEY = 'tg-secret-key-of-a-person';
const MODELS = {
  data: [
    {
      id: 'sim/small',
      display_name: 'Small',
      context_length: 200_000,
      max_output_tokens: 8_000,
      apis: ['messages', 'responses', 'chat_completions'],
    },
    {
      id: 'service/auto',
      display_name: 'Auto',
      context_length: null,
      apis: ['messages', 'responses', 'chat_completions'],
    },
    { id: 'sim/image', display_name: 'Image', apis: ['images'] },
  ],
};
const RECORD = { data: { total_cost: 0.00012, model: 'sim/small' } };

describe('tollgate connect', () => {
  let target: LoadTarget;
  before(async () => {
    target = await startLoadTarget((request, reply) => {
      reply.setHeader('x-service-execution-id', 'an-execution');
      if (request.headers.authorization !== `Bearer ${KEY}`) reply.writeHead(401).end('{"error":"no such key"}');
      else if (request.url === '/v1/models') reply.end(JSON.stringify(MODELS));
      else if (request.url?.startsWith('/v1/generation?id=an-execution') === true) reply.end(JSON.stringify(RECORD));
      else reply.setHeader('x-service-routed-model', 'sim/small').end('{"model":"sim/small"}');
    });
  });

  after(() => target.close());

  async function connect(home: string, ...args: readonly string[]): Promise<string> {
    const lines: string[] = [];
    const environment = { HOME: home, TOLLGATE_KEY: KEY };
    const code = await connectCommand.run([...args, '--url', target.url], {
      environment,
      print: (line) => lines.push(line),
    });
    assert.equal(code, 0);
    return lines.join('\n');
  }

  function homeWith(context: TestContext, path: string, text: string | Uint8Array): { home: string; file: string } {
    const home = temporaryDirectory(context);
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: 0o640 });
    return { home, file };
  }

  test('Claude Code: a file with comments keeps them and all else; undo gives it back byte for byte', async (context) => {
    const text =
      '// mine\n{\n\t"theme": "dark", // yes\n\t"env": { "OTHER": "1", "ANTHROPIC_API_KEY": "sk-old" },\n}\n';
    const { home, file } = homeWith(context, '.claude/settings.json', text);
    await connect(home, 'claude-code', '--write');
    const written = readFileSync(file, 'utf8');
    assert.match(written, /^\/\/ mine\n\{\n\t"theme": "dark", \/\/ yes\n/);
    assert.deepEqual(parse(written, [], { allowTrailingComma: true }), {
      theme: 'dark',
      env: {
        OTHER: '1',
        ANTHROPIC_BASE_URL: target.url,
        ANTHROPIC_AUTH_TOKEN: KEY,
        ANTHROPIC_API_KEY: '',
        ANTHROPIC_DEFAULT_OPUS_MODEL: 'service/auto',
        ANTHROPIC_DEFAULT_SONNET_MODEL: 'service/auto',
        ANTHROPIC_DEFAULT_HAIKU_MODEL: 'service/auto',
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
      },
    });
    assert.equal(statSync(file).mode & 0o777, 0o640);
    await connect(home, 'claude-code', '--write', '--model', 'sim/small');
    await connect(home, 'claude-code', '--undo');
    assert.equal(readFileSync(file, 'utf8'), text, 'also after it was written twice');
    await assert.rejects(connect(home, 'claude-code', '--undo'), /nothing was written for claude-code/);
  });

  test('a file that was not there is readable by its owner alone, and undo removes it', async (context) => {
    const home = temporaryDirectory(context);
    const file = join(home, '.claude/settings.json');
    await connect(home, 'claude-code', '--write');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal(statSync(join(home, '.config/tollgate/connect-claude-code.json')).mode & 0o777, 0o600);
    await connect(home, 'claude-code', '--undo');
    assert.equal(existsSync(file), false);
  });

  test('what somebody edited since is not undone', async (context) => {
    const { home, file } = homeWith(context, '.claude/settings.json', '{}');
    await connect(home, 'claude-code', '--write');
    writeFileSync(file, '{"edited": true}');
    await assert.rejects(connect(home, 'claude-code', '--undo'), /was changed after it was written/);
    assert.equal(readFileSync(file, 'utf8'), '{"edited": true}');
  });

  test('Codex: comments, other tables and strings of several lines stay; the key is in no file', async (context) => {
    const text = [
      '# mine',
      'model = "old" # the good one',
      'notes = """',
      '[model_providers.tollgate]',
      'model_provider = "in a string"',
      '"""',
      '',
      '[model_providers.tollgate]',
      'base_url = "http://old"',
      '',
      '# about tools',
      '[tools]',
      'web = true',
      '',
    ].join('\n');
    const { home, file } = homeWith(context, '.codex/config.toml', text);
    const printed = await connect(home, 'codex', '--write');
    assert.match(printed, /export TOLLGATE_KEY=YOUR_KEY/);
    const expected = [
      'model_provider = "tollgate"',
      '# mine',
      'model = "service/auto" # the good one',
      'notes = """',
      '[model_providers.tollgate]',
      'model_provider = "in a string"',
      '"""',
      '',
      '',
      '# about tools',
      '[tools]',
      'web = true',
      '',
      '[model_providers.tollgate]',
      'name = "Tollgate"',
      `base_url = "${target.url}/v1"`,
      'env_key = "TOLLGATE_KEY"',
      'wire_api = "responses"',
      '',
    ];
    assert.deepEqual(readFileSync(file, 'utf8').split('\n'), expected);
    await connect(home, 'codex', '--write');
    assert.deepEqual(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
      expected.filter((line) => line !== ''),
    );
    await connect(home, 'codex', '--undo');
    assert.equal(readFileSync(file, 'utf8'), text);
  });

  test('TOML with the line ends of Windows keeps them', () => {
    const text = setInToml('a = 1\r\n', { model: 'm' }, { name: 't', values: { k: 'v' } });
    assert.equal(text, 'model = "m"\r\na = 1\r\n\r\n[t]\r\nk = "v"\r\n');
  });

  test('opencode and Zed: the models of the key that speak Chat Completions, and no key', async (context) => {
    const home = temporaryDirectory(context);
    await connect(home, 'opencode', '--write');
    await connect(home, 'zed', '--write');
    const opencode = readFileSync(join(home, '.config/opencode/opencode.json'), 'utf8');
    const zed = readFileSync(join(home, '.config/zed/settings.json'), 'utf8');
    for (const text of [opencode, zed]) assert.doesNotMatch(text, new RegExp(KEY));
    const { options, models } = JSON.parse(opencode).provider.tollgate;
    assert.deepEqual(options, { baseURL: `${target.url}/v1`, apiKey: '{env:TOLLGATE_KEY}' });
    assert.deepEqual(Object.keys(models), ['sim/small', 'service/auto']);
    const { available_models: available } = JSON.parse(zed).language_models.openai_compatible.Tollgate;
    assert.deepEqual(available[0], {
      name: 'sim/small',
      display_name: 'Small',
      max_tokens: 200_000,
      max_output_tokens: 8_000,
    });
  });

  test('without --write nothing is written, and no key is printed', async (context) => {
    const home = temporaryDirectory(context);
    for (const name of ['claude-code', 'codex', 'opencode', 'cline', 'zed', 'cursor']) {
      const printed = await connect(home, name);
      assert.doesNotMatch(printed, new RegExp(KEY), name);
      assert.match(printed, new RegExp(target.url), name);
    }
    assert.match(await connect(home, 'claude-code', '--write', '--dry-run'), /would be\n\{[^]*YOUR_KEY/);
    assert.equal(existsSync(join(home, '.claude')), false);
    assert.equal(existsSync(join(home, '.config')), false);
  });

  test('no key is written into a repository, not even through a link', async (context) => {
    const home = temporaryDirectory(context);
    const repository = temporaryDirectory(context);
    mkdirSync(join(repository, '.git'));
    writeFileSync(join(repository, 'settings.json'), '{}');
    mkdirSync(join(home, '.claude'));
    symlinkSync(join(repository, 'settings.json'), join(home, '.claude/settings.json'));
    await assert.rejects(connect(home, 'claude-code', '--write'), /lies in the repository .*, where no key is written/);
    assert.equal(readFileSync(join(repository, 'settings.json'), 'utf8'), '{}');
  });

  test('a file that is damaged is left as it is', async (context) => {
    const { home, file } = homeWith(context, '.config/zed/settings.json', '{ "a": ');
    await assert.rejects(connect(home, 'zed', '--write'), /cannot be read: it is left as it is/);
    assert.equal(readFileSync(file, 'utf8'), '{ "a": ');
  });

  for (const [what, path, text] of [
    ['a string where the settings go', '.claude/settings.json', '{"env": "x"}'],
    ['a list where the settings go', '.claude/settings.json', '{"env": ["x"]}'],
    ['null where the settings go', '.config/zed/settings.json', '{"language_models": null}'],
    ['a name twice, of which readers take the other', '.claude/settings.json', '{"env": {"A": "1"}, "env": {}}'],
    ['bytes that are no UTF-8', '.claude/settings.json', Buffer.from('{"a": "\u00ff"}', 'latin1')],
    ['TOML that is none', '.codex/config.toml', 'this is [ not'],
    ['the table as an inline one', '.codex/config.toml', '[model_providers]\ntollgate = { name = "mine" }\n'],
    ['a value of several lines', '.codex/config.toml', 'model = """\nold\n"""\n'],
  ] as const) {
    test(`${what}: the file is left as it is`, async (context) => {
      const { home, file } = homeWith(context, path, text);
      const name = path.startsWith('.codex') ? 'codex' : path.startsWith('.claude') ? 'claude-code' : 'zed';
      await assert.rejects(connect(home, name, '--write'), /cannot be read: it is left as it is/);
      assert.deepEqual(readFileSync(file), Buffer.from(text));
      await assert.rejects(connect(home, name, '--undo'), /nothing was written/);
    });
  }

  test('Codex: quotes in a comment begin no string', async (context) => {
    const { home, file } = homeWith(
      context,
      '.codex/config.toml',
      '# never """ here\nmodel = "x" # mine\n[a]\nb = 1\n',
    );
    await connect(home, 'codex', '--write');
    await connect(home, 'codex', '--write', '--model', 'sim/small');
    const written = readFileSync(file, 'utf8');
    assert.match(written, /^model_provider = "tollgate"\n# never """ here\nmodel = "sim\/small" # mine\n\[a\]/);
    assert.equal(written.split('[model_providers.tollgate]').length, 2);
  });

  test('what it was at first is not lost when somebody edits between two times that it is written', async (context) => {
    const { home, file } = homeWith(context, '.claude/settings.json', '{"mine": 1}');
    await connect(home, 'claude-code', '--write');
    const edited = readFileSync(file, 'utf8').replace('"mine": 1', '"mine": 2');
    writeFileSync(file, edited);
    await connect(home, 'claude-code', '--write', '--model', 'sim/small');
    await connect(home, 'claude-code', '--undo');
    assert.equal(readFileSync(file, 'utf8'), edited);
    await assert.rejects(connect(home, 'claude-code', '--undo'), /was changed after it was written/);
    const kept = readFileSync(join(home, '.config/tollgate/connect-claude-code.json'), 'utf8');
    assert.equal(Buffer.from(JSON.parse(kept).before, 'base64').toString(), '{"mine": 1}');
  });

  test('a link to nothing, a read-only file and a directory are left; so is a damaged copy', async (context) => {
    const { home, file } = homeWith(context, '.claude/settings.json', '{}');
    const kept = join(home, '.config/tollgate/connect-claude-code.json');
    chmodSync(file, 0o444);
    await assert.rejects(connect(home, 'claude-code', '--write'), /is left as it is: it is read-only/);
    assert.equal(existsSync(kept), false);
    rmSync(file);
    symlinkSync('away.json', file);
    await assert.rejects(connect(home, 'claude-code', '--write'), /is left as it is: it is a link to nothing/);
    assert.equal(readlinkSync(file), 'away.json');
    rmSync(file);
    mkdirSync(file);
    await assert.rejects(connect(home, 'claude-code', '--write'), /cannot be read: it is left as it is/);
    rmdirSync(file);
    await connect(home, 'claude-code', '--write');
    writeFileSync(kept, '{');
    await assert.rejects(connect(home, 'claude-code', '--undo'), /is damaged: the settings of/);
    await assert.rejects(connect(home, 'claude-code', '--write'), /is damaged: move that away first/);
  });

  test('--check makes one request on the tool’s API and shows model, cost and record', async (context) => {
    const home = temporaryDirectory(context);
    const asked = target.seen.length;
    const printed = await connect(home, 'claude-code', '--check');
    assert.deepEqual(
      target.seen.slice(asked).map(({ url }) => url),
      ['/v1/models', '/v1/messages', '/v1/generation?id=an-execution&wait=10'],
    );
    assert.match(printed, /served by: sim\/small, chosen by auto routing/);
    assert.match(printed, /cost: 0\.00012 USD/);
  });

  test('what is wrong is said', async (context) => {
    const home = temporaryDirectory(context);
    const cases: [readonly string[], RegExp][] = [
      [['emacs'], /unknown tool "emacs"; there are claude-code, codex/],
      [['codex', '--write', '--undo'], /exclude each other/],
      [['codex', '--dry-run'], /--dry-run goes with --write/],
      [['cursor', '--write'], /no settings file to write/],
      [
        ['codex', '--model', 'sim/image'],
        /the key has no model "sim\/image" for responses; it has sim\/small, service\/auto/,
      ],
      [['codex', '--key', 'tg-other'], /\/v1\/models answers 401/],
    ];
    for (const [args, text] of cases) await assert.rejects(connect(home, ...args), text, args.join(' '));
    const run = connectCommand.run(['codex', '--url', 'http://127.0.0.1:9'], {
      environment: {},
      print: () => undefined,
    });
    await assert.rejects(run, /--key is missing, and TOLLGATE_KEY is not set/);
  });
});
