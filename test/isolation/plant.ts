// Loaded into a gateway process (NODE_OPTIONS --import) whose code is to have the planted fault that
// ISOLATION_PLANTED_FAULT names.

import { plant } from '../simulation/mutations.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

const fault = PLANTED_FAULTS.find(({ name }) => name === process.env.ISOLATION_PLANTED_FAULT);
if (fault === undefined) throw new Error(`no planted fault "${process.env.ISOLATION_PLANTED_FAULT}"`);
for (const edit of fault.edits) plant({ name: fault.name, ...edit });
