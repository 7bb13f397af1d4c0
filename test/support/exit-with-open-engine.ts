// A process with an embedded ClickHouse that exits with code 1 while the engine runs a statement, as a crashing jobs
// process does; or exits after closing it; or ends by a fault.

import { systemClock } from '../../src/platform/clock.ts';
import { createClickHouse } from '../../src/storage/clickhouse/clickhouse.ts';

const [, , directory = '', state] = process.argv;
const client = await createClickHouse({ directory }, systemClock);
const further = await createClickHouse({ directory }, systemClock);
await further.close();
if (state === 'closed') await client.close();
else if (state === 'fault') throw new Error('with the engine open');
else void client.query({ query: 'SELECT sum(number) FROM numbers_mt(3e9)' });
process.exit(1);
