// A process that spools executions like a gateway, as fast as it is told, until it is killed. It prints the id of an
// execution once its end is appended; from then on the client counts as having seen it complete. Arguments: data
// directory, Postgres URL, organization, wallet.

import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionStart } from '../../src/records/execution-record.ts';
import { createPostgres } from '../../src/storage/postgres/pool.ts';
import { admittedRecord } from './execution-records.ts';
import { silentLog } from './postgres.ts';
import { billedStart, billedTerminal, createEpoch, openSpool } from './shipping.ts';
import { appendRecords } from './spool-records.ts';

const [dataDirectory = '', databaseUrl = '', organizationId = '', walletId = ''] = process.argv.slice(2);
const EXECUTIONS_MAX = 20_000;
const SEGMENT_BYTES_MAX = 65_536;
const OPEN_AT_ONCE = 8;
const PER_ROUND = 8;
const ROUND_MS = 4;

const payer = { organizationId, walletId };
const postgres = createPostgres({ url: databaseUrl, log: silentLog, max: 1 });
const epoch = await createEpoch(postgres, payer, EXECUTIONS_MAX);
await postgres.close();
const writer = openSpool(join(dataDirectory, 'spool'), epoch, SEGMENT_BYTES_MAX);
const open: ExecutionStart[] = [];
for (let count = 0; count < EXECUTIONS_MAX; count += PER_ROUND) {
  for (let index = 0; index < PER_ROUND; index++) {
    const start = billedStart(payer);
    appendRecords(writer, admittedRecord(start));
    open.push(start);
    const ending = open.length > OPEN_AT_ONCE ? open.shift() : undefined;
    if (ending === undefined) continue;
    appendRecords(writer, billedTerminal(ending));
    writeSync(1, `${ending.id}\n`);
  }
  await sleep(ROUND_MS);
}
