// The provider of the guardrail steps: a script that lets an agent run its shell twice and then answers, with what it
// was shown of the values, and that says a forbidden word when it is asked to.

import { randomUUID } from 'node:crypto';
import type { ReceivedRequest, Script, ScriptedReply } from '../support/fake-upstream.ts';
import {
  chatReply,
  type LoopReply,
  messagesReply,
  type RenderLoopReply,
  responsesReply,
} from '../support/tool-loop-replies.ts';
import type { Agent } from './agent.ts';
import { offeredTools } from './exchange-checks.ts';

type Json = Readonly<Record<string, unknown>>;

/** What the steps ask for; each begins with it. */
export const PROMPTS = {
  loop: 'Find out the address',
  again: 'Say it once more',
  word: 'Say the word',
} as const;
export const FORBIDDEN_WORD = 'opensesame';
/** In the agents' project; its only line is `asked ADDRESS`. */
export const CONTACT_FILE = 'contact.txt';
/** Where the agents' shell writes what the arguments of its calls said. */
export const SEEN_FILE = 'seen.txt';
export const CALLS = 2;
/** Providers send events as they come, not all at once. */
const PIECES = { kind: 'random', seed: 1, bytesMax: 4_096 } as const;
/** More than waits in the gateway, so that the agent has got a part of the reply when it is blocked. */
const SAID_BEFORE = 'This is what I can say about it. '.repeat(60);

export class LoopProvider {
  /** Whose tools are called. */
  agent: Agent | null = null;

  readonly answer = ({ path, body }: ReceivedRequest): Script => {
    if (path.includes('count_tokens')) return { body: JSON.stringify({ input_tokens: 9 }) };
    const text = body.toString();
    const { stream } = JSON.parse(text) as { stream?: boolean };
    const reply = this.#replyTo(text, offeredTools({ requestBody: body }));
    if (stream === true) return { ...renderOf(path)(reply), split: PIECES };
    return wholeReply(path, 'text' in reply.says ? reply.says.text : 'A call is streamed only.');
  };

  #replyTo(text: string, tools: readonly string[]): LoopReply {
    if (tools.length === 0) return { thinking: null, says: { text: 'A title' } };
    if (text.includes(PROMPTS.word))
      return { thinking: null, says: { text: `${SAID_BEFORE}The word is ${FORBIDDEN_WORD}, really.` } };
    const asked = /address of (TGE\d{12})/.exec(text)?.[1] ?? 'nobody';
    const calls = callsIn(text);
    const id = `m_${randomUUID()}`;
    const thinking = `They ask about ${asked}.`;
    const shellTools = this.agent?.shellTools ?? {};
    const tool = tools.find((name) => Object.hasOwn(shellTools, name));
    if (calls < CALLS && tool !== undefined) {
      const command = `echo "${asked}" >> ${SEEN_FILE} && cat ${CONTACT_FILE}`;
      return {
        id,
        thinking,
        says: { tool, callId: `call_${calls + 1}`, arguments: JSON.stringify(shellTools[tool]?.(command)) },
      };
    }
    const told = /asked (TGE\d{12})/.exec(text)?.[1] ?? 'nobody';
    return { id, thinking, says: { text: `Found: ${asked} knows ${told}.` } };
  }
}

/** How many results of calls a request has. */
function callsIn(text: string): number {
  return text.match(/"type":\s*"(?:tool_result|function_call_output)"|"role":\s*"tool"/g)?.length ?? 0;
}

function renderOf(path: string): RenderLoopReply {
  if (path.endsWith('/responses')) return responsesReply;
  return path.endsWith('/chat/completions') ? chatReply : messagesReply;
}

function wholeReply(path: string, text: string): ScriptedReply {
  const usage = { input_tokens: 9, output_tokens: 9 };
  const content = [{ type: 'text', text }];
  const body: Json = path.endsWith('/chat/completions')
    ? {
        choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 },
      }
    : { id: 'm', type: 'message', role: 'assistant', model: 'small', content, stop_reason: 'end_turn', usage };
  return { body: JSON.stringify(body) };
}
