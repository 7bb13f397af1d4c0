// Plants the fault that ISOLATION_PLANTED_FAULT names, in the gateway process that loads this module (NODE_OPTIONS
// --import).

import { plant } from '../simulation/mutations.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

const fault = PLANTED_FAULTS.find(({ name }) => name === process.env.ISOLATION_PLANTED_FAULT);
if (fault === undefined) throw new Error(`no planted fault "${process.env.ISOLATION_PLANTED_FAULT}"`);
for (const edit of fault.edits) plant({ name: fault.name, ...edit });
