// Faults to plant in a gateway process under attack. Each shows one tenant's data to another, and the runs of the tests
// must find it: every fault at length, one in `npm test`.

import type { Mutation } from '../simulation/mutations.ts';
import type { ViolationKind } from './watch.ts';

export interface PlantedFault {
  readonly name: string;
  readonly edits: readonly Omit<Mutation, 'name'>[];
  /** The violations that reveal the fault: any of these, since a run ends at its first finding. */
  readonly found: ViolationKind | readonly ViolationKind[];
  /** True: a run finds it quickly, so `npm test` plants it. The others are planted only at length. */
  readonly isQuick?: true;
  /** The fault shows between organizations with own provider keys. */
  readonly ofOwnKeys?: true;
  /** The fault shows between organizations with guardrail policies. */
  readonly ofGuardrails?: true;
  /** The fault shows between organizations that upload files. */
  readonly ofMedia?: true;
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
      // Each step checks whether the client is there, and the relay checks once more.
      { file: 'src/generation/open-request.ts', find: 'if (this.exchange.closed) return true;', replace: '' },
      {
        file: 'src/generation/reply/relay.ts',
        find: 'if (!exchange.closed) this.failover.attempt();\n      else this.leave();',
        replace: 'this.failover.attempt();',
      },
    ],
    found: 'stray call',
  },
  {
    name: 'own keys for one address share their connections',
    edits: [{ file: 'src/upstream/providers.ts', find: 'http, tls, provider.own]);', replace: 'http, tls]);' }],
    found: 'shared connection',
    ofOwnKeys: true,
  },
  {
    name: 'an own key is paused for every organization',
    edits: [
      {
        file: 'src/generation/own-keys/key-pauses.ts',
        find: 'return `${organizationId}\\0${keyId}\\0${fingerprint}`;',
        replace: 'return "";',
      },
    ],
    // An organization whose key is passed over is refused, or served with the service's key.
    found: ['foreign pause', 'wrong credential'],
    ofOwnKeys: true,
  },
  {
    name: 'a request is served with the keys of the organization that was looked up before',
    edits: [
      {
        file: 'src/generation/own-keys/held-own-keys.ts',
        find: '    const nowMs = this.clock.monotonicMs();\n    const held = this.held.get(organizationId);',
        replace: '    const nowMs = this.clock.monotonicMs();\n    const held = [...this.held].at(-1)?.[1];',
      },
    ],
    found: 'wrong credential',
    ofOwnKeys: true,
  },
  {
    name: 'the values of one request are restored in the replies to all',
    edits: [
      {
        file: 'src/domain/guardrails/placeholders.ts',
        find: '    this.values = new Map(entries);',
        replace:
          '    const all = Reflect.get(globalThis, "everybodysValues") ?? new Map();\n' +
          '    Reflect.set(globalThis, "everybodysValues", all);\n' +
          '    for (const [placeholder, value] of entries) all.set(placeholder, value);\n' +
          '    this.values = all;',
      },
    ],
    found: 'foreign mark',
    ofGuardrails: true,
  },
  {
    name: 'all organizations derive their placeholders from one key',
    edits: [
      {
        file: 'src/gateway/generation/held-guardrails.ts',
        find: 'this.parts.pepper, organizationId)',
        replace: 'this.parts.pepper, "")',
      },
    ],
    found: 'shared placeholder',
    ofGuardrails: true,
  },
  {
    name: 'the policies of one organization are in force for all',
    edits: [
      {
        file: 'src/gateway/generation/held-guardrails.ts',
        find: 'const known = this.compiled.get(key);',
        replace: 'const known = this.compiled.get(api);',
      },
      {
        file: 'src/gateway/generation/held-guardrails.ts',
        find: 'if (known?.policies.every((policy, index) => policy === policies[index]) === true) return known;',
        replace: 'if (known !== undefined) return known;',
      },
      {
        file: 'src/gateway/generation/held-guardrails.ts',
        find: 'this.compiled.set(organization, compiled);',
        replace: "this.compiled.set('', { ...compiled, key: api });",
      },
    ],
    found: 'foreign mark',
    ofGuardrails: true,
  },
  {
    name: 'a file is found whoever asks for it',
    edits: [
      {
        file: 'src/storage/postgres/media/media-objects.ts',
        find: 'WHERE t.id = $1 AND t.organization_id = $2`,\n};',
        replace: 'WHERE t.id = $1 AND $2::uuid IS NOT NULL`,\n};',
      },
    ],
    found: ['foreign file', 'foreign mark'],
    ofMedia: true,
  },
  {
    name: 'the same bytes are one file for all organizations',
    edits: [
      {
        file: 'src/storage/postgres/media/uploads.ts',
        find: "'SELECT 1 FROM media_objects WHERE organization_id = $1 AND sha256 = $2'",
        replace: "'SELECT 1 FROM media_objects WHERE $1::uuid IS NOT NULL AND sha256 = $2'",
      },
      {
        file: 'src/storage/postgres/media/uploads.ts',
        find: 'SET uploaded_at = now() WHERE organization_id = $1 AND sha256 = $2',
        replace: 'SET uploaded_at = now() WHERE $1::uuid IS NOT NULL AND sha256 = $2',
      },
    ],
    found: 'foreign file',
    ofMedia: true,
  },
  {
    name: 'downloads share the memory that they are read into',
    edits: [
      {
        file: 'src/storage/media/disk-objects.ts',
        find: 'const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, Math.max(1, last - first + 1)));',
        replace:
          'const buffer = Reflect.get(globalThis, "everybodysPiece") ?? Buffer.allocUnsafe(PIECE_BYTES);\n' +
          '    Reflect.set(globalThis, "everybodysPiece", buffer);',
      },
    ],
    found: ['foreign mark', 'wrong bytes'],
    ofMedia: true,
  },
];
