// Asks the external detectors of policies about texts: one attempt with a deadline, a breaker for each detector, and a
// memory of verdicts, since a conversation's history comes again with every turn. Texts are remembered only as keyed
// hashes.

import { createHmac, randomBytes } from 'node:crypto';
import type { CompiledExternal, CompiledPolicy, CompiledStage } from '../../domain/guardrails/compile-policy.ts';
import {
  ANSWER_BYTES_MAX,
  type ExternalHit,
  externalHits,
  externalRequest,
  requestsFor,
} from '../../domain/guardrails/external-shapes.ts';
import type { ExternalVerdicts } from '../../domain/guardrails/external-texts.ts';
import type { External } from '../../domain/guardrails/policy.ts';
import type { Clock } from '../../platform/clock.ts';
import { EgressGuard } from '../../platform/egress/egress-guard.ts';
import { postRequest } from '../../platform/egress/post-request.ts';
import { socketsRead } from '../../platform/event-loop/tick.ts';
import type { Log } from '../../platform/log.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import { Breaker } from '../pauses/breaker.ts';

const REMEMBERED_BYTES_MAX = 16_777_216;
/** The memory of a verdict without hits: its key and its entry in the map. */
const ENTRY_BYTES = 200;
const HIT_BYTES = 100;
/** After hashing this much, other work of the event loop gets its turn. */
const HASHED_BYTES_MAX = 262_144;
/** The most requests that are under way to one detector for one body. */
const CALLS_MAX = 8;

export interface ExternalParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Organizations, too, may name private addresses (WEBHOOK_ALLOW_PRIVATE). */
  readonly allowPrivate: boolean;
  readonly metrics: MetricsRegistry;
}

export interface ExternalAnswer {
  readonly verdicts: ExternalVerdicts;
  /** The detectors that did not answer. */
  readonly silent: readonly External[];
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
  /** Guards the calls of organizations' own policies. */
  private readonly egress: EgressGuard;
  private readonly parts: ExternalParts;
  private readonly breaker = new Breaker(DETECTOR_FAILS);
  private readonly key = randomBytes(32);
  /** Verdicts by the hashes of text and detector, the oldest first. */
  private readonly remembered = new Map<string, Hits>();
  private rememberedBytes = 0;
  private readonly asked;

  constructor(parts: ExternalParts) {
    this.parts = parts;
    this.egress = new EgressGuard({ anyPort: true, allowPrivate: parts.allowPrivate, allowed: [] });
    this.asked = parts.metrics.counter(
      'tollgate_guardrail_external_total',
      'Calls of external guardrail detectors, by result',
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
    const hashes = await this.hashesOf(texts);
    const asking: Promise<ReadonlyMap<string, Hits> | null>[] = [];
    for (const found of externals) {
      asking.push(this.askOne(found, versions, organizationId, hashes).catch(() => null));
      if (externals.length > 1) await socketsRead();
    }
    const answers = await Promise.all(asking);
    return {
      verdicts: new Map(texts.map((text) => [text, answers.map((answer) => answer?.get(text) ?? NO_HITS)])),
      silent: externals.filter((_, index) => answers[index] === null).map(({ external }) => external),
    };
  }

  /** The hits by text; null: the detector did not answer. */
  private async askOne(
    compiled: CompiledExternal,
    versions: string,
    organizationId: string,
    hashes: ReadonlyMap<string, string>,
  ): Promise<ReadonlyMap<string, Hits> | null> {
    const { external } = compiled;
    // Organizations share no verdicts: the time of an answer would tell one whether another one had sent the text.
    const name = this.hashOf(`${organizationId} ${external.name} ${external.url} ${versions}`);
    const found = new Map<string, Hits>();
    const unknown: string[] = [];
    for (const [text, hash] of hashes) {
      const hits = this.remembered.get(`${hash} ${name}`);
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
        this.remember(`${hashes.get(text) ?? ''} ${name}`, hits[index] ?? NO_HITS);
      });
      return found;
    } catch (fault) {
      this.breaker.failed(name, organizationId, clock.monotonicMs());
      this.asked.labels('failed').increment();
      log.warn({ detector: external.name, organizationId, reason: reasonOf(fault) }, 'an external detector failed');
      return null;
    }
  }

  /** The hits in the order of the texts. Throws when any request fails. */
  private async call({ external, organizationId }: CompiledExternal, texts: readonly string[]): Promise<Hits[]> {
    const signal = AbortSignal.timeout(external.deadlineMs);
    const requests = requestsFor(external, texts);
    const hits: Hits[][] = [];
    let next = 0;
    const work = async (_: unknown, slot: number): Promise<void> => {
      // Each worker sends its first request in a tick of its own.
      for (let tick = 0; tick < slot; tick++) await socketsRead();
      while (next < requests.length) {
        const index = next;
        next += 1;
        const asked = requests[index] ?? [];
        const { status, body } = await postRequest({
          url: external.url,
          headers: external.secret === null ? {} : { authorization: `Bearer ${external.secret}` },
          body: Buffer.from(JSON.stringify(externalRequest(external, asked))),
          signal,
          // The platform's own policies may name any machine of the operator's network.
          guard: organizationId === null ? PLATFORM_EGRESS : this.egress,
          answerBytesMax: ANSWER_BYTES_MAX[external.shape],
        });
        if (status < 200 || status > 299) throw new Error(`answered ${status}`);
        hits[index] = externalHits(external, asked, JSON.parse(body.toString('utf8')));
      }
    };
    await Promise.all(Array.from({ length: Math.min(CALLS_MAX, requests.length) }, work));
    return hits.flat();
  }

  /** The hashes by text, computed a slice at a time, with the event loop free in between. */
  private async hashesOf(texts: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const hashes = new Map<string, string>();
    let bytes = 0;
    for (const text of texts) {
      bytes += text.length;
      if (bytes > HASHED_BYTES_MAX) {
        await socketsRead();
        bytes = text.length;
      }
      hashes.set(text, this.hashOf(text));
    }
    return hashes;
  }

  private hashOf(text: string): string {
    return createHmac('sha256', this.key).update(text).digest('base64');
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

/** A parse error's message may contain parts of an answer, and so of a text, so it is not logged. */
function reasonOf(fault: unknown): string {
  if (fault instanceof SyntaxError) return 'the answer is no JSON';
  return fault instanceof Error ? fault.message.slice(0, 200) : 'unknown';
}
