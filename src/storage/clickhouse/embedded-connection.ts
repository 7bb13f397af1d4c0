// Adapts a connection of the embedded engine for the ClickHouse client. It writes values into the text of statements,
// and runs statements one after the other: each starts after the previous one has ended in the engine, even if the
// caller of that one no longer waits for it.

import type { ClickHouseClientConfigOptions } from '@clickhouse/client';
import { checkedLiterals } from './literals.ts';

/** chdb and the client each declare this interface, and the two types differ under exactOptionalPropertyTypes. */
export type ClientConnection = NonNullable<ClickHouseClientConfigOptions['connection']>;
type Statement = Parameters<ClientConnection['query']>[0];

/**
 * Statements queue here and not in the engine, where a waiting statement would hold one of the four threads with which
 * this process reads files. `query` and `command` replace parameters by literals; the other calls take none.
 */
export function embeddedConnection(engine: ClientConnection): Omit<ClientConnection, 'close'> {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(run: () => Promise<Result>): Promise<Result> => {
    const result = last.then(run);
    // The queue does not keep the result, which can be large.
    last = result.then(ignore, ignore);
    return result;
  };
  return {
    // The engine cannot cancel a statement. Without the signal, its promise settles when the statement has ended.
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

/** Rejects as soon as the signal aborts, while the statement goes on. */
function untilAborted<Result>(result: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
