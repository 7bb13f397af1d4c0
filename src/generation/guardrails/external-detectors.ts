// Asks the external detectors of policies about texts: one attempt with a deadline, a breaker for each, and a memory of
// verdicts, since a conversation's history comes again with every turn. Texts and verdicts are remembered by a keyed
// hash alone.

import { createHmac, randomBytes } from 'node:crypto';
import type { CompiledExternal, CompiledPolicy, CompiledStage } from '../../domain/guardrails/compile-policy.ts';
import {
  type ExternalHit,
  externalHits,
  externalRequest,
  TEXTS_PER_REQUEST,
} from '../../domain/guardrails/external-shapes.ts';
import type { ExternalVerdicts } from '../../domain/guardrails/external-texts.ts';
import type { Clock } from '../../platform/clock.ts';
import { EgressGuard } from '../../platform/egress-guard.ts';
import type { Log } from '../../platform/log.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import { postRequest } from '../../platform/post-request.ts';
import { Breaker } from '../admission/breaker.ts';

const REMEMBERED_BYTES_MAX = 16_777_216;
/** Of a verdict without hits: its key, and what a map has for an entry. */
const ENTRY_BYTES = 150;
const HIT_BYTES = 100;
/** Read on the event loop. */
const ANSWER_BYTES_MAX = 1_048_576;
/** Requests to one detector for one body that are under way together. */
const CALLS_MAX = 8;

export interface ExternalParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Organizations may name private addresses, too (WEBHOOK_ALLOW_PRIVATE). */
  readonly allowPrivate: boolean;
  readonly metrics: MetricsRegistry;
}

export interface ExternalAnswer {
  readonly verdicts: ExternalVerdicts;
  /** Some detector did not answer, and texts pass then. */
  readonly isMissed: boolean;
  /** Some detector did not answer, and requests are refused then. */
  readonly isRefused: boolean;
}

const DETECTOR_FAILS = {
  failuresMax: 5,
  withinMs: Number.POSITIVE_INFINITY,
  pauseMs: 10_000,
  pauseMsMax: 10_000,
} as const;

type Hits = readonly ExternalHit[];

const PLATFORM_EGRESS = new EgressGuard({ anyPort: true, allowPrivate: true, allowed: [] });

export class ExternalDetectors {
  /** For organizations' own policies. */
  private readonly egress: EgressGuard;
  private readonly parts: ExternalParts;
  private readonly breaker = new Breaker(DETECTOR_FAILS);
  private readonly key = randomBytes(32);
  /** The oldest is first. */
  private readonly remembered = new Map<string, Hits>();
  private rememberedBytes = 0;
  private readonly asked;

  constructor(parts: ExternalParts) {
    this.parts = parts;
    this.egress = new EgressGuard({ anyPort: true, allowPrivate: parts.allowPrivate, allowed: [] });
    this.asked = parts.metrics.counter(
      'tollgate_guardrail_external_total',
      'Questions to external detectors of guardrails, by result',
      ['result'],
    );
  }

  /** Never rejects. */
  async ask(
    { policies }: CompiledPolicy,
    { externals }: CompiledStage,
    organizationId: string,
    texts: readonly string[],
  ): Promise<ExternalAnswer> {
    const versions = policies.map(({ id, version }) => `${id}@${version}`).join(' ');
    const answers = await Promise.all(
      externals.map((found) => this.askOne(found, versions, organizationId, texts).catch(() => null)),
    );
    const missed = externals.filter((_, index) => answers[index] === null);
    return {
      verdicts: new Map(texts.map((text) => [text, answers.map((answer) => answer?.get(text) ?? NO_HITS)])),
      isMissed: missed.length > 0,
      isRefused: missed.some(({ external }) => external.onFailure === 'refuse'),
    };
  }

  /** null: it did not answer. */
  private async askOne(
    compiled: CompiledExternal,
    versions: string,
    organizationId: string,
    texts: readonly string[],
  ): Promise<ReadonlyMap<string, Hits> | null> {
    const { external } = compiled;
    const name = `${external.name} ${external.url} ${versions}`;
    const found = new Map<string, Hits>();
    const unknown: string[] = [];
    for (const text of texts) {
      const hits = this.remembered.get(this.keyOf(name, text));
      if (hits === undefined) unknown.push(text);
      else found.set(text, hits);
    }
    if (unknown.length === 0) return found;
    const { clock, log } = this.parts;
    if (!this.breaker.admits(name, organizationId, clock.monotonicMs())) {
      this.asked.labels('breaker_open').increment();
      return null;
    }
    try {
      const hits = await this.call(compiled, unknown);
      this.breaker.answered(name, organizationId);
      this.asked.labels('answered').increment();
      unknown.forEach((text, index) => {
        found.set(text, hits[index] ?? NO_HITS);
        this.remember(this.keyOf(name, text), hits[index] ?? NO_HITS);
      });
      return found;
    } catch (fault) {
      this.breaker.failed(name, organizationId, clock.monotonicMs());
      this.asked.labels('failed').increment();
      log.warn({ detector: external.name, organizationId, reason: reasonOf(fault) }, 'an external detector failed');
      return null;
    }
  }

  /** In the order of the texts; throws where any request fails. */
  private async call({ external, organizationId }: CompiledExternal, texts: readonly string[]): Promise<Hits[]> {
    const size = TEXTS_PER_REQUEST[external.shape];
    const signal = AbortSignal.timeout(external.deadlineMs);
    const batches = Array.from({ length: Math.ceil(texts.length / size) }, (_, index) =>
      texts.slice(index * size, (index + 1) * size),
    );
    const hits: Hits[][] = [];
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < batches.length) {
        const index = next;
        next += 1;
        const batch = batches[index] ?? [];
        const { status, body } = await postRequest({
          url: external.url,
          headers: external.secret === null ? {} : { authorization: `Bearer ${external.secret}` },
          body: Buffer.from(JSON.stringify(externalRequest(external, batch))),
          signal,
          // The platform's own policies may name a machine beside it.
          guard: organizationId === null ? PLATFORM_EGRESS : this.egress,
          answerBytesMax: ANSWER_BYTES_MAX,
        });
        if (status < 200 || status > 299) throw new Error(`answered ${status}`);
        hits[index] = externalHits(external, batch, JSON.parse(body.toString('utf8')));
      }
    };
    await Promise.all(Array.from({ length: Math.min(CALLS_MAX, batches.length) }, work));
    return hits.flat();
  }

  private keyOf(name: string, text: string): string {
    return createHmac('sha256', this.key).update(name).update('\n').update(text).digest('base64');
  }

  private remember(key: string, hits: Hits): void {
    if (this.remembered.has(key)) return;
    this.remembered.set(key, hits);
    this.rememberedBytes += bytesOf(hits);
    for (const [oldest, forgotten] of this.remembered) {
      if (this.rememberedBytes <= REMEMBERED_BYTES_MAX) return;
      this.remembered.delete(oldest);
      this.rememberedBytes -= bytesOf(forgotten);
    }
  }
}

const NO_HITS: Hits = [];

function bytesOf(hits: Hits): number {
  return ENTRY_BYTES + hits.length * HIT_BYTES;
}

/** The message of an error may have parts of an answer, and so of a text. */
function reasonOf(fault: unknown): string {
  if (fault instanceof SyntaxError) return 'the answer is no JSON';
  return fault instanceof Error ? fault.message.slice(0, 200) : 'unknown';
}
