// Classifier calls: the client's text within a request of the gateway's own. Checks what it shows, and with which
// credential, and answers with a tier.

import type { Socket } from 'node:net';
import { findExchange, findMarks } from './marks.ts';
import { ownTraits, readCredential } from './own-keys.ts';
import type { Exchange } from './plan.ts';
import type { ProviderParts } from './provider-run.ts';
import type { Watch } from './watch.ts';
import { hasOwnKeys } from './world.ts';

export function answerClassifierCall(head: string, body: string, socket: Socket, parts: ProviderParts): void {
  const watch = parts.watch();
  watch.calls += 1;
  watch.checkedBytes += head.length + body.length;
  const index = findExchange(body);
  const exchange = index === null ? undefined : parts.findExchange(index);
  if (exchange === undefined)
    watch.violation('stray call', `judge: a request of no exchange that is open: ${body.slice(0, 200)}`);
  else checkCall(exchange, head, body, watch);
  const tier = (index ?? 0) % 2 === 0 ? 'light' : 'strong';
  const answer = `{"answers":{"tier":{"type":"choice","choice":"${tier}","confidence":0.9,"probabilities":{"${tier}":0.9}}},"usage":{"input_tokens":3}}`;
  const send = (): void =>
    void socket.write(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`,
    );
  const waits = exchange === undefined ? null : (parts.classifierWaits?.(exchange) ?? null);
  if (waits === null) send();
  else void waits.then(send);
}

function checkCall(exchange: Exchange, head: string, body: string, watch: Watch): void {
  if (exchange.unclassifiable !== null)
    watch.violation('stray call', `judge: exchange ${exchange.index}: ${exchange.unclassifiable}`);
  checkCredential(exchange, head, watch);
  const shown = exchange.planted?.hidden.find((value) => body.includes(value));
  if (shown !== undefined) watch.violation('wrong bytes', `judge: exchange ${exchange.index} shows ${shown}`);
  for (const { tenant, exchange: of, kind } of findMarks(body)) {
    if (tenant !== exchange.tenant || (of !== exchange.index && of !== 0) || kind !== 'p')
      watch.violation('foreign mark', `judge: exchange ${exchange.index} has tenant ${tenant}, exchange ${of}`);
  }
}

/** The organization chooses whose key asks the classifier. That key has a mark, and nothing else in the head does. */
function checkCredential({ tenant }: Exchange, head: string, watch: Watch): void {
  const shown = readCredential(head, 'judge');
  const isOwn = hasOwnKeys(tenant) && ownTraits(tenant).isOwnClassifier;
  const isRight = isOwn ? shown.owner === 'organization' && shown.tenant === tenant : shown.owner === 'service';
  if (!isRight || findMarks(head).length > (isOwn ? 1 : 0))
    watch.violation('wrong credential', `judge: tenant ${tenant}: ${head}`);
}
