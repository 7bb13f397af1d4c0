// The streams of a run: an installation's configuration with two organizations, a provider that is well and one that
// fails, and all clients that are open on it.

import { KEYS } from '../support/test-configuration.ts';
import { type KillOrganization, UNLIMITED } from './kill-world.ts';
import { type SeenStream, StreamClient, type StreamPlace } from './streams-client.ts';
import { EventTimes } from './streams-figures.ts';
import type { StreamPlan } from './streams-plan.ts';

/** Of a provider; on a busy machine. */
const FIRST_BYTE_MS = 20_000;
const PLAIN = { ...UNLIMITED, clients: 0, delayMsMax: 0, creditPico: 1_000_000n * 10n ** 12n } as const;
export const STREAM_ORGANIZATIONS: readonly KillOrganization[] = [
  { ...PLAIN, slug: 'acme', key: KEYS.acme },
  { ...PLAIN, slug: 'free', key: KEYS.free, creditPico: null },
];

export class Streams {
  readonly seen: SeenStream[] = [];
  readonly times = new EventTimes();
  openNow = 0;
  private readonly open = new Set<StreamClient>();
  private readonly port: number;

  constructor(url: string) {
    this.port = Number(new URL(url).port);
  }

  run(plan: StreamPlan, onOpen: () => void = () => undefined): Promise<SeenStream> {
    const [organization] =
      Number(plan.order.id.split('-').at(-1)) % 3 === 0 ? STREAM_ORGANIZATIONS.slice(1) : STREAM_ORGANIZATIONS;
    const name = plan.order.fault === null ? 'steady' : 'failing';
    const place: StreamPlace = {
      port: this.port,
      key: (organization as KillOrganization).key,
      model: `sim/${name}`,
      providerModel: `${name}-1`,
      onEvent: (tookMs) => this.times.add(tookMs),
      onOpen: () => {
        this.openNow += 1;
        onOpen();
      },
    };
    const client = new StreamClient(plan, place);
    this.open.add(client);
    return client.ended.then((seen) => {
      if (seen.status !== null) this.openNow -= 1;
      this.open.delete(client);
      this.seen.push(seen);
      return seen;
    });
  }

  /** Also of those whose reply has not begun. */
  openCount(): number {
    return this.open.size;
  }

  /** Who had stopped reads what has come. */
  readOn(): void {
    for (const client of this.open) client.readOn();
  }
}

export function streamsConfiguration(upstreamUrl: string, idleMs: number): string {
  const timeouts = `timeouts: { first_byte_ms: ${FIRST_BYTE_MS}, idle_ms: ${idleMs} }`;
  const price = '{ input: "1.25", cached_input: "0.125", cache_write: "1.5", output: "10.00" }';
  const names = ['steady', 'failing'] as const;
  return `providers:
${names.map((name) => `  - { id: ${name}, base_url: ${upstreamUrl}, api_key: sk-${name}, ${timeouts} }\n`).join('')}models:
${names
  .map(
    (name) =>
      `  - { id: sim/${name}, context_length: 1000000, max_output_tokens: 500000, tokenizer: o200k_base, served_by: ` +
      `[{ provider: ${name}, model: ${name}-1, apis: [chat_completions], price: ${price} }] }\n`,
  )
  .join('')}organizations:
${STREAM_ORGANIZATIONS.map(
  ({ slug, key, creditPico }) => `  - slug: ${slug}
    billing: ${creditPico === null ? 'none' : 'prepaid\n    opening_credit: "1000000"'}
    users: [{ email: o@${slug}.test, role: owner }]
    keys: [{ name: only, user: o@${slug}.test, secret: ${key} }]
`,
).join('')}`;
}
