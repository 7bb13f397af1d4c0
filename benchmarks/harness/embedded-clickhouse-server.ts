// Runs the embedded ClickHouse engine behind HTTP in its own process, as a stand-in for the ClickHouse server of an
// installation of several machines.
// Run: node benchmarks/harness/embedded-clickhouse-server.ts DIRECTORY. It prints its port and ends when its parent
// does.

import { systemClock } from '../../src/platform/clock.ts';
import { openEmbeddedClickHouse } from '../../src/storage/clickhouse/embedded-clickhouse.ts';
import { startClickHouseServer } from '../../test/support/clickhouse-server.ts';
import { endWithParent } from './end-with-parent.ts';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('no directory for its data');
endWithParent();
const engine = await openEmbeddedClickHouse({ directory, clock: systemClock });
const server = await startClickHouseServer(engine);
console.log(`listening ${new URL(server.url).port}`);
