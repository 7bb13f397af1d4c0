// A gateway that dies between getting its epoch and opening its spool leaves an epoch that only jobs can close; every
// other one is let alone.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { closeUnspooledEpochs } from '../../jobs/shipping/close-unspooled-epochs.ts';
import { listOpenEpochs } from '../../src/storage/postgres/ledger/epochs.ts';
import { registerEpoch, takeLease } from '../../src/storage/postgres/ledger/wallets.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { writeBeat } from '../../src/storage/postgres/processes/beats.ts';
import { silentLog, startTestPostgres, type TestPostgres } from '../support/postgres.ts';
import * as shipping from '../support/shipping.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let server: TestPostgres;
before(async () => {
  server = await startTestPostgres();
});
after(() => server.stop());

test(
  'an epoch without a spool is closed once its process is dead, if it is of this machine and nothing ' +
    'was ever done under it',
  async (context) => {
    const postgres = createPostgres({ url: await server.createDatabase(), log: silentLog, max: 2 });
    const spoolDirectory = join(temporaryDirectory(context), 'spool');
    const machine = hostname();
    const deadPid = spawnSync(process.execPath, ['--version']).pid;
    try {
      const register = (of: Partial<{ machine: string; pid: number; kind: string }>) =>
        registerEpoch(postgres, { machine, pid: deadPid, kind: 'gateway', ...of });
      const unused = await register({});
      const alive = await register({ pid: process.pid });
      const elsewhere = await register({ machine: `not-${machine}` });
      // Of another machine, too, whose name is that of this one.
      const namesake = await register({});
      const beating = {
        machine,
        kind: 'gateway',
        pid: deadPid,
        startedAtMs: 1,
        version: '1',
        epoch: namesake,
      } as const;
      await writeBeat(postgres, beating, { atMs: Date.now(), isLast: false, counts: {}, gauges: {} as never });
      const spooled = await register({});
      await shipping.openSpool(spoolDirectory, spooled).close();
      const lent = await register({});
      const { walletId } = await shipping.createPayer(postgres);
      await takeLease(postgres, { epoch: lent, walletId, amount: 5n, minimum: 5n });

      const parts = { postgres, spoolDirectory, machine, log: silentLog };
      assert.deepEqual(await closeUnspooledEpochs(parts), [unused]);
      assert.deepEqual(await closeUnspooledEpochs(parts), []);
      assert.deepEqual(
        (await listOpenEpochs(postgres, machine)).map(({ epoch }) => epoch),
        [alive, namesake, spooled, lent],
      );
      assert.deepEqual(
        (await listOpenEpochs(postgres, `not-${machine}`)).map(({ epoch }) => epoch),
        [elsewhere],
      );
      await assert.rejects(takeLease(postgres, { epoch: unused, walletId, amount: 5n, minimum: 5n }), /fenced/);
    } finally {
      await postgres.close();
    }
  },
);
