// Finds out why a gateway refused an organization whose own keys are never disturbed, from the record of the request
// (which names the keys that could not serve, and why) and from what the organization is shown of its keys. A timeout
// on an overloaded machine is told apart from trouble that happened to others.

import { httpCall } from '../support/http-call.ts';
import { pause } from '../support/waiting.ts';
import { askAgain } from './ask-again.ts';
import type { Exchange } from './plan.ts';
import type { Watch } from './watch.ts';
import { warmKey } from './world.ts';

const RECORDED_MS = 20_000;
const LOOK_AGAIN_MS = 250;

interface KeyFailure {
  readonly credential_id: string;
  readonly reason: string;
  readonly status: number | null;
}

export interface OddRefusal {
  readonly exchange: Exchange;
  readonly status: number;
  readonly code: string;
  /** Reads what the organization is shown of its keys at that moment. */
  readonly keys: () => Promise<unknown>;
}

export class OwnRefusals {
  private readonly url: string;
  private readonly looking = new Set<Promise<void>>();

  constructor(url: string) {
    this.url = url;
  }

  /** Examines a refusal. Its result comes later: `settled` waits for it. */
  look(refusal: OddRefusal, watch: Watch): void {
    const looking = this.judge(refusal, watch)
      .catch((fault: unknown) => watch.violation('foreign pause', `${tell(refusal)}; not looked up: ${String(fault)}`))
      .finally(() => this.looking.delete(looking));
    this.looking.add(looking);
  }

  async settled(): Promise<void> {
    await Promise.all(this.looking);
  }

  private async judge(refusal: OddRefusal, watch: Watch): Promise<void> {
    const { exchange, keys } = refusal;
    const shown = await keys();
    const record = await this.recordOf(exchange);
    const failures = (record?.['own_failures'] ?? []) as readonly KeyFailure[];
    // Nobody answered in time, as when a process is stopped: no answer to another organization can be the reason.
    const isOwnTimeout = failures.length > 0 && failures.every(({ reason }) => reason === 'provider_failed');
    if (isOwnTimeout && failures.every(({ status }) => status === null))
      watch.count(watch.faults, 'own key not reached in time');
    else
      watch.violation('foreign pause', `${tell(refusal)}; record: ${JSON.stringify(record)}; ${JSON.stringify(shown)}`);
  }

  private async recordOf({ tenant, executionId }: Exchange): Promise<Readonly<Record<string, unknown>> | null> {
    const headers = { authorization: `Bearer ${warmKey(tenant, false)}` };
    const endMs = performance.now() + RECORDED_MS;
    for (;;) {
      const { status, body } = await askAgain(() =>
        httpCall(`${this.url}/v1/generation?id=${executionId}`, { headers }),
      );
      if (status === 200) return (JSON.parse(body.toString()) as { data: Record<string, unknown> }).data;
      if (performance.now() > endMs) return null;
      await pause(LOOK_AGAIN_MS);
    }
  }
}

function tell({ exchange, status, code }: OddRefusal): string {
  const { index, tenant, kind, calledProviders } = exchange;
  return `exchange ${index} of tenant ${tenant} (${kind}): ${status} ${code}; called: ${calledProviders.join(' ')}`;
}
