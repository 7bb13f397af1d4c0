// ClickHouse as a server in a process of its own, as an installation of several machines has it: the embedded engine
// behind HTTP. The only argument is the directory of its data.

import { systemClock } from '../../src/platform/clock.ts';
import { openEmbeddedClickHouse } from '../../src/storage/clickhouse/embedded-clickhouse.ts';
import { startClickHouseServer } from '../../test/support/clickhouse-server.ts';
import { endWithParent } from '../harness/end-with-parent.ts';

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('no directory for its data');
endWithParent();
const engine = await openEmbeddedClickHouse({ directory, clock: systemClock });
const server = await startClickHouseServer(engine);
console.log(`listening ${new URL(server.url).port}`);
