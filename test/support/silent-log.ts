// A log for parts under test that writes nothing.

import { createLog } from '../../src/platform/log.ts';

export const silentLog = createLog({ level: 'silent', process: 'test' });
