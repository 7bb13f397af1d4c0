// Receives webhooks: keeps every message, answers as the test says, and checks signatures with a library that is not
// ours.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';

export interface ReceivedMessage {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface WebhookReceiver {
  readonly url: string;
  readonly messages: readonly ReceivedMessage[];
  /** Sets the status of the answers from now on; null: the connection is closed without an answer. */
  answerWith(status: number | null, headers?: Readonly<Record<string, string>>): void;
  close(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const messages: ReceivedMessage[] = [];
  let answer: { status: number | null; headers: Readonly<Record<string, string>> } = { status: 204, headers: {} };
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      messages.push({ headers: request.headers, body });
      if (answer.status === null) request.socket.destroy();
      else response.writeHead(answer.status, answer.headers).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?a=b`,
    messages,
    answerWith(status, headers = {}) {
      answer = { status, headers };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * Verifies a message with another implementation of Standard Webhooks; throws if the signature or the time is wrong.
 */
export async function verifySignature({ headers, body }: ReceivedMessage, secret: string): Promise<void> {
  const client = new OpenAI({ apiKey: 'unused', webhookSecret: secret });
  await client.webhooks.verifySignature(body, headers as Record<string, string>);
}
