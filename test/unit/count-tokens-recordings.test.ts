// Our own token counts of recorded Responses and Messages exchanges, beside what their providers counted.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import countTokens, { type CountTokensOutput } from '../../workers/count-tokens.ts';
import { loadRecordedExchanges, type RecordedExchange } from '../support/recorded-exchanges.ts';
import { type Api, countReply, NOTHING } from '../support/token-counting.ts';

describe('recordings', () => {
  const isTextOnly = ({ requestBody }: RecordedExchange): boolean =>
    requestBody !== null &&
    !/"tools"|"(?:input_)?(?:image|file|audio|document)"|"previous_response_id"|"json_schema"|"thinking"|"output_/.test(
      requestBody.toString(),
    );
  const modelOf = ({ responseBody }: RecordedExchange): string =>
    /"model": ?"([^"]+)"/.exec(responseBody.toString())?.[1] ?? '';
  const count = async (api: Api, { requestBody, responseBody, stream }: RecordedExchange): Promise<CountTokensOutput> =>
    countTokens({
      api,
      encoding: 'o200k_base',
      request: requestBody ?? NOTHING,
      response: responseBody,
      responseIsStream: stream,
      responseBytesTotal: responseBody.byteLength,
      count: { input: true, output: true },
    });

  const responses = loadRecordedExchanges('responses').filter((exchange) => exchange.expectedUsage !== null);
  test('Responses of models whose tokenizer this is: the input to the token, the output but for its end', {
    skip: responses.length === 0 && 'the recordings are not here',
  }, async () => {
    let checked = 0;
    for (const exchange of responses.filter(
      (candidate) => /^gpt-4(o|\.1)/.test(modelOf(candidate)) && isTextOnly(candidate),
    )) {
      const { inputTokens, outputTokens } = await count('responses', exchange);
      assert.equal(inputTokens, exchange.expectedUsage?.inputTokens, exchange.name);
      assert.equal(outputTokens, (exchange.expectedUsage?.outputTokens ?? 0) - 1, exchange.name);
      checked++;
    }
    assert.ok(checked >= 20, `${checked} exchanges`);
  });
  test('Responses with tools: within 0.8 and 1.6 of what the provider counted, which words them otherwise ' +
    'than their JSON', {
    skip: responses.length === 0 && 'the recordings are not here',
  }, async () => {
    let checked = 0;
    for (const exchange of responses.filter(
      (candidate) => modelOf(candidate).startsWith('gpt-') && /"tools"/.test(candidate.requestBody?.toString() ?? ''),
    )) {
      // A reply to a tool's result has hidden reasoning in its input.
      if (/"function_call_output"|web_search/.test(exchange.requestBody?.toString() ?? '')) continue;
      const { inputTokens } = await count('responses', exchange);
      const ratio = (inputTokens ?? 0) / (exchange.expectedUsage?.inputTokens ?? 0);
      assert.ok(ratio > 0.8 && ratio < 1.6, `${exchange.name}: ${inputTokens}, ${exchange.expectedUsage?.inputTokens}`);
      checked++;
    }
    assert.ok(checked >= 5, `${checked} exchanges`);
  });

  const messages = loadRecordedExchanges('messages').filter((exchange) => exchange.expectedUsage !== null);
  test('Messages: near what another tokenizer counted', {
    skip: messages.length === 0 && 'the recordings are not here',
  }, async () => {
    let inputs = 0;
    let outputs = 0;
    for (const exchange of messages.filter(isTextOnly)) {
      const { inputTokens, outputTokens } = await count('messages', exchange);
      const expected = {
        input: exchange.expectedUsage?.inputTokens ?? 0,
        output: exchange.expectedUsage?.outputTokens ?? 0,
      };
      assert.ok(
        (inputTokens ?? 0) / expected.input > 0.6 && (inputTokens ?? 0) / expected.input < 1.5,
        `${exchange.name}: ${inputTokens}, ${expected.input}`,
      );
      inputs++;
      if (expected.output < 50) continue;
      assert.ok(
        (outputTokens ?? 0) / expected.output > 0.6 && (outputTokens ?? 0) / expected.output < 1.5,
        `${exchange.name}: ${outputTokens}, ${expected.output}`,
      );
      outputs++;
    }
    assert.ok(inputs >= 10 && outputs >= 3, `${inputs} and ${outputs} exchanges`);
  });
  test('each reply counts the same by its deltas and by its last event', {
    skip: responses.length === 0 && 'the recordings are not here',
  }, async () => {
    let checked = 0;
    for (const exchange of responses.filter((candidate) => candidate.stream)) {
      const body = exchange.responseBody.toString();
      const last = /^data: ?(\{.*"type": ?"response\.completed".*)$/m.exec(body)?.[1];
      if (last === undefined || !/"response\.output_text\.delta"/.test(body)) continue;
      const output = (JSON.parse(last) as { response: { output?: unknown[] } }).response.output ?? [];
      if (output.length === 0) continue;
      const whole = await countReply('responses', { output });
      const { outputTokens } = await count('responses', exchange);
      assert.equal(outputTokens, whole, exchange.name);
      checked++;
    }
    assert.ok(checked >= 15, `${checked} exchanges`);
  });
});
