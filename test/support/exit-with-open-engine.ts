// Exits with code 1 while the embedded ClickHouse of a directory runs a statement, as a jobs process does that crashes;
// or once it is closed; or ends by a fault.

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
