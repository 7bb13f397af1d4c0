// Keeps stored responses in memory, evicting the oldest; each is visible only to the credential that made it. A
// background response counts as finished once its time has passed.

import type { Json } from '../json-fields.ts';

const RESPONSES_MAX = 10_000;
const KEPT_BYTES_MAX = 128 * 1024 * 1024;

export interface StoredResponse {
  readonly id: string;
  readonly caller: string;
  /** The response object in a given state. */
  render(status: 'in_progress' | 'cancelled' | 'final'): Json;
  readonly inputItems: readonly Json[];
  /** The tokens with which the next response of the conversation starts. */
  readonly contextTokens: number;
  readonly background: boolean;
  /** The time at which it is finished, by `performance.now()`. */
  readonly finishedAtMs: number;
  /** The `[[sim/saved: ...]]` directives of its input, which apply to operations on it. */
  readonly directives: string;
  readonly bytes: number;
}

export class ResponseStore {
  private readonly responses = new Map<string, { readonly stored: StoredResponse; cancelled: boolean }>();
  private bytes = 0;

  keep(stored: StoredResponse): void {
    this.remove(stored.id);
    this.responses.set(stored.id, { stored, cancelled: false });
    this.bytes += stored.bytes;
    for (const oldest of this.responses.keys()) {
      if (this.responses.size <= RESPONSES_MAX && this.bytes <= KEPT_BYTES_MAX) break;
      this.remove(oldest);
    }
  }

  find(id: string, caller: string): StoredResponse | null {
    const stored = this.responses.get(id)?.stored;
    return stored?.caller === caller ? stored : null;
  }

  /** The response object in its present state. */
  renderNow(stored: StoredResponse): Json {
    if (this.responses.get(stored.id)?.cancelled === true) return stored.render('cancelled');
    return stored.render(performance.now() < stored.finishedAtMs ? 'in_progress' : 'final');
  }

  /** A finished response stays as it is, as with OpenAI. */
  cancel(stored: StoredResponse): void {
    const entry = this.responses.get(stored.id);
    if (entry !== undefined && performance.now() < stored.finishedAtMs) entry.cancelled = true;
  }

  delete(stored: StoredResponse): void {
    this.remove(stored.id);
  }

  private remove(id: string): void {
    const entry = this.responses.get(id);
    if (entry === undefined) return;
    this.responses.delete(id);
    this.bytes -= entry.stored.bytes;
  }
}
