// What must hold for every request of an agent: answered, forwarded with nothing but the model changed, posted at its
// exact price.

import { createHash } from 'node:crypto';
import { generateTokens, seedFrom } from '../../src/simulator/generated-text.ts';
import { fillModel, findModelHole } from '../support/body-splices.ts';
import { settledGeneration } from '../support/generation-lookup.ts';
import { decimalOfPico, expectedCostPico } from '../support/test-configuration.ts';
import { AGENTS_KEY, type AgentsGateway, PROVIDER_MODEL } from './agents-gateway.ts';
import type { TappedExchange } from './wire-tap.ts';

/** The simulated model's answer when no directive asks for another length. */
const ANSWER_TOKENS = 24;
/** How the last event of a stream begins. */
const LAST_EVENTS: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'data: [DONE]',
  '/v1/responses': 'event: response.completed',
  '/v1/messages': 'event: message_stop',
};

/** The request's body as the provider must have got it. */
function forwardedBody({ requestBody }: TappedExchange): Buffer {
  return Buffer.from(fillModel(findModelHole(requestBody.toString('utf8')), PROVIDER_MODEL));
}

/** What the simulated model says to exactly these bytes. */
export function simulatedText(exchange: TappedExchange): string {
  const tokens = generateTokens(seedFrom(forwardedBody(exchange)));
  return Array.from({ length: ANSWER_TOKENS }, () => tokens.next().value).join('');
}

/** What is wrong with one generation; its cost is null when that is unknown. */
export async function checkGeneration(
  gateway: AgentsGateway,
  exchange: TappedExchange,
): Promise<{ failures: string[]; costPico: bigint | null }> {
  const what = `${exchange.method} ${exchange.path}`;
  const failed = (failure: string) => ({ failures: [`${what}: ${failure}`], costPico: null });
  if (exchange.status !== 200)
    return failed(`${exchange.status} ${exchange.responseBody.toString('utf8').slice(0, 300)}`);
  if (!exchange.complete && !leftAfterTheEnd(exchange)) return failed('the answer is not whole');
  const sha256 = createHash('sha256').update(forwardedBody(exchange)).digest('hex');
  const call = gateway.provider.ends().find(({ requestSha256 }) => requestSha256 === sha256);
  if (call === undefined) return failed('the provider got other bytes than the request with the model replaced');
  const id = exchange.responseHeaders.get('x-service-execution-id');
  if (id === undefined) return failed('no execution id');
  const record = await settledGeneration(gateway.tollgate.url, AGENTS_KEY, id);
  const costPico = expectedCostPico({
    input: call.promptTokens,
    cached: call.cachedTokens,
    output: call.completionTokens,
  });
  const failures = [];
  if (record.totalCost !== decimalOfPico(costPico))
    failures.push(`${what}: charged ${record.totalCost}, expected ${decimalOfPico(costPico)}`);
  if (record.tokensPrompt !== String(call.promptTokens))
    failures.push(`${what}: ${record.tokensPrompt} prompt tokens, expected ${call.promptTokens}`);
  if (record.tokensCompletion !== String(call.completionTokens)) {
    failures.push(`${what}: ${record.tokensCompletion} completion tokens, expected ${call.completionTokens}`);
  }
  return { failures, costPico };
}

/** Codex hangs up as soon as it has read the last event, at times before the empty chunk behind it. */
export function leftAfterTheEnd({ complete, clientLeft, path, responseBody }: TappedExchange): boolean {
  const lastEvent = LAST_EVENTS[path.split('?')[0] ?? ''];
  return (
    !complete &&
    clientLeft &&
    lastEvent !== undefined &&
    responseBody
      .toString('utf8')
      .trimEnd()
      .split('\n')
      .slice(-2)
      .some((line) => line.startsWith(lastEvent))
  );
}

/** Names of the tools that a request offers, in any dialect. */
export function offeredTools({ requestBody }: Pick<TappedExchange, 'requestBody'>): string[] {
  const { tools = [] } = JSON.parse(requestBody.toString('utf8')) as {
    tools?: { name?: string; function?: { name?: string } }[];
  };
  return tools.flatMap(({ name, function: nested }) => name ?? nested?.name ?? []);
}

/** Whether `text` stands in some string of the request: what the model is told, not how it is spelled. */
export function tellsModel({ requestBody }: TappedExchange, text: string): boolean {
  const holds = (value: unknown): boolean => {
    if (typeof value === 'string') return value.includes(text);
    return typeof value === 'object' && value !== null && Object.values(value).some(holds);
  };
  return holds(JSON.parse(requestBody.toString('utf8')));
}
