// A whole installation for the tests of one client: every API, kind of model and refusal behind one gateway, and access
// to the simulated provider's log.

import assert from 'node:assert/strict';
import type { ApiName } from '../../src/domain/models/apis.ts';
import type { CallEnd } from '../../src/simulator/call-log.ts';
import { type Front, startFront } from './front.ts';
import { type SimulatedProvider, startSimulatedProvider } from './simulated-provider.ts';
import { type TestModel, testConfiguration } from './test-configuration.ts';
import { waitFor } from './waiting.ts';

export interface ClientInstallation {
  readonly url: string;
  readonly provider: SimulatedProvider;
  /**
   * Runs `use`, which leaves a stream of `LEAVING` in the middle and returns how many tokens it saw. Asserts that the
   * gateway leaves the provider within a second.
   */
  leaveStream(use: () => Promise<number>): Promise<void>;
  /**
   * Aborts a call once the provider has it, and resolves with what the client throws. Asserts that the gateway leaves
   * the provider before it answers.
   */
  abortCall(begin: (signal: AbortSignal) => PromiseLike<unknown>): Promise<unknown>;
  /** Returns a model that no test has used before, because a provider's pause applies to one model. */
  freshModel(): string;
  stop(): Promise<void>;
}

/** The message for a caller with a wrong key, in an API's form. */
export const WRONG_KEY =
  'The API key is not valid: it is unknown, expired or revoked. ' +
  'Check the key, and that the base URL of your client is that of the service which gave it out.';

const TEXT_APIS: readonly ApiName[] = ['chat_completions', 'responses', 'messages', 'count_tokens'];
const FRESH_MODELS = 12;

const MODELS: readonly TestModel[] = [
  { id: 'sim/small', providerModel: 'sim-small', aliases: ['sim/small-latest'], outputCap: 16_384, apis: TEXT_APIS },
  { id: 'sim/uncapped', providerModel: 'sim-large', outputCap: null, apis: TEXT_APIS },
  { id: 'sim/retired', providerModel: 'sim-mini', outputCap: 16_384, active: false, apis: TEXT_APIS },
  { id: 'sim/image', providerModel: 'sim-image', kind: 'image', outputCap: null, apis: ['images'] },
  {
    id: 'sim/judge-latest',
    providerModel: 'judge-latest',
    aliases: ['judge-latest'],
    kind: 'evaluation',
    outputCap: null,
    apis: ['systemone'],
  },
  ...Array.from({ length: FRESH_MODELS }, (_, index) => ({
    id: `sim/fresh-${index}`,
    providerModel: `sim-fresh-${index}`,
    outputCap: 16_384,
    apis: TEXT_APIS,
  })),
];

/** Names with which the model list of an installation must begin, in this order. */
export const LISTED_MODELS = [
  'sim/small',
  'sim/small-latest',
  'sim/uncapped',
  'sim/image',
  'sim/judge-latest',
  'judge-latest',
] as const;

/**
 * A prompt whose stream would take minutes, for tests that leave it in the middle; the provider waits before each
 * token.
 */
export const LEAVING = '[[sim: tokens=5000 delay_ms=50]]';
export const LEAVING_TOKENS = 5_000;
const TOKENS_IN_A_SECOND = 20;

export async function startClientInstallation(env: Readonly<Record<string, string>> = {}): Promise<ClientInstallation> {
  const provider = await startSimulatedProvider();
  let tollgate: Front;
  try {
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: provider.url, models: MODELS }),
      env,
    });
  } catch (fault) {
    await provider.stop();
    throw fault;
  }
  let freshModels = 0;
  return {
    url: tollgate.url,
    provider,
    async leaveStream(use) {
      const call = watchNextCall(provider);
      const seen = await use();
      const end = await call.leftEnd();
      assert.ok(
        seen > 0 && end.completionTokens - seen <= TOKENS_IN_A_SECOND,
        `left at ${seen} of ${end.completionTokens} tokens sent`,
      );
    },
    async abortCall(begin) {
      const call = watchNextCall(provider);
      const controller = new AbortController();
      const failure = expectFailure(begin(controller.signal));
      await call.started();
      controller.abort();
      await call.leftEnd();
      return failure;
    },
    freshModel() {
      assert.ok(freshModels < FRESH_MODELS, 'more fresh models are needed');
      freshModels += 1;
      return `sim/fresh-${freshModels - 1}`;
    },
    async stop() {
      await tollgate.stop();
      await provider.stop();
    },
  };
}

interface WatchedCall {
  /** Waits until the call has reached the provider; resolves with its id. */
  started(): Promise<string>;
  /** Waits for the end of the call, and asserts that its caller left. */
  leftEnd(): Promise<CallEnd>;
}

/** Watches the one call that begins after this. */
function watchNextCall(provider: SimulatedProvider): WatchedCall {
  const startsBefore = provider.starts().length;
  const started = async (): Promise<string> => {
    const calls = await waitFor(
      'a call to reach the provider',
      () => provider.starts().slice(startsBefore),
      (starts) => starts.length > 0,
    );
    assert.equal(calls.length, 1, 'the client called once');
    return calls[0]?.id ?? '';
  };
  return {
    started,
    async leftEnd() {
      const id = await started();
      const end = await waitFor(
        'the provider to be left',
        () => provider.ends().find((found) => found.id === id),
        (found) => found !== undefined,
      );
      assert.ok(end !== undefined && !end.completed, 'the provider was left before it was done');
      return end;
    },
  };
}

/** Resolves with the error that the call is rejected with. */
export async function expectFailure(call: PromiseLike<unknown>): Promise<unknown> {
  let answer: unknown;
  try {
    answer = await call;
  } catch (error) {
    return error;
  }
  assert.fail(`the call was not refused, but answered ${JSON.stringify(answer)}`);
}
