// A backup of an installation that serves, and what starts from it: the money of every request once, also of those that
// were under way; and a copied data directory, which never opens the original's database.

import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded/embedded-postgres.ts';
import { findBrokenInvariants } from '../../src/storage/postgres/ledger/ledger-invariants.ts';
import { createPostgres, type Postgres } from '../../src/storage/postgres/pool.ts';
import { listEpochs } from '../../src/storage/spool/spool-directory.ts';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { runCommandApart, startTollgate, type Tollgate, type TollgateOptions } from '../support/gateway.ts';
import { httpCall } from '../support/http-call.ts';
import { silentLog } from '../support/postgres.ts';
import { removeInstallation } from '../support/remove-installation.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const REPLY = '{"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}';

interface Charged {
  readonly id: string;
  readonly charge: string | null;
}

describe('a backup', () => {
  let directory: string;
  let upstream: FakeUpstream;
  let options: TollgateOptions;
  let original: Tollgate;
  let restored: Tollgate | null = null;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'tollgate-backup-'));
    // Some are answered at once, and some are under way whenever the backup is made.
    let calls = 0;
    upstream = await startFakeUpstream(() => ({ body: REPLY, delayMs: (calls++ % 5) * 60 }));
    options = {
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
      ownPostgres: true,
      gatewayProcesses: 2,
    };
    original = await startTollgate(options);
  });
  after(async () => {
    await original?.stop();
    await restored?.stop();
    await upstream?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = (url: string): Promise<{ readonly status: number }> =>
    httpCall(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' },
      body: '{"model":"sim/small","messages":[],"max_tokens":100}',
    });

  const inDatabase = async <T>(of: Tollgate, work: (postgres: Postgres) => Promise<T>): Promise<T> => {
    const postgres = createPostgres({ url: of.postgresUrl, log: silentLog, max: 1 });
    try {
      return await work(postgres);
    } finally {
      await postgres.close();
    }
  };
  const chargesIn = (of: Tollgate): Promise<readonly Charged[]> =>
    inDatabase(of, async (postgres) => {
      const { rows } = await postgres.query<Charged>('SELECT id, charge::text FROM generations ORDER BY id');
      return rows;
    });

  test('of an installation under load is whole, and what starts from it has each request once', async () => {
    const target = join(directory, 'backup');
    // As the demo keeps it.
    writeFileSync(join(original.dataDir, 'demo-key'), 'tg-demo\n', { mode: 0o600 });
    let isLoading = true;
    const load = Array.from({ length: 8 }, async () => {
      while (isLoading) assert.equal((await ask(original.url)).status, 200);
    });
    const served = (count: number) =>
      waitFor(
        `${count} requests to be served`,
        () => upstream.requests.length,
        (reached) => reached >= count,
      );
    await served(200);
    const made = await original.run(['backup', target]);
    // It goes on serving.
    await served(upstream.requests.length + 1);
    isLoading = false;
    await Promise.all(load);
    assert.equal(made.exitCode, 0, made.output);
    assert.equal(statSync(target).mode & 0o777, 0o700);
    assert.equal(statSync(join(target, 'backup.json')).mode & 0o777, 0o600);
    assert.match((await original.run(['backup', target])).output, /exists already/);

    // A copy within what is copied would have no end, and fill the disk that the spool is on.
    for (const within of ['', 'inside', join('spool', 'inside'), join('spool', '..', 'clickhouse', 'inside')]) {
      const refused = await original.run(['backup', join(original.dataDir, within)]);
      assert.match(refused.output, /exists already|is within the data directory/);
      assert.notEqual(refused.exitCode, 0);
    }
    assert.deepEqual(leftOversIn(original.dataDir), []);
    const atOnce = ['one', 'other'].map((name) => runIn(original.dataDir, ['backup', join(directory, name)]));
    for (const { exitCode, output } of await Promise.all(atOnce)) assert.equal(exitCode, 0, output);

    // The original goes on alone until it is stopped; what starts from the copy goes on from the copy.
    await original.stop({ keepData: true });
    const dataDir = join(directory, 'restored');
    const run = await runIn(dataDir, ['restore', target]);
    assert.equal(run.exitCode, 0, run.output);
    assert.match((await runIn(dataDir, ['restore', target])).output, /is not empty/);
    for (const name of ['secrets.json', 'demo-key'])
      assert.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, `${name} is kept, and its owner's alone`);
    restored = await startTollgate({ ...options, dataDir });
    const from = restored;
    await waitFor(
      'everything of the copied spool to be posted',
      () => chargesIn(from),
      (rows) => rows.length > 0 && rows.every(({ charge }) => charge !== null),
      60_000,
    );
    const copied = await chargesIn(from);
    assert.ok(copied.length > 100, `${copied.length} requests are in the backup`);
    assert.equal(new Set(copied.map(({ id }) => id)).size, copied.length);
    // Each was charged what its provider reported, or nothing where the copy knows only of its beginning.
    const whole = (10n * 1_250_000n + 20n * 10_000_000n).toString();
    const kinds = new Set(copied.map(({ charge }) => charge));
    assert.ok(
      [...kinds].every((charge) => charge === whole || charge === '0'),
      [...kinds].join(),
    );
    const sum = copied.reduce((total, { charge }) => total + BigInt(charge ?? 0), 0n);
    await inDatabase(from, async (postgres) => {
      assert.deepEqual(await findBrokenInvariants(postgres), []);
      const { rows } = await postgres.query<{ balance: string }>(
        `SELECT balance::text FROM wallets JOIN organizations o ON o.id = organization_id WHERE slug = 'acme'`,
      );
      assert.equal(BigInt(rows[0]?.balance ?? 0), OPENING_CREDIT_PICO - sum);
    });

    // Keys work, credit is spent, and reports are made anew from the ledger.
    assert.equal((await ask(from.url)).status, 200);
    const reported = await waitFor(
      'the reports to have every request',
      async () => {
        const answer = await httpCall(`${from.url}/v1/usage/me`, {
          headers: { authorization: `Bearer ${KEYS.acme}` },
        });
        return answer.status === 200 ? answer.body.toString() : `${answer.status} ${answer.body.toString()}`;
      },
      (text) => text.includes(`"requests":${copied.length + 1}`),
      90_000,
    );
    assert.ok(reported.includes(`"requests":${copied.length + 1}`));
  });

  test('a process that began after the spool was copied is over in what is restored', async () => {
    const target = join(directory, 'backup-of-fewer');
    cpSync(join(directory, 'backup'), target, { recursive: true });
    const epochs = listEpochs(join(target, 'spool'));
    const uncopied = epochs.at(-1) ?? 0;
    rmSync(join(target, 'spool', String(uncopied)), { recursive: true });
    const dataDir = join(directory, 'restored-of-fewer');
    const run = await runIn(dataDir, ['restore', target]);
    assert.equal(run.exitCode, 0, run.output);
    const server = await startEmbeddedPostgres({ dataDir, log: silentLog });
    const postgres = createPostgres({ url: server.url, log: silentLog, max: 1 });
    try {
      const { rows } = await postgres.query<{ epoch: string }>(
        `SELECT epoch::text FROM process_epochs WHERE kind = 'gateway' AND returned_at IS NULL ORDER BY epoch`,
      );
      assert.deepEqual(
        rows.map(({ epoch }) => Number(epoch)),
        epochs.filter((epoch) => epoch !== uncopied),
      );
      assert.deepEqual(await findBrokenInvariants(postgres), []);
    } finally {
      await postgres.close();
      await server.stop();
      removeInstallation(dataDir);
    }
  });

  test('is refused where it cannot be one', async () => {
    const cut = join(directory, 'cut');
    mkdirSync(cut);
    writeFileSync(join(cut, 'secrets.json'), '{}');
    const dataDir = join(directory, 'from-cut');
    assert.match((await runIn(dataDir, ['restore', cut])).output, /is no backup/);
    assert.equal(existsSync(dataDir), false);
    assert.match(
      (await runIn(dataDir, ['backup', join(directory, 'of-nothing')])).output,
      /no installation is running/,
    );
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.includes('partial') || name === 'of-nothing'),
      [],
    );
  });

  test('a copied data directory never opens the original’s database', async () => {
    const from = restored;
    assert.ok(from !== null);
    const copy = join(directory, 'copied');
    cpSync(from.dataDir, copy, { recursive: true });
    // Its lock names a process that runs, and its record a socket that answers: both are the original's.
    const listed = await runIn(copy, ['wallet', 'list', '--organization', 'acme']);
    assert.notEqual(listed.exitCode, 0);
    assert.match(listed.output, /no installation is running|is a copy of/);
    const balance = await from.run(['wallet', 'list', '--organization', 'acme']);
    assert.equal(balance.exitCode, 0, balance.output);
    if (process.getuid?.() !== 0) return;
    const started = await runIn(copy, ['start']);
    assert.notEqual(started.exitCode, 0);
    assert.match(started.output, /is a copy of .* "tollgate backup"/s);
    // The original was not hurt.
    assert.equal((await ask(from.url)).status, 200);
  });

  /** By hand, because ClickHouse removes directories of its inserts while one looks, at which `recursive` throws. */
  function leftOversIn(directory: string): string[] {
    const here = existsSync(directory) ? readdirSync(directory, { withFileTypes: true }) : [];
    return here.flatMap((entry) => {
      const path = join(directory, entry.name);
      if (/partial|inside/.test(entry.name)) return [path];
      return entry.isDirectory() ? leftOversIn(path) : [];
    });
  }

  /** A command on another data directory. */
  async function runIn(dataDir: string, args: readonly string[]) {
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const own = { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(port), ADMIN_PORT: String(adminPort) };
    return runCommandApart(args, { ...process.env, ...own });
  }
});
