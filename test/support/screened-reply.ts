// Screens a reply in this process without a gateway: what its client gets, and what is reported.

import assert from 'node:assert/strict';
import type { CompiledPolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { StageReport } from '../../src/domain/guardrails/screening-report.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { ScreeningWorkers } from '../../src/generation/guardrails/screen-body.ts';
import { ScreenReply } from '../../src/generation/guardrails/screen-reply.ts';
import { Screening } from '../../src/generation/guardrails/screening.ts';
import { CapturedReply } from '../../src/generation/reply/capture.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import type { ReplyHandler } from '../../src/upstream/reply-handler.ts';

/** Workers for which every body or event takes too long. */
export const LATE_WORKERS = {
  run: async () => ({ ok: false as const, reason: 'deadline' as const }),
} as unknown as ScreeningWorkers;

export interface RepliedWith {
  readonly isStream: boolean;
  readonly reads: readonly Buffer[];
  readonly headers?: readonly string[];
  /** The clock advances by this much each time it is read. */
  readonly stepMs?: number;
}

export interface ScreenedReply {
  readonly ended: boolean;
  readonly out: string;
  /** The bytes of `out` that had been sent when the provider's last byte had arrived, before the end of the reply. */
  readonly earlyBytes: number;
  /** The ticks of the event loop in which something was passed on. */
  readonly ticks: number;
  readonly refused: string | null;
  readonly report: StageReport | undefined;
}

export async function screenedReply(
  compiled: CompiledPolicy,
  { isStream, reads, headers = [], stepMs = 0 }: RepliedWith,
): Promise<ScreenedReply> {
  let nowMs = 0;
  const out: Buffer[] = [];
  let ticks = 0;
  let inTick = false;
  const { promise, resolve: end } = Promise.withResolvers<boolean>();
  const next = {
    onReplyStart: () => {},
    onReplyData: (bytes: Buffer) => {
      out.push(Buffer.from(bytes));
      if (!inTick) ticks += 1;
      inTick = true;
      setImmediate(() => {
        inTick = false;
      });
    },
    onReplyPause: () => {},
    onReplyEnd: () => end(true),
  } as unknown as ReplyHandler;
  const screening = new Screening(compiled, { action: 'a', count: 'c' });
  const reply = new CapturedReply();
  const head = ['content-type', isStream ? 'text/event-stream' : 'application/json', ...headers];
  reply.takeHead(200, head);
  const screen = new ScreenReply(next, {
    screening,
    compiled,
    reply,
    dialect: chatCompletions,
    exchange: { renderRefusal: ({ kind }: { kind: string }) => ({ body: kind }) } as unknown as Exchange,
    workers: LATE_WORKERS,
    clock: { nowMs: () => 0, monotonicMs: () => (nowMs += stepMs) },
    relay: {
      abortCall: () => {},
      refuseInstead: () => {},
      onOwnFault: (fault) => assert.fail(String(fault)),
    },
  });
  screen.onReplyStart(200, head);
  for (const read of reads) screen.onReplyData(read);
  const earlyBytes = out.reduce((bytes, { length }) => bytes + length, 0);
  screen.onReplyEnd();
  const ended = await promise;
  const refused = reply.blocked?.kind ?? null;
  return { ended, out: Buffer.concat(out).toString(), earlyBytes, ticks, refused, report: screening.report?.output };
}
