// The simulated provider's own record of what it served: one JSON line when a call starts and one when it ends, each in
// one write. Tests compare it with what was charged, even when either side was killed.

import { closeSync, openSync, writeSync } from 'node:fs';
import type { ReceivedPart } from './apis/api.ts';

export interface CallStart {
  readonly type: 'start';
  /** The id in the provider's response body; unique across restarts. */
  readonly id: string;
  readonly at: string;
  readonly api: string;
  readonly model: string | null;
  readonly stream: boolean;
  readonly requestSha256: string;
  readonly requestBytes: number;
  /** The stored response that the call refers to. */
  readonly responseId?: string;
}

export interface CallEnd {
  readonly type: 'end';
  readonly id: string;
  readonly at: string;
  readonly api: string;
  readonly model: string | null;
  readonly stream: boolean;
  /** null: no status line was sent. */
  readonly status: number | null;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  /** Tokens handed to the socket; when `completed`, all tokens that the reply reports. */
  readonly completionTokens: number;
  /** Images handed to the socket. */
  readonly images: number;
  /** The files and fields of a form, as received. */
  readonly parts?: readonly ReceivedPart[];
  /** Whether a usage object was sent. */
  readonly usageSent: boolean;
  /** The whole reply was handed to the operating system, and no fault was requested. */
  readonly completed: boolean;
  /** Body bytes handed to the socket. */
  readonly bytesSent: number;
  readonly durationMs: number;
  readonly requestSha256: string;
  readonly responseId?: string;
}

export interface CallLog {
  write(line: CallStart | CallEnd): void;
  close(): void;
}

/** Opens `path` for appending; null means no log. */
export function openCallLog(path: string | null): CallLog {
  if (path === null) return { write: () => undefined, close: () => undefined };
  const descriptor = openSync(path, 'a', 0o600);
  let open = true;
  return {
    write(line) {
      if (open) writeSync(descriptor, `${JSON.stringify(line)}\n`);
    },
    close() {
      if (open) closeSync(descriptor);
      open = false;
    },
  };
}
