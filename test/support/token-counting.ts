// Calls the worker task count-tokens for one body, and makes bodies to count.

import countTokens, { type CountTokensInput, loadEncoding } from '../../workers/count-tokens.ts';

export type Api = CountTokensInput['api'];

export const encoder = new TextEncoder();
export const NOTHING = new Uint8Array();
export const BASE64 = 'iVBORw0KGgoAAAANSUhEUg'.repeat(100_000);

function bytesOf(body: unknown): Uint8Array {
  return encoder.encode(typeof body === 'string' ? body : JSON.stringify(body));
}

export async function countRequest(api: Api, request: unknown): Promise<number | null> {
  const input = {
    api,
    encoding: 'o200k_base',
    request: bytesOf(request),
    response: NOTHING,
    responseIsStream: false,
    responseBytesTotal: 0,
  };
  return (await countTokens({ ...input, count: { input: true, output: false } })).inputTokens;
}

export async function countReply(
  api: Api,
  body: unknown,
  options: { stream?: boolean; cut?: boolean; bytesTotal?: number } = {},
): Promise<number | null> {
  const response = bytesOf(body);
  const { stream: responseIsStream = false, cut: responseIsCut = false } = options;
  const input = { api, encoding: 'o200k_base', request: NOTHING, response, responseIsStream, responseIsCut };
  const responseBytesTotal = options.bytesTotal ?? response.byteLength;
  return (await countTokens({ ...input, responseBytesTotal, count: { input: false, output: true } })).outputTokens;
}

/** One event of a stream. */
export type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

export function events(payloads: readonly Event[]): string {
  return payloads.map((payload) => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`).join('');
}

export const countText = await loadEncoding('o200k_base');
export const TOOLS = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];
