// The simulated provider's own account of what it served: one JSON line when a call starts and one when it ends, each
// in one write, so that tests can compare what was charged with what was done even when either side was killed.

import { closeSync, openSync, writeSync } from 'node:fs';
import type { ReceivedPart } from './apis/api.ts';

export interface CallStart {
  readonly type: 'start';
  /** The id in the provider's response body; unique over restarts. */
  readonly id: string;
  readonly at: string;
  readonly api: string;
  readonly model: string | null;
  readonly stream: boolean;
  readonly requestSha256: string;
  readonly requestBytes: number;
  /** The stored response that the call is about. */
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
  /** Tokens that were handed to the socket, and when `completed` all that the reply reports. */
  readonly completionTokens: number;
  /** Images that were handed to the socket. */
  readonly images: number;
  /** The files and fields of a form, as they arrived. */
  readonly parts?: readonly ReceivedPart[];
  /** Whether a usage object was sent. */
  readonly usageSent: boolean;
  /** The whole reply was handed to the operating system and no fault was asked for. */
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

/** Opens `path` for appending; null keeps no log. */
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
