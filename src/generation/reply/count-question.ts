// What is asked of the worker pool where a provider reported no usage: the tokens of a request and of what was relayed
// of its reply.

import type { Buffer } from 'node:buffer';
import type { CountParams } from '../execution/measure-usage.ts';
import type { RelayParams } from './relay-params.ts';
import type { RelayedBytes } from './relayed-bytes.ts';

/** `body`: the request's, as the provider got it. */
export function countQuestion(
  { dialect, execution, tokenizer }: RelayParams,
  body: Buffer,
  relayed: RelayedBytes,
  responseIsStream: boolean,
): CountParams {
  const bounds = execution.admission.tokenBounds;
  return {
    api: dialect.api as CountParams['api'],
    encoding: tokenizer,
    request: body,
    relayed,
    responseIsStream,
    inputTokensMax: bounds?.inputTokensMax ?? body.length,
    outputTokensMax: bounds?.outputTokensMax ?? relayed.totalBytes,
  };
}
