// A connection to the embedded engine, as its client uses one: values stand in the text of a statement, and statements
// run in turn, each once the one before has ended in the engine, also where nobody waits for that any more.

import type { ClickHouseClientConfigOptions } from '@clickhouse/client';
import { checkedLiterals } from './literals.ts';

/** chdb and the client declare this interface each in its own types, which differ under exactOptionalPropertyTypes. */
export type ClientConnection = NonNullable<ClickHouseClientConfigOptions['connection']>;
type Statement = Parameters<ClientConnection['query']>[0];

/**
 * A statement that waited in the engine for another one of its connection would hold one of the four threads with which
 * this process reads files. Those that read or command have values; facts are inserted as data.
 */
export function embeddedConnection(engine: ClientConnection): Omit<ClientConnection, 'close'> {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(run: () => Promise<Result>): Promise<Result> => {
    const result = last.then(run);
    // Without the result, which can be large.
    last = result.then(ignore, ignore);
    return result;
  };
  return {
    // The engine cannot end a statement: without the signal it says when it has.
    query: ({ abort_signal: signal, ...statement }) => {
      const result = inTurn(() => {
        signal?.throwIfAborted();
        return engine.query(literal(statement));
      });
      return signal === undefined ? result : untilAborted(result, signal);
    },
    command: (statement) => inTurn(() => engine.command(literal(statement))),
    exec: (statement) => inTurn(() => engine.exec(statement)),
    insert: (statement) => inTurn(() => engine.insert(statement)),
    ping: (statement) => inTurn(() => engine.ping(statement)),
  };
}

function literal<Params extends Pick<Statement, 'query' | 'query_params'>>(params: Params): Params {
  const { query_params: values, ...rest } = params;
  return values === undefined ? params : ({ ...rest, query: checkedLiterals(params.query, values) } as Params);
}

function ignore(): void {}

/** Whoever leaves is told at once. */
function untilAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
