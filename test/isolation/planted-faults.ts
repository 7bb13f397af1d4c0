// Faults planted in a gateway process under attack, each of the kind that shows one tenant to another: the short run
// must find every one of them.

import type { Mutation } from '../simulation/mutations.ts';
import type { ViolationKind } from './watch.ts';

export interface PlantedFault {
  readonly name: string;
  readonly edits: readonly Omit<Mutation, 'name'>[];
  /** What finds it. */
  readonly found: ViolationKind;
  /** Found soon enough for every run of the tests; of each kind of finding, one is. */
  readonly isQuick?: true;
}

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'a buffer is given back while a socket still sends from it',
    edits: [
      {
        file: 'src/upstream/http1/connection.ts',
        find: 'this.pooled = body === null || body instanceof Uint8Array ? null : body.pooled;',
        replace: 'this.pooled = null;',
      },
    ],
    found: 'foreign mark',
  },
  {
    name: 'remembered headers are those of another client',
    edits: [
      {
        file: 'src/upstream/header-policy.ts',
        find: 'if (value !== null && value !== headers[index + 1]) return false;',
        replace: '',
      },
    ],
    found: 'foreign mark',
    isQuick: true,
  },
  {
    name: 'a block of a reply is lent to two replies',
    edits: [
      {
        file: 'src/generation/reply/capture-buffer.ts',
        find: 'freeBlocks.pop() ??',
        replace: 'freeBlocks.at(-1) ??',
      },
    ],
    found: 'foreign mark',
  },
  {
    name: 'a provider is called although the client has left',
    edits: [
      // Each step looks, and the relay once more.
      { file: 'src/generation/open-request.ts', find: 'if (this.exchange.closed) return true;', replace: '' },
      {
        file: 'src/generation/reply/relay.ts',
        find: 'if (!exchange.closed) this.failover.attempt();\n      else this.leave();',
        replace: 'this.failover.attempt();',
      },
    ],
    found: 'stray call',
    isQuick: true,
  },
];
