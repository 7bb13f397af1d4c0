// Sends one HTTP request on a connection of its own, and returns the response's exact bytes and whether it was
// complete. In contract tests the response is compared with the product's OpenAPI document.

import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { checkAnswer, OWN_REFUSAL_HEADER } from './documented-answers.ts';

export interface HttpCall {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: Buffer | string;
  /**
   * The provider's reply deliberately has no documented format, so its relayed bytes are not compared with the
   * document.
   */
  readonly isOffFormat?: boolean;
  /** The body is sent with a Transfer-Encoding instead of its length. */
  readonly isChunked?: boolean;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** False when the connection was cut before the end that the framing announced. */
  readonly complete: boolean;
}

/** Rejects when the connection ends before a status line. */
export async function httpCall(url: string, call: HttpCall = {}): Promise<HttpAnswer> {
  const body = call.body === undefined ? null : Buffer.from(call.body);
  const method = call.method ?? (body === null ? 'GET' : 'POST');
  const request = httpRequest(url, {
    method,
    headers: { ...call.headers, ...framingOf(body, call.isChunked === true) },
    agent: false,
  });
  const answering = answerTo(request);
  request.end(body ?? undefined);
  const answer = await answering;
  // A refusal is the product's own, whatever the provider answers.
  const isChecked = call.isOffFormat !== true || answer.headers[OWN_REFUSAL_HEADER] !== undefined;
  if (answer.complete && isChecked) await checkAnswer(url, method, answer);
  return answer;
}

/** Collects the answer to a request that is being sent. */
export function answerTo(request: ClientRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      const done = (complete: boolean): void =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks), complete });
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => done(response.complete));
      response.on('error', () => done(false));
    });
  });
}

function framingOf(body: Buffer | null, isChunked: boolean): Record<string, string> {
  if (isChunked) return { 'transfer-encoding': 'chunked' };
  return body === null ? {} : { 'content-length': String(body.length) };
}
